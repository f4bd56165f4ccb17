//! Launches in which a kernel does not work, as far as candidates were refused in them.
//!
//! A kernel that gives wrong results in a launch, or crashes in it, does so with any number of
//! registers, so that launch is not tried again. Many kernels work only in the baseline's launch, and
//! each refusal costs a comparison of all results or the start of another measuring process. After
//! [`MOST_FAILURES`] of them no launch but the baseline's is tried.

use super::scoring_input::ScoringInput;
use crate::launch::{Configuration, Launch};
use crate::measure::Reason;
use std::collections::HashSet;

/// How many launches may fail before only the baseline's is tried, if none of the others works.
const MOST_FAILURES: usize = 6;

/// Why a configuration is not tried.
const FAILED_WITH_OTHER_REGISTERS: &str = "not tried: its launch was refused with another number of registers";
const FAILED_ELSEWHERE: &str = "not tried: every launch that was tried but the baseline's was refused";

/// What is known of launches.
#[derive(Default)]
pub(super) struct FailedLaunches {
    /// Refused configurations without their register caps.
    failed: HashSet<Configuration>,
    /// Launches of theirs, without the baseline's.
    elsewhere: HashSet<Launch>,
    /// Whether a candidate worked in another launch than the baseline's.
    works_elsewhere: bool,
}

impl FailedLaunches {
    /// Notes that a candidate was timed.
    pub fn works(&mut self, input: &ScoringInput, index: usize) {
        self.works_elsewhere |= !is_launched_alike(input, index);
    }

    /// Notes why a candidate was refused.
    pub fn refused(&mut self, input: &ScoringInput, index: usize, reason: &Reason) {
        let is_of_launch = match reason {
            Reason::Differs(_)
            | Reason::Stray { .. }
            | Reason::Faulted { .. }
            | Reason::Hung { .. }
            | Reason::Died { .. } => true,
            Reason::Unsteady(_)
            | Reason::Incomparable { .. }
            | Reason::Uncompared
            | Reason::LaunchFailed { .. }
            | Reason::TooManyResources { .. }
            | Reason::OutOfMemory { .. } => false,
        };
        if is_of_launch {
            self.failed.insert(without_cap(&input.configurations[index]));
            if !is_launched_alike(input, index) {
                self.elsewhere.insert(input.launches[index]);
            }
        }
    }

    /// Returns why a configuration is not worth a trial.
    pub fn reason_against(&self, input: &ScoringInput, index: usize) -> Option<&'static str> {
        if self.failed.contains(&without_cap(&input.configurations[index])) {
            return Some(FAILED_WITH_OTHER_REGISTERS);
        }
        let works_only_as_baseline = self.elsewhere.len() >= MOST_FAILURES && !self.works_elsewhere;
        (works_only_as_baseline && !is_launched_alike(input, index)).then_some(FAILED_ELSEWHERE)
    }
}

/// Returns whether a configuration has the baseline's launch.
fn is_launched_alike(input: &ScoringInput, index: usize) -> bool {
    input.launches[index] == input.launches[input.baseline]
}

fn without_cap(configuration: &Configuration) -> Configuration {
    Configuration { cap: 0, ..configuration.clone() }
}
