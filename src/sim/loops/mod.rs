//! Finds long loops while a thread runs, and skips their iterations if the outcome is certain.
//!
//! At a backward branch the thread's registers and counts are sampled over four passes, that is
//! three iterations. The loop is *regular* if
//! - all three iterations executed the same steps equally often;
//! - everything that decides a branch (or a minimum, maximum or selection that feeds one)
//!   comes, within the loop, from additions, multiplications by what does not change, and the
//!   like: never from memory, never from data;
//! - both sides of each such comparison changed by the same amount from iteration to iteration.
//!
//! Then every comparison is linear in the iteration's number, so the first iteration in which
//! one turns out otherwise follows by division. All iterations before it are counted without
//! being run: linear registers move on by their step, all others that the loop writes become
//! unknown.
//!
//! A loop whose body goes different ways is *estimated* once the thread has spent a third of
//! its allowance: if only the branches that leave the loop meet the conditions above, the
//! remaining iterations are counted at the average so far, and the thread says so.

mod slice;

use super::arithmetic::{integer_value, mask_bits};
use super::operation::{Compare, bit_count, is_float};
use super::program::{Operation, Program};
use crate::ptx::Scalar;
use slice::{Analysis, Evolution};
use std::cell::RefMut;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::rc::Rc;

/// Consecutive passes over a backward branch that are compared.
const SAMPLES: usize = 4;
/// Maximum number of comparisons that are logged while samples are taken.
const MAX_EVENTS: usize = 1 << 16;
/// First pass that counts for averages, and minimum number of passes of an average.
const FIRST_AVERAGED_PASS: u64 = 1;
const MIN_AVERAGED_PASSES: u64 = 2;
/// Minimum number of iterations that is worth skipping.
const MIN_SKIPPED: i128 = 4;
/// Maximum number of paths through one loop that are remembered.
const MAX_PATHS: usize = 16;

/// The state of a thread, as far as skipping iterations reads and changes it.
pub(super) trait LoopState {
    /// Returns the values of all slots.
    fn values(&self) -> &[u64];
    /// Returns the values of all slots, to be changed.
    fn values_mut(&mut self) -> &mut [u64];
    /// Marks the value of a slot as unknown.
    fn set_unknown(&mut self, slot: usize);
    /// Returns how often each step was executed.
    fn counts(&self) -> &[u64];
    /// Counts executions that were not interpreted, by step.
    fn count_more(&mut self, more: impl Iterator<Item = u64>);
    /// Tells whether a third of the allowance is spent; the rest suffices to analyse a loop.
    fn is_expensive(&self) -> bool;
    /// Notes that counts are estimates.
    fn set_estimated(&mut self);
    /// Notes that iterations were skipped just now, and whether these may have written memory.
    fn set_skipped(&mut self, iterations: u64, stores: bool);
    /// Returns the analyses of loops that all threads of the program share.
    fn analyses(&self) -> RefMut<'_, Analyses>;
}

/// Analyses of paths by the branch that ends the loop, shared by all threads of a program.
#[derive(Default)]
pub(super) struct Analyses(HashMap<u32, Vec<Rc<Analysis>>>);

impl Analyses {
    fn analysis_of(
        &mut self,
        program: &Program,
        branch: u32,
        deltas: &[u64],
        exits_of: Option<RangeInclusive<u32>>,
    ) -> Rc<Analysis> {
        let known = self.0.entry(branch).or_default();
        if let Some(analysis) = known.iter().find(|analysis| analysis.is_of(deltas, exits_of.as_ref())) {
            return Rc::clone(analysis);
        }
        let executed = deltas.iter().map(|&delta| delta > 0).collect();
        let analysis = Rc::new(Analysis::new(program, executed, exits_of));
        if known.len() < MAX_PATHS {
            known.push(Rc::clone(&analysis));
        }
        analysis
    }
}

