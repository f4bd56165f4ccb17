//! The overlay toolkit: a folder that looks like the real toolkit but whose `bin/ptxas` is nvtune's shim.
//!
//! nvcc finds its home from argv[0] without resolving links and reads `nvcc.profile` there. So a folder of links, a
//! profile whose `TOP` names the real root, and a `ptxas` of our own make nvcc itself run the shim; all else stays nvcc's.

use super::{mirror::mirror, shim};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An overlay on disk; it goes when this is dropped.
#[derive(Debug)]
pub struct Overlay {
    folder: tempfile::TempDir,
}

#[derive(Debug, Error)]
pub enum OverlayError {
    #[error("cannot make the overlay toolkit in '{}': {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("'{}' has no line `TOP = ...`: this toolkit cannot be overlaid", path.display())]
    Profile { path: PathBuf },
}

impl Overlay {
    /// Makes an overlay of the toolkit whose binaries are in `bin` (what nvcc calls `_HERE_`), with `program` as `ptxas`.
    pub fn new(bin: &Path, program: &Path) -> Result<Self, OverlayError> {
        let folder = tempfile::Builder::new()
            .prefix("nvtune-")
            .tempdir()
            .map_err(|source| OverlayError::Io { path: std::env::temp_dir(), source })?;
        let overlay = Self { folder };
        overlay.fill(bin, program)?;
        Ok(overlay)
    }

    /// nvcc within the overlay: start the real nvcc under this name.
    pub fn nvcc(&self) -> PathBuf {
        self.folder.path().join("bin/nvcc")
    }

    fn fill(&self, bin: &Path, program: &Path) -> Result<(), OverlayError> {
        let io = |path: &Path, source| OverlayError::Io { path: path.to_path_buf(), source };
        let own_bin = mirror(bin, self.folder.path(), |name| name != "nvcc.profile" && name != "ptxas")
            .and_then(|own_bin| symlink(program, own_bin.join("ptxas")).map(|()| own_bin))
            .and_then(|own_bin| symlink(bin.join("ptxas"), own_bin.join(shim::REAL_PTXAS)).map(|()| own_bin))
            .map_err(|source| io(self.folder.path(), source))?;
        let profile = bin.join("nvcc.profile");
        let text = std::fs::read_to_string(&profile).map_err(|source| io(&profile, source))?;
        let text = overlaid_profile(&text, bin).ok_or(OverlayError::Profile { path: profile })?;
        let place = own_bin.join("nvcc.profile");
        std::fs::write(&place, text).map_err(|source| io(&place, source))
    }
}

/// The profile with the real folder in its definition of `TOP`; other uses of `_HERE_` mean the overlay.
fn overlaid_profile(text: &str, bin: &Path) -> Option<String> {
    let bin = bin.to_str()?;
    let mut found = false;
    let lines = text.lines().map(|line| {
        let defines_top = line.split_once('=').is_some_and(|(name, _)| name.trim() == "TOP");
        found |= defines_top;
        if defines_top { line.replace("$(_HERE_)", bin) } else { line.to_owned() }
    });
    let text = lines.collect::<Vec<_>>().join("\n") + "\n";
    found.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn top_names_the_real_root_and_path_the_overlay() {
        let profile = "\nTOP              = $(_HERE_)/..\n\nPATH            += $(CICC_PATH):$(_HERE_):\n";
        assert_eq!(
            overlaid_profile(profile, Path::new("/cuda/bin")).as_deref(),
            Some("\nTOP              = /cuda/bin/..\n\nPATH            += $(CICC_PATH):$(_HERE_):\n")
        );
        assert_eq!(overlaid_profile("PATH += x\n", Path::new("/cuda/bin")), None);
    }
}
