//! The first round of a search, timed while the rest of the space is compiled.
//!
//! Invariants: it uses a GPU only if that is free at once, and releases it while it waits for the
//! compiler. The search times the same points if this was not possible.

use super::kernel::AHEAD_SHARE;
use super::scoring::Scored;
use super::scoring_input::ScoringInput;
use super::search_journal::SearchJournal;
use super::timing;
use crate::gpu::Conditions;
use crate::launch::Configuration;
use crate::measure::{Candidate, Error, Measurer, Outcome, Plan, ProcessPool, Timing, Timings, Trial};
use crate::process;
use crate::record::Cache;
use crate::settings::Strategy;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A first round that is to be timed.
pub struct PlannedRound<'a> {
    /// The kernel's name, and the cache and key of the journal of its search.
    name: &'a str,
    place: Option<(Cache, String)>,
    /// Whether an earlier journal there is continued.
    is_trusted: bool,
    input: ScoringInput,
    baseline: Candidate,
    /// The configurations of the round, the baseline among them, and those that are sent.
    round: Vec<usize>,
    sent: Vec<usize>,
    candidates: Vec<Candidate>,
    plan: Plan,
}

/// The result of a first round that was timed during the compile, by configuration.
pub struct OverlappedTiming {
    /// The baseline among them.
    round: Vec<Configuration>,
    sent: Vec<Configuration>,
    result: Result<Timings, Error>,
    /// The GPU's UUID, and its clocks and throttling meanwhile.
    gpu: String,
    pub conditions: Conditions,
    /// How long a GPU was waited for.
    pub waited: Duration,
}

/// The same by index into the whole space.
pub struct OverlappedRound {
    pub round: Vec<usize>,
    /// The UUID of the GPU.
    pub gpu: String,
    pub baseline: Timing,
    /// The candidates, and the outcome of each.
    pub indices: Vec<usize>,
    pub outcomes: Vec<Outcome>,
}

impl<'a> PlannedRound<'a> {
    /// Plans the first round of a kernel's search, of at most `budget_s` seconds, in a space of
    /// which the first-round variants are compiled. `None` if the strategy needs the whole space,
    /// or if only the baseline would be timed.
    pub fn new(name: &'a str, scored: Scored, strategy: Strategy, most: usize, budget_s: f64) -> Option<Self> {
        let round = scored.early(strategy, most);
        let input = scored.input;
        let others: Vec<usize> = round.iter().copied().filter(|&index| index != input.baseline).collect();
        let (sent, candidates) = timing::candidates(&input, &others);
        let baseline = timing::baseline(&input).ok().filter(|_| !candidates.is_empty())?;
        let plan = Plan { budget_s, ..Plan::default() };
        Some(Self { name, place: None, is_trusted: false, input, baseline, round, sent, candidates, plan })
    }

    /// Returns the part of the space that is compiled.
    pub fn input(&self) -> &ScoringInput {
        &self.input
    }

    /// Sets where the journal of the search is kept, and whether an earlier one is continued.
    pub fn with_journal(self, place: Option<(Cache, String)>, is_trusted: bool) -> Self {
        Self { place, is_trusted, ..self }
    }

    /// Times the round if a GPU is free before all is compiled. Does nothing if an earlier
    /// compile left a journal: the search continues from that.
    pub fn time(self, measurer: &mut ProcessPool, is_compiled: &AtomicBool) -> Option<OverlappedTiming> {
        let Self { name, place, is_trusted, input, baseline, round, sent, candidates, plan } = self;
        let mut journal = SearchJournal::open((name, &input), place, is_trusted);
        if journal.has_earlier() {
            return None;
        }
        let is_compiled = || is_compiled.load(Ordering::Relaxed);
        // It keeps a core busy, as a tool of the compiler does, but is not to keep the compiler
        // from its work.
        let _permit = match measurer.runs_here() {
            true => Some(process::additional_permit(is_compiled)?),
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
                measurer.time_with_progress(trial, &mut |outcomes| journal.note(&sent, outcomes))
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
                false => measurer.release_gpu(),
            }
        }
        let (gpu, waited) = (measurer.device().uuid.clone(), measurer.waited() - waited);
        let named = |indices: &[usize]| indices.iter().map(|&index| input.configurations[index].clone()).collect();
        let conditions = measurer.conditions();
        Some(OverlappedTiming { round: named(&round), sent: named(&sent), result, gpu, conditions, waited })
    }
}

impl OverlappedTiming {
    /// Returns the fastest configuration, if it is faster than the baseline.
    pub fn leader(&self) -> Option<&Configuration> {
        let Timings { baseline, candidates } = self.result.as_ref().ok()?;
        let timed = self.sent.iter().zip(candidates).filter_map(|(configuration, outcome)| match outcome {
            Outcome::Timed(timing) => Some((configuration, timing.median_us)),
            _ => None,
        });
        timing::leader(timed, baseline.median_us)
    }

    /// Translates the round to indices into the whole space.
    ///
    /// # Errors
    /// The error that ended the round; it would also end the search.
    pub fn into_round(self, input: &ScoringInput) -> Result<OverlappedRound, Error> {
        let Timings { baseline, candidates } = self.result?;
        let numbers: HashMap<&Configuration, usize> = input.configurations.iter().zip(0..).collect();
        let number = |configuration: &Configuration| Some(input.representative[*numbers.get(configuration)?]);
        let round = self.round.iter().filter_map(number).collect();
        let outcomes = self.sent.iter().zip(candidates);
        let (indices, outcomes) =
            outcomes.filter_map(|(configuration, outcome)| Some((number(configuration)?, outcome))).unzip();
        Ok(OverlappedRound { round, gpu: self.gpu, baseline, indices, outcomes })
    }
}