/// A comparison while a loop was sampled.
#[derive(Clone, Copy)]
pub(super) struct Event {
    pub step: u32,
    pub a: u64,
    pub b: u64,
    pub holds: bool,
}

struct LoopSample {
    values: Vec<u64>,
    counts: Vec<u64>,
    log: usize,
}

#[derive(Default)]
struct SampledLoop {
    /// The loop's steps: from its head to the branch back.
    span: Option<RangeInclusive<u32>>,
    passes: u64,
    /// The pass at which sampling begins.
    next: u64,
    /// Passes until the next attempt after a failure.
    backoff: u64,
    samples: Vec<LoopSample>,
    /// Counts at pass [`FIRST_AVERAGED_PASS`].
    base: Vec<u64>,
    /// An estimate was tried.
    estimated: bool,
    /// Iterations were skipped before in this thread: a later activation needs no long warm-up.
    skipped: bool,
}

impl SampledLoop {
    /// Resets the loop for its next activation; returns whether it was being sampled.
    fn reset_for(&mut self, warmup: u64) -> bool {
        let sampling = !self.samples.is_empty();
        let next = if self.skipped { 1 } else { warmup };
        let skipped = self.skipped;
        self.samples.clear();
        self.base.clear();
        *self = Self {
            span: self.span.take(),
            next,
            backoff: next,
            samples: std::mem::take(&mut self.samples),
            base: std::mem::take(&mut self.base),
            skipped,
            ..Self::default()
        };
        sampling
    }
}

#[derive(Default)]
pub(super) struct Loops {
    /// By the step of the branch back: index in `loops` plus one, 0 for none.
    index: Vec<u32>,
    loops: Vec<SampledLoop>,
    warmup: u64,
    log: Vec<Event>,
    sampling: u32,
}

impl Loops {
    /// For a program of `steps` steps; `warmup` iterations of each loop are run before it is
    /// looked at.
    pub fn new(steps: usize, warmup: u64) -> Self {
        Self { index: vec![0; steps], loops: Vec::new(), warmup: warmup.max(1), log: Vec::new(), sampling: 0 }
    }

    pub fn is_recording(&self) -> bool {
        self.sampling > 0
    }

    pub fn log_event(&mut self, event: Event) {
        if self.log.len() < MAX_EVENTS {
            self.log.push(event);
        }
    }

    /// Records that the loop of this backward branch was left.
    pub fn leave_loop(&mut self, branch: u32) {
        let number = self.index[branch as usize] as usize;
        if let Some(entry) = number.checked_sub(1).and_then(|number| self.loops.get_mut(number)) {
            self.sampling -= u32::from(entry.reset_for(self.warmup));
        }
        self.drop_finished();
    }

    fn drop_finished(&mut self) {
        if self.sampling == 0 {
            self.log.clear();
        }
    }

    /// Handles a backward branch to `head`: samples the loop, and skips iterations if
    /// possible.
    pub fn branch_back(&mut self, state: &mut impl LoopState, program: &Program, branch: u32, head: u32) {
        if self.index[branch as usize] == 0 {
            let span = Some(head..=branch);
            self.loops.push(SampledLoop { span, next: self.warmup, backoff: self.warmup, ..SampledLoop::default() });
            self.index[branch as usize] = self.loops.len() as u32;
        }
        let entry = &mut self.loops[self.index[branch as usize] as usize - 1];
        entry.passes += 1;
        if entry.passes == FIRST_AVERAGED_PASS {
            entry.base.clear();
            entry.base.extend_from_slice(state.counts());
        }
        let expensive =
            !entry.estimated && entry.passes > FIRST_AVERAGED_PASS + MIN_AVERAGED_PASSES && state.is_expensive();
        if entry.passes < entry.next && !expensive {
            return;
        }
        if entry.samples.is_empty() {
            self.sampling += 1;
        }
        let log = self.log.len();
        entry.samples.push(LoopSample { values: state.values().to_vec(), counts: state.counts().to_vec(), log });
        if entry.samples.len() < SAMPLES {
            return;
        }
        let samples = std::mem::take(&mut entry.samples);
        self.sampling -= 1;
        let whole = self.log.len() < MAX_EVENTS;
        let mut skipped = whole && skip_iterations(state, program, &samples, &self.log, branch);
        if !skipped && expensive && whole {
            entry.estimated = true;
            let passes = entry.passes - FIRST_AVERAGED_PASS;
            skipped = estimate_rest(state, program, &samples, &self.log, head..=branch, (&entry.base, passes));
        }
        if skipped {
            entry.skipped = true;
            entry.next = entry.passes.saturating_add(1);
            // Inner loops begin anew: their samples lie before the skipped part.
            for inner in &mut self.loops {
                let within = |span: &RangeInclusive<u32>| head <= *span.end() && *span.end() < branch;
                if inner.span.as_ref().is_some_and(within) {
                    self.sampling -= u32::from(inner.reset_for(self.warmup));
                }
            }
        } else {
            entry.backoff = entry.backoff.saturating_mul(4).max(8);
            entry.next = entry.passes.saturating_add(entry.backoff);
        }
        self.drop_finished();
    }
}

