//! Tries the fastest configurations once more, compiled for exactly their block (`.reqntid`).
//!
//! The block's extents are constants then, and ptxas knows the range of the thread's index (0
//! in a dimension of one thread). That makes other code for nearly every kernel
//! (`kernels/results/reqntid.txt`), mostly shorter, sometimes slower. The launch stub
//! guarantees the block, so a winner may be such code. Where no stub sees the launches
//! it may not.
//!
//! What is gained so differs between register caps and between macros: of `softmax` on an H200
//! the configuration that was 12% behind became the fastest. So others are tried besides the
//! finalists ([`beyond_finalists`]).
//!
//! If the comment has `spill(shared)`, code that spills registers is also tried with its spills
//! in shared memory, whose size ptxas derives from the block.

use super::final_rounds::{Contender, Finals};
use super::kernel::recorded_variant;
use super::scoring;
use super::scoring_input::{Code, ScoringInput};
use super::variants::Variant;
use crate::diag::MessageCode;
use crate::launch::{Configuration, FrontEndOptions};
use crate::measure::verdict;
use crate::measure::verdict::Verdict;
use crate::measure::{Candidate, Measurer, Outcome, Plan};
use crate::model::Score;
use crate::process;
use crate::process::Permit;
use crate::ptx::Edits;
use crate::record::{Decision, RecordedConfiguration, RecordedVariant, digest};
use rayon::prelude::*;
use std::collections::HashSet;
use std::sync::Arc;

/// What is further behind the fastest than this is not tried because of its macros: code for
/// exactly one block was faster by 18% at most on the suite.
const MOST_BEHIND: f64 = 1.2;

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

/// Compiles each contender, and `others`, for exactly its block and times those whose code changes.
/// Adds their rows to the decision; they do not count as points of the space. Returns those of the
/// contenders, and of the others those that are about as fast as the fastest of all.
pub fn contenders(
    finals: &Finals<'_>,
    (inexact, others): (&[Contender], &[Contender]),
    permit: &mut Option<Permit>,
    measurer: &mut impl Measurer,
    decision: &mut Decision,
) -> Vec<Contender> {
    let Some(baseline) = inexact.first().filter(|_| finals.remaining_s > 0.0) else { return Vec::new() };
    // A call that may run one tool at a time runs ptxas now, and nothing is measured meanwhile.
    let is_permitted = permit.take().is_some();
    let all = || inexact.iter().chain(others);
    let mut attempts: Vec<(&Contender, bool)> = all().map(|contender| (contender, false)).collect();
    let spilling = inexact.iter().filter(|contender| finals.may_share_spills(contender.row, decision));
    attempts.extend(spilling.map(|contender| (contender, true)));
    let compiled: Vec<Option<Compiled<'_>>> = attempts
        .into_par_iter()
        .map(|(contender, shared_spills)| Compiled::new(finals, contender, shared_spills))
        .collect();
    // What has nothing to spill is the same code with spills in shared memory as without, and a
    // register cap may not matter any more.
    let mut seen = HashSet::new();
    let mut is_new = |compiled: &Compiled<'_>| {
        let row = compiled.contender.row;
        let launched = Configuration { cap: 0, ..finals.input.configurations[row].clone() };
        seen.insert((launched, compiled.variant.digest.clone()))
    };
    let mut compiled: Vec<Compiled<'_>> = compiled.into_iter().flatten().filter(|found| is_new(found)).collect();
    *permit = is_permitted.then(process::wait_for_permit);
    compiled.truncate(finals.remaining);
    let candidates: Vec<Candidate> = compiled.iter().map(Compiled::candidate).collect();
    if candidates.is_empty() {
        return Vec::new();
    }
    let plan = Plan { budget_s: finals.remaining_s, ..Plan::default() };
    let timings = match measurer.time(&baseline.candidate, &candidates, &plan) {
        Ok(timings) => timings,
        Err(error) => {
            decision.note(MessageCode::ExactBlockSkipped, format!("code for exactly one block is not tried: {error}"));
            return Vec::new();
        }
    };
    let mut exact = Vec::new();
    for ((compiled, candidate), outcome) in compiled.into_iter().zip(candidates).zip(timings.candidates) {
        let Compiled { contender, configuration, variant } = compiled;
        let (timing, refused) = match &outcome {
            Outcome::Timed(timing) => (Some(timing.into()), None),
            Outcome::Refused(reason) => (None, Some(reason.to_string())),
            Outcome::Skipped => continue,
        };
        let before = &decision.configurations[contender.row];
        let exact_block = Some(configuration.block);
        let shared_spills = configuration.shared_spills;
        decision.variants.push(RecordedVariant { exact_block, shared_spills, ..recorded_variant(&variant) });
        let row = RecordedConfiguration {
            configuration: configuration.clone(),
            variant: Some(decision.variants.len() - 1),
            score: None,
            candidate: true,
            promised: None,
            timing,
            parts: None,
            refused,
            ..before.clone()
        };
        decision.configurations.push(row);
        if matches!(outcome, Outcome::Timed(_)) {
            let (row, inexact) = (decision.configurations.len() - 1, Some(contender.row));
            exact.push(Contender { row, configuration, candidate, inexact });
        }
    }
    let time =
        |of: &Contender| decision.configurations[of.row].timing.as_ref().map_or(f64::INFINITY, |at| at.median_us);
    let least = inexact.iter().chain(&exact).map(time).fold(f64::INFINITY, f64::min);
    let is_other = |found: &Contender| others.iter().any(|other| Some(other.row) == found.inexact);
    exact.retain(|found| !is_other(found) || time(found) <= CLOSE * least);
    exact
}

