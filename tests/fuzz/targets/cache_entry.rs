//! Bytes as a file of the cache -> its contents, and as contents -> a decision.
//!
//! Always holds: no panic, never more memory than 64 times the input.
#![no_main]

mod memory;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| memory::bounded(bytes.len(), || nvtune::record::fuzzed::cache_entry(bytes)));
