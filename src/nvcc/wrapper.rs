//! The nvcc that was found -> whether it is a program that changes what the toolkit's own nvcc does.

use super::dry_run::Dryrun;
use super::locate::RealNvcc;
use super::programs::real_bin;
use crate::process::{self, TemporaryFolder, Tool};
use crate::record::read_regular;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

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
    process::output_within(&mut Tool::new(command), process::tool_patience()).ok()?;
    let is_of_shells =
        |line: &&[u8]| ["_=", "SHLVL=", "PWD=", "OLDPWD="].iter().any(|name| line.starts_with(name.as_bytes()));
    let text = read_regular(&found).ok()?;
    Some(text.split(|&byte| byte == 0).filter(|line| !is_of_shells(line)).map(<[u8]>::to_vec).collect())
}
