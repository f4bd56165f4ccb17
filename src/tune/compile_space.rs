//! The variants of a kernel, compiled and scored: all of them, or a part (`macro_screening.rs`)
//! if nothing will be timed.

use super::compile_budget::{Budget, MOST_SETS, Sizes};
use super::failure::Problem;
use super::kernel_info::KernelInfo;
use super::macro_screening;
use super::profiles::{Allowance, Known};
use super::register_caps;
use super::scoring;
use super::scoring::Scored;
use super::scoring_input::ScoringInput;
use super::variants::{First, FrontEnds, PtxasRuns, Variants};
use crate::launch::FrontEndOptions;
use crate::nvcc::Toolchain;
use crate::ptx::Edits;
use std::time::{Duration, Instant};

/// Sets of options that are compiled at a time if nothing is timed.
const AT_ONCE: usize = 2;

/// A space whose variants are compiled and scored, before anything is timed.
pub struct CompiledSpace {
    pub variants: Variants,
    pub scored: Scored,
    /// The sets of macros that were compiled, and how many the space has.
    pub sets: (usize, usize),
    /// Spent in the model, with what is compiled meanwhile; the rest is the compiler's tools.
    pub model: Duration,
}

/// How much of a space is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    Whole,
    /// What the compile of the source bounds; that many kernels of it share the bound.
    Screened {
        kernels: usize,
    },
}

impl Effort {
    /// The sets of options that are compiled whatever is found.
    pub fn first_round(self, sets: Vec<FrontEndOptions>) -> Vec<FrontEndOptions> {
        match self {
            Self::Whole => sets,
            Self::Screened { .. } => sets.into_iter().take(1).collect(),
        }
    }

    /// What the search may take; `None` if it is not bounded.
    fn budget(self, subject: &KernelInfo<'_>, front_ends: &FrontEnds<'_>) -> Option<Budget> {
        let Self::Screened { kernels } = self else { return None };
        let baseline = subject.baseline().front_end();
        let workload = subject.launch(&subject.baseline()).ok().and_then(|(_, workload)| workload);
        let formula_steps = workload.map_or(0, |workload| workload.formula_steps());
        Some(Budget::for_baseline(sizes(subject, front_ends, &baseline)?, kernels, formula_steps))
    }
}

/// Returns the sizes of a set of options for which the front end was run.
fn sizes(subject: &KernelInfo<'_>, front_ends: &FrontEnds<'_>, set: &FrontEndOptions) -> Option<Sizes> {
    let made = front_ends.made(&subject.options(set))?;
    let baseline = front_ends.made(&FrontEndOptions::default())?;
    // What the other kernels add is taken to be the same.
    let kernel_ptx = (subject.ptx_bytes + made.ptx.len()).saturating_sub(baseline.ptx.len());
    Some(Sizes { source: made.source_bytes, ptx: made.ptx.len(), kernel_ptx })
}

/// Runs the front end for sets that lie far apart, as many as the budget has; returns them, the
/// baseline's first.
fn screened(
    budget: &mut Budget,
    subject: &KernelInfo<'_>,
    front_ends: &mut FrontEnds<'_>,
    sets: &[FrontEndOptions],
) -> Vec<FrontEndOptions> {
    let ordered = macro_screening::spread(sets, MOST_SETS);
    let mut end = ordered.len().min(1);
    loop {
        let more = budget.affordable_sets(AT_ONCE.min(ordered.len() - end));
        let next = &ordered[end..end + more];
        if next.is_empty() {
            return ordered[..end].to_vec();
        }
        front_ends.get_in_time(&next.iter().map(|set| subject.options(set)).collect::<Vec<_>>());
        next.iter().filter_map(|set| sizes(subject, front_ends, set)).for_each(|set| budget.spend(set));
        end += more;
    }
}

/// A factor of loops is compiled no further if its code without a register cap is predicted to
/// take this many times as long as that of another factor: the model is off by 20 to
/// 50%, and by less between variants of one kernel.
const HOPELESS: f64 = 1.5;

/// Lists the sets of options that `time` predicts to be hopeless by their factor of loops.
fn hopeless(sets: &[FrontEndOptions], time: impl Fn(&FrontEndOptions) -> Option<f64>) -> Vec<FrontEndOptions> {
    let is_slower = |set: &&FrontEndOptions| {
        let mut others = sets.iter().filter(|other| other.macros == set.macros && other.math == set.math);
        let slow = set.unroll.and_then(|_| time(set));
        slow.is_some_and(|slow| others.any(|other| time(other).is_some_and(|fast| slow > HOPELESS * fast)))
    };
    sets.iter().filter(is_slower).cloned().collect()
}

