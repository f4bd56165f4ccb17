//! A toolkit root that is links to another one, but for what its maker puts into `bin/`.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Fills `folder` with links to the toolkit whose binaries are in `bin`, and its `bin/` with
/// links to those for which `keep` is true. Gives the new `bin/`.
pub fn mirror(bin: &Path, folder: &Path, keep: impl Fn(&std::ffi::OsStr) -> bool) -> std::io::Result<PathBuf> {
    let bin = std::path::absolute(bin)?;
    let own_bin = folder.join("bin");
    std::fs::create_dir_all(&own_bin)?;
    // nvcc looks for `targets/` next to its folder, builds for `include/` and `lib64/`.
    if let Some(root) = bin.parent() {
        link_entries(root, folder, |name| name != "bin")?;
    }
    link_entries(&bin, &own_bin, keep)?;
    Ok(own_bin)
}

fn link_entries(from: &Path, to: &Path, keep: impl Fn(&std::ffi::OsStr) -> bool) -> std::io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if keep(&entry.file_name()) {
            symlink(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
