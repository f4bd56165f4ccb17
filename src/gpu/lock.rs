//! Locks of GPUs by UUID, so that only one process of a user measures on a GPU at a time.
//!
//! In: a UUID. Out: a `GpuLock`, or `None` if another process has it. Invariant: a lock ends with
//! its process, however that ends, because the kernel releases a file's lock with its last
//! handle. All measuring processes of a user on a machine see the same locks.

use rustix::fs::{FlockOperation, flock};
use rustix::process::getuid;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The lock of a GPU that this process measures on; released when dropped.
#[derive(Debug)]
pub(crate) struct GpuLock {
    _locked: File,
}

impl GpuLock {
    /// Locks a GPU; `None` if another process has it.
    pub fn try_claim(uuid: &str) -> io::Result<Option<GpuLock>> {
        Self::take_in(&lock_folder()?, uuid)
    }

    fn take_in(folder: &Path, uuid: &str) -> io::Result<Option<GpuLock>> {
        let safe: String = uuid.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
        let path = folder.join(format!("{safe}.lock"));
        // The file is never removed: after that, two processes could lock two files of one name.
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(GpuLock { _locked: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The folder for locks: in the user's runtime folder if there is one, else in the folder for
/// temporary files.
fn lock_folder() -> io::Result<PathBuf> {
    let user = getuid().as_raw();
    let of_session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let usual = PathBuf::from(format!("/run/user/{user}"));
    let runtime = of_session.into_iter().chain([usual]).map(|path| path.join("nvtune"));
    let mut places = runtime.chain([std::env::temp_dir().join(format!("nvtune-{user}"))]);
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    places
        .find_map(|path| own_folder(&path, user).map_err(|error| last = error).ok().map(|()| path))
        .ok_or_else(|| io::Error::new(last.kind(), format!("no folder for the GPU's lock: {last}")))
}

/// Creates a folder that only this user may use, if it does not exist; an error if it is
/// another user's.
fn own_folder(path: &Path, user: u32) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = std::fs::symlink_metadata(path)?;
    // In a folder that everybody may write to, another user may have created it first.
    match found.is_dir() && found.uid() == user {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} is another's", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_exclusive_by_uuid_and_ends_when_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let take = |uuid| GpuLock::take_in(folder.path(), uuid).unwrap();
        let first = take("GPU-1");
        assert!(first.is_some() && take("GPU-1").is_none());
        assert!(take("GPU-2").is_some());
        drop(first);
        assert!(crate::process::comes_true(|| take("GPU-1").is_some()));
        assert!(take("MIG-../../x").is_some());
        let mut names: Vec<_> =
            folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, ["GPU-1.lock", "GPU-2.lock", "MIG-______x.lock"]);
    }

    #[test]
    fn a_folder_that_is_a_link_or_anothers_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let user = getuid().as_raw();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert!(own_folder(&link, user).is_err());
        assert!(own_folder(folder.path(), user + 1).is_err());
        assert!(own_folder(&folder.path().join("new"), user).is_ok());
        assert!(own_folder(&folder.path().join("no/where"), user).is_err());
    }
}
