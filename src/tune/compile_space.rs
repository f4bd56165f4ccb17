//! The variants of a kernel, compiled and scored: all of them, or a part (`macro_screening.rs`)
//! if nothing will be timed.

use super::compile_budget::{Budget, MAX_MACRO_SETS, Sizes};
use super::failure::Problem;
use super::kernel_info::KernelInfo;
use super::macro_screening;
use super::profiles::{Allowance, ProfileCache};
use super::register_caps;
use super::scoring;
use super::scoring::Scored;
use super::scoring_input::ScoringInput;
use super::validity::Refusals;
use super::variants::{FrontEnds, OnBaselineCode, PtxasRuns, Variants};
use crate::launch::FrontEndOptions;
use crate::nvcc::Toolchain;
use crate::process;
use crate::ptx::Edits;
use std::time::{Duration, Instant};

/// Number of sets of front-end options that are taken for contenders by the model: as many as a
/// machine of 16 cores runs ahead.
const CONTENDERS: usize = 4;

/// Sets of front-end options that are compiled in one step if nothing is timed.
const SETS_PER_ROUND: usize = 2;

/// A space whose variants are compiled and scored, before anything is timed.
pub struct CompiledSpace {
    pub variants: Variants,
    pub scored: Scored,
    /// The sets of macros that were compiled, and how many the space has.
    pub sets: (usize, usize),
    /// Time spent in the model, including what is compiled at the same time.
    pub model: Duration,
}

/// How much of a space is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileScope {
    Whole,
    /// As much as the compile time of the source permits; its `kernels` share that.
    Screened {
        kernels: usize,
    },
}

impl CompileScope {
    /// Returns the sets of options that are compiled in every case.
    pub fn first_round(self, sets: Vec<FrontEndOptions>) -> Vec<FrontEndOptions> {
        match self {
            Self::Whole => sets,
            Self::Screened { .. } => sets.into_iter().take(1).collect(),
        }
    }

    /// Returns the budget of the search; `None` if it is not bounded.
    fn budget(self, info: &KernelInfo<'_>, front_ends: &FrontEnds<'_>) -> Option<Budget> {
        let Self::Screened { kernels } = self else { return None };
        let baseline = info.baseline().front_end();
        let workload = info.launch(&info.baseline()).ok().and_then(|(_, workload)| workload);
        let formula_steps = workload.map_or(0, |workload| workload.formula_steps());
        Some(Budget::for_baseline(sizes(info, front_ends, &baseline)?, kernels, formula_steps))
    }
}

/// Returns the sizes of a set of options for which the front end was run.
fn sizes(info: &KernelInfo<'_>, front_ends: &FrontEnds<'_>, set: &FrontEndOptions) -> Option<Sizes> {
    let made = front_ends.made(&info.options(set))?;
    let baseline = front_ends.made(&FrontEndOptions::default())?;
    // What the other kernels add is taken to be the same.
    let kernel_ptx = (info.ptx_bytes + made.ptx.len()).saturating_sub(baseline.ptx.len());
    Some(Sizes { source: made.source_bytes, parsed: made.parsed_bytes, ptx: made.ptx.len(), kernel_ptx })
}

