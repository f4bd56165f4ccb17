//! Turns that the processes of a user take on a machine, by name.
//!
//! What always holds: one process has a turn, and its end, however that comes, ends the turn. Nothing is left behind: a turn is the name of
//! a socket, which no file stands for.

use rustix::process::getuid;
use std::io::{Error, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::{Duration, Instant};

/// How often one that another process has is asked for again.
const PAUSE: Duration = Duration::from_millis(5);

/// What is this process's alone; given back when dropped.
#[derive(Debug)]
pub struct Turn {
    _held: UnixListener,
}

impl Turn {
    /// Takes the turn of this name, once no other process has it; `None` where it is not to be had within `limit`, or at all.
    pub fn wait(name: &str, limit: Duration) -> Option<Turn> {
        let deadline = Instant::now() + limit;
        loop {
            match Self::take(name) {
                Ok(turn) => return Some(turn),
                Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < deadline => {
                    std::thread::sleep(PAUSE);
                }
                Err(_) => return None,
            }
        }
    }

    fn take(name: &str) -> Result<Turn, Error> {
        let address = SocketAddr::from_abstract_name(format!("nvtune-{}-{name}", getuid().as_raw()))?;
        Ok(Turn { _held: UnixListener::bind_addr(&address)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_one_processs_until_it_is_given_back() {
        let name = format!("test-{}", std::process::id());
        let wait = || Turn::wait(&name, Duration::from_millis(20));
        let first = wait();
        assert!(first.is_some() && wait().is_none());
        assert!(Turn::wait(&format!("{name}-other"), Duration::ZERO).is_some());
        drop(first);
        assert!(wait().is_some());
    }
}
