//! Tries the fastest configurations once more, as code that is right only where the launch stub
//! launches it. Where no stub sees the launches, a winner may not be such code.
//!
//! **For exactly one block** (`.reqntid`). The block's extents are constants then, and ptxas knows
//! the range of the thread's index (0 in a dimension of one thread). That makes other code for
//! nearly every kernel (`kernels/results/reqntid.txt`), mostly shorter, sometimes slower. What is
//! gained so differs between register caps and between macros: of `softmax` on an H200 the
//! configuration that was 12% behind became the fastest. So others are tried besides the finalists
//! ([`beyond_finalists`]).
//!
//! **With spills in shared memory**, whose size ptxas derives from the block: code that spills
//! registers, if the comment has `spill(shared)`.
//!
//! **Coarsened**: each block does the work of several ([`ptx::coarsening`](crate::ptx::coarsening)),
//! so that the GPU starts fewer. That is tried of kernels whose blocks are independent, if the
//! launch then still fills the GPU.

use super::final_rounds::{Contender, Finals};
use super::kernel::recorded_variant;
use super::scoring;
use super::scoring_input::{Code, ScoringInput};
use super::variants::Variant;
use crate::diag::MessageCode;
use crate::launch::{Configuration, FrontEndOptions, Launch};
use crate::measure::verdict;
use crate::measure::verdict::Verdict;
use crate::measure::{Candidate, Measurer, Outcome, Plan};
use crate::model::Score;
use crate::model::occupancy::{Demand, compute_occupancy};
use crate::process;
use crate::process::Permit;
use crate::ptx::Edits;
use crate::record::{Decision, RecordedConfiguration, RecordedVariant, digest};
use crate::sass::Cubin;
use rayon::prelude::*;
use std::collections::HashSet;
use std::sync::Arc;

/// What is further behind the fastest than this is not tried because of its macros: code for
/// exactly one block was faster by 18% at most on the suite.
const MOST_BEHIND: f64 = 1.2;

/// How many blocks one block may do the work of.
const COARSENINGS: [u32; 4] = [2, 4, 8, 16];

/// Configurations that are also tried coarsened: each is compiled once more, and timed once for each
/// of [`COARSENINGS`].
const MAX_COARSENED_CODE: usize = 3;

/// Coarsened configurations that meet the fastest of all in paired rounds.
const MAX_COARSENED: usize = 2;

/// Sets of front-end options that are tried besides those of the finalists.
const MAX_OPTIONS: usize = 3;

/// What is not a finalist must come as close to the fastest of all, to meet it in paired rounds.
const CLOSE: f64 = 1.02;

/// The rows of configurations besides the finalists (`rows`, the fastest first) whose code for
/// exactly their block may be the fastest: the first one's with other register caps that change its
/// code, and of `ranked`, for each of some other sets of macros and front-end options, the fastest
/// one and the fastest one of that block.
pub fn beyond_finalists(
    finals: &Finals<'_>,
    rows: &[usize],
    ranked: &[(usize, f64)],
    decision: &Decision,
) -> Vec<usize> {
    let input = finals.input;
    let Some(&first) = rows.first() else { return Vec::new() };
    let time = |row: usize| ranked.iter().find(|(other, _)| *other == row).map(|(_, time)| *time);
    let Some(least) = time(first) else { return Vec::new() };
    let of = |row: usize| Configuration { cap: 0, ..input.configurations[row].clone() };
    let best = of(first);
    let is_new_code =
        |row: &usize| input.representative[*row] == *row && input.variants[*row].is_ok() && !rows.contains(row);
    let mut others: Vec<usize> = (0..input.configurations.len())
        .filter(|row| input.configurations[*row].block == best.block && is_new_code(row) && of(*row) == best)
        .collect();
    let mut timed: Vec<(usize, f64)> =
        ranked.iter().copied().filter(|(_, time)| *time <= MOST_BEHIND * least).collect();
    timed.sort_by(|a, b| a.1.total_cmp(&b.1));
    let timed: Vec<usize> = timed.into_iter().map(|(row, _)| row).collect();
    let options = |row: usize| input.configurations[row].front_end();
    let is_in_block = |row: &usize| input.configurations[*row].block == best.block;
    let fastest: Vec<usize> = first_of_each(&timed, rows, options).take(MAX_OPTIONS).collect();
    let tried = [rows, &fastest].concat();
    let has_tried_options = |row: &usize| tried.iter().any(|other| options(*other) == options(*row));
    let in_block: Vec<usize> = timed.iter().copied().filter(is_in_block).filter(has_tried_options).collect();
    let tried_in_block: Vec<usize> = tried.iter().copied().filter(is_in_block).collect();
    others.extend(fastest);
    others.extend(first_of_each(&in_block, &tried_in_block, options));
    others.retain(|row| decision.configurations[*row].refused.is_none());
    others
}