/// The code of a contender, compiled for exactly its block.
struct Compiled<'a> {
    contender: &'a Contender,
    configuration: Configuration,
    variant: Variant,
}

impl<'a> Compiled<'a> {
    /// Compiles it; `None` if it is the same code or may not be used, or if ptxas refuses spills
    /// in shared memory.
    fn new(finals: &Finals<'_>, contender: &'a Contender, shared_spills: bool) -> Option<Self> {
        let input = finals.input;
        let (space, launch) = (&finals.info.space, &input.launches[contender.row]);
        let ptx = input.sources[input.source_of[contender.row]].ptx.as_deref()?;
        let configuration = Configuration { exact_block: true, shared_spills, ..contender.configuration.clone() };
        if finals.info.launch_path.refusal(space, &configuration, launch).is_some() {
            return None;
        }
        let symbol = finals.info.entry(&configuration.front_end()).ok()?.symbol.clone();
        let (cubin, digest) = finals.toolchain?.assemble(ptx, &symbol, Edits::from(&configuration)).ok()?;
        let (options, caps, cache) = (configuration.front_end(), vec![configuration.cap], configuration.cache);
        let variant = Variant { options, symbol, caps, cache, digest, cubin: Arc::from(cubin) };
        let code = &input.codes[*input.variants[contender.row].as_ref().ok()?];
        (variant.digest != code.digest).then_some(Self { contender, configuration, variant })
    }

    fn candidate(&self) -> Candidate {
        let (label, cubin) = (self.configuration.to_string(), Arc::clone(&self.variant.cubin));
        Candidate { label, cubin, ..self.contender.candidate.clone() }
    }
}

/// Scores a winner that was compiled for exactly its block.
pub fn score(input: &ScoringInput, winner: &Contender) -> Option<Score> {
    let (row, candidate) = (winner.inexact?, &winner.candidate);
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

/// Drops code for exactly one block that is not faster with 99% confidence than the same
/// configuration without `.reqntid`; where that is no contender, than every one without.
pub fn keep_faster(samples_by_contender: &mut Vec<(Contender, Vec<f64>)>) {
    let all = samples_by_contender.iter();
    let inexact: Vec<(usize, Vec<f64>)> = all
        .filter(|(contender, _)| contender.inexact.is_none())
        .map(|(contender, samples)| (contender.row, samples.clone()))
        .collect();
    samples_by_contender.retain(|(contender, samples)| {
        let Some(row) = contender.inexact else { return true };
        let is_faster =
            |(_, before): &(usize, Vec<f64>)| matches!(verdict::faster(before, samples), Verdict::Faster { .. });
        match inexact.iter().find(|(other, _)| *other == row) {
            Some(own) => is_faster(own),
            None => inexact.iter().all(is_faster),
        }
    });
}
