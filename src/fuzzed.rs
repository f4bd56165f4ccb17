//! Entries to readers that are no part of the library's interface, for the fuzz targets in `tests/fuzz`.
//!
//! Compiled under `cfg(fuzzing)` alone, which cargo-fuzz sets. In: bytes of anyone's. Out: nothing; a panic is a finding.

use crate::measure::fuzzed as measure;
use crate::record::fuzzed as record;
use crate::workload::fuzzed as workload;

/// Reads a file of the cache, and what is in it as a decision.
pub fn cache_entry(bytes: &[u8]) {
    record::cache_entry(bytes);
}

/// Reads messages of a measuring process, and requests to one.
pub fn protocol(bytes: &[u8]) {
    measure::protocol(bytes);
}

/// Reads the header of a `.npy` file.
pub fn npy(bytes: &[u8]) {
    workload::npy(bytes);
}
