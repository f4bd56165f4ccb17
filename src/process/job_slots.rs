//! Leave to run a tool: under make, no more tools run at once than there are tokens of its
//! jobserver.
//!
//! Every process that make starts owns one token unasked. Each further tool that runs next to
//! the first takes one from the jobserver and gives it back when it is done. Without a make as
//! many tools run as there are cores. A process that measures keeps a core busy and counts as a
//! tool: what else runs is not to be in the way of its launches. Who asks first has leave
//! first: who runs one tool after the other does not keep out who waits.

use super::threads;
use jobserver::{Acquired, Client};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How long to wait for the own token before the jobserver is asked again.
const PAUSE: Duration = Duration::from_millis(5);

static JOBS: OnceLock<Jobs> = OnceLock::new();

#[derive(Debug)]
enum Limit {
    /// No make.
    Cores,
    Tokens(Client),
    /// make has a jobserver, but it does not let this process at it (a pipe, and a recipe
    /// without `+`).
    One,
}

#[derive(Debug)]
struct Jobs {
    limit: Limit,
    /// Tools that may run without anybody being asked.
    own: usize,
    queue: Mutex<Queue>,
    moved: Condvar,
}

#[derive(Debug)]
struct Queue {
    /// How many of them may run besides those that run.
    free: usize,
    /// How many have asked, and how many of them were given leave.
    asked: u64,
    given: u64,
}

/// Leave for one tool, as long as this is held.
#[derive(Debug)]
pub struct Permit(#[allow(dead_code, reason = "held for its drop alone")] JobToken);

#[derive(Debug)]
enum JobToken {
    Own(&'static Jobs),
    Made(#[allow(dead_code, reason = "held for its drop alone")] Acquired),
}

/// Finds make's jobserver. To be called before any file is opened: make names the files by
/// their numbers.
pub fn prepare_jobserver() {
    JOBS.get_or_init(Jobs::from_environment);
}

/// Waits until another tool may run.
pub fn wait_for_permit() -> Permit {
    JOBS.get_or_init(Jobs::from_environment).take_permit()
}

/// How many tools may run without make being asked.
pub fn own_permits() -> usize {
    JOBS.get_or_init(Jobs::from_environment).own
}

/// The same for what is done while tools run: it never takes the leave of the last of them, and
/// gives up when `is_over`.
pub fn additional_permit(is_over: impl Fn() -> bool) -> Option<Permit> {
    JOBS.get_or_init(Jobs::from_environment).additional_permit(is_over)
}

/// Leave for what is done while tools run, if it can be had at once: it never takes the leave of
/// the last of them.
pub fn free_permit() -> Option<Permit> {
    JOBS.get_or_init(Jobs::from_environment).free_permit()
}

impl Jobs {
    fn from_environment() -> Self {
        // SAFETY: nothing else of this process owns the files that make names; that they are pipes
        // is checked.
        let found = unsafe { Client::from_env_ext(true) };
        let limit = match found.client {
            Ok(client) => Limit::Tokens(client),
            Err(error) => match error.kind() {
                jobserver::FromEnvErrorKind::NoEnvVar | jobserver::FromEnvErrorKind::NoJobserver => Limit::Cores,
                _ => Limit::One,
            },
        };
        let own = if matches!(limit, Limit::Cores) { threads::usual_count() } else { 1 };
        Self { limit, own, queue: Mutex::new(Queue { free: own, asked: 0, given: 0 }), moved: Condvar::new() }
    }

    fn additional_permit(&'static self, is_over: impl Fn() -> bool) -> Option<Permit> {
        if self.own > 1 {
            return Some(self.take_permit()).filter(|_| !is_over());
        }
        while !is_over() {
            match &self.limit {
                Limit::Cores | Limit::One => return None,
                Limit::Tokens(client) => {
                    if let Ok(Some(token)) = client.try_acquire() {
                        return Some(Permit(JobToken::Made(token)));
                    }
                }
            }
            std::thread::sleep(PAUSE);
        }
        None
    }

    fn free_permit(&'static self) -> Option<Permit> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.free > 1 && queue.given == queue.asked {
            queue.free -= 1;
            return Some(Permit(JobToken::Own(self)));
        }
        match &self.limit {
            Limit::Tokens(client) => client.try_acquire().ok().flatten().map(|token| Permit(JobToken::Made(token))),
            Limit::Cores | Limit::One => None,
        }
    }

    fn take_permit(&'static self) -> Permit {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let place = queue.asked;
        queue.asked += 1;
        let token = loop {
            let is_next = queue.given == place;
            if is_next && queue.free > 0 {
                queue.free -= 1;
                break JobToken::Own(self);
            }
            if let Limit::Tokens(client) = &self.limit
                && is_next
                && let Ok(Some(token)) = client.try_acquire()
            {
                break JobToken::Made(token);
            }
            let waited = self.moved.wait_timeout(queue, PAUSE);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        queue.given += 1;
        self.moved.notify_all();
        Permit(token)
    }
}

impl Drop for JobToken {
    fn drop(&mut self) {
        if let Self::Own(jobs) = self {
            jobs.queue.lock().unwrap_or_else(PoisonError::into_inner).free += 1;
            jobs.moved.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Those of a machine with this many cores.
    fn jobs(own: usize) -> &'static Jobs {
        let queue = Mutex::new(Queue { free: own, asked: 0, given: 0 });
        Box::leak(Box::new(Jobs { limit: Limit::Cores, own, queue, moved: Condvar::new() }))
    }

    #[test]
    fn who_asks_first_has_leave_first() {
        let jobs = jobs(1);
        let held = jobs.take_permit();
        let (sender, order) = mpsc::channel();
        let waiting: Vec<_> = (0..4)
            .map(|number| {
                let sender = sender.clone();
                let thread = std::thread::spawn(move || {
                    let _permit = jobs.take_permit();
                    sender.send(number).unwrap();
                });
                // It has its place before the next one asks.
                while jobs.queue.lock().unwrap().asked < number + 2 {
                    std::thread::yield_now();
                }
                thread
            })
            .collect();
        assert!(jobs.additional_permit(|| false).is_none(), "it would take the leave of the last");
        assert!(jobs.free_permit().is_none());
        drop(held);
        waiting.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(jobs.free_permit().is_none(), "it would take the leave of the last");
    }

    #[test]
    fn free_permit_leaves_one_for_the_tools() {
        let jobs = jobs(2);
        let held = jobs.free_permit();
        assert!(held.is_some());
        assert!(jobs.free_permit().is_none());
        drop(jobs.take_permit());
        drop(held);
        assert!(jobs.free_permit().is_some());
    }
}
