//! Why a step of the compiler, run for nvtune's own purposes, gave nothing.

use crate::process;
use crate::ptx;
use crate::sass::CodeDigestError;
use crate::workload::demangled_name;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// A tool that was stopped because it did not end.
#[derive(Clone, Debug, Error)]
#[error("{program} did not end within {} s (NVTUNE_PATIENCE) and was stopped", limit.as_secs_f64())]
pub struct Late {
    pub(super) program: String,
    pub(super) limit: Duration,
}

#[derive(Debug, Error)]
pub enum ToolError {
    #[error("cannot use '{}': {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("cannot start {program}: {source}")]
    Start { program: String, source: std::io::Error },
    #[error(transparent)]
    Late(#[from] Late),
    /// None was started: there was no time left for it.
    #[error("not compiled: half of the budget was over before its turn")]
    OutOfTime,
    /// The tool's own words.
    #[error("{program} failed: {message}")]
    Failed { program: String, message: String },
    /// Relocatable code that cannot be linked alone; the names as the source has them.
    #[error("it needs {} of another file: -rdc code is tuned if its own file has all that it uses", .0.join(", "))]
    Elsewhere(Vec<String>),
    /// The code calls the device runtime, with which it would have to be linked.
    #[error("it launches kernels itself (dynamic parallelism), which nvtune does not tune")]
    LaunchesKernels,
    #[error(transparent)]
    Ptx(#[from] ptx::PtxError),
    #[error(transparent)]
    Code(#[from] CodeDigestError),
}

/// The beginning of the functions that launch kernels from device code (CUDA's `libcudadevrt`).
const DEVICE_RUNTIME: &str = "`__cudaCDP";

/// What nvlink's complaint means where it misses names.
pub(super) fn elsewhere(error: ToolError) -> ToolError {
    let ToolError::Failed { message, .. } = &error else { return error };
    let missed = message.lines().filter_map(|line| line.split_once("Undefined reference to '")?.1.split('\'').next());
    let mut names: Vec<String> = Vec::new();
    for name in missed.map(|name| format!("`{}`", demangled_name(name))) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.first() {
        None => error,
        Some(_) if names.iter().any(|name| name.starts_with(DEVICE_RUNTIME)) => ToolError::LaunchesKernels,
        Some(_) => ToolError::Elsewhere(names),
    }
}

/// Turns the error of nvtune's own use of a file into that of a tool. It is one that may not
/// come again.
pub(super) fn io(path: &Path) -> impl Fn(std::io::Error) -> ToolError + use<> {
    let path = path.to_path_buf();
    move |source| {
        process::note_fault();
        ToolError::Io { path: path.clone(), source }
    }
}

/// Tells whether the front end refused a text for what stands in it, by its own words.
pub(super) fn refuses_text(message: &str) -> bool {
    message.contains("): error: ")
}

/// Tells whether a tool failed for what the system lacked at the time, by its own words.
pub(super) fn lacks_resources(message: &str) -> bool {
    const WORDS: [&str; 4] =
        ["No space left on device", "Cannot allocate memory", "Resource temporarily unavailable", "Input/output error"];
    WORDS.iter().any(|words| message.contains(words))
}
