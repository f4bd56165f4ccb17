//! The overlay toolkit: a folder that looks like the real toolkit but whose `ptxas` and `cicc`
//! are nvtune's shims.
//!
//! nvcc finds its home from `argv[0]` without resolving links and reads `nvcc.profile` there. So
//! a folder of links, a profile whose `TOP` names the real root, and a `ptxas` and a `cicc` of
//! our own make nvcc itself run the shims; all else stays nvcc's.

use super::overlay_links::mirror;
use super::{shim_cicc, shim_ptxas};
use crate::process::TemporaryFolder;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An overlay on disk; it goes when this is dropped.
#[derive(Debug)]
pub struct Overlay {
    folder: TemporaryFolder,
}

#[derive(Debug, Error)]
pub enum OverlayError {
    #[error("cannot make the overlay toolkit in '{}': {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("'{}' has no line `TOP = ...`: this toolkit cannot be overlaid", path.display())]
    Profile { path: PathBuf },
}

impl Overlay {
    /// Makes an overlay of the toolkit whose binaries are in `bin` (what nvcc calls `_HERE_`),
    /// with `program` as `ptxas` and, where the folder of cicc is known, as `cicc`.
    pub fn new(bin: &Path, cicc: Option<&Path>, program: &Path) -> Result<Self, OverlayError> {
        let folder =
            TemporaryFolder::new().map_err(|source| OverlayError::Io { path: std::env::temp_dir(), source })?;
        let overlay = Self { folder };
        overlay.fill(bin, cicc, program)?;
        Ok(overlay)
    }

    /// nvcc within the overlay: start the real nvcc under this name.
    pub fn nvcc(&self) -> PathBuf {
        self.folder.path().join("bin/nvcc")
    }

    fn fill(&self, bin: &Path, cicc: Option<&Path>, program: &Path) -> Result<(), OverlayError> {
        let io = |path: &Path, source| OverlayError::Io { path: path.to_path_buf(), source };
        let own_bin = mirror(bin, self.folder.path(), |name| name != "nvcc.profile" && name != "ptxas")
            .and_then(|own_bin| symlink(program, own_bin.join("ptxas")).map(|()| own_bin))
            .and_then(|own_bin| symlink(bin.join("ptxas"), own_bin.join(shim_ptxas::REAL_PTXAS)).map(|()| own_bin))
            .map_err(|source| io(self.folder.path(), source))?;
        let profile = bin.join("nvcc.profile");
        let text = std::fs::read_to_string(&profile).map_err(|source| io(&profile, source))?;
        let cicc_folder = cicc.map(|real| self.cicc(real, program).map_err(|source| io(real, source))).transpose()?;
        let text =
            overlaid_profile(&text, bin, cicc_folder.as_deref()).ok_or(OverlayError::Profile { path: profile })?;
        let place = own_bin.join("nvcc.profile");
        std::fs::write(&place, text).map_err(|source| io(&place, source))
    }

    /// A folder whose `cicc` is `program`, and that knows the one in `real`.
    fn cicc(&self, real: &Path, program: &Path) -> std::io::Result<PathBuf> {
        let folder = self.folder.path().join("cicc");
        std::fs::create_dir(&folder)?;
        symlink(program, folder.join("cicc"))?;
        symlink(std::path::absolute(real)?.join("cicc"), folder.join(shim_cicc::REAL_CICC))?;
        Ok(folder)
    }
}

/// The profile with the real folder wherever it is spoken of but in PATH, where it is the
/// overlay's, and with the shim's folder as that of cicc: older toolkits have no `CICC_PATH`,
/// and find it by PATH. `None` where there is no `TOP`.
fn overlaid_profile(text: &str, bin: &Path, cicc: Option<&Path>) -> Option<String> {
    let bin = bin.to_str()?;
    let cicc = cicc.map(|cicc| cicc.to_str()).map_or(Some(None), |cicc| cicc.map(Some))?;
    let name = |line: &str| line.split_once(['=', '+']).map(|(name, _)| name.trim().to_owned()).unwrap_or_default();
    let names: Vec<String> = text.lines().map(name).collect();
    let has = |name: &str| names.iter().any(|own| own == name);
    let lines = text.lines().zip(&names).map(|(line, name)| match (name.as_str(), cicc) {
        ("CICC_PATH", Some(cicc)) => format!("CICC_PATH = {cicc}"),
        ("PATH", Some(cicc)) if !has("CICC_PATH") => match line.split_once('=') {
            Some((name, value)) => format!("{name}= {cicc}:{}", value.trim_start()),
            None => line.to_owned(),
        },
        ("PATH", _) => line.to_owned(),
        _ => line.replace("$(_HERE_)", bin),
    });
    let text = lines.collect::<Vec<_>>().join("\n") + "\n";
    has("TOP").then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_names_the_overlay_and_all_else_the_real_root() {
        let profile = "\nTOP              = $(_HERE_)/..\nCICC_PATH = $(TOP)/nvvm/bin\nPATH            += $(CICC_PATH):$(_HERE_):\n";
        let top = "\nTOP              = /cuda/bin/..\n";
        let path = "PATH            += $(CICC_PATH):$(_HERE_):\n";
        let overlaid = |text, cicc: Option<&str>| overlaid_profile(text, Path::new("/cuda/bin"), cicc.map(Path::new));
        assert_eq!(overlaid(profile, None), Some(format!("{top}CICC_PATH = $(TOP)/nvvm/bin\n{path}")));
        assert_eq!(overlaid(profile, Some("/o/cicc")), Some(format!("{top}CICC_PATH = /o/cicc\n{path}")));
        assert_eq!(overlaid("PATH += x\n", Some("/o/cicc")), None);
        let older = format!("{top}PATH += $(TOP)/nvvm/bin:$(_HERE_):\nINCLUDES += \"-I$(_HERE_)/../include\"\n");
        let expected =
            format!("{top}PATH += /o/cicc:$(TOP)/nvvm/bin:$(_HERE_):\nINCLUDES += \"-I/cuda/bin/../include\"\n");
        assert_eq!(overlaid(&older, Some("/o/cicc")), Some(expected));
    }
}
