//! Contents -> a file that appears whole or not at all, and goes again where the build that it
//! was for fails.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::NamedTempFile;

/// A file that was written, and what was in its place.
#[derive(Debug)]
pub struct Replaced {
    path: PathBuf,
    contents: Vec<u8>,
    before: Option<(Vec<u8>, SystemTime)>,
}

impl Replaced {
    /// Restores the former contents, unless another process has changed the file since. If that
    /// fails, removes the file: it must not describe an object that does not exist.
    pub fn restore(&self) {
        if read_regular(&self.path).is_ok_and(|present| present != self.contents) {
            return;
        }
        let Some((_, date)) = self.before.as_ref().filter(|(before, _)| write(&self.path, before).is_ok()) else {
            return remove(&self.path);
        };
        if let Ok(file) = std::fs::File::options().append(true).open(&self.path) {
            // A wrong date costs a build at most.
            let _ = file.set_modified(*date);
        }
    }
}

/// Reads a file that may be anything: a pipe would have its reader wait for ever. So would `/proc/kmsg`, which the kernel calls
/// an empty regular file: no more is read than the size that is stated.
///
/// # Errors
/// As `std::fs::read`, and for what is no regular file.
pub fn read_regular(path: &Path) -> std::io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let file = std::fs::File::open(path)?;
    let size = file.metadata()?.len();
    let mut contents = Vec::new();
    file.take(size).read_to_end(&mut contents)?;
    Ok(contents)
}

/// Writes a file whole or not at all, and not when it has these contents already: make would
/// rebuild what uses it.
pub fn write_if_changed(path: &Path, contents: &[u8]) -> Result<Option<Replaced>, String> {
    let present = read_regular(path).ok();
    if present.as_deref() == Some(contents) {
        return Ok(None);
    }
    let date = || std::fs::metadata(path).and_then(|data| data.modified()).ok();
    let before = present.and_then(|present| Some((present, date()?)));
    // The kind alone: the whole error names the temporary file.
    write(path, contents).map_err(|error| format!("cannot write '{}': {}", path.display(), error.kind()))?;
    Ok(Some(Replaced { path: path.to_path_buf(), contents: contents.to_vec(), before }))
}

/// Gives a file that is there other contents; where that fails, it goes.
pub fn overwrite(path: &Path, contents: &[u8]) {
    if path.exists() && write(path, contents).is_err() {
        remove(path);
    }
}

/// Removes a file; once more where that fails.
pub fn remove(path: &Path) {
    if std::fs::remove_file(path).is_err() && path.exists() {
        let _ = std::fs::remove_file(path);
    }
}

fn write(path: &Path, contents: &[u8]) -> std::io::Result<()> {
    put_in_place(unfinished(path, contents, None)?, path)
}

/// Writes contents to a temporary file next to `path`, which [`put_in_place`] gives that name.
/// It has these permissions, or those of any file that a compiler writes: all that the user's
/// umask lets in. It goes if it is dropped.
pub fn unfinished(path: &Path, contents: &[u8], permissions: Option<Permissions>) -> std::io::Result<NamedTempFile> {
    let open = Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new().prefix(".nvtune-").permissions(open).tempfile_in(folder(path))?;
    file.write_all(contents)?;
    // The mode of a new file is cut by the umask.
    permissions.map_or(Ok(()), |permissions| file.as_file().set_permissions(permissions))?;
    Ok(file)
}

/// Gives an unfinished file its name, in place of what has it.
pub fn put_in_place(file: NamedTempFile, path: &Path) -> std::io::Result<()> {
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Returns the folder of a file.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_was_there_comes_back_with_its_date() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.tune.h");
        let dated = || std::fs::metadata(&path).and_then(|data| data.modified()).expect("it is there");
        let write = |text: &str| write_if_changed(&path, text.as_bytes()).expect("written");
        write("new").expect("it was not there").restore();
        assert!(!path.exists());
        write("old");
        let date = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        std::fs::File::options().append(true).open(&path).and_then(|file| file.set_modified(date)).expect("dated");
        assert!(write("old").is_none(), "nothing to write");
        write("new").expect("it was another").restore();
        assert_eq!((std::fs::read(&path).expect("there"), dated()), (b"old".to_vec(), date));
        let replaced = write("new").expect("it was another");
        std::fs::write(&path, "another build's").expect("written");
        replaced.restore();
        assert_eq!(std::fs::read(&path).expect("there"), b"another build's");
    }
}
