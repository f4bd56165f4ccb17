//! nvtune gives its process to another program, which must not see that nvtune was there.

use super::signals::adopt_orphans;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Errors of `execv` that are for a moment: the system is short of memory or processes.
const PASSING: [i32; 4] = [libc::EAGAIN, libc::ENOMEM, libc::EINTR, libc::EMFILE];

/// How often `execv` is tried, and how long to wait in between.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// Whether this process was started with broken pipes ending it, and ignores them now.
static BROKEN_PIPES_ENDED_IT: AtomicBool = AtomicBool::new(false);

/// Makes writing to a closed pipe an error in place of the end of the process: what is to be cleaned up must be.
///
/// `main` is C's own, so that Rust's start has not done this: what nvcc is handed must be as it came.
pub fn ignore_broken_pipes() {
    // SAFETY: no handler is installed, only what happens by default is changed.
    let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    if before == libc::SIG_DFL {
        BROKEN_PIPES_ENDED_IT.store(true, Ordering::Relaxed);
    }
}

/// Has a SIGPIPE that another process sent end this one as SIGTERM does; one that a write of its own brings stays without effect.
///
/// make, killed by a SIGPIPE to its group, would leave the builds under it running.
pub(super) fn end_on_sent_pipe_signals() {
    extern "C" fn on_signal(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        // SAFETY: the kernel gives a whole `siginfo_t`, whose sender is this process where a write failed. Both calls are allowed
        // in a signal handler.
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
    // SAFETY: all zero is a valid `sigaction`, and the handler is of the kind that SA_SIGINFO asks for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(_, _, _) as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(libc::SIGPIPE, &action, std::ptr::null_mut());
    }
}

/// Becomes `program`, called with `arguments`; argv[0] is its path. Comes back only where that fails.
///
/// `execv` itself and not `Command::exec`, which would empty the signal mask and reset SIGPIPE, and copy the environment.
pub fn hand_over(program: &Path, arguments: &[OsString]) -> io::Error {
    let texts = std::iter::once(program.as_os_str()).chain(arguments.iter().map(OsString::as_os_str)).map(text);
    let texts: Vec<CString> = match texts.collect() {
        Ok(texts) => texts,
        Err(error) => return error,
    };
    let mut pointers: Vec<*const libc::c_char> = texts.iter().map(|text| text.as_ptr()).collect();
    pointers.push(std::ptr::null());
    if BROKEN_PIPES_ENDED_IT.load(Ordering::Relaxed) {
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
    adopt_orphans(false);
    let mut error = execute(&pointers);
    for _ in 1..ATTEMPTS {
        if !error.raw_os_error().is_some_and(|code| PASSING.contains(&code)) {
            break;
        }
        std::thread::sleep(PAUSE);
        error = execute(&pointers);
    }
    ignore_broken_pipes();
    error
}

/// Calls `execv` with texts that a null pointer ends; returns why it failed.
fn execute(texts: &[*const libc::c_char]) -> io::Error {
    // SAFETY: the pointers are to NUL-terminated texts that outlive the call, and a null pointer ends them.
    unsafe { libc::execv(texts[0], texts.as_ptr()) };
    io::Error::last_os_error()
}

fn text(word: &OsStr) -> io::Result<CString> {
    Ok(CString::new(word.as_bytes())?)
}