/// Skips iterations if the loop is regular; tells whether it did.
fn skip_iterations(
    state: &mut impl LoopState,
    program: &Program,
    samples: &[LoopSample],
    log: &[Event],
    branch: u32,
) -> bool {
    let [s0, s1, s2, s3] = samples else {
        return false;
    };
    let deltas: Vec<u64> = s3.counts.iter().zip(&s2.counts).map(|(after, before)| after - before).collect();
    let same = |after: &LoopSample, before: &LoopSample| {
        after.counts.iter().zip(&before.counts).zip(&deltas).all(|((a, b), d)| a - b == *d)
    };
    if !same(s1, s0) || !same(s2, s1) {
        return false;
    }
    let analysis = state.analyses().analysis_of(program, branch, &deltas, None);
    let Some(iterations) = certain_iterations(program, &analysis, samples, log) else {
        return false;
    };
    state.count_more(deltas.iter().map(|delta| delta.saturating_mul(iterations)));
    advance_registers(state, program, &analysis, samples, iterations);
    true
}

/// Estimates the rest of a loop, of which `passes` took the counts from `base` to now; tells
/// whether it did.
fn estimate_rest(
    state: &mut impl LoopState,
    program: &Program,
    samples: &[LoopSample],
    log: &[Event],
    span: RangeInclusive<u32>,
    (base, passes): (&[u64], u64),
) -> bool {
    let deltas: Vec<u64> = state.counts().iter().zip(base).map(|(after, before)| after - before).collect();
    let branch = *span.end();
    let analysis = state.analyses().analysis_of(program, branch, &deltas, Some(span));
    let Some(iterations) = certain_iterations(program, &analysis, samples, log) else {
        return false;
    };
    let share = |delta: &u64| (u128::from(*delta) * u128::from(iterations) / u128::from(passes.max(1))) as u64;
    state.count_more(deltas.iter().map(share));
    state.set_estimated();
    advance_registers(state, program, &analysis, samples, iterations);
    true
}

/// Returns the number of iterations after the sampled ones in which every deciding comparison
/// has the same outcome, less one, so that the last iterations are run.
fn certain_iterations(program: &Program, analysis: &Analysis, samples: &[LoopSample], log: &[Event]) -> Option<u64> {
    let [s0, s1, s2, s3] = samples else {
        return None;
    };
    if !analysis.decided {
        return None;
    }
    let events = |from: &LoopSample, to: &LoopSample| -> Vec<Event> {
        let span = from.log.min(to.log)..to.log.min(log.len());
        log[span].iter().copied().filter(|event| analysis.events[event.step as usize]).collect()
    };
    let (first, second, third) = (events(s0, s1), events(s1, s2), events(s2, s3));
    if first.len() != second.len() || second.len() != third.len() {
        return None;
    }
    let mut limit = i128::MAX;
    for ((a, b), c) in first.iter().zip(&second).zip(&third) {
        limit = limit.min(iterations_until_change(program, [a, b, c])?);
    }
    // Where nothing ever changes the loop is endless, and the allowance ends it.
    let iterations = limit - 1;
    if limit == i128::MAX || iterations < MIN_SKIPPED {
        return None;
    }
    u64::try_from(iterations.min(1 << 40)).ok()
}

