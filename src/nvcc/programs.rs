//! A dry run -> the toolkit's own programs: those of the final build, and those that variants
//! are made with.

use super::dry_run::Dryrun;
use super::locate::RealNvcc;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where a toolkit's own programs are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Programs {
    /// The folder of its binaries, what nvcc calls `_HERE_`.
    pub bin: PathBuf,
    /// The folder of cicc, where it is known.
    pub cicc: Option<PathBuf>,
}

impl Programs {
    /// Those behind a dry run.
    pub fn new(dryrun: &Dryrun, nvcc: &RealNvcc) -> Self {
        // Older toolkits find it by PATH.
        let on_path = || {
            let mut folders = std::env::split_paths(dryrun.variable("PATH")?);
            folders.find(|folder| folder.join("cicc").is_file())
        };
        let cicc = dryrun.variable("CICC_PATH").map(PathBuf::from).or_else(on_path);
        Self { bin: real_bin(dryrun, nvcc), cicc }
    }
}

impl Programs {
    /// Those that this call resolves to, found without starting anything: for a toolkit's own
    /// nvcc, next to which its profile is. A script may start any other: `None`.
    pub fn next_to(nvcc: &RealNvcc) -> Option<Self> {
        let bin = nvcc.path.parent()?;
        let mut first = [0; 4];
        File::open(&nvcc.path).and_then(|mut file| file.read_exact(&mut first)).ok()?;
        let profile = std::fs::read_to_string(bin.join("nvcc.profile")).ok().filter(|_| first == *b"\x7fELF")?;
        let value = |name: &str| {
            let defines = |line: &str| {
                let (left, right) = line.split_once('=')?;
                (left.trim() == name).then(|| right.trim().to_owned())
            };
            profile.lines().find_map(defines)
        };
        let top = value("TOP")?.replace("$(_HERE_)", bin.to_str()?);
        let cicc = value("CICC_PATH").map(|path| PathBuf::from(path.replace("$(TOP)", &top)));
        Some(Self { bin: bin.to_path_buf(), cicc })
    }

    /// Whether these are the same folders as others, by whatever names.
    pub fn are_those(&self, others: &Self) -> bool {
        let whole = |path: &Path| path.canonicalize().ok();
        let is_same = |a: &Path, b: &Path| whole(a).is_some() && whole(a) == whole(b);
        is_same(&self.bin, &others.bin)
            && match (&self.cicc, &others.cicc) {
                (Some(own), Some(other)) => is_same(own, other),
                (own, other) => own.is_none() && other.is_none(),
            }
    }
}

/// The programs that the variants of a compile are made with.
pub fn compilers(dryrun: &Dryrun, Programs { bin, cicc }: &Programs) -> Vec<String> {
    let path = |path: PathBuf| path.to_string_lossy().into_owned();
    let mut programs: Vec<String> =
        dryrun.pipelines().iter().map(|pipeline| pipeline.preprocess.command().to_owned()).collect();
    programs.extend(cicc.iter().map(|folder| path(folder.join("cicc"))));
    programs.extend(["ptxas", "nvcc.profile"].map(|name| path(bin.join(name))));
    programs.sort();
    programs.dedup();
    programs
}

/// The folder that nvcc takes for its own; for a script that starts another nvcc, the other
/// one's.
pub(super) fn real_bin(dryrun: &Dryrun, nvcc: &RealNvcc) -> PathBuf {
    let here = dryrun.variable("_HERE_").map(PathBuf::from).filter(|here| here.join("nvcc.profile").is_file());
    here.and_then(|here| std::path::absolute(here).ok())
        .or_else(|| nvcc.path.parent().map(Path::to_path_buf))
        .unwrap_or_default()
}
