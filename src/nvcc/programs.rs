//! A dry run -> the toolkit's own programs: those of the final build, and those that variants
//! are made with.

use super::dry_run::Dryrun;
use super::locate::RealNvcc;
use crate::process::{self, TemporaryFolder};
use crate::record::read_regular;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Returns why the final build, which starts the toolkit's own nvcc, would run other steps than
/// the nvcc that was found, or the same in another environment: a wrapper, such as a package
/// manager's script, that changes the arguments or exports variables.
pub fn wrapper_problem(dryrun: &Dryrun, nvcc: &RealNvcc, arguments: &[OsString]) -> Option<String> {
    let own = real_bin(dryrun, nvcc).join("nvcc");
    let file = |path: &Path| path.metadata().ok().map(|data| (data.dev(), data.ino()));
    if file(&own) == file(&nvcc.path) {
        return None;
    }
    let has_same_environment = || {
        let [behind, direct] = [&nvcc.path, &own].map(|program| compiler_environment(program));
        behind.is_some() && behind == direct
    };
    let is_same = Dryrun::ask(&own, arguments).is_ok_and(|direct| direct.has_same_steps_as(dryrun));
    let is_same = is_same && has_same_environment();
    let (path, own) = (nvcc.path.display(), own.display());
    (!is_same).then(|| {
        format!("'{path}' changes the call: set NVTUNE_NVCC to '{own}', and add its options and variables to the build")
    })
}

/// Returns the variables that an nvcc gives to its host compiler, but for those that every shell sets; `None` if it starts
/// none.
fn compiler_environment(nvcc: &Path) -> Option<BTreeSet<Vec<u8>>> {
    let folder = TemporaryFolder::new().ok()?;
    let (probe, found) = (folder.path().join("probe"), folder.path().join("environment"));
    std::fs::write(&probe, "#!/bin/sh\nenv -0 > \"${0%probe}environment\"\nexit 1\n").ok()?;
    std::fs::set_permissions(&probe, Permissions::from_mode(0o700)).ok()?;
    let mut command = Command::new(nvcc);
    command.args(["-E", "-x", "cu", "/dev/null", "-ccbin"]).arg(&probe);
    // The dry run shows what these add.
    command.env_remove("NVCC_PREPEND_FLAGS").env_remove("NVCC_APPEND_FLAGS");
    process::output_within(&mut command, process::tool_patience()).ok()?;
    let is_of_shells =
        |line: &&[u8]| ["_=", "SHLVL=", "PWD=", "OLDPWD="].iter().any(|name| line.starts_with(name.as_bytes()));
    let text = read_regular(&found).ok()?;
    Some(text.split(|&byte| byte == 0).filter(|line| !is_of_shells(line)).map(<[u8]>::to_vec).collect())
}

/// The folder that nvcc takes for its own; for a script that starts another nvcc, the other
/// one's.
fn real_bin(dryrun: &Dryrun, nvcc: &RealNvcc) -> PathBuf {
    let here = dryrun.variable("_HERE_").map(PathBuf::from).filter(|here| here.join("nvcc.profile").is_file());
    here.and_then(|here| std::path::absolute(here).ok())
        .or_else(|| nvcc.path.parent().map(Path::to_path_buf))
        .unwrap_or_default()
}
