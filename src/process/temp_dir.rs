//! Temporary folders that go with the process, also when a signal ends it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;
use tempfile::TempDir;

/// Every folder that is there now.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A folder `nvtune-*` below TMPDIR; it goes when this is dropped, or when a signal ends nvtune.
#[derive(Debug)]
pub struct Temporary {
    folder: TempDir,
}

impl Temporary {
    /// Makes the folder.
    pub fn new() -> io::Result<Self> {
        let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::Builder::new().prefix("nvtune-").tempdir()?;
        folders.push(folder.path().to_path_buf());
        Ok(Self { folder })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        // As long as a file of it is there, it is one that a signal's thread removes.
        remove(self.folder.path());
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
        folders.iter().for_each(|folder| remove(folder));
        return std::mem::forget(folders);
    }
}

fn remove(folder: &Path) {
    // A tool that was killed may still be at its last write: once more, then.
    for _ in 0..3 {
        if std::fs::remove_dir_all(folder).is_ok() || !folder.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