/// Who is shown what as it comes.
pub struct Shown<'a> {
    /// The baseline's code.
    pub first: First<'a>,
    /// The space of which the natural variants are compiled and scored, before the others are.
    /// `None`: all are compiled at once.
    pub natural: Option<&'a mut dyn FnMut(Scored)>,
}

/// Compiles and scores. Where a kernel `was_refused`, its baseline is compiled and
/// scored before the others.
pub fn explore(
    front_ends: &mut FrontEnds<'_>,
    toolchain: &Toolchain,
    subject: &mut KernelInfo<'_>,
    (effort, was_refused): (Effort, bool),
    Shown { first, natural: shown }: Shown<'_>,
) -> Result<CompiledSpace, Problem> {
    let mut sets = subject.front_ends();
    let all = PtxasRuns { caps: subject.space.caps().to_vec(), operators: subject.space.cache_operators() };
    let mut budget = effort.budget(subject, front_ends);
    if budget.is_some() {
        // Nothing is timed, and math options are for what was timed and compared.
        sets.retain(|set| set.math.is_none());
    }
    let seen = match &mut budget {
        Some(budget) => screened(budget, subject, front_ends, &sets),
        None => sets.clone(),
    };
    let known = Known::new(if budget.is_some() { Allowance::UNTIMED } else { Allowance::TIMED });
    let (mut variants, mut known, mut model) = (Variants::default(), known, Duration::ZERO);
    // What the next round compiles of the same sets (`ahead`) is compiled while this one is scored.
    let mut round = |subject: &mut KernelInfo<'_>,
                     variants: &mut Variants,
                     sets: &[FrontEndOptions],
                     (written, ahead): (&PtxasRuns, Option<&PtxasRuns>)| {
        subject.learn(front_ends, toolchain, sets);
        variants.compile(front_ends, subject, sets, written, first);
        let start = Instant::now();
        let laid = ScoringInput::new(subject, front_ends, variants)?;
        let score = || {
            let scored = scoring::score_again(laid, &mut known);
            (scored, start.elapsed())
        };
        let subject = &*subject;
        let (scored, took) = match ahead {
            Some(ahead) => rayon::join(score, || variants.compile(front_ends, subject, sets, ahead, first)).0,
            None => score(),
        };
        model += took;
        Ok::<_, Problem>(scored?)
    };
    if was_refused {
        let baseline = subject.baseline();
        let alone = PtxasRuns { caps: vec![baseline.cap], operators: vec![baseline.cache] };
        round(subject, &mut variants, &[baseline.front_end()], (&alone, None))?;
    }
    let natural = all.natural(Edits::from(&subject.baseline()));
    let scored = if let Some(budget) = budget {
        let count = budget.affordable_caps(all.caps.len(), all.operators.len());
        let caps = register_caps::thin_caps(&all.caps, count, subject.baseline().cap);
        let thinned = PtxasRuns { caps, operators: all.operators.clone() };
        // Of one set it is known that it is the best.
        let ahead = (seen.len() == 1).then_some(&thinned);
        let scored = round(subject, &mut variants, &seen, (natural.as_ref().unwrap_or(&all), ahead))?;
        let best = macro_screening::best(&seen, |options| scored.least_time(options)).cloned();
        round(subject, &mut variants, best.as_slice(), (&thinned, None))?
    } else {
        let is_screened = subject.space.unroll().len() > 1;
        if let Some(natural) = natural.filter(|_| shown.is_some() || is_screened) {
            let scored = round(subject, &mut variants, &seen, (&natural, None))?;
            variants.hopeless = hopeless(&seen, |set| scored.least_time(set));
            if let Some(shown) = shown {
                shown(scored);
            }
        }
        let sets: Vec<FrontEndOptions> = seen.iter().filter(|set| !variants.hopeless.contains(set)).cloned().collect();
        round(subject, &mut variants, &sets, (&all, None))?
    };
    Ok(CompiledSpace { variants, scored, sets: (seen.len(), sets.len()), model })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hopeless_factors_are_found_by_macros_and_math() {
        let set = |tile: i64, unroll| FrontEndOptions {
            unroll,
            ..FrontEndOptions::from(std::collections::BTreeMap::from([("TILE".to_owned(), tile)]))
        };
        let sets = [set(8, None), set(8, Some(1)), set(8, Some(8)), set(16, None), set(16, Some(1)), set(16, Some(8))];
        let times = [Some(9.0), Some(16.0), Some(10.0), Some(31.0), Some(30.0), None];
        let time = |of: &FrontEndOptions| times[sets.iter().position(|set| set == of)?];
        assert_eq!(hopeless(&sets, time), [set(8, Some(1))]);
    }
}
