//! Tries the fastest configurations once more, compiled for exactly their block (`.reqntid`).
//!
//! The block's extents are constants then, and ptxas knows the range of the thread's index (0
//! in a dimension of one thread). That makes other code for nearly every kernel
//! (`kernels/results/reqntid.txt`), mostly shorter, sometimes slower. The launch stub
//! guarantees the block, so a winner may be such code. Where no stub sees the launches
//! it may not.
//!
//! If the comment has `spill(shared)`, code that spills registers is also tried with its spills
//! in shared memory, whose size ptxas derives from the block.

use super::final_rounds::{Contender, Finals};
use super::kernel::recorded_variant;
use super::scoring;
use super::scoring_input::{Code, ScoringInput};
use super::variants::Variant;
use crate::diag::MessageCode;
use crate::launch::Configuration;
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

/// Compiles each contender for exactly its block and times those whose code changes. Adds their
/// rows to the decision; they do not count as points of the space.
pub fn contenders(
    finals: &Finals<'_>,
    inexact: &[Contender],
    permit: &mut Option<Permit>,
    measurer: &mut impl Measurer,
    decision: &mut Decision,
) -> Vec<Contender> {
    let Some(baseline) = inexact.first().filter(|_| finals.remaining_s > 0.0) else { return Vec::new() };
    // A call that may run one tool at a time runs ptxas now, and nothing is measured meanwhile.
    let is_permitted = permit.take().is_some();
    let mut attempts: Vec<(&Contender, bool)> = inexact.iter().map(|contender| (contender, false)).collect();
    let spilling = inexact.iter().filter(|contender| finals.may_share_spills(contender.row, decision));
    attempts.extend(spilling.map(|contender| (contender, true)));
    let compiled: Vec<Option<Compiled<'_>>> = attempts
        .into_par_iter()
        .map(|(contender, shared_spills)| Compiled::new(finals, contender, shared_spills))
        .collect();
    // What has nothing to spill is the same code with spills in shared memory as without.
    let mut seen = HashSet::new();
    let is_new = |compiled: &Compiled<'_>| seen.insert((compiled.contender.row, compiled.variant.digest.clone()));
    let mut compiled: Vec<Compiled<'_>> = compiled.into_iter().flatten().filter(is_new).collect();
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

/// Drops what is not faster with 99% confidence than the same configuration without `.reqntid`.
pub fn keep_faster(samples_by_contender: &mut Vec<(Contender, Vec<f64>)>) {
    let inexact: Vec<(usize, Vec<f64>)> =
        samples_by_contender.iter().map(|(contender, samples)| (contender.row, samples.clone())).collect();
    samples_by_contender.retain(|(contender, samples)| {
        let Some(row) = contender.inexact else { return true };
        let before = inexact.iter().find(|(other, _)| *other == row);
        before.is_some_and(|(_, before)| matches!(verdict::faster(before, samples), Verdict::Faster { .. }))
    });
}
