//! SIGPIPE: a write to a closed pipe is an error here, the signal itself an end.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this process was started with broken pipes ending it, and ignores them now.
static BROKEN_PIPES_ENDED_IT: AtomicBool = AtomicBool::new(false);

/// Makes writing to a closed pipe an error in place of the end of the process: what is to be
/// cleaned up must be.
///
/// `main` is C's own, so that Rust's start has not done this: what nvcc is handed must be as it
/// came.
pub fn ignore_broken_pipes() {
    // SAFETY: no handler is installed, only what happens by default is changed.
    let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    if before == libc::SIG_DFL {
        BROKEN_PIPES_ENDED_IT.store(true, Ordering::Relaxed);
    }
}

/// Treats a SIGPIPE that another process sent as SIGTERM. One from a failed write of this
/// process is ignored.
///
/// make, killed by a SIGPIPE to its group, would leave the builds under it running.
pub(super) fn end_on_sent_pipe_signals() {
    extern "C" fn on_signal(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        // SAFETY: the kernel gives a whole `siginfo_t`, whose sender is this process where a write
        // failed. Both calls are allowed in a signal handler.
        unsafe {
            let own = libc::getpid();
            if (*info).si_pid() != own {
                libc::kill(own, libc::SIGTERM);
            }
        }
    }
    if !BROKEN_PIPES_ENDED_IT.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: all zero is a valid `sigaction`, and the handler is of the kind that SA_SIGINFO asks
    // for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(_, _, _) as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(libc::SIGPIPE, &action, std::ptr::null_mut());
    }
}

/// Has broken pipes end this process where they did when it was started: for a program that
/// takes its place.
pub(super) fn restore_broken_pipes() {
    if BROKEN_PIPES_ENDED_IT.load(Ordering::Relaxed) {
        // SAFETY: a handler is taken away, none is installed.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
}
