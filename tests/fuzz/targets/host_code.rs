//! Bytes as host code -> what it says of its launches.
//!
//! Invariant: no panic, within bounded time.

use nvtune::comment::near_misses;
use nvtune::cuda::{ANY_COUNT, HostCode, HostProgram, ParameterKind, compiled_files, compiled_text, kernels_of};
use nvtune::diag::Source;
use nvtune::proposal::propose;
use std::collections::BTreeSet;
use std::sync::Arc;

pub fn run(bytes: &[u8]) {
    let source = Source::new("a.cu", bytes);
    let _ = (near_misses(&source), compiled_files(bytes), compiled_text(&source.text, &BTreeSet::from([2, 5])));
    let _ = kernels_of(&source);
    let program = HostProgram::new(&[(source.path.clone(), source.text.clone())], &[], &[]);
    let kinds = [ParameterKind::Scalar { is_float: false }, ParameterKind::Pointer];
    let _ = program.evaluated_launches("k", &ANY_COUNT, &kinds, 1024);
    let _ = propose(&source, &program, &Vec::new, &|_| false);
    let code = HostCode::new([Arc::new(source)]);
    let _ = (code.launches_of("k"), code.without_stub("k"), code.has_name("M"));
}
