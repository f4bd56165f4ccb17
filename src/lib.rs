//! nvtune: an `nvcc` that tunes the kernels marked with a `//@tune` comment.
//!
//! The rooms of this crate are the stages of one pipeline, and data flows through them in one direction:
//!
//! ```text
//! argv -> Invocation -> Annotation -> Space -> Variant (PTX, cubin) -> Resources + Sass -> Score
//!      -> Candidate -> Timing -> Winner -> object file + header (+ record)
//! ```

pub mod comment;
pub mod cubin;
pub mod measure;
pub mod model;
pub mod ptx;
pub mod space;
pub mod workload;

/// Runs the program with `arguments` (the first is the name it was called by) and gives its exit code.
pub fn run(arguments: Vec<std::ffi::OsString>) -> std::process::ExitCode {
    if arguments.get(1).is_some_and(|name| name == "measure") {
        return measure::serve(&arguments[2..]);
    }
    std::process::ExitCode::SUCCESS
}
