//! Candidates on the GPU: who wins.

use super::laid::Laid;
use super::scored::Scored;
use crate::measure::verdict::{self, Verdict};
use crate::measure::{Candidate, Error, Measurer, Outcome, Plan, Timing};
use crate::record::{Decision, RecordedTiming};
use crate::search::Provenance;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// How many of the fastest candidates meet the baseline in paired rounds.
const FINALISTS: usize = 4;

/// Paired rounds: enough for a verdict at 99% on a difference of 1% where the noise is of that size.
pub const ROUNDS: u32 = 41;

/// What the measuring process is sent for these configurations, without those that have no code or no workload.
pub fn candidates(laid: &Laid, indices: &[usize]) -> (Vec<usize>, Vec<Candidate>) {
    indices.iter().filter_map(|&index| Some((index, candidate(laid, index)?))).unzip()
}

fn candidate(laid: &Laid, index: usize) -> Option<Candidate> {
    let code = &laid.codes[*laid.variants[index].as_ref().ok()?];
    Some(Candidate {
        id: u32::try_from(index).ok()?,
        label: laid.configurations[index].to_string(),
        cubin: Arc::clone(&code.cubin),
        kernel: code.symbol.clone(),
        launch: laid.launches[index],
        workload: Arc::clone(laid.workloads[index].as_ref()?),
    })
}

/// The baseline, as the measuring process is sent it.
pub fn baseline(laid: &Laid) -> Result<Candidate, Error> {
    candidate(laid, laid.baseline).ok_or_else(|| Error::Failed("the baseline has no workload".to_owned()))
}

/// The fastest of the timed configurations: those that meet the baseline in paired rounds.
pub fn finalists(timed: &[(usize, f64)]) -> Vec<usize> {
    let mut ranked = timed.to_vec();
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    ranked.into_iter().take(FINALISTS).map(|(index, _)| index).collect()
}

/// The finalist that is surely faster than the baseline, and among several the fastest, with its gain; from samples of paired
/// rounds. `None`: the baseline stays.
pub fn settled<'a>(baseline: &[f64], finalists: impl IntoIterator<Item = (usize, &'a [f64])>) -> Option<(usize, f64)> {
    let mut best: Option<(usize, f64, f64)> = None;
    for (index, samples) in finalists {
        let Verdict::Faster { ratio } = verdict::faster(baseline, samples) else { continue };
        let time = median(samples);
        if best.is_none_or(|(_, least, _)| time < least) {
            best = Some((index, time, ratio));
        }
    }
    best.map(|(index, _, ratio)| (index, ratio))
}

/// Times what the strategy sends, for at most so many seconds, then the fastest of it against the baseline in paired rounds, and
/// writes the outcome into the decision. In doubt the baseline stays.
pub fn decide(
    scored: &Scored,
    budget_s: f64,
    measurer: &mut impl Measurer,
    decision: &mut Decision,
) -> Result<(), Error> {
    let laid = &scored.laid;
    let baseline = baseline(laid)?;
    let clock = Instant::now();
    let mut ranked = Vec::new();
    let mut refused = Vec::new();
    scored.search(decision.strategy, |round| {
        // The baseline is timed with every round; what there is no time for is not sent.
        let others: Vec<usize> = round.iter().copied().filter(|&index| index != laid.baseline).collect();
        let (indices, sent) = candidates(laid, &others);
        let left = budget_s - clock.elapsed().as_secs_f64();
        if decision.timed > 0 && left <= 0.0 {
            return Ok::<_, Error>(vec![None; round.len()]);
        }
        let timings = measurer.time(&baseline, &sent, &Plan { budget_s: left.max(0.0), ..Plan::default() })?;
        let mut times = HashMap::from([(laid.baseline, timings.baseline.median_us)]);
        if decision.timed == 0 {
            record(laid, decision, laid.baseline, &timings.baseline);
        }
        for (&index, outcome) in indices.iter().zip(&timings.candidates) {
            decision.configurations[index].candidate = true;
            match outcome {
                Outcome::Timed(timing) => {
                    record(laid, decision, index, timing);
                    ranked.push((index, timing.median_us));
                    times.insert(index, timing.median_us);
                }
                Outcome::Refused(reason) => {
                    decision.configurations[index].refused = Some(reason.to_string());
                    refused.push(format!("{}: {reason}", laid.configurations[index]));
                }
                Outcome::Skipped => {}
            }
        }
        decision.timed = 1 + ranked.len();
        Ok(round.iter().map(|index| times.get(index).copied()).collect())
    })?;
    if let Some(first) = refused.first() {
        let rest = if refused.len() > 1 {
            format!(" (and {} more, see the record)", refused.len() - 1)
        } else {
            String::new()
        };
        decision.notes.push(format!("candidate refused: {first}{rest}"));
    }
    let (finalists, mut contenders) = candidates(laid, &finalists(&ranked));
    contenders.insert(0, baseline);
    let mut samples = measurer.duel(&contenders, ROUNDS)?.into_iter();
    let Some(reference) = samples.next().flatten() else { return Ok(()) };
    note_paired(decision, laid.baseline, &reference);
    let met: Vec<(usize, Vec<f64>)> =
        finalists.into_iter().zip(samples).filter_map(|(index, samples)| Some((index, samples?))).collect();
    for (index, samples) in &met {
        note_paired(decision, *index, samples);
    }
    if let Some((winner, ratio)) = settled(&reference, met.iter().map(|(index, samples)| (*index, samples.as_slice())))
    {
        decision.winner = winner;
        decision.provenance = Provenance::Measured;
        decision.speedup = ratio;
    }
    Ok(())
}

/// A timing holds for every configuration with the same machine code and launch.
fn record(laid: &Laid, decision: &mut Decision, index: usize, timing: &Timing) {
    for (other, configuration) in decision.configurations.iter_mut().enumerate() {
        if laid.representative[other] == index {
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
