//! Samples of a candidate -> whether another one could change the verdict.

use super::candidate::Plan;
use super::protocol::Job;

/// From this many rounds on a candidate is sampled again only if it is within this share of
/// the margin that a first sample has ([`Plan::keep`]): its time is known well enough to know
/// that it does not win.
const KNOWN: u32 = 3;
const CLOSE: f64 = 0.2;

/// From this many rounds on a candidate whose samples differ by less than this share is not
/// sampled again: others would say the same.
const AGREED: u32 = 5;
const AGREEMENT: f64 = 0.005;

/// A candidate that is sampled. Times are in microseconds.
pub(super) struct Sampled<'a> {
    pub job: &'a Job,
    /// The fastest sample; infinity once it failed.
    pub fastest: f64,
    slowest: f64,
    /// The fastest, were the launch for its check a sample: a first sample that the host held up
    /// does not end its sampling.
    least: f64,
    total: f64,
}

impl<'a> Sampled<'a> {
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

    /// Whether another sample could change the verdict, after this number of rounds that count,
    /// where `best` is the fastest sample of all candidates.
    pub fn is_open(&self, rounds: u32, best: f64, plan: &Plan) -> bool {
        let share = if rounds < KNOWN { 1.0 } else { CLOSE };
        let may_win = self.least <= (1.0 + share * (plan.keep - 1.0)) * best;
        let agrees = rounds >= AGREED && self.slowest < (1.0 + AGREEMENT) * self.fastest;
        may_win && !agrees
    }
}
