//! Bytes as a `.npy` file -> the type and number of its elements.
//!
//! Always holds: no panic; the elements are within the file; never more memory than 64 times the input.
#![no_main]

mod memory;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| memory::bounded(bytes.len(), || nvtune::workload::fuzzed::npy(bytes)));
