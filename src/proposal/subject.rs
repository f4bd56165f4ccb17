//! A kernel that gets a comment, and what is known of its launches.

use crate::cuda::{ANY_COUNT, ArgumentCounts, HostProgram, ListedKernel};
use crate::diag::Source;

/// The kernel that gets a comment, and where it stands.
pub(super) struct Subject<'a> {
    pub source: &'a Source,
    pub program: &'a HostProgram,
    pub listed: &'a ListedKernel,
    /// All kernels of the file.
    pub all: &'a [ListedKernel],
    /// The numbers of arguments that tell it from its namesakes.
    pub counts: ArgumentCounts,
}

/// Why a kernel has no launch that tells anything.
pub(super) fn no_launch(subject: &Subject<'_>) -> String {
    let (program, kernel) = (subject.program, subject.listed.kernel.name.as_str());
    match program.left_out(kernel) {
        _ if subject.counts != ANY_COUNT => "no launch of this overload is found in host code".to_owned(),
        _ if program.is_launched_by_device(kernel) => "only device code launches it".to_owned(),
        Some(place) => format!("its launch {place}: give the build's macros, as in -- -DNAME"),
        None => "no launch of it is found in host code".to_owned(),
    }
}
