//! Locks between the processes of a user on one machine, by name.
//!
//! Invariant: one process holds a lock, and the lock ends with the process, however that ends.
//! Nothing is left behind: a lock is an abstract socket name, which has no file.

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::getuid;
use std::io::{Error, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::{Duration, Instant};

/// How often one that another process has is asked for again.
const PAUSE: Duration = Duration::from_millis(5);

/// How often it is asked whose process that is. Each question stays in the holder's queue, which has an end.
const ASKED_AGAIN: Duration = Duration::from_secs(10);

/// How long a holder may be unknown: one that has the name and does not listen yet.
const UNKNOWN: Duration = Duration::from_secs(1);

/// A lock that this process holds; released when dropped.
#[derive(Debug)]
pub struct NamedLock {
    _held: UnixListener,
}

impl NamedLock {
    /// Takes the lock of this name once no other process holds it; `None` if it cannot be had
    /// within `limit`, or at all.
    pub fn wait_for(name: &str, limit: Duration) -> Option<NamedLock> {
        let deadline = Instant::now() + limit;
        // Another user may hold any name: that is no build to wait for.
        let (mut is_ours_until, mut unknown_since) = (Instant::now(), None);
        loop {
            match Self::try_take(name) {
                Ok(turn) => return Some(turn),
                Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < deadline => {}
                Err(_) => return None,
            }
            if Instant::now() >= is_ours_until {
                match owner_of(&full_name(name)) {
                    Some(owner) if owner == getuid().as_raw() => {
                        (is_ours_until, unknown_since) = (Instant::now() + ASKED_AGAIN, None);
                    }
                    Some(_) => return None,
                    None if unknown_since.get_or_insert_with(Instant::now).elapsed() > UNKNOWN => return None,
                    None => {}
                }
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn try_take(name: &str) -> Result<NamedLock, Error> {
        let address = SocketAddr::from_abstract_name(full_name(name))?;
        Ok(NamedLock { _held: UnixListener::bind_addr(&address)? })
    }
}

fn full_name(name: &str) -> String {
    format!("nvtune-{}-{name}", getuid().as_raw())
}

/// Returns the user who holds a name; `None` if there is none or if that is not known at once.
fn owner_of(name: &str) -> Option<u32> {
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).ok()?;
    // Without waiting: the holder need not accept.
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).ok()?;
    rustix::net::connect(&socket, &address).ok()?;
    Some(rustix::net::sockopt::socket_peercred(&socket).ok()?.uid.as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holder_of_a_turn_is_known() {
        let name = format!("owner-{}", std::process::id());
        assert_eq!(owner_of(&full_name(&name)), None);
        let _turn = NamedLock::wait_for(&name, Duration::ZERO).expect("it is free");
        assert_eq!(owner_of(&full_name(&name)), Some(getuid().as_raw()));
    }

    #[test]
    fn holder_that_does_not_say_whose_it_is_delays_for_a_second() {
        let name = format!("silent-{}", std::process::id());
        let address = SocketAddrUnix::new_abstract_name(full_name(&name).as_bytes()).expect("a name");
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
        // It has the name, and listens to no one.
        rustix::net::bind(&socket, &address).expect("it is free");
        let begin = Instant::now();
        assert!(NamedLock::wait_for(&name, Duration::from_secs(900)).is_none());
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    }

    #[test]
    fn a_turn_is_one_processs_until_it_is_given_back() {
        let name = format!("test-{}", std::process::id());
        let wait = || NamedLock::wait_for(&name, Duration::from_millis(20));
        let first = wait();
        assert!(first.is_some() && wait().is_none());
        assert!(NamedLock::wait_for(&format!("{name}-other"), Duration::ZERO).is_some());
        drop(first);
        assert!(crate::process::comes_true(|| wait().is_some()));
    }
}
