//! Bytes as a recorded launch and as a file of counters -> its shape, arguments and memory.
//!
//! Invariant: no panic, each place is within the file, never more memory than 64 times the input.

use super::memory;

pub fn run(bytes: &[u8]) {
    memory::bounded(bytes.len(), || nvtune::recording::fuzzed::recording(bytes));
}
