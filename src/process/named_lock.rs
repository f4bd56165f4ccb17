//! Locks between the processes of a user on one machine, by name.
//!
//! Invariant: one process holds a lock, and the lock ends with the process, however that ends.
//! Nothing is left behind: a lock is an abstract socket name, which has no file.

use rustix::process::getuid;
use std::io::{Error, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::{Duration, Instant};

/// How often one that another process has is asked for again.
const PAUSE: Duration = Duration::from_millis(5);

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
        let is_ours = owner_of(&full_name(name)).is_none_or(|owner| owner == getuid().as_raw());
        loop {
            match Self::try_take(name) {
                Ok(turn) => return Some(turn),
                // Another user may hold any name: that is no build to wait for.
                Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < deadline && is_ours => {
                    std::thread::sleep(PAUSE);
                }
                Err(_) => return None,
            }
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
    // SAFETY: all zero is an address without a name.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // The first byte stays 0: an abstract name.
    let place = address.sun_path.get_mut(1..=name.len())?;
    place.iter_mut().zip(name.bytes()).for_each(|(to, byte)| *to = byte as libc::c_char);
    let length = std::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    // SAFETY: the call gives a descriptor that nothing else owns, or -1. Without waiting: the
    // holder need not accept.
    let socket =
        unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return None;
    }
    // SAFETY: as above.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the pointers are to living values of the sizes that are given with them.
    let is_told = unsafe {
        let address = (&raw const address).cast::<libc::sockaddr>();
        libc::connect(socket.as_raw_fd(), address, length as libc::socklen_t) == 0
            && libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut peer).cast(),
                &mut size,
            ) == 0
    };
    is_told.then_some(peer.uid)
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