/// Returns the number of iterations, counted from the last sampled one, until the outcome of a
/// comparison changes.
fn iterations_until_change(program: &Program, [x, y, z]: [&Event; 3]) -> Option<i128> {
    if x.step != y.step || y.step != z.step || x.holds != y.holds || y.holds != z.holds {
        return None;
    }
    let step = &program.steps[z.step as usize];
    let (kind, relation) = match step.operation {
        Operation::SetPredicate { kind, compare, .. } => (kind, compare),
        Operation::Alu { kind, .. } => (kind, Compare::Lt),
        _ => return None,
    };
    if is_float(kind) {
        // Only reached with operands that do not change.
        return (x.a == z.a && x.b == z.b && y.a == z.a && y.b == z.b).then_some(i128::MAX);
    }
    let value = |bits: u64| integer_value(bits, kind);
    let (slope_a, slope_b) = (value(z.a) - value(y.a), value(z.b) - value(y.b));
    if value(y.a) - value(x.a) != slope_a || value(y.b) - value(x.b) != slope_b {
        return None;
    }
    let range = range_limit(value(z.a), slope_a, kind).min(range_limit(value(z.b), slope_b, kind));
    Some(range.min(first_sign_change(value(z.a) - value(z.b), slope_a - slope_b, relation, z.holds)))
}

/// Iterations for which `value + k * slope` stays in the type.
fn range_limit(value: i128, slope: i128, kind: Scalar) -> i128 {
    let width = bit_count(kind).max(1);
    let (low, high) = match super::operation::is_signed(kind) {
        true => (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1),
        false => (0, (1i128 << width) - 1),
    };
    match slope.signum() {
        1 => (high - value) / slope + 1,
        -1 => (value - low) / -slope + 1,
        _ => i128::MAX,
    }
}

/// Returns the first k > 0 for which comparing `difference + k * slope` with zero has another
/// outcome than for k = 0.
fn first_sign_change(difference: i128, slope: i128, relation: Compare, holds: bool) -> i128 {
    if slope == 0 {
        return i128::MAX;
    }
    // Walk towards the first sign change, the only place where the outcome may change.
    let holds_at = |k: i128| relation.holds_for(Some((difference + k * slope).cmp(&0)));
    let meeting = -difference / slope;
    (meeting - 1..=meeting + 1).filter(|&k| k > 0).find(|&k| holds_at(k) != holds).unwrap_or(i128::MAX)
}

/// Moves registers on by `iterations`.
fn advance_registers(
    state: &mut impl LoopState,
    program: &Program,
    analysis: &Analysis,
    samples: &[LoopSample],
    iterations: u64,
) {
    let [s0, s1, s2, s3] = samples else { return };
    for &(slot, evolution) in &analysis.evolutions {
        let at = slot as usize;
        let width = u32::from(program.widths[at]);
        let step = |after: &LoopSample, before: &LoopSample| {
            mask_bits(after.values[at].wrapping_sub(before.values[at]), width)
        };
        let delta = step(s3, s2);
        let even = step(s2, s1) == delta && step(s1, s0) == delta;
        match evolution {
            Evolution::Linear if even => {
                state.values_mut()[at] = mask_bits(s3.values[at].wrapping_add(delta.wrapping_mul(iterations)), width);
            }
            Evolution::Constant if even && delta == 0 => {}
            _ => state.set_unknown(at),
        }
    }
    state.set_skipped(iterations, analysis.stores);
}
