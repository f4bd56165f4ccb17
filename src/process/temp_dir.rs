//! Temporary folders that go with the process, also when a signal ends it.

use rustix::fs::{FlockOperation, flock};
use rustix::process::getuid;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError, TryLockError};
use std::time::Duration;
use tempfile::TempDir;

/// Every folder that is there now.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Beginning of the folders' names.
const PREFIX: &str = "nvtune-";

/// Age from which a folder that no process has locked is one of a process that was killed:
/// making and locking it takes microseconds.
const ABANDONED: Duration = Duration::from_secs(60);

/// A folder `nvtune-*` below TMPDIR; it is removed when this is dropped or a signal ends
/// nvtune. If nvtune is killed, the next build removes it.
#[derive(Debug)]
pub struct TemporaryFolder {
    folder: TempDir,
    /// Tells others that its process is alive: the system gives up the lock when that ends.
    _lock: Option<File>,
}

impl TemporaryFolder {
    /// Makes the folder.
    pub fn new() -> io::Result<Self> {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| sweep_folder(&std::env::temp_dir()));
        let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        folders.push(folder.path().to_path_buf());
        let lock = lock_folder(folder.path());
        Ok(Self { folder, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        // As long as a file of it is there, it is one that a signal's thread removes.
        remove_folder(self.folder.path());
        folders.retain(|path| path != self.folder.path());
    }
}

/// Removes every folder, and lets no other be made: the process is about to end.
/// A thread that panicked may hold them: they are not waited for without end.
pub(super) fn remove_all() {
    for _ in 0..200 {
        let folders = match FOLDERS.try_lock() {
            Ok(folders) => folders,
            Err(TryLockError::Poisoned(folders)) => folders.into_inner(),
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
        };
        folders.iter().for_each(|folder| remove_folder(folder));
        return std::mem::forget(folders);
    }
}

/// Removes the folders that killed processes of this user left in `place`.
fn sweep_folder(place: &Path) {
    let is_old = |data: &Metadata| data.modified().is_ok_and(|time| time.elapsed().is_ok_and(|age| age > ABANDONED));
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        // A user's number stands behind the name of the folder for the locks of GPUs.
        let is_temporary = |rest: &[u8]| !rest.iter().all(u8::is_ascii_digit);
        let is_left = name.as_encoded_bytes().strip_prefix(PREFIX.as_bytes()).is_some_and(is_temporary)
            // Not of what a link leads to.
            && entry.metadata().is_ok_and(|data| data.is_dir() && data.uid() == getuid().as_raw() && is_old(&data));
        if is_left && lock_folder(&entry.path()).is_some() {
            remove_folder(&entry.path());
        }
    }
}

/// Locks a folder for as long as the file is open; `None` where another process has it, or
/// where that is not to be had.
fn lock_folder(folder: &Path) -> Option<File> {
    let file = File::open(folder).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}

fn remove_folder(folder: &Path) {
    // A tool that was killed may still be at its last write: once more, then.
    for _ in 0..3 {
        if std::fs::remove_dir_all(folder).is_ok() || !folder.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn folders_of_the_dead_are_swept_and_those_of_the_living_are_not() {
        let place = tempfile::tempdir().expect("a folder");
        let make = |name: &str, age: u64| {
            let path = place.path().join(name);
            std::fs::create_dir(&path).expect("made");
            std::fs::write(path.join("1.ptx"), "").expect("written");
            let date = SystemTime::now() - Duration::from_secs(age);
            File::open(&path).and_then(|file| file.set_modified(date)).expect("dated");
            path
        };
        let [dead, young, living] =
            [("nvtune-dead", 100), ("nvtune-young", 0), ("nvtune-living", 100)].map(|(name, age)| make(name, age));
        let [other, locks] = ["other", "nvtune-1000"].map(|name| make(name, 100));
        let lock = lock_folder(&living);
        sweep_folder(place.path());
        let are_there = [&dead, &young, &living, &other, &locks].map(|path| path.exists());
        assert_eq!(are_there, [false, true, true, true, true]);
        drop(lock);
        let is_swept = || {
            sweep_folder(place.path());
            !living.exists()
        };
        assert!(crate::process::comes_true(is_swept));
    }
}
