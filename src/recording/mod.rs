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
            let may_be_number =
                matches!(argument.kind, ArgumentKind::Signed | ArgumentKind::Unsigned | ArgumentKind::Float);
            assert!(!is_number || may_be_number);
        }
        let places = launch.buffers.iter().chain(launch.variables.iter().map(|(_, _, place)| place));
        assert!(places.into_iter().all(|place| place.start <= place.end && place.end <= bytes.len() as u64));
        let sizes: Vec<u64> = launch.buffers.iter().map(|place| place.end - place.start).collect();
        assert!(launch.arrays.iter().all(|array| array.has_bytes(sizes[array.buffer])));
        assert!(launch.textures.iter().all(|texture| texture.memory.is_within(&launch.arrays, &sizes)));
        assert_eq!(without_addresses(bytes.to_vec(), &launch).len(), bytes.len());
    }
}

pub use apply::{apply, load};
pub use file::{ArgumentKind, Holder, RecordedArgument, RecordedLaunch, RecordedPointer, RecordingError};
pub use folder::{LeftOut, RecordedKernel, clear, folder, instances, kernels, total_gpu_time_us, total_work};
pub use launch_inference::{InferredGrid, KernelHints, KnownLaunch, infer_grid};
