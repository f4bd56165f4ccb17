//! nvtune: an `nvcc` that tunes the kernels marked with a `//@tune` comment.
//!
//! The rooms of this crate are the stages of one pipeline, and data flows through them in one direction:
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
#[cfg(fuzzing)]
pub mod fuzzed;
pub mod gpu;
pub mod launch;
pub mod measure;
pub mod model;
pub mod nvcc;
pub mod process;
pub mod ptx;
pub mod record;
pub mod sass;
pub mod search;
pub mod settings;
pub mod sim;
pub mod space;
pub mod tune;
pub mod workload;

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Runs the program with `arguments` (the first is the name it was called by) and gives its exit code.
///
/// Called as `nvcc` it is nvcc, called as `ptxas` or `cicc` (by nvcc, from the overlay toolkit) it is a shim; `nvtune nvcc ARGS` and
/// `nvtune /path/to/nvcc ARGS` are nvcc too; all else is nvtune's own command line.
pub fn run(arguments: Vec<OsString>) -> u8 {
    let name = |argument: Option<&OsString>| argument.and_then(|text| Path::new(text).file_name()).map(OsStr::to_owned);
    let rest = |from: usize| arguments.get(from..).unwrap_or_default();
    let is_nvcc = |name: &OsString| name == "nvcc";
    if name(arguments.first()).as_ref().is_some_and(is_nvcc) {
        driver::pipeline::run(rest(1), arguments.first().map(OsString::as_os_str))
    } else if name(arguments.first()).is_some_and(|name| name == "ptxas") {
        nvcc::shim_ptxas::run(&arguments)
    } else if name(arguments.first()).is_some_and(|name| name == "cicc") {
        nvcc::shim_cicc::run(&arguments)
    } else if name(arguments.get(1)).as_ref().is_some_and(is_nvcc) {
        driver::pipeline::run(rest(2), arguments.get(1).map(OsString::as_os_str))
    } else {
        process::ignore_broken_pipes();
        cli::run(&arguments)
    }
}
