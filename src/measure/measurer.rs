//! What times candidates, seen from the search.

use super::candidate::Caches;
use super::candidate::Candidate;
use super::candidate::Plan;
use super::error::Error;
use super::outcome::Outcome;
use super::outcome::Timings;
use crate::gpu::Conditions;
use crate::gpu::Device;
use std::time::Duration;

/// What is timed together.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// What the candidates' results are compared with.
    pub baseline: &'a Candidate,
    pub candidates: &'a [Candidate],
    pub plan: &'a Plan,
}

/// Is shown what is known of a trial: see [`Measurer::time_watched`].
pub type Watch<'a> = &'a mut dyn FnMut(&[Outcome]);

/// Something that times candidates: a `Process`, a `Pool` of them, or what a test puts in
/// their place.
pub trait Measurer {
    /// The device that candidates are timed on.
    fn device(&self) -> &Device;

    /// Runs `baseline`, compares the results of each candidate with its results, and times
    /// those that agree.
    ///
    /// The outcomes are in the order of `candidates`. A candidate that crashes, hangs or gives
    /// other results is refused and the rest goes on; a baseline that does so is an error,
    /// for then there is nothing to compare with.
    fn time(&mut self, baseline: &Candidate, candidates: &[Candidate], plan: &Plan) -> Result<Timings, Error> {
        self.time_watched(Trial { baseline, candidates, plan }, &mut |_| {})
    }

    /// The same; whenever more is known for sure, `watch` is shown what: outcomes of the
    /// baseline and, behind it, of the first candidates or of all, of which those that are
    /// not settled yet are [`Outcome::Skipped`].
    fn time_watched(&mut self, trial: Trial<'_>, watch: Watch<'_>) -> Result<Timings, Error>;

    /// Times `contenders` (which have been through [`time`](Self::time)) in `rounds` rounds,
    /// each of them once a round in an order drawn anew, so that samples of one round are
    /// pairs under the same conditions, with such `caches` before each.
    ///
    /// Gives, for each contender, its time of each round in microseconds; `None` where it
    /// crashed or hung.
    fn duel(&mut self, contenders: &[Candidate], rounds: u32, caches: Caches) -> Result<Vec<Option<Vec<f64>>>, Error>;

    /// Says what the baseline of the next candidates will be, and does not wait: what can be
    /// done before they are known is done meanwhile, where a GPU is free.
    fn ahead(&mut self, _baseline: &Candidate) {}

    /// Claims a GPU for what follows, and says whether there was one that is free just now.
    fn claim_free(&mut self) -> Result<bool, Error> {
        Ok(true)
    }

    /// Lets others have the GPU for a moment. Unlike at a [`rest`](Self::rest), what was sent
    /// there stays: no more than others can spare.
    fn pause(&mut self) {}

    /// How long all this has waited for a GPU that others measured on: it counts against no
    /// budget.
    fn waited(&self) -> Duration {
        Duration::ZERO
    }

    /// How the GPU was in the rounds since this was asked last.
    fn conditions(&mut self) -> Conditions {
        Conditions::default()
    }

    /// Gives the GPU to others until something is to be timed again.
    fn rest(&mut self) {}
}
