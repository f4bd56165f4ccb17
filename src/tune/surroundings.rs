//! What is known of the code around a source's kernels.

use super::launch_path::Build;
use crate::cuda::HostCode;

/// What is known of the code around a source's kernels. It is used for advice; no launch
/// depends on it.
#[derive(Clone, Debug)]
pub struct Surroundings {
    pub includes_header: bool,
    /// Whether what is built holds the kernels' launch stubs.
    pub has_stubs: bool,
    /// Whether the code is linked later (`-rdc=true`).
    pub is_relocatable: bool,
    /// The source's host code, where it is compiled.
    pub host: HostCode,
}

impl Surroundings {
    /// Returns what decides how launches select a winner.
    pub fn build(&self) -> Build {
        let Self { has_stubs, is_relocatable, includes_header, .. } = *self;
        Build { has_stubs, is_relocatable, includes_header }
    }

    /// Tells whether code or a directive has this name, as far as the code is known.
    pub fn names(&self, name: &str) -> bool {
        !self.has_stubs || self.host.has_name(name)
    }
}
