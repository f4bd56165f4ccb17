//! A profile's accesses -> default accesses for instructions that the profile does not cover.
//!
//! An instruction that is executed but not in the profile is most often in a copy that the
//! compiler made of a loop, for a special case or for the remainder of unrolling. It is assumed
//! to access memory as the profiled accesses of its space, kind and width do on average.

use crate::ptx::{AccessKind, MemorySpace};
use crate::sim::Profile;
use crate::sim::profile::Access;

/// The mean access of each space, kind and width, with its number of executions.
#[derive(Default)]
pub(super) struct AccessDefaults(Vec<(Access, f64)>);

impl AccessDefaults {
    /// Averages accesses to global and shared memory. Accesses to local memory are left out:
    /// spilled values say nothing about arrays.
    pub fn from_profile(profile: &Profile) -> Self {
        let mut defaults = Self::default();
        for (line, access) in &profile.accesses {
            let count = profile.mean.get(line).copied().unwrap_or(0.0);
            if !matches!(access.space, MemorySpace::Global | MemorySpace::Shared) || count <= 0.0 {
                continue;
            }
            match defaults.0.iter_mut().find(|(of, _)| has_same_shape(of, access.space, access.kind, access.width)) {
                Some((of, counts)) => {
                    of.mix_in(access, count / (*counts + count));
                    *counts += count;
                }
                None => defaults.0.push((*access, count)),
            }
        }
        defaults
    }

    pub fn default_access(&self, space: MemorySpace, kind: AccessKind, width: u32) -> Option<Access> {
        self.0.iter().find(|(of, _)| has_same_shape(of, space, kind, width)).map(|(of, _)| *of)
    }
}

fn has_same_shape(access: &Access, space: MemorySpace, kind: AccessKind, width: u32) -> bool {
    (access.space, access.kind, access.width) == (space, kind, width)
}
