//! The `cudafe++` of the overlay toolkit: the real one, whose messages are kept while nvtune
//! tunes.

use super::plan_folder::messages_until_decided;
use super::shim_ptxas::{cannot_start, real_tool};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The name under which the overlay holds the real cudafe++.
pub const REAL_CUDAFE: &str = "nvtune-real-cudafe++";

/// Becomes cudafe++; `arguments` begin with the name it was called by. Returns the exit code
/// where it cannot be started.
pub fn run(arguments: &[OsString]) -> u8 {
    let own_path = arguments.first().map(PathBuf::from).unwrap_or_default();
    let mut cudafe = Command::new(real_tool(&own_path, REAL_CUDAFE));
    cudafe.arg0("cudafe++").args(arguments.get(1..).unwrap_or_default());
    if let Some(messages) = messages_until_decided() {
        cudafe.stderr(messages);
    }
    cannot_start("cudafe++", &cudafe.exec())
}
