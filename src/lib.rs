//! nvtune: an `nvcc` that tunes the kernels marked with a `//@tune` comment.
//!
//! The rooms of this crate are the stages of one pipeline, and data flows through them in one
//! direction:
//!
//! ```text
//! argv -> Invocation -> Annotation -> Space -> Variant (PTX, cubin) -> Resources + Sass -> Score
//!      -> Candidate -> Timing -> Winner -> object file + header (+ record)
//! ```

// These panic where nobody listens: `print` has what does not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod analysis;
pub mod cli;
pub mod comment;
pub mod cuda;
pub mod diag;
pub mod driver;
pub mod emit;
pub mod gpu;
pub mod launch;
pub mod measure;
pub mod model;
pub mod nvcc;
pub mod process;
pub mod proposal;
pub mod ptx;
pub mod record;
pub mod recording;
pub mod sass;
pub mod search;
pub mod settings;
pub mod sim;
pub mod space;
pub mod tune;
pub mod workload;

use nvcc::{LaunchedCall, are_nvcc_arguments, is_nvcc_name, launched};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Runs the program with `arguments` (the first is the name it was called by) and gives its
/// exit code.
///
/// Called as `nvcc` it is nvcc, called as `ptxas` or `cicc` (by nvcc, from the overlay toolkit)
/// it is a shim; `nvtune nvcc ARGS`, `nvtune /path/to/nvcc ARGS` and `nvtune ccache nvcc ARGS`
/// are nvcc too, as is `nvtune ARGS` with nvcc's arguments; all else is nvtune's own command
/// line.
pub fn run(arguments: Vec<OsString>) -> u8 {
    let (own, words) =
        arguments.split_first().map_or((OsStr::new(""), &[][..]), |(own, words)| (own.as_os_str(), words));
    let is_called = |name: &str| Path::new(own).file_name() == Some(OsStr::new(name));
    if is_nvcc_name(own) {
        driver::pipeline::run(LaunchedCall { launcher: None, nvcc: own, arguments: words })
    } else if is_called(process::LAUNCHER) {
        process::become_tool(words)
    } else if is_called("ptxas") {
        nvcc::shim_ptxas::run(&arguments)
    } else if is_called("cicc") {
        nvcc::shim_cicc::run(&arguments)
    } else if are_nvcc_arguments(words) {
        driver::pipeline::run_without_name(words)
    } else if let Some(call) = Some(words).filter(|words| !cli::begins_with_command(words)).and_then(launched) {
        driver::pipeline::run_launched(call)
    } else {
        process::ignore_broken_pipes();
        cli::run(&arguments)
    }
}