/// Runs the front end for sets that lie far apart, as many as the budget has; returns them, the
/// baseline's first.
fn screened(
    budget: &mut Budget,
    info: &KernelInfo<'_>,
    front_ends: &mut FrontEnds<'_>,
    sets: &[FrontEndOptions],
) -> Vec<FrontEndOptions> {
    let ordered = macro_screening::spread(sets, MAX_MACRO_SETS);
    let mut end = ordered.len().min(1);
    loop {
        let more = budget.affordable_sets(SETS_PER_ROUND.min(ordered.len() - end));
        let next = &ordered[end..end + more];
        if next.is_empty() {
            return ordered[..end].to_vec();
        }
        front_ends.get_in_time(&next.iter().map(|set| info.options(set)).collect::<Vec<_>>());
        next.iter().filter_map(|set| sizes(info, front_ends, set)).for_each(|set| budget.spend(set));
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

/// Callbacks for results that are used before the whole space is compiled.
pub struct CompileCallbacks<'a> {
    /// Receives the baseline's code.
    pub on_baseline: OnBaselineCode<'a>,
    /// Receives options that are predicted to be among the fastest.
    pub on_contender: &'a (dyn Fn(&FrontEndOptions) + Sync),
    /// Receives the space when the first-round variants ([`Edits::is_compiled_first`]) are
    /// compiled and scored. `None`: all are compiled in one step.
    pub first_round: Option<&'a mut dyn FnMut(Scored)>,
}

/// Compiles and scores the space of a kernel. If `was_refused`, the baseline is compiled and
/// scored alone first.
pub fn explore(
    front_ends: &mut FrontEnds<'_>,
    toolchain: &Toolchain,
    info: &mut KernelInfo<'_>,
    (scope, was_refused): (CompileScope, bool),
    CompileCallbacks { on_baseline, on_contender, first_round: shown }: CompileCallbacks<'_>,
) -> Result<CompiledSpace, Problem> {
    let mut sets = info.front_ends();
    let all = PtxasRuns { caps: info.space.caps().to_vec(), operators: info.space.cache_operators() };
    let mut budget = scope.budget(info, front_ends);
    if budget.is_some() {
        // Nothing is timed, and math options are for what was timed and compared.
        sets.retain(|set| set.math.is_none());
    }
    let seen = match &mut budget {
        Some(budget) => screened(budget, info, front_ends, &sets),
        None => sets.clone(),
    };
    let known = ProfileCache::new(if budget.is_some() { Allowance::UNTIMED } else { Allowance::TIMED });
    let (variants, model) = (Variants::default(), Duration::ZERO);
    let refusals = Refusals::default();
    let mut explorer = Explorer { front_ends, toolchain, on_baseline, on_contender, variants, known, refusals, model };
    if was_refused {
        let baseline = info.baseline();
        let alone = PtxasRuns { caps: vec![baseline.cap], operators: vec![baseline.cache] };
        explorer.round(info, &[baseline.front_end()], &alone)?;
    }
    let first_round = all.first_round(Edits::from(&info.baseline()));
    let scored = if let Some(budget) = budget {
        let count = budget.affordable_caps(all.caps.len(), all.operators.len());
        let caps = register_caps::thin_caps(&all.caps, count, info.baseline().cap);
        let thinned = PtxasRuns { caps, operators: all.operators.clone() };
        let written = first_round.as_ref().unwrap_or(&all);
        let scored = match seen.len() {
            // Of one set it is known that it is the best.
            1 => explorer.round_with_next(info, &seen, (written, &thinned), |scored| scored)?,
            _ => explorer.round(info, &seen, written)?,
        };
        let best = macro_screening::best(&seen, |options| scored.least_time(options)).cloned();
        explorer.round(info, best.as_slice(), &thinned)?
    } else {
        let is_screened = info.space.unroll().len() > 1;
        match (first_round, shown) {
            (Some(first_round), shown) if is_screened => {
                let scored = explorer.round(info, &seen, &first_round)?;
                explorer.variants.hopeless = hopeless(&seen, |set| scored.least_time(set));
                if let Some(shown) = shown {
                    shown(scored);
                }
            }
            (Some(first_round), Some(shown)) => explorer.round_with_next(info, &seen, (&first_round, &all), shown)?,
            _ => {}
        }
        let is_hopeful = |set: &&FrontEndOptions| !explorer.variants.hopeless.contains(set);
        let sets: Vec<FrontEndOptions> = seen.iter().filter(is_hopeful).cloned().collect();
        explorer.round(info, &sets, &all)?
    };
    let Explorer { variants, model, .. } = explorer;
    Ok(CompiledSpace { variants, scored, sets: (seen.len(), sets.len()), model })
}

/// Compiles and scores parts of a space.
struct Explorer<'e, 't> {
    front_ends: &'e mut FrontEnds<'t>,
    toolchain: &'e Toolchain,
    on_baseline: OnBaselineCode<'e>,
    on_contender: &'e (dyn Fn(&FrontEndOptions) + Sync),
    variants: Variants,
    known: ProfileCache,
    refusals: Refusals,
    /// Time spent in the model.
    model: Duration,
}

impl Explorer<'_, '_> {
    /// Compiles and scores what these runs make of these sets.
    fn round(
        &mut self,
        info: &mut KernelInfo<'_>,
        sets: &[FrontEndOptions],
        written: &PtxasRuns,
    ) -> Result<Scored, Problem> {
        let input = self.compile(info, sets, written)?;
        self.score(input)
    }

    /// As [`Self::round`]; compiles what the next round needs of the same sets while this one is
    /// scored and shown.
    fn round_with_next<T>(
        &mut self,
        info: &mut KernelInfo<'_>,
        sets: &[FrontEndOptions],
        (written, next): (&PtxasRuns, &PtxasRuns),
        shown: impl FnOnce(Scored) -> T,
    ) -> Result<T, Problem> {
        let input = self.compile(info, sets, written)?;
        let (mut variants, mut front_ends) = (std::mem::take(&mut self.variants), self.front_ends.clone());
        let on_baseline = self.on_baseline;
        let (scored, variants) = std::thread::scope(|scope| {
            let info = &*info;
            let compiling = process::spawn_or_run(scope, move || {
                variants.compile(&mut front_ends, info, sets, next, on_baseline);
                variants
            });
            let scored = self.score(input).map(shown);
            (scored, compiling.join())
        });
        self.variants = variants;
        scored
    }

    fn compile(
        &mut self,
        info: &mut KernelInfo<'_>,
        sets: &[FrontEndOptions],
        written: &PtxasRuns,
    ) -> Result<ScoringInput, Problem> {
        info.learn(self.front_ends, self.toolchain, sets);
        self.variants.compile(self.front_ends, info, sets, written, self.on_baseline);
        ScoringInput::new(info, self.front_ends, &self.variants, &mut self.refusals)
    }

    fn score(&mut self, input: ScoringInput) -> Result<Scored, Problem> {
        let start = Instant::now();
        let scored = scoring::score_again(input, &mut self.known);
        self.model += start.elapsed();
        let scored = scored?;
        scored.fastest_front_ends(CONTENDERS).iter().for_each(self.on_contender);
        Ok(scored)
    }
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
