//! The dependency file of a final build. nvcc writes it below a temporary folder, for it names
//! headers that go with the build; the user's file has their lasting names from the start.

use std::fs::Permissions;
use std::io;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Tells whether nvcc could write this file and it is, or will be, a regular file. nvcc itself
/// has the message about any other.
pub fn can_be_written(path: &Path) -> bool {
    match (path.metadata(), path.symlink_metadata()) {
        (Ok(data), _) => data.is_file() && std::fs::File::options().append(true).open(path).is_ok(),
        (Err(_), Ok(_)) => false,
        (Err(_), Err(_)) => rustix::fs::access(folder(path), rustix::fs::Access::WRITE_OK).is_ok(),
    }
}

/// Writes a dependency file as nvcc does: symbolic and hard links remain, and the file keeps its
/// mode. A file of the user's own is replaced as a whole.
pub fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    match path.metadata() {
        Ok(data) if !data.is_file() || data.nlink() != 1 || data.uid() != own => std::fs::write(path, text),
        Ok(data) => replace(&path.canonicalize()?, text, data.permissions()).or_else(|_| std::fs::write(path, text)),
        Err(_) if path.is_symlink() => std::fs::write(path, text),
        Err(_) => replace(path, text, Permissions::from_mode(0o666)),
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn replace(path: &Path, text: &[u8], permissions: Permissions) -> io::Result<()> {
    let mode = permissions.clone();
    let mut file = tempfile::Builder::new().prefix(".nvtune-").permissions(mode).tempfile_in(folder(path))?;
    file.write_all(text)?;
    if path.exists() {
        // The mode of a new file is cut by the umask.
        file.as_file().set_permissions(permissions)?;
    }
    file.persist(path).map(drop).map_err(|error| error.error)
}
