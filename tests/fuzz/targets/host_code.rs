//! Bytes as host code -> what is told of its launches.
//!
//! Always holds: no panic, within bounded time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nvtune::cuda::{HeaderName, HostCode, compiled_files, compiled_text};
use nvtune::diag::Source;
use nvtune::comment::near_misses;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fuzz_target!(|bytes: &[u8]| {
    let source = Source::new("a.cu", bytes);
    let _ = (near_misses(&source), compiled_files(bytes), compiled_text(&source.text, &BTreeSet::from([2, 5])));
    let code = HostCode::new([Arc::new(source)]);
    let header = HeaderName { name: "k".to_owned(), prefix: "K".to_owned() };
    for divides in [false, true] {
        code.launches_follow("k", "M", divides);
    }
    let _ = (code.use_of("M"), code.shared_use_of("M"), code.others_with("k", "M"), code.uses_header(&header));
    let _ = (code.launches("k"), code.launched_block("k", &BTreeMap::new()), code.launch_with_shared("k"));
    let _ = (code.beside_header("k", None, &[header]), code.bypass("k"), code.unreached("k"));
});
