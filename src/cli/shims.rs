//! `nvtune shims DIR`: a toolkit root whose nvcc is nvtune.

use super::exit_status::{CommandFailure, exit_code};
use crate::diag::MessageCode;
use crate::nvcc::{REAL_NVCC, RealNvcc, mirror};
use crate::put;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Makes the folder; an existing one that is not empty is left alone.
pub fn run(folder: &Path) -> u8 {
    exit_code(make_shims(folder).map(|()| {
        put!("{}", folder.join("bin/nvcc").display());
        0
    }))
}

fn make_shims(folder: &Path) -> Result<(), CommandFailure> {
    let nvcc = RealNvcc::find(None, |name| std::env::var_os(name))
        .map_err(|error| CommandFailure::new(MessageCode::NvccNotFound, error.to_string()))?;
    let lost =
        |error| CommandFailure::new(MessageCode::CommandFailed, format!("cannot find nvtune's own program: {error}"));
    let own = std::env::current_exe().map_err(lost)?;
    let bin = nvcc.path.parent().unwrap_or(Path::new("/"));
    if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(CommandFailure::new(
            MessageCode::WrongArgument,
            format!("'{}' is not empty; name a folder that is, or that does not exist yet", folder.display()),
        ));
    }
    let made = mirror(bin, folder, |name| name != "nvcc").and_then(|own_bin| {
        symlink(own, own_bin.join("nvcc"))?;
        symlink(&nvcc.path, own_bin.join(REAL_NVCC))
    });
    made.map_err(|error| {
        CommandFailure::new(MessageCode::CommandFailed, format!("cannot make '{}': {error}", folder.display()))
    })
}
