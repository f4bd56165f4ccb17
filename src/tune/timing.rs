//! Candidates on the GPU: who wins.

use super::confirmation::OnContender;
use super::failed_launches::FailedLaunches;
use super::final_rounds::Finals;
use super::kernel_info::KernelInfo;
use super::overlap::{OverlappedRound, OverlappedTiming};
use super::scoring::Scored;
use super::scoring_input::ScoringInput;
use super::search_journal::SearchJournal;
use crate::diag::progress::Best;
use crate::diag::{MessageCode, progress};
use crate::gpu::Conditions;
use crate::measure::verdict::{self, Verdict};
use crate::measure::{Candidate, Error, LAST_VERDICT, Measurer, Options, Outcome, Plan, Reason, Timing, Trial};
use crate::nvcc::Toolchain;
use crate::process::Permit;
use crate::record::{Decision, PointOutcome, RecordedTiming};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many of the fastest candidates meet the baseline in paired rounds.
const FINALISTS: usize = 4;

/// Paired rounds, where fewer do not decide: enough for a verdict at 99% on a difference of 1% where the noise is of that
/// size.
pub const ROUNDS: u32 = 41;

/// The rounds of a long kernel: with fewer than 9 no samples are sure enough for
/// [`LAST_VERDICT`].
const LEAST_ROUNDS: u32 = 9;

/// Share of what is left of the budget before a duel that its rounds may take.
const DUEL_SHARE: f64 = 0.2;

/// Seconds that they may take in any case, so that a search that used its budget up does not end
/// in a doubtful verdict.
const LEAST_DUEL_S: f64 = 1.0;

/// Share of a search's budget for what comes before refined code and duels: a duel of two takes
/// 4.5 s at least if a launch takes 0.25 s.
const SEARCH_SHARE: f64 = 2.0 / 3.0;

/// The time of a search, without what it waited for a GPU.
#[derive(Clone, Copy)]
pub(super) struct SearchClock {
    begin: Instant,
    waited: Duration,
    budget_s: f64,
}

impl SearchClock {
    fn start(budget_s: f64, measurer: &impl Measurer) -> Self {
        Self { begin: Instant::now(), waited: measurer.waited(), budget_s }
    }

    /// Seconds that are left of the budget; negative where it is exceeded.
    pub fn left_s(&self, measurer: &impl Measurer) -> f64 {
        let waited = measurer.waited().saturating_sub(self.waited);
        self.budget_s - self.begin.elapsed().saturating_sub(waited).as_secs_f64()
    }
}

/// How many contenders there is time for in a duel with the baseline, the first of them first: at
/// least one. A launch of each takes these seconds.
pub(super) fn affordable_contenders(baseline_s: f64, contenders_s: &[f64], left_s: f64) -> usize {
    let most_s = duel_s(left_s) / f64::from(LEAST_ROUNDS);
    let rounds_s = contenders_s.iter().scan(baseline_s, |sum, own| {
        *sum += own;
        Some(*sum)
    });
    rounds_s.take_while(|round_s| *round_s <= most_s).count().max(1)
}

/// Seconds that a duel may take.
fn duel_s(left_s: f64) -> f64 {
    (DUEL_SHARE * left_s).max(LEAST_DUEL_S)
}

/// The rounds of a duel in which one round takes `round_s` seconds, where `left_s` seconds of the
/// budget are left.
pub(super) fn rounds(round_s: f64, left_s: f64) -> u32 {
    let affordable = duel_s(left_s) / round_s;
    // Where nothing is known of the time, it is short.
    if affordable.is_finite() { (affordable as u32).clamp(LEAST_ROUNDS, ROUNDS) } else { ROUNDS }
}

/// What the measuring process is sent for these configurations, without those that have no code
/// or no workload.
pub fn candidates(input: &ScoringInput, indices: &[usize]) -> (Vec<usize>, Vec<Candidate>) {
    indices.iter().filter_map(|&index| Some((index, candidate(input, index)?))).unzip()
}

pub(super) fn candidate(input: &ScoringInput, index: usize) -> Option<Candidate> {
    let code = &input.codes[*input.variants[index].as_ref().ok()?];
    Some(Candidate {
        id: u32::try_from(index).ok()?,
        label: input.configurations[index].to_string(),
        cubin: Arc::clone(&code.cubin),
        kernel: code.symbol.clone(),
        launch: input.launches[index],
        cooperative: input.waits_for_grid,
        needs_comparison: input.needs_comparison[index],
        workload: Arc::clone(input.workloads[index].as_ref()?),
    })
}

