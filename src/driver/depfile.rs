//! The dependency file of a final build. nvcc writes it below a temporary folder, for it names
//! headers that go with the build; the user's file has their lasting names from the start.

use crate::record::{folder, put_in_place, unfinished};
use std::io;
use std::os::unix::fs::MetadataExt;
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
        Ok(data) => {
            let target = path.canonicalize()?;
            let file = unfinished(&target, text, Some(data.permissions()));
            file.and_then(|file| put_in_place(file, &target)).or_else(|_| std::fs::write(path, text))
        }
        Err(_) if path.is_symlink() => std::fs::write(path, text),
        Err(_) => put_in_place(unfinished(path, text, None)?, path),
    }
}
