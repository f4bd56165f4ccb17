//! Launches that a program recorded -> the clauses that a tuning comment leaves to it.
//!
//! A build with `NVTUNE=capture` makes launch stubs that write recordings
//! ([`Capture`](crate::emit::Capture)). A recording is data: it may cost time and memory up to
//! its own size, and names no code.

mod apply;
mod file;
mod folder;
mod launch_inference;

pub use apply::{apply, load};
pub use file::{ArgumentKind, Holder, RecordedArgument, RecordedLaunch, RecordedPointer, RecordingError};
pub use folder::{RecordedKernel, clear, folder, total_work};
pub use launch_inference::{InferredGrid, KnownLaunch, infer_grid};
