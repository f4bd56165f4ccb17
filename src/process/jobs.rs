//! Leave to run a tool: under make, no more tools run at once than there are tokens of its jobserver.
//!
//! Every process that make starts owns one token unasked. Each further tool that runs beside the first takes one from the
//! jobserver and gives it back when it is done. Without a make as many tools run as there are cores. A process that measures keeps a
//! core busy and counts as a tool: what else runs is not to be in the way of its launches.

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
    /// make has a jobserver, but it does not let this process at it (a pipe, and a recipe without `+`).
    One,
}

#[derive(Debug)]
struct Jobs {
    limit: Limit,
    /// Tools that may run beside those that run, without anybody being asked.
    free: Mutex<usize>,
    freed: Condvar,
}

/// Leave for one tool, as long as this is held.
#[derive(Debug)]
pub struct Permit(#[allow(dead_code, reason = "held for its drop alone")] Token);

#[derive(Debug)]
enum Token {
    Own(&'static Jobs),
    Made(#[allow(dead_code, reason = "held for its drop alone")] Acquired),
}

/// Finds make's jobserver. To be called before any file is opened: make names the files by their numbers.
pub fn prepare() {
    JOBS.get_or_init(Jobs::from_environment);
}

/// Waits until another tool may run.
pub fn permit() -> Permit {
    JOBS.get_or_init(Jobs::from_environment).permit()
}

impl Jobs {
    fn from_environment() -> Self {
        // SAFETY: nothing else of this process owns the files that make names; that they are pipes is checked.
        let found = unsafe { Client::from_env_ext(true) };
        let limit = match found.client {
            Ok(client) => Limit::Tokens(client),
            Err(error) => match error.kind() {
                jobserver::FromEnvErrorKind::NoEnvVar | jobserver::FromEnvErrorKind::NoJobserver => Limit::Cores,
                _ => Limit::One,
            },
        };
        let own = if matches!(limit, Limit::Cores) { rayon::current_num_threads().max(1) } else { 1 };
        Self { limit, free: Mutex::new(own), freed: Condvar::new() }
    }

    fn permit(&'static self) -> Permit {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if *free > 0 {
                *free -= 1;
                return Permit(Token::Own(self));
            }
            if let Limit::Tokens(client) = &self.limit
                && let Ok(Some(token)) = client.try_acquire()
            {
                return Permit(Token::Made(token));
            }
            let waited = self.freed.wait_timeout(free, PAUSE);
            free = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if let Self::Own(jobs) = self {
            *jobs.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            jobs.freed.notify_one();
        }
    }
}
