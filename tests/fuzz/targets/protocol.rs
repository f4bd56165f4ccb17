//! Bytes as the stream of a measuring process, and as the stream to one.
//!
//! Invariant: no panic, never more memory than 64 times the input.

use super::memory;

pub fn run(bytes: &[u8]) {
    memory::bounded(bytes.len(), || nvtune::measure::fuzzed::protocol(bytes));
}
