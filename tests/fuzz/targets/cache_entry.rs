//! Bytes as a file of the cache -> its contents, and as contents -> a decision.
//!
//! Invariant: no panic, never more memory than 64 times the input.

use super::memory;

pub fn run(bytes: &[u8]) {
    memory::bounded(bytes.len(), || nvtune::record::fuzzed::cache_entry(bytes));
}
