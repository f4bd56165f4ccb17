//! Runs jobs in threads. A job may give more of them.
//!
//! The threads are started for that. A worker of rayon's takes up another job while it waits for one,
//! and what depends on the first then waits for both.

use super::threads::spawn_or_return;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

/// Runs `jobs`, and all that they give, in at most `threads` threads.
pub fn run_jobs<J: Send>(jobs: impl IntoIterator<Item = J>, threads: usize, run: impl Fn(J) -> Vec<J> + Sync) {
    let queue = Queue {
        state: Mutex::new(QueueState { waiting: jobs.into_iter().collect(), running: 0 }),
        changed: Condvar::new(),
    };
    let work = || {
        while let Some(mut job) = queue.next() {
            job.next = job.own.take().map(&run).unwrap_or_default();
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // Without one there are fewer.
            let _ = spawn_or_return(scope, (), |()| work());
        }
        work();
    });
}

struct Queue<J> {
    state: Mutex<QueueState<J>>,
    changed: Condvar,
}

struct QueueState<J> {
    waiting: VecDeque<J>,
    /// The number of jobs that are being run, each of which may give more.
    running: usize,
}

/// A job that is being run, until this is dropped.
struct RunningJob<'q, J> {
    queue: &'q Queue<J>,
    own: Option<J>,
    /// What it gives.
    next: Vec<J>,
}

impl<J> Queue<J> {
    /// Waits for a job; returns `None` if there will be no more.
    fn next(&self) -> Option<RunningJob<'_, J>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let own @ Some(_) = state.waiting.pop_front() {
                state.running += 1;
                return Some(RunningJob { queue: self, own, next: Vec::new() });
            }
            if state.running == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<J> Drop for RunningJob<'_, J> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.running -= 1;
        state.waiting.extend(self.next.drain(..));
        self.queue.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::run_jobs;
    use std::sync::Mutex;

    #[test]
    fn jobs_and_what_they_give_are_run_once() {
        for threads in [1, 4] {
            let run = Mutex::new(Vec::new());
            run_jobs([1, 10], threads, |job: u32| {
                run.lock().expect("no panic").push(job);
                if job < 100 { vec![job * 10, job * 10 + 1] } else { Vec::new() }
            });
            let mut run = run.into_inner().expect("no panic");
            run.sort_unstable();
            let mut expected = vec![1, 10, 10, 11, 100, 100, 101, 101, 110, 111];
            expected.sort_unstable();
            assert_eq!(run, expected, "{threads}");
        }
        run_jobs(Vec::<u32>::new(), 2, |_| Vec::new());
    }
}