/// The first of `rows` with each set of front-end options that none of `known` has.
fn first_of_each(
    rows: &[usize],
    known: &[usize],
    options: impl Fn(usize) -> FrontEndOptions,
) -> impl Iterator<Item = usize> {
    let mut seen: HashSet<FrontEndOptions> = known.iter().map(|row| options(*row)).collect();
    rows.iter().copied().filter(move |row| seen.insert(options(*row)))
}

/// Compiles each contender, and `others`, for exactly its block, the fastest also coarsened, and
/// times those whose code changes. Adds their rows to the decision; they do not count as points of
/// the space. Returns those of the contenders, and of the others and the coarsened the fastest that
/// are about as fast as the fastest of all.
pub fn contenders(
    finals: &Finals<'_>,
    (unrefined, others): (&[Contender], &[Contender]),
    permit: &mut Option<Permit>,
    measurer: &mut impl Measurer,
    decision: &mut Decision,
) -> Vec<Contender> {
    let Some(baseline) = unrefined.first().filter(|_| finals.clock.left_s(measurer) > 0.0) else { return Vec::new() };
    // A call that may run one tool at a time runs ptxas now, and nothing is measured meanwhile.
    let is_permitted = permit.take().is_some();
    let mut compiled = compile(finals, (unrefined, others), decision);
    *permit = is_permitted.then(process::wait_for_permit);
    compiled.truncate(finals.remaining);
    let candidates: Vec<Candidate> = compiled.iter().map(Refined::candidate).collect();
    if candidates.is_empty() {
        return Vec::new();
    }
    let plan = Plan { budget_s: finals.clock.left_s(measurer) / 2.0, ..Plan::default() };
    let timings = match measurer.time(&baseline.candidate, &candidates, &plan) {
        Ok(timings) => timings,
        Err(error) => {
            decision
                .note(MessageCode::RefinementSkipped, format!("the fastest configurations are not refined: {error}"));
            return Vec::new();
        }
    };
    let mut refined = Vec::new();
    for ((compiled, candidate), outcome) in compiled.into_iter().zip(candidates).zip(timings.candidates) {
        if let Some(contender) = note_timed(compiled, candidate, outcome, decision) {
            refined.push(contender);
        }
    }
    let time = |of: &Contender| of.seconds(decision);
    let least = unrefined.iter().chain(&refined).map(time).fold(f64::INFINITY, f64::min);
    let is_other = |found: &Contender| others.iter().any(|other| Some(other.row) == found.unrefined);
    refined.sort_by(|a, b| time(a).total_cmp(&time(b)));
    let mut coarsened = 0;
    refined.retain(|found| {
        coarsened += usize::from(found.configuration.is_coarsened());
        let must_be_close = is_other(found) || found.configuration.is_coarsened();
        let is_one_too_many = found.configuration.is_coarsened() && coarsened > MAX_COARSENED;
        !is_one_too_many && (!must_be_close || time(found) <= CLOSE * least)
    });
    refined
}

