//! Contents -> a file that appears whole or not at all.

use std::path::Path;

/// Writes a file whole or not at all, and not when it has these contents already: make would rebuild what uses it.
pub fn write_if_changed(path: &Path, contents: &[u8]) -> Result<(), String> {
    if std::fs::read(path).is_ok_and(|present| present == contents) {
        return Ok(());
    }
    let write = || -> std::io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // As any file that a compiler writes: open to all that the user's umask lets in.
        let mode: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        let mut file = tempfile::Builder::new().prefix(".nvtune-").permissions(mode).tempfile_in(folder)?;
        std::io::Write::write_all(&mut file, contents)?;
        file.persist(path).map(drop).map_err(|error| error.error)
    };
    // The kind alone: the whole error names the temporary file.
    write().map_err(|error| format!("cannot write '{}': {}", path.display(), error.kind()))
}
