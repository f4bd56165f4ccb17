//! Candidates on the GPU: who wins, and how far from the best of the whole space.

use super::scored::Scored;
use super::variants::Variants;
use crate::measure::verdict::{self, Verdict};
use crate::measure::{Candidate, Error, Measurer, Outcome, Plan, Timing};
use crate::record::{Decision, RecordedTiming, Truth};
use crate::search::Provenance;
use std::sync::Arc;
use std::time::Instant;

/// What measuring a kernel needs.
pub struct Measured<'a> {
    pub variants: &'a Variants,
    pub scored: &'a Scored,
    /// Seconds of GPU time.
    pub budget: f64,
}

/// How many of the fastest candidates meet the baseline in paired rounds.
const FINALISTS: usize = 4;

/// Paired rounds: enough for a verdict at 99% on a difference of 1% where the noise is of that size.
const ROUNDS: u32 = 41;

/// Of an exhaustive run, this many of the fastest meet the winner in paired rounds.
const BEST_OF_ALL: usize = 8;

/// Seconds that an exhaustive run of one space may take.
const EXHAUSTIVE_BUDGET: f64 = 240.0;

impl Measured<'_> {
    fn candidate(&self, index: usize) -> Option<Candidate> {
        let variant = *self.scored.variants[index].as_ref().ok()?;
        Some(Candidate {
            id: u32::try_from(index).ok()?,
            label: self.scored.configurations[index].to_string(),
            cubin: Arc::clone(&self.variants.all[variant].cubin),
            kernel: self.variants.all[variant].symbol.clone(),
            launch: self.scored.launches[index],
            workload: Arc::clone(self.scored.workloads[index].as_ref()?),
        })
    }

    fn candidates(&self, indices: &[usize]) -> (Vec<usize>, Vec<Candidate>) {
        indices.iter().filter_map(|&index| Some((index, self.candidate(index)?))).unzip()
    }

    fn baseline(&self) -> Result<Candidate, Error> {
        self.candidate(self.scored.baseline).ok_or_else(|| Error::Failed("the baseline has no workload".to_owned()))
    }
}

/// Times the candidates, then the fastest of them against the baseline in paired rounds, and writes the outcome into the
/// decision. In doubt the baseline stays.
pub fn decide(
    context: &Measured<'_>,
    measurer: &mut impl Measurer,
    candidates: &[usize],
    decision: &mut Decision,
) -> Result<(), Error> {
    let baseline = context.baseline()?;
    let others: Vec<usize> = candidates.iter().copied().filter(|&index| index != context.scored.baseline).collect();
    let (indices, sent) = context.candidates(&others);
    let plan = Plan { budget_s: context.budget, ..Plan::default() };
    let timings = measurer.time(&baseline, &sent, &plan)?;
    let mut ranked = Vec::new();
    record(context, decision, context.scored.baseline, &timings.baseline);
    let mut refused = Vec::new();
    for (&index, outcome) in indices.iter().zip(&timings.candidates) {
        match outcome {
            Outcome::Timed(timing) => {
                record(context, decision, index, timing);
                ranked.push((index, timing.median_us));
            }
            Outcome::Refused(reason) => {
                decision.configurations[index].refused = Some(reason.to_string());
                refused.push(format!("{}: {reason}", context.scored.configurations[index]));
            }
            Outcome::Skipped => {}
        }
    }
    decision.timed = 1 + ranked.len();
    if let Some(first) = refused.first() {
        let rest = if refused.len() > 1 {
            format!(" (and {} more, see the record)", refused.len() - 1)
        } else {
            String::new()
        };
        decision.notes.push(format!("candidate refused: {first}{rest}"));
    }
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    let finalists: Vec<usize> = ranked.iter().take(FINALISTS).map(|(index, _)| *index).collect();
    let (finalists, mut contenders) = context.candidates(&finalists);
    contenders.insert(0, baseline);
    let mut samples = measurer.duel(&contenders, ROUNDS)?.into_iter();
    let Some(reference) = samples.next().flatten() else { return Ok(()) };
    note_paired(decision, context.scored.baseline, &reference);
    let mut best: Option<(usize, f64, f64)> = None;
    for (index, challenger) in finalists.into_iter().zip(samples) {
        let Some(challenger) = challenger else { continue };
        note_paired(decision, index, &challenger);
        let Verdict::Faster { ratio } = verdict::faster(&reference, &challenger) else { continue };
        let time = median(&challenger);
        if best.is_none_or(|(_, least, _)| time < least) {
            best = Some((index, time, ratio));
        }
    }
    if let Some((index, _, ratio)) = best {
        decision.winner = index;
        decision.provenance = Provenance::Measured;
        decision.speedup = ratio;
    }
    Ok(())
}