/// Compiles what is tried of each contender. What gives the same code for the same launch is there
/// once: code without anything to spill is the same with spills in shared memory as without, and a
/// register cap may not matter any more.
fn compile<'a>(
    finals: &Finals<'_>,
    (unrefined, others): (&'a [Contender], &'a [Contender]),
    decision: &Decision,
) -> Vec<Refined<'a>> {
    let exact = |contender: &Contender| Configuration { exact_block: true, ..contender.configuration.clone() };
    let all = || unrefined.iter().chain(others);
    let mut attempts: Vec<(&Contender, Vec<Configuration>)> =
        all().map(|contender| (contender, vec![exact(contender)])).collect();
    let spilling = unrefined.iter().filter(|contender| finals.may_share_spills(contender.row, decision));
    attempts
        .extend(spilling.map(|contender| (contender, vec![Configuration { shared_spills: true, ..exact(contender) }])));
    let coarsened = |contender: &Contender, blocks| Configuration { coarsening: Some(blocks), ..exact(contender) };
    attempts.extend(fastest(unrefined, decision).map(|contender| {
        let grid = finals.input.launches[contender.row].grid;
        let blocks = COARSENINGS.into_iter().filter(|blocks| *blocks <= grid[0]);
        (contender, blocks.map(|blocks| coarsened(contender, blocks)).collect())
    }));
    // An earlier group of finalists has the baseline, too.
    let is_tried = |of: &Configuration| decision.configurations.iter().any(|row| row.configuration == *of);
    for (_, configurations) in &mut attempts {
        configurations.retain(|configuration| !is_tried(configuration));
    }
    let compiled: Vec<Vec<Refined<'_>>> = attempts
        .into_par_iter()
        .map(|(contender, configurations)| Refined::compile(finals, contender, &configurations))
        .collect();
    let mut seen = HashSet::new();
    let mut is_new = |compiled: &Refined<'_>| {
        let row = compiled.contender.row;
        let launched = Configuration { cap: 0, ..finals.input.configurations[row].clone() };
        seen.insert((launched, compiled.configuration.coarsening, compiled.variant.digest.clone()))
    };
    compiled.into_iter().flatten().filter(|found| is_new(found)).collect()
}

/// The fastest of the contenders, the very fastest first.
fn fastest<'a>(contenders: &'a [Contender], decision: &Decision) -> impl Iterator<Item = &'a Contender> + use<'a> {
    let mut ranked: Vec<&Contender> = contenders.iter().collect();
    ranked.sort_by(|a, b| a.seconds(decision).total_cmp(&b.seconds(decision)));
    ranked.into_iter().take(MAX_COARSENED_CODE)
}

/// Whether the blocks that a configuration launches fill the GPU, as the launch stub asks of
/// coarsened code.
fn fills_gpu(finals: &Finals<'_>, launch: &Launch, variant: &Variant) -> bool {
    let Ok(cubin) = Cubin::parse(&variant.cubin) else { return false };
    let Some(kernel) = cubin.kernels().first() else { return false };
    let machine = finals.input.machine;
    let held = compute_occupancy(&machine.architecture, &Demand::new(&kernel.resources, launch)).blocks;
    let left: u64 = launch.launched_grid().into_iter().map(u64::from).product();
    left >= u64::from(held) * u64::from(machine.sms)
}

/// Adds the row of a configuration that was timed, and returns it as a contender.
fn note_timed(
    refined: Refined<'_>,
    candidate: Candidate,
    outcome: Outcome,
    decision: &mut Decision,
) -> Option<Contender> {
    let Refined { contender, configuration, variant } = refined;
    let (timing, refused) = match &outcome {
        Outcome::Timed(timing) => (Some(timing.into()), None),
        Outcome::Refused(reason) => (None, Some(reason.to_string())),
        Outcome::Skipped => return None,
    };
    decision.variants.push(RecordedVariant {
        exact_block: Some(configuration.block),
        shared_spills: configuration.shared_spills,
        coarsened: configuration.is_coarsened(),
        ..recorded_variant(&variant)
    });
    let row = RecordedConfiguration {
        configuration: configuration.clone(),
        launch: candidate.launch,
        variant: Some(decision.variants.len() - 1),
        score: None,
        candidate: true,
        promised: None,
        timing,
        parts: None,
        refused,
        ..decision.configurations[contender.row].clone()
    };
    decision.configurations.push(row);
    let (row, unrefined) = (decision.configurations.len() - 1, Some(contender.row));
    matches!(outcome, Outcome::Timed(_)).then_some(Contender { row, configuration, candidate, unrefined })
}

/// A contender's refined configuration, and its code.
struct Refined<'a> {
    contender: &'a Contender,
    configuration: Configuration,
    variant: Variant,
}

impl<'a> Refined<'a> {
    /// Compiles configurations of a contender, whose code is the same one; none if it is the
    /// contender's own or may not be used, or if the kernel does not permit it.
    fn compile(finals: &Finals<'_>, contender: &'a Contender, configurations: &[Configuration]) -> Vec<Self> {
        let variant = configurations.first().and_then(|first| compiled_variant(finals, contender, first));
        let launch = &contender.candidate.launch;
        let is_possible = |variant: &Variant, configuration: &Configuration| {
            let launch = Launch { coarsening: configuration.coarsening, ..*launch };
            !configuration.is_coarsened() || fills_gpu(finals, &launch, variant)
        };
        let refined = |variant: &Variant, configuration: &Configuration| Self {
            contender,
            configuration: configuration.clone(),
            variant: variant.clone(),
        };
        let all = variant.iter().flat_map(|variant| {
            let possible = configurations.iter().filter(|configuration| is_possible(variant, configuration));
            possible.map(|configuration| refined(variant, configuration))
        });
        all.collect()
    }

