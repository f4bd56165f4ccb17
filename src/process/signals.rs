//! Signals: what runs is stopped, what is temporary goes, and the process ends as one that the
//! signal ended.
//!
//! Ctrl-C reaches every process of the terminal's group, `kill` and a build system's time limit
//! nvtune alone. So a signal is passed on: to the tools under nvcc where nvcc builds, for nvcc
//! then clears up itself (sent to nvcc alone, its temporary files would stay); while nvtune
//! tunes, its tools have nothing worth an orderly end and are killed.

use super::broken_pipes::end_on_sent_pipe_signals;
use super::process_tree::send_signal;
use super::{process_tree, temp_dir, threads};
use crate::diag::MessageCode;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, Write};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, Once, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Held for reading while a child is started or a file written; held for writing, for good,
/// once a signal is here.
static GOING_ON: RwLock<()> = RwLock::new(());

/// A signal is here: set where it is delivered, before the thread that looks after signals
/// runs.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The nvcc that builds; 0 where none does.
static BUILDER: AtomicU32 = AtomicU32::new(0);

/// Children are nvtunes, which end on a signal as this one does and clear up themselves.
static HAS_WORKERS: AtomicBool = AtomicBool::new(false);

/// What is said where a signal ends the process.
static LAST_WORDS: Mutex<Option<String>> = Mutex::new(None);

/// Takes back what a signal leaves half done.
type Undo = Box<dyn FnOnce() + Send>;

/// That of the build under way.
static UNDO: Mutex<Option<Undo>> = Mutex::new(None);

/// What is done after that.
static FINISH: Mutex<Option<Undo>> = Mutex::new(None);

/// How long nvcc may take to clear up.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long other nvtunes may: what they leave behind nobody else knows of, and on a busy
/// machine each has little of it.
const PATIENCE_WITH_WORKERS: Duration = Duration::from_secs(10);

/// How often what runs is looked for and killed, every 2 ms.
const KILL_ROUNDS: u32 = 500;

/// The signals that are looked after.
const SIGNALS: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// Begins to look after `SIGNALS`, those that are not ignored already (`nohup` ignores
/// SIGHUP).
pub fn watch_signals() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let wanted: Vec<i32> = SIGNALS.into_iter().filter(|&signal| !is_ignored(signal)).collect();
        let Ok(mut signals) = Signals::new(&wanted) else { return };
        adopt_orphans(true);
        end_on_sent_pipe_signals();
        for &signal in &wanted {
            // SAFETY: what runs in the handler is one store into an atomic. One that cannot be had
            // is set in `end_everything`.
            let _ = unsafe { signal_hook::low_level::register(signal, || INTERRUPTED.store(true, Ordering::SeqCst)) };
        }
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            if let Some(signal) = signals.forever().next() {
                end_everything(signal);
            }
        });
        if thread.is_err() {
            // A signal does what it does by default: it must not be lost.
            threads::note_fault();
            // SAFETY: no handler is installed, one is taken away.
            wanted.into_iter().for_each(|signal| unsafe {
                libc::signal(signal, libc::SIG_DFL);
            });
        }
    });
}

/// Starts a child, unless a signal is here: then this waits for the end.
pub fn spawn_child(command: &mut Command) -> io::Result<Child> {
    uninterrupted(|| command.spawn()).inspect_err(threads::note_start)
}

/// Runs nvcc for its result: on a signal it is given the time to clear up. What it built stays,
/// and so what was to be undone without it.
pub fn wait_for_status(command: &mut Command) -> io::Result<ExitStatus> {
    wait_for_builder(&mut start_builder(command)?)
}

/// Starts the nvcc that builds: on a signal it is given the time to clear up. No other one may
/// run until [`wait_for_builder`].
pub fn start_builder(command: &mut Command) -> io::Result<Child> {
    uninterrupted(|| {
        let child = command.spawn().inspect_err(threads::note_start)?;
        BUILDER.store(child.id(), Ordering::SeqCst);
        Ok(child)
    })
}

/// Waits for the nvcc that builds.
pub fn wait_for_builder(nvcc: &mut Child) -> io::Result<ExitStatus> {
    let status = wait_for_tool(nvcc);
    if status.as_ref().is_ok_and(ExitStatus::success) {
        set_undo(None);
    }
    BUILDER.store(0, Ordering::SeqCst);
    wait_where_interrupted();
    status
}

/// Runs a tool of nvcc's to its end, from a shim: a signal is for nvcc to see to.
///
/// # Errors
/// Where it cannot be started or waited for; it does not run any more then.
pub fn run_tool(command: &mut Command) -> io::Result<ExitStatus> {
    wait_for_tool(&mut command.spawn()?)
}

/// Waits for the end of a tool. If that fails, kills it: it would write at the same time as
/// later tools.
fn wait_for_tool(child: &mut Child) -> io::Result<ExitStatus> {
    let waited = child.wait();
    if waited.is_ok() {
        return waited;
    }
    // What failed once may have been for a moment.
    std::thread::sleep(Duration::from_millis(1));
    child.wait().inspect_err(|_| end_what_runs(SIGTERM))
}

