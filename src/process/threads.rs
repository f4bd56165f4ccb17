//! Starts threads, or does the work on the calling thread if none can be started.
//!
//! Invariant: no failure to start a thread (`ulimit -u`, memory) ends the process or loses the
//! work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Whether a step of nvtune's own failed that may go well another time.
static FAULTED: AtomicBool = AtomicBool::new(false);

/// Processes and threads that a user must be allowed for nvtune's own never to be what nvcc
/// lacks.
const FEW_PROCESSES: u64 = 256;

/// Work of [`start_thread`].
pub type DetachedWork<T> = ThreadOrResult<JoinHandle<T>, T>;

/// Work of [`spawn_or_run`].
pub type ScopedWork<'s, T> = ThreadOrResult<ScopedJoinHandle<'s, T>, T>;

/// Work that runs in a thread, or has been done already.
#[derive(Debug)]
pub enum ThreadOrResult<H, T> {
    Thread(H),
    Done(T),
}

impl<T> ScopedWork<'_, T> {
    /// Waits for the result.
    pub fn join(self) -> T {
        match self {
            Self::Thread(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Self::Done(result) => result,
        }
    }
}

impl<T> DetachedWork<T> {
    /// Waits for the result.
    pub fn join(self) -> T {
        match self {
            Self::Thread(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Self::Done(result) => result,
        }
    }
}

/// Runs `work` in a thread of `scope`, else here and now.
pub fn spawn_or_run<'s, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    work: impl FnOnce() -> T + Send + 's,
) -> ScopedWork<'s, T> {
    match spawn_or_return(scope, work, |work| work()) {
        Ok(thread) => ThreadOrResult::Thread(thread),
        Err(work) => ThreadOrResult::Done(work()),
    }
}

/// Runs `work` on `input` in a thread of `scope`. Returns `input` if none can be started.
pub fn spawn_or_return<'s, I: Send + 's, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    input: I,
    work: impl FnOnce(I) -> T + Send + 's,
) -> Result<ScopedJoinHandle<'s, T>, I> {
    let (slot, sent) = shared_slot(input);
    Builder::new().spawn_scoped(scope, move || work(take_input(&sent))).map_err(|_| take_back(&slot))
}

/// Runs `work` in a thread of its own, else here and now.
pub fn start_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> DetachedWork<T> {
    let (slot, sent) = shared_slot(work);
    match Builder::new().spawn(move || take_input(&sent)()) {
        Ok(thread) => ThreadOrResult::Thread(thread),
        Err(_) => ThreadOrResult::Done(take_back(&slot)()),
    }
}

/// Tells whether the user may start so few processes that nvtune's own may be what nvcc lacks
/// (`ulimit -u`).
pub fn is_short_of_processes() -> bool {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nproc).current;
    limit.is_some_and(|limit| limit < FEW_PROCESSES)
}

/// Tells whether something failed in this process that may go well another time: a thread, a
/// process or a file that could not be had. What is decided then is for this build alone, and
/// what nvtune keeps running may be what nvcc lacks.
pub fn has_faulted() -> bool {
    FAULTED.load(Ordering::Relaxed)
}

/// Notes that something failed that may go well another time.
pub fn note_fault() {
    FAULTED.store(true, Ordering::Relaxed);
}

/// Notes the error of starting a program, unless it is the program's own.
pub(super) fn note_start(error: &std::io::Error) {
    use std::io::ErrorKind::{NotFound, PermissionDenied};
    if !matches!(error.kind(), NotFound | PermissionDenied) {
        note_fault();
    }
}

/// Number of threads that share work: `RAYON_NUM_THREADS`, else one for each core.
pub(super) fn usual_count() -> usize {
    let wanted = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok());
    wanted.filter(|&count| count > 0).unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Starts the threads that rayon shares work among; the first call alone does anything. Without
/// it the first parallel step would start them, and panic where one of them cannot be had.
///
/// Starts all of them before rayon gets them. If one cannot be started, the others end: the
/// compiler needs processes.
pub fn start_pool() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let count = usual_count();
        let mut waiting = Vec::new();
        for _ in 0..count {
            let (sender, work) = mpsc::channel::<rayon::ThreadBuilder>();
            let thread =
                Builder::new().name("worker".to_owned()).spawn(move || work.recv().map(rayon::ThreadBuilder::run));
            if thread.is_err() {
                note_fault();
                break;
            }
            waiting.push(sender);
        }
        let pool = rayon::ThreadPoolBuilder::new();
        // A pool that is there already, as in a program of tests, serves as well.
        let _ = if waiting.len() == count {
            pool.num_threads(count).spawn_handler(hand_out(waiting)).build_global()
        } else {
            drop(waiting);
            pool.num_threads(1).use_current_thread().build_global()
        };
    });
}

/// Gives each of rayon's threads to one that waits.
fn hand_out(
    mut waiting: Vec<mpsc::Sender<rayon::ThreadBuilder>>,
) -> impl FnMut(rayon::ThreadBuilder) -> std::io::Result<()> {
    move |thread| {
        let lacking = || std::io::Error::other("no thread waits");
        waiting.pop().ok_or_else(lacking)?.send(thread).map_err(|_| lacking())
    }
}

type Slot<I> = Arc<Mutex<Option<I>>>;

fn shared_slot<I>(input: I) -> (Slot<I>, Slot<I>) {
    let slot = Arc::new(Mutex::new(Some(input)));
    (Arc::clone(&slot), slot)
}

#[allow(clippy::expect_used, reason = "a slot is taken from once: by the thread, or by the caller if there is none")]
fn take_input<I>(slot: &Slot<I>) -> I {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take().expect("the input is there")
}

fn take_back<I>(slot: &Slot<I>) -> I {
    note_fault();
    take_input(slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_with_and_without_a_thread() {
        let results = std::thread::scope(|scope| {
            let thread = spawn_or_run(scope, || 1);
            let refused: ScopedWork<'_, i32> = ThreadOrResult::Done(2);
            let input = spawn_or_return(scope, 3, |input| input).map(|thread| thread.join().expect("no panic"));
            [thread.join(), refused.join(), input.unwrap_or_else(|input| input)]
        });
        assert_eq!((results, start_thread(|| 4).join()), ([1, 2, 3], 4));
    }
}
