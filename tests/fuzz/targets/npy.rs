//! Bytes as a `.npy` file -> the type and number of its elements.
//!
//! Invariant: no panic; the elements are within the file; never more memory than 64 times the input.

use super::memory;

pub fn run(bytes: &[u8]) {
    memory::bounded(bytes.len(), || nvtune::workload::fuzzed::npy(bytes));
}