/// The baseline, as the measuring process is sent it.
pub fn baseline(input: &ScoringInput) -> Result<Candidate, Error> {
    candidate(input, input.baseline).ok_or_else(|| Error::Failed("the baseline has no workload".to_owned()))
}

/// The fastest of what was timed, if it is faster than the baseline.
pub(super) fn leader<T>(timed: impl Iterator<Item = (T, f64)>, baseline_us: f64) -> Option<T> {
    timed.filter(|(_, time)| *time < baseline_us).min_by(|a, b| a.1.total_cmp(&b.1)).map(|(found, _)| found)
}

/// The fastest of the timed configurations: those that meet the baseline in paired rounds.
pub fn finalists(timed: &[(usize, f64)]) -> Vec<usize> {
    let mut ranked = timed.to_vec();
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    ranked.into_iter().take(FINALISTS).map(|(index, _)| index).collect()
}

/// The finalist that is faster than the baseline with 99% confidence, and among several the one
/// that gains most, with its gain; from samples of paired rounds, of which those that dropped out
/// have fewer. `None`: the baseline stays.
pub fn settled<'a>(baseline: &[f64], finalists: impl IntoIterator<Item = (usize, &'a [f64])>) -> Option<(usize, f64)> {
    let gain = |(index, samples)| match verdict::faster_by(baseline, samples, LAST_VERDICT) {
        Verdict::Faster { ratio } => Some((index, ratio)),
        Verdict::NotFaster { .. } | Verdict::Ambiguous { .. } => None,
    };
    finalists.into_iter().filter_map(gain).reduce(|best, other| if other.1 > best.1 { other } else { best })
}

/// What a search may take.
pub struct SearchLimits<'a> {
    /// Seconds.
    pub budget_s: f64,
    /// Configurations that are timed, the baseline among them.
    pub most: usize,
    /// How the measuring process is started where a winner is run under compute-sanitizer.
    pub sanitize: Option<Options>,
    /// Compiles finalists for exactly their block; `None` if the driver compiles the PTX.
    pub toolchain: Option<&'a Toolchain>,
    /// Receives the options of what may win, as soon as that is known.
    pub on_contender: Option<OnContender<'a>>,
}

/// What may keep launches of more blocks than the baseline's from ending.
const MAY_WAIT: &str = "a launch of more blocks hung: if blocks wait for each other, write launch(cooperative)";

