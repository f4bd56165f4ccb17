//! A scored space -> the times of its points, or of a sample of them.

use super::recorded::Taken;
use nvtune::measure::{Error, Measurer, Options, Outcome, Plan, Process};
use nvtune::record::{CHECKED, PointTime, Repeatability, Sample};
use nvtune::settings::Strategy;
use nvtune::tune;
use nvtune::tune::Scored;
use nvtune::workload::random::Random;
use std::collections::{BTreeMap, HashSet};

/// Of each point: one launch to check its results, then seven samples. What is slower than four times the best is sampled
/// once, and nothing for longer than 20 ms in all.
const PLAN: Plan = Plan { budget_s: 0.0, rounds: 7, keep: 4.0, patience_s: 10.0, sample_s: Some(0.02), seed: SEED };

/// Of the order within rounds, and of samples.
const SEED: u64 = 0x6e76_7475_6e65;

/// This many of the fastest points are always timed again: the best of many is often the luckiest of several.
const FASTEST: usize = 20;

/// Where the middle half of a point's samples spans more than this part of their median, a few of them tell little of it.
const SCATTERS: f64 = 0.05;
/// Rounds for the mean of such: where launches take one of two times that are 17% apart, it is known to 0.4%.
const MANY: u32 = 400;
/// What takes no more than this many times the fastest, by a few samples that scatter, may be the fastest.
const NEAR: f64 = 1.25;

/// How points are timed, for at most this many seconds.
pub fn plan(budget_s: f64) -> Plan {
    Plan { budget_s, ..PLAN }
}

/// The points to time: all, or where there are more than `most` the baseline, the strategies' candidates and as many more as
/// there is room for, drawn evenly; ascending.
pub fn points(scored: &Scored, most: usize) -> (Vec<usize>, Option<Sample>) {
    let (mut all, _) = scored.points();
    if all.len() <= most {
        return (all, None);
    }
    let mut chosen = vec![scored.input.baseline];
    for strategy in [Strategy::Posf, Strategy::Ryoo, Strategy::Pos, Strategy::Ros] {
        chosen.extend(scored.candidates(strategy));
    }
    all.sort_by_key(|&index| Random::number_at(SEED ^ index as u64, 0));
    chosen.extend(all);
    let mut seen = HashSet::new();
    chosen.retain(|&index| seen.insert(index));
    chosen.truncate(most.max(1));
    chosen.sort_unstable();
    let sample = Sample { points: chosen.len(), seed: SEED };
    (chosen, Some(sample))
}

/// Times these points; those that the budget did not suffice for are left out.
pub fn time(
    scored: &Scored,
    measurer: &mut impl Measurer,
    points: &[usize],
    plan: &Plan,
) -> Result<BTreeMap<usize, Taken>, Error> {
    let input = &scored.input;
    let baseline = tune::baseline(input)?;
    let others: Vec<usize> = points.iter().copied().filter(|&index| index != input.baseline).collect();
    let (indices, sent) = tune::candidates(input, &others);
    let timings = measurer.time(&baseline, &sent, plan)?;
    let outcomes = timings.candidates.into_iter();
    let all =
        std::iter::once((input.baseline, Outcome::Timed(timings.baseline))).chain(indices.into_iter().zip(outcomes));
    let taken = all.filter_map(|(index, outcome)| match outcome {
        Outcome::Timed(timing) => {
            let time = PointTime {
                median_us: rounded(timing.median_us),
                spread: rounded(timing.spread),
                samples: timing.samples_us.len(),
                again_us: None,
                mean_us: None,
            };
            Some((index, Taken { check: CHECKED.to_owned(), refused: None, time: Some(time) }))
        }
        Outcome::Refused(reason) => {
            Some((index, Taken { check: reason.to_string(), refused: Some(reason), time: None }))
        }
        Outcome::Skipped => None,
    });
    Ok(taken.collect())
}

/// Times some of the points once more in a process of its own, notes their times, and says how far the two runs differ.
pub fn again(
    scored: &Scored,
    taken: &mut BTreeMap<usize, Taken>,
    count: usize,
    (plan, options): (&Plan, Options),
) -> Result<Option<Repeatability>, Error> {
    let mut timed: Vec<(usize, f64)> =
        taken.iter().filter_map(|(&index, taken)| Some((index, taken.time?.median_us))).collect();
    let step = timed.len().div_ceil(count.max(1)).max(1);
    let mut points: Vec<usize> = timed.iter().step_by(step).map(|(index, _)| *index).collect();
    timed.sort_by(|a, b| a.1.total_cmp(&b.1));
    points.extend(timed.iter().take(FASTEST).map(|(index, _)| *index));
    points.sort_unstable();
    points.dedup();
    let mut process = Process::start(options)?;
    let second = time(scored, &mut process, &points, plan)?;
    let mut differences = Vec::new();
    for (index, second) in second {
        let first = taken.get_mut(&index).and_then(|taken| taken.time.as_mut());
        if let (Some(first), Some(second)) = (first, second.time) {
            first.again_us = Some(second.median_us);
            differences.push((second.median_us / first.median_us - 1.0).abs());
        }
    }
    differences.sort_by(f64::total_cmp);
    let at = |share: usize| differences.get(differences.len() * share / 100).map(|&value| rounded(value));
    Ok(at(50).zip(at(90)).map(|(median, p90)| Repeatability { points: differences.len(), median, p90 }))
}

/// Times those of the fastest points more often whose samples scatter, and notes their means.
///
/// # Errors
/// Those of the measuring process.
pub fn scattering(
    scored: &Scored,
    measurer: &mut impl Measurer,
    taken: &mut BTreeMap<usize, Taken>,
    plan: &Plan,
) -> Result<(), Error> {
    let timed = || taken.iter().filter_map(|(&index, taken)| Some((index, taken.time?)));
    let least = timed().map(|(_, time)| time.us()).fold(f64::INFINITY, f64::min);
    let is_open = |(_, time): &(usize, PointTime)| {
        let apart = time.again_us.map_or(0.0, |again| (again / time.median_us - 1.0).abs());
        time.mean_us.is_none() && time.us() < least * NEAR && time.spread.max(apart) > SCATTERS
    };
    let mut open: Vec<(usize, f64)> = timed().filter(is_open).map(|(index, time)| (index, time.us())).collect();
    open.sort_by(|a, b| a.1.total_cmp(&b.1));
    open.truncate(FASTEST);
    if open.is_empty() {
        return Ok(());
    }
    let input = &scored.input;
    let indices: Vec<usize> =
        open.into_iter().map(|(index, _)| index).filter(|&index| index != input.baseline).collect();
    let (indices, sent) = tune::candidates(input, &indices);
    let plan = Plan { rounds: MANY, sample_s: None, ..*plan };
    let timings = measurer.time(&tune::baseline(input)?, &sent, &plan)?;
    let outcomes = indices.into_iter().zip(timings.candidates);
    let found = outcomes.filter_map(|(index, outcome)| match outcome {
        Outcome::Timed(timing) => Some((index, timing)),
        Outcome::Refused(_) | Outcome::Skipped => None,
    });
    for (index, timing) in found {
        if let Some(time) = taken.get_mut(&index).and_then(|taken| taken.time.as_mut()) {
            time.mean_us = Some(rounded(timing.samples_us.iter().sum::<f64>() / timing.samples_us.len() as f64));
        }
    }
    Ok(())
}

/// Six digits behind the point: less than what any clock here can tell apart.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
