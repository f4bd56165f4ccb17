//! The interface by which the search times candidates.

use super::candidate::Caches;
use super::candidate::Candidate;
use super::candidate::Plan;
use super::error::Error;
use super::outcome::Outcome;
use super::outcome::Timings;
use crate::gpu::Conditions;
use crate::gpu::Device;
use std::time::Duration;

/// A baseline and the candidates that are timed with it.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// What the candidates' results are compared with.
    pub baseline: &'a Candidate,
    pub candidates: &'a [Candidate],
    pub plan: &'a Plan,
}

/// Receives intermediate outcomes of a trial: see [`Measurer::time_with_progress`].
pub type ProgressCallback<'a> = &'a mut dyn FnMut(&[Outcome]);

/// Something that times candidates: a `Process`, a `ProcessPool`, or what a test puts in
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
        self.time_with_progress(Trial { baseline, candidates, plan }, &mut |_| {})
    }

    /// The same, with intermediate results: `on_progress` receives the outcomes of the baseline
    /// and, after it, of the first candidates or of all. Those that are not settled yet are
    /// [`Outcome::Skipped`].
    fn time_with_progress(&mut self, trial: Trial<'_>, on_progress: ProgressCallback<'_>) -> Result<Timings, Error>;

    /// Times `contenders` (which have been through [`time`](Self::time)) in `rounds` rounds,
    /// each of them once a round in an order drawn anew, so that samples of one round are
    /// pairs under the same conditions, with such `caches` before each.
    ///
    /// Returns, for each contender, its time of each round in microseconds; `None` if it crashed
    /// or hung.
    fn time_paired(
        &mut self,
        contenders: &[Candidate],
        rounds: u32,
        caches: Caches,
    ) -> Result<Vec<Option<Vec<f64>>>, Error>;

    /// Announces the baseline of the next candidates, without waiting: if a GPU is free, the
    /// baseline is run for its results before the candidates are known.
    fn prepare_baseline(&mut self, _baseline: &Candidate) {}

    /// Claims a GPU if one is free now; returns whether it did.
    fn claim_free(&mut self) -> Result<bool, Error> {
        Ok(true)
    }

    /// Lets others have the GPU for a moment. Unlike at a [`release_gpu`](Self::release_gpu), what
    /// was sent there stays: no more than others can spare.
    fn pause(&mut self) {}

    /// Returns how long this has waited for a GPU that others measured on; it counts against no
    /// budget.
    fn waited(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the conditions of the GPU in the rounds since the last call.
    fn conditions(&mut self) -> Conditions {
        Conditions::default()
    }

    /// Releases the GPU until something is timed again.
    fn release_gpu(&mut self) {}
}
