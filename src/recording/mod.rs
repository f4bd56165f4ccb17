//! Launches that a program recorded -> the clauses that a tuning comment leaves to it.
//!
//! A build with `NVTUNE=capture` makes launch stubs that write recordings
//! ([`Capture`](crate::emit::Capture)). A recording is data: it may cost time and memory up to
//! its own size, and names no code.

mod apply;
mod file;
mod folder;
mod launch_inference;

/// What the fuzz targets (tests/fuzz) reach of the private readers.
#[doc(hidden)]
pub mod fuzzed {
    use super::apply::without_addresses;
    use super::folder::counters;
    use super::{ArgumentKind, RecordedLaunch};
    use std::io::Cursor;

    /// Reads a recording, what a comment gets of its contents, and the same bytes as counters.
    pub fn recording(bytes: &[u8]) {
        let _ = counters(bytes);
        let Ok(launch) = RecordedLaunch::read(&mut Cursor::new(bytes)) else { return };
        let (_, _) = (launch.threads(), launch.is_intact(bytes));
        for argument in &launch.arguments {
            let is_number = argument.integer().is_some() || argument.float().is_some();
            assert!(!is_number || !matches!(argument.kind, ArgumentKind::Pointer | ArgumentKind::Other));
        }
        let places = launch.buffers.iter().chain(launch.variables.iter().map(|(_, _, place)| place));
        assert!(places.into_iter().all(|place| place.start <= place.end && place.end <= bytes.len() as u64));
        assert_eq!(without_addresses(bytes.to_vec(), &launch).len(), bytes.len());
    }
}

pub use apply::{apply, load};
pub use file::{ArgumentKind, Holder, RecordedArgument, RecordedLaunch, RecordedPointer, RecordingError};
pub use folder::{LeftOut, RecordedKernel, clear, folder, instances, kernels, total_gpu_time_us, total_work};
pub use launch_inference::{InferredGrid, KnownLaunch, infer_grid};
