//! What a round tells of the GPU's state -> whether it counts, or is repeated after a pause.
//!
//! Invariant: rounds are repeated a bounded number of times, and for no reason that a pause did
//! not end before.

use crate::gpu::Condition;
use std::collections::BTreeSet;

/// A round during which the GPU was throttled is repeated after a pause, but not more often
/// than this for a workload, and not for a reason that a pause did not end: some GPUs run at the
/// limit of their power all the time, and the order within rounds is fair to all candidates even
/// so.
pub(super) const MAX_REPEATED_ROUNDS: u32 = 4;

/// What is known of throttling in a measuring process.
#[derive(Debug, Default)]
pub(super) struct Throttling {
    /// The rounds of the workload that were repeated.
    repeats: u32,
    /// Why the last round was throttled, where the next one repeats it.
    waited_for: Vec<String>,
    /// The reasons that a pause did not end, of all kernels of this process: a GPU that is at the
    /// limit of its power or heat with one is so with the next.
    lasting: BTreeSet<String>,
}

impl Throttling {
    /// Begins another workload.
    pub fn begin_workload(&mut self) {
        self.repeats = 0;
    }

    /// Begins another request: its first round repeats none.
    pub fn begin_request(&mut self) {
        self.waited_for.clear();
    }

    /// Tells whether a round in this condition counts. One that does not is to be repeated after
    /// a pause.
    pub fn counts(&mut self, condition: &Condition, time_is_left: bool) -> bool {
        let waited_for = std::mem::take(&mut self.waited_for);
        self.lasting.extend(waited_for.into_iter().filter(|reason| condition.throttled.contains(reason)));
        let may_pass = condition.throttled.iter().any(|reason| !self.lasting.contains(reason));
        let counts = !may_pass || self.repeats >= MAX_REPEATED_ROUNDS || !time_is_left;
        if !counts {
            self.waited_for.clone_from(&condition.throttled);
            self.repeats += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_repeated_where_a_pause_helps() {
        let condition = |reason: char| match reason {
            ' ' => Condition::default(),
            reason => Condition { throttled: vec![reason.to_string()], ..Condition::default() },
        };
        // The reasons of the rounds of one request after the other, and how many are repeated.
        for (why, requests) in [
            ("none is throttled", vec![("      ", 0)]),
            ("each pause ends it, at most four times for a workload", vec![("a a ", 2), ("a a a ", 2), ("a ", 0)]),
            ("a pause does not end it", vec![("aaaa", 1), ("a a ", 0)]),
            ("another reason may pass", vec![("aa", 1), ("b a ", 1)]),
            ("another reason comes up in the pause", vec![("ab  b ", 3)]),
            ("a request that ends in between is no pause", vec![("a", 1), ("a ", 1)]),
        ] {
            let mut throttling = Throttling::default();
            for (reasons, repeated) in requests {
                throttling.begin_request();
                let count = reasons.chars().filter(|&reason| !throttling.counts(&condition(reason), true)).count();
                assert_eq!(count, repeated, "{why}: {reasons}");
            }
        }
    }

    #[test]
    fn round_counts_where_no_time_is_left() {
        let hot = Condition { throttled: vec!["hot".to_owned()], ..Condition::default() };
        assert!(Throttling::default().counts(&hot, false));
    }
}