    fn candidate(&self) -> Candidate {
        let (label, cubin) = (self.configuration.to_string(), Arc::clone(&self.variant.cubin));
        let launch = Launch { coarsening: self.configuration.coarsening, ..self.contender.candidate.launch };
        Candidate { label, cubin, launch, ..self.contender.candidate.clone() }
    }
}

/// The code of a contender under a refined configuration; `None` if it is the contender's own.
fn compiled_variant(finals: &Finals<'_>, contender: &Contender, configuration: &Configuration) -> Option<Variant> {
    let input = finals.input;
    let (space, launch) = (&finals.info.space, &input.launches[contender.row]);
    let ptx = input.sources[input.source_of[contender.row]].ptx.as_deref()?;
    if finals.info.launch_path.refusal(space, configuration, launch).is_some() {
        return None;
    }
    let symbol = finals.info.entry(&configuration.front_end()).ok()?.symbol.clone();
    let (cubin, digest) = finals.toolchain?.assemble(ptx, &symbol, Edits::from(configuration)).ok()?;
    let (options, caps, cache) = (configuration.front_end(), vec![configuration.cap], configuration.cache);
    let variant = Variant { options, symbol, caps, cache, digest, cubin: Arc::from(cubin) };
    let code = &input.codes[*input.variants[contender.row].as_ref().ok()?];
    (variant.digest != code.digest).then_some(variant)
}

/// Scores a refined winner. The model takes a coarsened one for code whose blocks do their own work
/// alone.
pub fn score(input: &ScoringInput, winner: &Contender) -> Option<Score> {
    let (row, candidate) = (winner.unrefined?, &winner.candidate);
    let code = Code {
        symbol: candidate.kernel.clone(),
        digest: digest([&candidate.cubin[..]]),
        cubin: Arc::clone(&candidate.cubin),
    };
    let alone = ScoringInput {
        machine: input.machine,
        calibration: input.calibration,
        configurations: vec![input.configurations[row].clone()],
        launches: vec![input.launches[row]],
        workloads: vec![input.workloads[row].clone()],
        variants: vec![Ok(0)],
        needs_comparison: vec![input.needs_comparison[row]],
        trips: vec![input.trips[row].clone()],
        source_of: vec![0],
        baseline: 0,
        waits_for_grid: input.waits_for_grid,
        representative: vec![0],
        sources: vec![input.sources[input.source_of[row]].clone()],
        codes: vec![code],
    };
    scoring::score(alone).ok()?.scores.swap_remove(0)
}

/// Drops refined code that is not faster with 99% confidence than the configuration that it
/// refines, coarsened code also than the same code that is not coarsened; where that is no
/// contender, than every one that is not refined.
pub fn keep_faster(samples_by_contender: &mut Vec<(Contender, Vec<f64>)>) {
    let all = samples_by_contender.clone();
    let simpler = |refined: &Contender| -> Vec<&Vec<f64>> {
        let is_before = |other: &Contender| match other.unrefined {
            None => Some(other.row) == refined.unrefined,
            Some(row) => {
                let uncoarsened = Configuration { coarsening: None, ..refined.configuration.clone() };
                Some(row) == refined.unrefined
                    && refined.configuration.is_coarsened()
                    && other.configuration == uncoarsened
            }
        };
        let samples = |is_such: &dyn Fn(&Contender) -> bool| -> Vec<&Vec<f64>> {
            all.iter().filter(|(other, _)| is_such(other)).map(|(_, samples)| samples).collect()
        };
        let own = samples(&is_before);
        if own.is_empty() { samples(&|other| other.unrefined.is_none()) } else { own }
    };
    samples_by_contender.retain(|(contender, samples)| {
        let is_faster = |before: &&Vec<f64>| matches!(verdict::faster(before, samples), Verdict::Faster { .. });
        contender.unrefined.is_none() || simpler(contender).iter().all(is_faster)
    });
}
