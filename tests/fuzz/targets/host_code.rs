//! Bytes as host code -> what is told of its launches.
//!
//! Always holds: no panic, within bounded time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nvtune::cuda::{HostCode, compiled_files, compiled_text};
use nvtune::diag::Source;
use nvtune::comment::near_misses;
use std::collections::BTreeSet;
use std::sync::Arc;

fuzz_target!(|bytes: &[u8]| {
    let source = Source::new("a.cu", bytes);
    let _ = (near_misses(&source), compiled_files(bytes), compiled_text(&source.text, &BTreeSet::from([2, 5])));
    let code = HostCode::new([Arc::new(source)]);
    let _ = (code.launches("k"), code.by_address("k"), code.names("M"));
});
