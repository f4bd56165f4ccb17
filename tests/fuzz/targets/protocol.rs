//! Bytes as the stream of a measuring process, and as the stream to one.
//!
//! Always holds: no panic, never more memory than 64 times the input.
#![no_main]

mod memory;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| memory::bounded(bytes.len(), || nvtune::measure::fuzzed::protocol(bytes)));