/// Times every distinct point of the space (ES), and the best of them against the winner in paired rounds.
pub fn exhaust(context: &Measured<'_>, measurer: &mut impl Measurer, decision: &mut Decision) -> Result<(), Error> {
    let clock = Instant::now();
    let scored = context.scored;
    let all: Vec<usize> = (0..scored.configurations.len())
        .filter(|&index| scored.representative[index] == index && scored.scores[index].is_some())
        .collect();
    let baseline = context.baseline()?;
    let (indices, sent) = context.candidates(&all);
    let plan = Plan { budget_s: EXHAUSTIVE_BUDGET, ..Plan::default() };
    let timings = measurer.time(&baseline, &sent, &plan)?;
    let mut ranked = Vec::new();
    for (&index, outcome) in indices.iter().zip(&timings.candidates) {
        if let Outcome::Timed(timing) = outcome {
            let recorded = decision.configurations[index].timing.get_or_insert_with(|| recorded(timing));
            recorded.exhaustive_us = Some(timing.median_us);
            ranked.push((index, timing.median_us));
        }
    }
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    let winner = scored.representative[decision.winner];
    let mut finalists = vec![winner, scored.baseline];
    finalists.extend(ranked.iter().take(BEST_OF_ALL).map(|(index, _)| *index));
    let mut seen = std::collections::HashSet::new();
    finalists.retain(|&index| seen.insert(index));
    let (finalists, contenders) = context.candidates(&finalists);
    let samples = measurer.duel(&contenders, ROUNDS)?;
    let times: Vec<(usize, f64)> =
        finalists.into_iter().zip(samples).filter_map(|(index, samples)| Some((index, median(&samples?)))).collect();
    let time_of = |index: usize| times.iter().find(|(found, _)| *found == index).map(|(_, time)| *time);
    let best = times.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
    if let (Some((best, best_us)), Some(winner_us), Some(baseline_us)) =
        (best, time_of(winner), time_of(scored.baseline))
    {
        decision.truth = Some(Truth {
            best,
            best_us,
            winner_us,
            baseline_us,
            regret: winner_us / best_us - 1.0,
            timed: ranked.len(),
            seconds: clock.elapsed().as_secs_f64(),
        });
    }
    Ok(())
}

/// A timing holds for every configuration with the same machine code and launch.
fn record(context: &Measured<'_>, decision: &mut Decision, index: usize, timing: &Timing) {
    for (other, configuration) in decision.configurations.iter_mut().enumerate() {
        if context.scored.representative[other] == index {
            configuration.timing = Some(recorded(timing));
        }
    }
}

fn recorded(timing: &Timing) -> RecordedTiming {
    RecordedTiming {
        median_us: timing.median_us,
        spread: timing.spread,
        samples: timing.samples_us.len(),
        paired_us: None,
        exhaustive_us: None,
    }
}

fn note_paired(decision: &mut Decision, index: usize, samples: &[f64]) {
    if let Some(timing) = &mut decision.configurations[index].timing {
        timing.paired_us = Some(median(samples));
    }
}

fn median(samples: &[f64]) -> f64 {
    Timing::new(samples.to_vec()).map_or(f64::NAN, |timing| timing.median_us)
}