/// As [`decide_on`]; notes besides how the GPU was, and how long it was waited for.
pub fn decide(
    (info, scored): (&KernelInfo<'_>, &Scored),
    early: Option<OverlappedTiming>,
    effort: (SearchLimits<'_>, Option<Permit>),
    measurer: &mut impl Measurer,
    journal: &mut SearchJournal<'_>,
    decision: &mut Decision,
) -> Result<(), Error> {
    let waited = measurer.waited();
    // What earlier kernels saw is theirs.
    measurer.conditions();
    let conditions = early.as_ref().map(|early| early.conditions.clone()).unwrap_or_default();
    let decided = decide_on((info, scored), early, effort, measurer, journal, decision);
    decision.seconds.waited += (measurer.waited() - waited).as_secs_f64();
    decision.conditions = Some(conditions.joined_with(measurer.conditions())).filter(Conditions::is_known);
    if let Some(conditions) = decision.conditions.as_ref().filter(|conditions| conditions.doubtful > 0) {
        let (doubtful, rounds) = (conditions.doubtful, conditions.rounds);
        let reasons = conditions.throttled.join(", ");
        let note = format!("the GPU was throttled in {doubtful} of {rounds} rounds ({reasons})");
        decision.note(MessageCode::Throttled, note);
    }
    // The claimed GPU may be another one of the same model.
    decision.device = Some(measurer.device().clone());
    decided
}

/// Times what the strategy sends, for at most this many seconds, but for what was timed early;
/// then the fastest of it against the baseline in paired rounds, and writes the outcome into
/// the decision. In doubt the baseline stays.
fn decide_on<M: Measurer>(
    (info, scored): (&KernelInfo<'_>, &Scored),
    early: Option<OverlappedTiming>,
    (SearchLimits { budget_s, most, sanitize, toolchain, on_contender }, mut permit): (
        SearchLimits<'_>,
        Option<Permit>,
    ),
    measurer: &mut M,
    journal: &mut SearchJournal<'_>,
    decision: &mut Decision,
) -> Result<(), Error> {
    let input = &scored.input;
    let baseline = baseline(input)?;
    let clock = SearchClock::start(budget_s, measurer);
    let left = |measurer: &M| clock.left_s(measurer) - (1.0 - SEARCH_SHARE) * budget_s;
    let mut tally = Tally::default();
    let early = early.map(|early| early.into_round(input)).transpose()?;
    let mut earlier = HashMap::new();
    if journal.has_earlier() {
        let timings = measurer.time(&baseline, &[], &Plan { budget_s, ..Plan::default() })?;
        tally.baseline(input, decision, &timings.baseline);
        earlier = journal.resume(&timings.baseline);
    }
    let mut begun = Vec::new();
    let mut timed_on = None;
    if let Some(OverlappedRound { round, gpu, baseline, indices, outcomes }) = early {
        timed_on = Some((gpu, baseline.median_us));
        tally.baseline(input, decision, &baseline);
        journal.note(&indices, &[&[Outcome::Timed(baseline)], outcomes.as_slice()].concat());
        for (index, outcome) in indices.into_iter().zip(outcomes) {
            tally.outcome(input, decision, index, outcome);
        }
        begun = round;
    }
    scored.search(decision.strategy, most, &begun, |round| {
        // The baseline is timed with every round; what is known already, or what there is no time for,
        // is not sent.
        let mut unknown = Vec::new();
        for &index in round.iter().filter(|&&index| index != input.baseline) {
            let row = &decision.configurations[index];
            if row.timing.is_some() || row.refused.is_some() {
                continue;
            }
            if let Some(reason) = tally.failed_launches.reason_against(input, index) {
                decision.configurations[index].refused = Some(reason.to_owned());
                continue;
            }
            match earlier.remove(&index) {
                Some(found) => {
                    decision.resumed += 1;
                    tally.candidate(input, decision, index, found);
                }
                None => unknown.push(index),
            }
        }
        let left = left(measurer);
        if tally.baseline_us.is_none() || !unknown.is_empty() && left > 0.0 {
            let (indices, sent) = candidates(input, &unknown);
            let plan = Plan { budget_s: left.max(0.0), ..Plan::default() };
            let on_progress = &mut |outcomes: &[Outcome]| {
                journal.note(&indices, outcomes);
                tally.show(&decision.name, input, &indices, outcomes);
            };
            let trial = Trial { baseline: &baseline, candidates: &sent, plan: &plan };
            let timings = measurer.time_with_progress(trial, on_progress)?;
            if let Some((gpu, before)) = timed_on.take()
                && gpu != measurer.device().uuid
            {
                tally.scale(timings.baseline.median_us / before);
            }
            tally.baseline(input, decision, &timings.baseline);
            for (&index, outcome) in indices.iter().zip(timings.candidates) {
                tally.outcome(input, decision, index, outcome);
            }
        }
        decision.timed = 1 + tally.ranked.len();
        if let (Some(on_contender), Some(leader)) = (&on_contender, tally.leader()) {
            on_contender(&info.options(&input.configurations[leader].front_end()));
        }
        Ok::<_, Error>(round.iter().map(|index| tally.times.get(index).copied()).collect())
    })?;
    tally.say_refused(decision);
    progress::final_rounds(&decision.name);
    let finals = Finals {
        info,
        input,
        toolchain,
        clock,
        remaining: most.saturating_sub(decision.timed),
        sanitize: sanitize.as_ref(),
        on_contender,
    };
    finals.decide(&tally.ranked, &mut permit, measurer, decision)
}

/// What came of the configurations so far.
#[derive(Default)]
struct Tally {
    /// Microseconds of the baseline when it was timed first.
    baseline_us: Option<f64>,
    /// Microseconds by index, the baseline's among them.
    times: HashMap<usize, f64>,
    /// Those of the candidates, in the order in which they came.
    ranked: Vec<(usize, f64)>,
    /// In words.
    refused: Vec<String>,
    /// Whether one of more blocks than the baseline's hung.
    may_wait: bool,
    failed_launches: FailedLaunches,
}

/// Names the first of what was refused, and says how many others were.
pub(super) fn name_first(refused: &[String]) -> Option<String> {
    let first = refused.first()?;
    Some(match refused.len() {
        1 => first.clone(),
        all => format!("{first} (and {} more, see the record)", all - 1),
    })
}

impl Tally {
    /// The fastest candidate, if it is faster than the baseline.
    fn leader(&self) -> Option<usize> {
        leader(self.ranked.iter().copied(), self.baseline_us?)
    }

    /// Notes what was refused, and why.
    fn say_refused(&self, decision: &mut Decision) {
        if let Some(first) = name_first(&self.refused) {
            decision.note(MessageCode::CandidateRefused, format!("candidate refused: {first}"));
        }
        if self.may_wait {
            decision.note(MessageCode::BlocksMayWait, MAY_WAIT);
        }
    }

    /// Shows how far the search is: what it has timed, and these outcomes of the baseline (the
    /// first) and of the configurations with these indices.
    fn show(&self, name: &str, input: &ScoringInput, indices: &[usize], outcomes: &[Outcome]) {
        let median =
            |outcome: &Outcome| if let Outcome::Timed(timing) = outcome { Some(timing.median_us) } else { None };
        let Some((baseline, rest)) = outcomes.split_first() else { return };
        let new = indices.iter().zip(rest).filter_map(|(&index, outcome)| Some((index, median(outcome)?)));
        let all: Vec<(usize, f64)> = self.ranked.iter().copied().chain(new).collect();
        let best = all.iter().min_by(|a, b| a.1.total_cmp(&b.1)).zip(self.baseline_us.or_else(|| median(baseline)));
        let best = best.map(|((index, us), baseline)| Best {
            gain: baseline / us,
            configuration: input.configurations[*index].to_string(),
        });
        progress::timed(name, 1 + all.len(), best);
    }

    fn baseline(&mut self, input: &ScoringInput, decision: &mut Decision, timing: &Timing) {
        if self.baseline_us.is_none() {
            self.baseline_us = Some(timing.median_us);
            let timing = RecordedTiming { order: Some(1), ..timing.into() };
            record(input, decision, input.baseline, &timing);
        }
        self.times.insert(input.baseline, timing.median_us);
    }

    /// Takes what was timed so far for times of another GPU, on which the baseline takes so
    /// many times as long.
    fn scale(&mut self, ratio: f64) {
        self.times.values_mut().for_each(|time| *time *= ratio);
        self.ranked.iter_mut().for_each(|(_, time)| *time *= ratio);
    }

    fn outcome(&mut self, input: &ScoringInput, decision: &mut Decision, index: usize, outcome: Outcome) {
        match outcome {
            Outcome::Timed(timing) => self.candidate(input, decision, index, PointOutcome::Timed((&timing).into())),
            Outcome::Refused(reason) => {
                let more = input.launches[index].blocks() > input.launches[input.baseline].blocks();
                self.may_wait |= more && !input.waits_for_grid && matches!(reason, Reason::Hung { .. });
                self.failed_launches.refused(input, index, &reason);
                self.candidate(input, decision, index, PointOutcome::Refused(reason.to_string()));
            }
            Outcome::Skipped => decision.configurations[index].candidate = true,
        }
    }

    fn candidate(&mut self, input: &ScoringInput, decision: &mut Decision, index: usize, found: PointOutcome) {
        decision.configurations[index].candidate = true;
        match found {
            PointOutcome::Timed(timing) => {
                self.ranked.push((index, timing.median_us));
                let timing = RecordedTiming { order: Some(1 + self.ranked.len()), ..timing };
                record(input, decision, index, &timing);
                self.times.insert(index, timing.median_us);
                self.failed_launches.works(input, index);
            }
            PointOutcome::Refused(reason) => {
                self.refused.push(format!("{}: {reason}", input.configurations[index]));
                decision.configurations[index].refused = Some(reason);
            }
        }
    }
}

/// A timing holds for every configuration with the same machine code and launch.
fn record(input: &ScoringInput, decision: &mut Decision, index: usize, timing: &RecordedTiming) {
    for (other, configuration) in decision.configurations.iter_mut().enumerate() {
        if input.representative[other] == index {
            configuration.timing = Some(timing.clone());
        }
    }
}

pub(super) fn median(samples: &[f64]) -> f64 {
    Timing::new(samples.to_vec()).map_or(f64::NAN, |timing| timing.median_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duels_of_long_kernels_have_fewer_rounds() {
        for (why, round_s, left_s, expected) in [
            ("a short kernel", 1e-4, 28.0, ROUNDS),
            ("a short kernel, and no time left", 1e-4, -3.0, ROUNDS),
            ("a long kernel", 0.4, 28.0, 14),
            ("a long kernel, and little time left", 0.1, 1.0, 10),
            ("a very long kernel", 5.0, 28.0, LEAST_ROUNDS),
            ("nothing is known of the time", 0.0, 28.0, ROUNDS),
        ] {
            assert_eq!(rounds(round_s, left_s), expected, "{why}");
        }
    }

    #[test]
    fn duels_of_long_kernels_have_fewer_contenders() {
        for (why, seconds, left_s, expected) in [
            ("short kernels", [1e-4; 3], 28.0, 3),
            ("short kernels, and no time left", [1e-4; 3], -3.0, 3),
            ("long kernels", [0.2; 3], 28.0, 2),
            ("long kernels, and little time left", [0.2; 3], 1.0, 1),
            ("nothing is known of the time", [0.0; 3], 28.0, 3),
        ] {
            assert_eq!(affordable_contenders(seconds[0], &seconds, left_s), expected, "{why}");
        }
    }
}
