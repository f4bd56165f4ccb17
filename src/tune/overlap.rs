//! The first round of a search, timed while what the search goes on with is compiled.
//!
//! Invariant: it takes a GPU that is free just then, and lets others have it where it
//! has to wait for the compiler; what could not be timed so is timed when its turn comes, and
//! the same points are asked for either way.

use super::kernel::AHEAD_SHARE;
use super::scoring::Scored;
use super::scoring_input::ScoringInput;
use super::search_journal::SearchJournal;
use super::timing;
use crate::gpu::Conditions;
use crate::launch::Configuration;
use crate::measure::{Candidate, Error, Measurer, Outcome, Plan, Pool, Timing, Timings, Trial};
use crate::process;
use crate::record::Cache;
use crate::settings::Strategy;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A first round that is to be timed.
pub struct Planned<'a> {
    /// The kernel's name and where its search is kept.
    name: &'a str,
    place: Option<(Cache, String)>,
    /// Whether what is kept there counts.
    is_trusted: bool,
    laid: ScoringInput,
    baseline: Candidate,
    /// The configurations of the round, the baseline among them, and those that are sent.
    round: Vec<usize>,
    sent: Vec<usize>,
    candidates: Vec<Candidate>,
    plan: Plan,
}

/// What a first round gave that was timed while the other variants were compiled.
pub struct OverlappedTiming {
    /// The baseline among them.
    round: Vec<Configuration>,
    sent: Vec<Configuration>,
    result: Result<Timings, Error>,
    /// The GPU, and how it was.
    gpu: String,
    pub conditions: Conditions,
    /// How long a GPU was waited for.
    pub waited: Duration,
}

/// The same by index into the space, once all of it is compiled.
pub struct OverlappedRound {
    pub round: Vec<usize>,
    /// The UUID of the GPU.
    pub gpu: String,
    pub baseline: Timing,
    /// Those that were sent, and what came of each.
    pub indices: Vec<usize>,
    pub outcomes: Vec<Outcome>,
}

impl<'a> Planned<'a> {
    /// The first round of the search of a kernel of this name, in a space of which the natural
    /// variants are compiled, of at most this many seconds; `None` where the strategy chooses
    /// among all, or has nothing to time but the baseline.
    pub fn new(name: &'a str, scored: Scored, strategy: Strategy, most: usize, budget_s: f64) -> Option<Self> {
        let round = scored.early(strategy, most);
        let laid = scored.laid;
        let others: Vec<usize> = round.iter().copied().filter(|&index| index != laid.baseline).collect();
        let (sent, candidates) = timing::candidates(&laid, &others);
        let baseline = timing::baseline(&laid).ok().filter(|_| !candidates.is_empty())?;
        let plan = Plan { budget_s, ..Plan::default() };
        Some(Self { name, place: None, is_trusted: false, laid, baseline, round, sent, candidates, plan })
    }

    /// The space as far as it is known.
    pub fn laid(&self) -> &ScoringInput {
        &self.laid
    }

    /// The same where what is found is kept there, and where what an earlier compile kept
    /// counts, or not.
    pub fn kept_at(self, place: Option<(Cache, String)>, is_trusted: bool) -> Self {
        Self { place, is_trusted, ..self }
    }

    /// Times it where there is a GPU free before all is compiled. What an earlier compile kept
    /// of the search is not found out again: the search goes on from there.
    pub fn time(self, measurer: &mut Pool, is_compiled: &AtomicBool) -> Option<OverlappedTiming> {
        let Self { name, place, is_trusted, laid, baseline, round, sent, candidates, plan } = self;
        let mut logbook = SearchJournal::open((name, &laid), place, is_trusted);
        if logbook.has_earlier() {
            return None;
        }
        let is_compiled = || is_compiled.load(Ordering::Relaxed);
        // It keeps a core busy, as a tool of the compiler does, but is not to keep the compiler from
        // its work.
        let _permit = match measurer.runs_here() {
            true => Some(process::permit_beside(is_compiled)?),
            false => None,
        };
        if is_compiled() {
            return None;
        }
        // What earlier kernels saw is theirs.
        measurer.conditions();
        let waited = measurer.waited();
        let result = match measurer.claim_free() {
            Ok(false) => return None,
            Ok(true) => {
                let trial = Trial { baseline: &baseline, candidates: &candidates, plan: &plan };
                measurer.time_watched(trial, &mut |outcomes| logbook.note(&sent, outcomes))
            }
            Err(error) => Err(error),
        };
        // Who was given another process to go on with may have to wait for its GPU: later.
        if matches!(result, Err(Error::Busy { .. })) {
            return None;
        }
        if !is_compiled() {
            let spared = measurer.device().memory_bytes / AHEAD_SHARE;
            match candidates.iter().all(|candidate| candidate.workload.bytes() <= spared) {
                true => measurer.pause(),
                false => measurer.rest(),
            }
        }
        let (gpu, waited) = (measurer.device().uuid.clone(), measurer.waited() - waited);
        let named = |indices: &[usize]| indices.iter().map(|&index| laid.configurations[index].clone()).collect();
        let conditions = measurer.conditions();
        Some(OverlappedTiming { round: named(&round), sent: named(&sent), result, gpu, conditions, waited })
    }
}

impl OverlappedTiming {
    /// What came of it, in the whole space.
    ///
    /// # Errors
    /// What kept it from being timed, which would keep the rest, too.
    pub fn found(self, laid: &ScoringInput) -> Result<OverlappedRound, Error> {
        let Timings { baseline, candidates } = self.result?;
        let numbers: HashMap<&Configuration, usize> = laid.configurations.iter().zip(0..).collect();
        let number = |configuration: &Configuration| Some(laid.representative[*numbers.get(configuration)?]);
        let round = self.round.iter().filter_map(number).collect();
        let outcomes = self.sent.iter().zip(candidates);
        let (indices, outcomes) =
            outcomes.filter_map(|(configuration, outcome)| Some((number(configuration)?, outcome))).unzip();
        Ok(OverlappedRound { round, gpu: self.gpu, baseline, indices, outcomes })
    }
}
