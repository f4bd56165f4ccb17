//! Runs a candidate under NVIDIA's compute-sanitizer and reports the first problem.
//!
//! The measuring process itself runs under the tool, in one launch of the candidate on its
//! workload. The tool's report goes to a file, for standard output is the protocol's.

use super::candidate::{Candidate, Plan};
use super::error::Error;
use super::measurer::Measurer;
use super::options::Options;
use super::process::Process;
use crate::process::TemporaryFolder;
use std::path::PathBuf;

/// The tool, as it is called.
const TOOL: &str = "compute-sanitizer";

/// Time limit in seconds: under the tool kernels take up to some hundred times as long.
const TIME_LIMIT_S: f64 = 120.0;

/// Why the tool could not be used.
#[derive(Debug, thiserror::Error)]
pub enum MemcheckError {
    #[error("there is no {TOOL} on PATH")]
    NoTool,
    #[error("{TOOL} cannot be used behind NVTUNE_RUNNER")]
    Runner,
    #[error("{TOOL}: {0}")]
    Failed(String),
}

/// Looks for wrong accesses to memory in one launch; `None` where there is none, else the
/// tool's first words on them.
pub fn sanitize(candidate: &Candidate, options: &Options) -> Result<Option<String>, MemcheckError> {
    if !options.runner.is_empty() {
        return Err(MemcheckError::Runner);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(TOOL));
    let tool = places.find(|place| place.is_file()).ok_or(MemcheckError::NoTool)?;
    let failed = |problem: String| MemcheckError::Failed(problem);
    let folder = TemporaryFolder::new().map_err(|error| failed(error.to_string()))?;
    let report = folder.path().join("report");
    let own = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    // What the driver's functions answer is no error of the kernel's: its parameters are counted by
    // asking for one too many. Padding, for what lies right behind a buffer may be the next
    // one.
    let words = ["--tool", "memcheck", "--report-api-errors", "no", "--padding", "256", "--log-file"]
        .map(str::to_owned)
        .into_iter();
    let runner = std::iter::once(tool.to_string_lossy().into_owned())
        .chain(words)
        .chain([report.to_string_lossy().into_owned()])
        .collect();
    let program = options.program.clone().unwrap_or(own);
    let under = Options {
        runner,
        program: Some(nvtune(program, folder.path())?),
        notice: None,
        unguarded: true,
        ..options.clone()
    };
    let plan = Plan { rounds: 1, budget_s: TIME_LIMIT_S, patience_s: TIME_LIMIT_S, ..Plan::default() };
    let ran = Process::start(under).and_then(|mut process| process.time(candidate, &[], &plan));
    let said = std::fs::read_to_string(&report).unwrap_or_default();
    let lines = || said.lines().map(|line| line.trim_start_matches('=').trim());
    match lines().find(|line| {
        !line.is_empty() && !line.starts_with("COMPUTE-SANITIZER") && !line.starts_with("ERROR SUMMARY: 0")
    }) {
        Some(problem) => Ok(Some(problem.to_owned())),
        None => match ran {
            Ok(_) => Ok(None),
            Err(Error::Baseline(reason)) => Ok(Some(reason.to_string())),
            Err(error) => Err(failed(error.to_string())),
        },
    }
}

/// This program under its own name: it may be called `nvcc`, and would be one.
fn nvtune(program: PathBuf, folder: &std::path::Path) -> Result<PathBuf, MemcheckError> {
    let link = folder.join("nvtune");
    std::os::unix::fs::symlink(&program, &link).map_err(|error| MemcheckError::Failed(error.to_string()))?;
    Ok(link)
}