/// Runs another nvtune to its end: on a signal it is given the time to clear up.
pub fn run_worker(command: &mut Command) -> io::Result<Output> {
    HAS_WORKERS.store(true, Ordering::SeqCst);
    let child = spawn_child(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let output = child.wait_with_output();
    wait_where_interrupted();
    output
}

/// Does something that a signal must not cut in two.
pub fn uninterrupted<T>(work: impl FnOnce() -> T) -> T {
    let _going_on = GOING_ON.read().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// What the user is to know where a signal ends the process from now on; `None`: nothing.
pub fn set_last_words(words: Option<String>) {
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words;
}

/// What is to be undone where a signal ends the process before nvcc has built; `None`: nothing.
/// It must not call [`uninterrupted`]: the thread that ends the process holds that lock, and
/// never gives it back.
pub fn set_undo(undo: Option<Undo>) {
    *UNDO.lock().unwrap_or_else(PoisonError::into_inner) = undo;
}

/// What is to be done where a signal ends the process, once all that runs has ended and what is
/// to be undone is; `None`: nothing. The same holds for it as for [`set_undo`].
pub fn set_finish(finish: Option<Undo>) {
    *FINISH.lock().unwrap_or_else(PoisonError::into_inner) = finish;
}

/// The thread that looks after signals ends the process; what others would say of it is noise.
/// To be called after a child has ended: the signal that ended it may be one for all processes
/// of the terminal.
pub fn wait_where_interrupted() {
    take_what_is_pending();
    while INTERRUPTED.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// Has a signal that was sent to this process, and that no thread of it had the time to take
/// yet, delivered to this thread: one that is pending is delivered before the call that
/// unblocks it returns (POSIX, `pthread_sigmask`). On a busy machine a child may be dead of a
/// Ctrl-C for a while before its parent runs again.
fn take_what_is_pending() {
    // SAFETY: the sets are this function's own and filled before they are read; the mask is put
    // back as it was.
    unsafe {
        let (mut signals, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&mut signals);
        for signal in SIGNALS {
            libc::sigaddset(&mut signals, signal);
        }
        if libc::pthread_sigmask(libc::SIG_BLOCK, &signals, &mut before) == 0 {
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        }
    }
}

fn end_everything(signal: i32) {
    INTERRUPTED.store(true, Ordering::SeqCst);
    std::mem::forget(GOING_ON.write().unwrap_or_else(PoisonError::into_inner));
    end_what_runs(signal);
    for last in [&UNDO, &FINISH] {
        if let Some(last) = last.lock().unwrap_or_else(PoisonError::into_inner).take() {
            last();
        }
    }
    temp_dir::remove_all();
    if let Some(words) = LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
        // Who reads it may be gone already.
        let _ = writeln!(io::stderr(), "nvtune: {}", MessageCode::Interrupted.tag(words));
    }
    end_by_signal(signal)
}

/// Ends all that runs for this process and takes back what is half done; what comes then is not
/// nvtune's work any more. The thread that calls this may hold any of the locks: none is waited
/// for without end.
pub(super) fn undo_all(undo: impl FnOnce()) {
    let patient = || (0..200).inspect(|_| std::thread::sleep(Duration::from_millis(5)));
    // Whoever starts a child or writes a file now has the time to end that.
    if let Some(alone) = GOING_ON.try_write().ok().or_else(|| patient().find_map(|_| GOING_ON.try_write().ok())) {
        std::mem::forget(alone);
    }
    end_what_runs(SIGTERM);
    undo();
    temp_dir::remove_all();
    // What is not collected now would be a child of the program that follows.
    // SAFETY: no status is asked for.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
}

/// Ends what runs: nvcc in an orderly way, all else at once.
fn end_what_runs(signal: i32) {
    let builder = BUILDER.load(Ordering::SeqCst);
    if builder != 0 {
        let tools = process_tree::descendants_of(builder);
        if tools.is_empty() {
            send_signal(builder, signal);
        }
        // nvcc may start its next step before it sees that the last one failed.
        let deadline = Instant::now() + PATIENCE;
        while BUILDER.load(Ordering::SeqCst) != 0 && process_tree::is_running(builder) && Instant::now() < deadline {
            process_tree::descendants_of(builder).into_iter().for_each(|process| send_signal(process, signal));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    if HAS_WORKERS.load(Ordering::SeqCst) {
        let deadline = Instant::now() + PATIENCE_WITH_WORKERS;
        process_tree::descendants_of(std::process::id()).into_iter().for_each(|process| send_signal(process, signal));
        while !process_tree::descendants_of(std::process::id()).is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    kill_all();
}

/// Kills until none is left: one that was about to start another may have done so. The child of
/// one that is killed becomes this process's own ([`adopt_orphans`]).
fn kill_all() {
    for _ in 0..KILL_ROUNDS {
        let all = process_tree::descendants_of(std::process::id());
        if all.is_empty() {
            return;
        }
        all.into_iter().for_each(|process| send_signal(process, libc::SIGKILL));
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether what is left behind by a process that ends becomes a child of this one, so that a
/// signal can reach it. A program that takes this process must not have that.
pub(super) fn adopt_orphans(is_on: bool) {
    // SAFETY: the call changes an attribute of this process alone.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, libc::c_ulong::from(is_on)) };
}

/// Ends as 128 + signal. After SIGINT and SIGQUIT as one that the signal itself ended, which is
/// what shells look for to stop a script.
fn end_by_signal(signal: i32) -> ! {
    if matches!(signal, SIGINT | SIGQUIT) {
        // Comes back only where the signal is blocked.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    // Without what runs at a usual exit: other threads are still at work.
    signal_hook::low_level::exit(128 + signal)
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zero is a valid `sigaction`, and nothing is changed where no new action is given.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}
