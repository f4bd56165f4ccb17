//! The samples of a candidate, and whether another one could change the verdict.

use super::candidate::Plan;
use super::protocol::Job;

/// From this round on a candidate is not sampled again whose samples are all slower than those of
/// the fastest: more of them would hardly change its rank.
const MIN_ROUNDS_TO_COMPARE: u32 = 3;

/// From [`MIN_ROUNDS_TO_AGREE`] rounds on a candidate whose samples differ by less than
/// [`MAX_SPREAD`] is not sampled again.
const MIN_ROUNDS_TO_AGREE: u32 = 5;
const MAX_SPREAD: f64 = 0.005;

/// A candidate that is sampled. Times are in microseconds.
pub(super) struct SampledCandidate<'a> {
    pub job: &'a Job,
    /// The fastest sample; infinity once it failed.
    pub fastest: f64,
    slowest: f64,
    /// The fastest of the samples and the launch of the check, so that a first sample delayed by
    /// the host does not end the sampling.
    least: f64,
    total: f64,
}

impl<'a> SampledCandidate<'a> {
    /// A candidate with its first sample, and the time of the launch for its check.
    pub fn new(job: &'a Job, us: f64, check_us: f64) -> Self {
        Self { job, fastest: us, slowest: us, least: us.min(check_us), total: us }
    }

    /// Takes another sample; infinity for a launch that failed.
    pub fn add(&mut self, us: f64) {
        self.fastest = if us.is_finite() { self.fastest.min(us) } else { us };
        self.slowest = self.slowest.max(us);
        self.least = self.least.min(self.fastest);
        self.total += us;
    }

    /// Whether its launches so far took less than a candidate's may.
    pub fn is_in_time(&self, plan: &Plan) -> bool {
        plan.sample_s.is_none_or(|limit| self.total < limit * 1e6)
    }

    /// Its fastest and slowest samples.
    pub fn range(&self) -> (f64, f64) {
        (self.fastest, self.slowest)
    }

    /// Whether another sample could change the verdict, after this number of rounds that count,
    /// where `best` are the fastest and slowest samples of the fastest candidate.
    pub fn needs_sample(&self, rounds: u32, best: (f64, f64), plan: &Plan) -> bool {
        let is_slow = self.least > plan.keep * best.0;
        let is_behind = rounds >= MIN_ROUNDS_TO_COMPARE && self.fastest > best.1;
        let agrees = rounds >= MIN_ROUNDS_TO_AGREE && self.slowest < (1.0 + MAX_SPREAD) * self.fastest;
        !is_slow && !is_behind && !agrees
    }
}
