//! Who writes into a cache: a process, named so that another one can tell whether it is still
//! there.

use super::digest::digest;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// A process by the space of process numbers that it lives in (machine, boot, container), its
/// number and its start.
#[derive(Clone, Debug)]
pub struct Writer {
    home: &'static str,
    serial: u64,
}

static SERIAL: AtomicU64 = AtomicU64::new(0);

impl Writer {
    /// This process; each call gives another [`Self::file_name`].
    pub fn own() -> Self {
        static HOME: OnceLock<String> = OnceLock::new();
        let home = HOME.get_or_init(|| {
            let read = |path: &str| std::fs::read(path).unwrap_or_default();
            let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
            let (name, boot) = (read("/proc/sys/kernel/hostname"), read("/proc/sys/kernel/random/boot_id"));
            digest([&name[..], &boot, namespace.as_os_str().as_encoded_bytes()])[..12].to_owned()
        });
        // The clock spreads what depends on the serial over processes that write one entry each.
        let clock =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64 / 1000);
        Self { home, serial: clock.wrapping_add(SERIAL.fetch_add(1, Ordering::Relaxed)) }
    }

    /// Differs from call to call.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// A name for a file that nobody else writes.
    pub fn file_name(&self) -> String {
        let pid = std::process::id();
        self.file_name_of(pid, started(pid).unwrap_or(0))
    }

    /// As [`Self::file_name`], of another process here.
    pub fn file_name_of(&self, pid: u32, start: u64) -> String {
        format!("{}-{pid}-{start}-{}", self.home, self.serial)
    }

    /// Whether the writer of the file with this name is gone; `None` where that cannot be known
    /// here.
    pub fn is_dead(&self, name: &str) -> Option<bool> {
        let mut words = name.split('-');
        let (home, pid, start) = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        // Without its own entry there, /proc tells nothing of others.
        started(std::process::id()).filter(|_| home == self.home).map(|_| started(pid) != Some(start))
    }
}

/// When a process was started, in ticks since boot (proc(5), field 22 of stat); `None` where
/// there is none, or only what its parent has not asked after yet (state Z).
fn started(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; field 3, the state, comes after it.
    let mut rest = text.rsplit_once(')')?.1.split_whitespace();
    rest.next().filter(|state| !matches!(*state, "Z" | "X"))?;
    rest.nth(18)?.parse().ok()
}
