//! Long loops: found while a thread runs, and skipped where their course is certain.
//!
//! At a backward branch the thread's registers and counts are sampled over four passes, that is three iterations. The
//! loop is *regular* if
//! - all three iterations executed the same steps equally often;
//! - everything that decides a branch (or a minimum, maximum or selection that feeds one) comes, within the loop, from
//!   additions, multiplications by what does not change, and the like: never from memory, never from data;
//! - both sides of each such comparison changed by the same amount from iteration to iteration.
//!
//! Then every comparison is linear in the iteration's number, so the first iteration in which one turns out otherwise
//! follows by division. All iterations before it are counted without being run: linear registers move on by their step,
//! all others that the loop writes become unknown.

use super::arithmetic::{integer, mask};
use super::operation::{Alu, Compare, bits, float};
use super::program::{Operation, Program, Slot, Step, Window};
use super::thread::Thread;
use crate::ptx::Scalar;
use std::collections::HashMap;

/// Passes over a branch that are compared.
const SAMPLES: usize = 4;
/// Comparisons that are logged at most while samples are taken.
const LOG: usize = 1 << 16;
/// Iterations that are worth skipping.
const WORTH: i128 = 4;

/// A comparison while a loop was sampled.
#[derive(Clone, Copy)]
pub(super) struct Event {
    pub step: u32,
    pub a: u64,
    pub b: u64,
    pub holds: bool,
}

struct Sample {
    values: Vec<u64>,
    counts: Vec<u64>,
    log: usize,
}

#[derive(Default)]
struct Loop {
    head: u32,
    passes: u64,
    /// The pass at which sampling begins.
    next: u64,
    /// How far the next attempt is put off after a failure.
    patience: u64,
    samples: Vec<Sample>,
}

pub(super) struct Loops {
    by_branch: HashMap<u32, Loop>,
    warmup: u64,
    log: Vec<Event>,
    sampling: u32,
}

impl Loops {
    pub fn new(warmup: u64) -> Self {
        Self {
            by_branch: HashMap::new(),
            warmup: warmup.max(1),
            log: Vec::new(),
            sampling: 0,
        }
    }

    pub fn recording(&self) -> bool {
        self.sampling > 0
    }

    pub fn log(&mut self, event: Event) {
        if self.log.len() < LOG {
            self.log.push(event);
        }
    }

    /// The loop of this backward branch was left.
    pub fn left(&mut self, branch: u32) {
        if let Some(entry) = self.by_branch.get_mut(&branch) {
            reset(entry, &mut self.sampling, self.warmup);
        }
        self.tidy();
    }

    fn tidy(&mut self) {
        if self.sampling == 0 {
            self.log.clear();
        }
    }

    /// A backward branch to `head` was taken: samples the loop, and skips what can be skipped.
    pub fn back(&mut self, thread: &mut Thread<'_>, program: &Program, branch: u32, head: u32) {
        let warmup = self.warmup;
        let entry = self.by_branch.entry(branch).or_insert_with(|| Loop {
            head,
            next: warmup,
            patience: warmup,
            ..Loop::default()
        });
        entry.passes += 1;
        if entry.passes < entry.next {
            return;
        }
        if entry.samples.is_empty() {
            self.sampling += 1;
        }
        let log = self.log.len();
        entry.samples.push(Sample {
            values: thread.values.clone(),
            counts: thread.counts.clone(),
            log,
        });
        if entry.samples.len() < SAMPLES {
            return;
        }
        let samples = std::mem::take(&mut entry.samples);
        self.sampling -= 1;
        let overflow = self.log.len() >= LOG;
        let skipped = if overflow {
            None
        } else {
            skip(thread, program, &samples, &self.log)
        };
        if skipped.is_some() {
            entry.next = entry.passes + 1;
            // Inner loops begin anew: their samples lie before the skipped part.
            let inner: Vec<u32> = self
                .by_branch
                .keys()
                .copied()
                .filter(|&b| head <= b && b < branch)
                .collect();
            for branch in inner {
                self.left(branch);
            }
        } else {
            entry.patience = entry.patience.saturating_mul(4).max(8);
            entry.next = entry.passes + entry.patience;
        }
        self.tidy();
    }
}

fn reset(entry: &mut Loop, sampling: &mut u32, warmup: u64) {
    if !entry.samples.is_empty() {
        *sampling -= 1;
    }
    *entry = Loop {
        head: entry.head,
        next: warmup,
        patience: warmup,
        ..Loop::default()
    };
}

/// Skips iterations if the loop is regular; gives how many.
fn skip(
    thread: &mut Thread<'_>,
    program: &Program,
    samples: &[Sample],
    log: &[Event],
) -> Option<u64> {
    let [s0, s1, s2, s3] = samples else {
        return None;
    };
    let deltas: Vec<u64> = s3
        .counts
        .iter()
        .zip(&s2.counts)
        .map(|(after, before)| after - before)
        .collect();
    let same = |after: &Sample, before: &Sample| {
        after
            .counts
            .iter()
            .zip(&before.counts)
            .zip(&deltas)
            .all(|((a, b), d)| a - b == *d)
    };
    if !same(s1, s0) || !same(s2, s1) {
        return None;
    }
    let mut slice = Slice {
        program,
        executed: &deltas,
        events: vec![false; program.steps.len()],
        seen: HashMap::new(),
        trail: Vec::new(),
    };
    for (step, _) in program
        .steps
        .iter()
        .zip(&deltas)
        .filter(|(_, delta)| **delta > 0)
    {
        let decides = matches!(
            step.operation,
            Operation::Branch(_) | Operation::Return | Operation::Exit | Operation::Call(_)
        );
        let fixed = match step.operation {
            Operation::BranchTable { .. } => slice.invariant(step.sources[0], 0),
            _ => true,
        };
        if !fixed || (decides && step.guard != 0 && !slice.predicate(step.guard, 0)) {
            return None;
        }
    }
    let events = |from: &Sample, to: usize| -> Vec<Event> {
        log[from.log.min(to)..to]
            .iter()
            .copied()
            .filter(|event| slice.events[event.step as usize])
            .collect()
    };
    let first = events(s0, s1.log);
    let second = events(s1, s2.log);
    let third = events(s2, s3.log);
    if first.len() != second.len() || second.len() != third.len() {
        return None;
    }
    let mut limit = i128::MAX;
    for ((a, b), c) in first.iter().zip(&second).zip(&third) {
        limit = limit.min(turn(program, [a, b, c])?);
    }
    // One iteration is left to run, so that the loop ends as it would have.
    if limit == i128::MAX {
        // Nothing ever changes: an endless loop, which the allowance ends.
        return None;
    }
    let iterations = limit - 1;
    if iterations < WORTH {
        return None;
    }
    let iterations = u64::try_from(iterations.min(1 << 40)).ok()?;
    let mut steps = 0u64;
    for (count, delta) in thread.counts.iter_mut().zip(&deltas) {
        let more = delta.saturating_mul(iterations);
        *count = count.saturating_add(more);
        steps = steps.saturating_add(more);
    }
    thread.extrapolated = thread.extrapolated.saturating_add(steps);
    advance(thread, &mut slice, samples, iterations);
    Some(iterations)
}

/// The number of iterations, counted from the last sampled one, until a comparison turns out otherwise.
fn turn(program: &Program, [x, y, z]: [&Event; 3]) -> Option<i128> {
    if x.step != y.step || y.step != z.step || x.holds != y.holds || y.holds != z.holds {
        return None;
    }
    let step = &program.steps[z.step as usize];
    let (kind, relation) = match step.operation {
        Operation::SetPredicate { kind, compare, .. } => (kind, compare),
        Operation::Alu { kind, .. } => (kind, Compare::Lt),
        _ => return None,
    };
    if float(kind) {
        // Only reached with operands that do not change.
        return (x.a == z.a && x.b == z.b && y.a == z.a && y.b == z.b).then_some(i128::MAX);
    }
    let value = |bits: u64| integer(bits, kind);
    let (slope_a, slope_b) = (value(z.a) - value(y.a), value(z.b) - value(y.b));
    if value(y.a) - value(x.a) != slope_a || value(y.b) - value(x.b) != slope_b {
        return None;
    }
    let range = range_limit(value(z.a), slope_a, kind).min(range_limit(value(z.b), slope_b, kind));
    Some(range.min(first_turn(
        value(z.a) - value(z.b),
        slope_a - slope_b,
        relation,
        z.holds,
    )))
}

/// Iterations for which `value + k * slope` stays in the type.
fn range_limit(value: i128, slope: i128, kind: Scalar) -> i128 {
    let width = bits(kind).max(1);
    let (low, high) = match super::operation::signed(kind) {
        true => (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1),
        false => (0, (1i128 << width) - 1),
    };
    match slope.signum() {
        1 => (high - value) / slope + 1,
        -1 => (value - low) / -slope + 1,
        _ => i128::MAX,
    }
}

/// The first k > 0 for which `difference + k * slope` compared with zero is not as it is for k = 0.
fn first_turn(difference: i128, slope: i128, relation: Compare, holds: bool) -> i128 {
    if slope == 0 {
        return i128::MAX;
    }
    // Walk towards the first sign change, the only place where the outcome may change.
    let holds_at = |k: i128| relation.holds(Some((difference + k * slope).cmp(&0)));
    let meeting = -difference / slope;
    (meeting - 1..=meeting + 1)
        .filter(|&k| k > 0)
        .find(|&k| holds_at(k) != holds)
        .unwrap_or(i128::MAX)
}

/// Moves registers on by `iterations`.
fn advance(thread: &mut Thread<'_>, slice: &mut Slice<'_>, samples: &[Sample], iterations: u64) {
    let program = slice.program;
    let [s0, s1, s2, s3] = samples else { return };
    let mut stores = false;
    for (index, step) in program.steps.iter().enumerate() {
        if slice.executed[index] == 0 {
            continue;
        }
        stores |= matches!(step.operation, Operation::Store(m) if m.window != Window::Param)
            || matches!(step.operation, Operation::Atomic { .. });
        let mut targets: Vec<Slot> = program.targets(step).collect();
        if let Operation::Call(call) = step.operation {
            let call = &program.calls[call as usize];
            targets.extend(call.results.iter().filter_map(|passing| match passing {
                super::program::Passing::Slot(slot) => Some(*slot),
                super::program::Passing::Param(..) => None,
            }));
        }
        for slot in targets {
            let at = slot as usize;
            let width = u32::from(program.widths[at]);
            let step = |after: &Sample, before: &Sample| {
                mask(after.values[at].wrapping_sub(before.values[at]), width)
            };
            let delta = step(s3, s2);
            let linear = step(s2, s1) == delta && step(s1, s0) == delta;
            if width > 1 && linear && slice.known_linear(slot) {
                thread.values[at] = mask(
                    s3.values[at].wrapping_add(delta.wrapping_mul(iterations)),
                    width,
                );
            } else if width == 1 && linear && delta == 0 && slice.known_predicate(slot) {
                // A predicate that decides is the same in every iteration that was skipped.
            } else {
                thread.unknown[at] = true;
            }
        }
    }
    if stores {
        thread.skipped_stores = true;
    }
}

/// What the values of a slot come from within the executed part of a loop.
struct Slice<'p> {
    program: &'p Program,
    /// Executions of each step in one iteration.
    executed: &'p [u64],
    /// Comparisons that have to be looked at.
    events: Vec<bool>,
    /// Slots that were looked at: as what, and whether they are.
    seen: HashMap<(Slot, Role), bool>,
    /// What was entered in `seen`, in order.
    trail: Vec<(Slot, Role)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Role {
    Linear,
    Invariant,
    Predicate,
}

/// Deepest chain of definitions that is followed.
const CHAIN: u32 = 500;

impl<'p> Slice<'p> {
    fn definitions(&self, slot: Slot) -> impl Iterator<Item = (usize, &'p Step)> + use<'p> {
        let (program, executed) = (self.program, self.executed);
        let all = program
            .definitions
            .get(slot as usize)
            .map_or(&[][..], |d| d.as_slice());
        all.iter()
            .map(|&index| index as usize)
            .filter(move |&index| executed[index] > 0)
            .map(move |index| (index, &program.steps[index]))
    }

    fn each(
        &mut self,
        slot: Slot,
        role: Role,
        depth: u32,
        test: impl Fn(&mut Self, usize, &'p Step) -> bool,
    ) -> bool {
        if let Some(&known) = self.seen.get(&(slot, role)) {
            return known;
        }
        if depth > CHAIN {
            return false;
        }
        // A cycle is what makes an induction variable, but nothing in a cycle is invariant.
        self.seen.insert((slot, role), role != Role::Invariant);
        self.trail.push((slot, role));
        let good = self
            .definitions(slot)
            .all(|(index, step)| test(self, index, step));
        self.seen.insert((slot, role), good);
        good
    }

    fn invariant(&mut self, slot: Slot, depth: u32) -> bool {
        self.each(slot, Role::Invariant, depth, |slice, _, step| {
            let pure = match step.operation {
                Operation::Alu { .. }
                | Operation::SetPredicate { .. }
                | Operation::Pack { .. }
                | Operation::Unpack { .. }
                | Operation::ToGeneric(_)
                | Operation::FromGeneric(_)
                | Operation::InSpace(_) => true,
                Operation::Load(memory) => matches!(memory.window, Window::Param | Window::Const),
                _ => false,
            };
            let list = match step.operation {
                Operation::Pack { list, count, .. } => slice.program.list(list, count),
                _ => &[],
            };
            pure && step.guard == 0
                && step
                    .sources
                    .iter()
                    .chain(list)
                    .all(|&source| slice.invariant(source, depth + 1))
        })
    }

    fn linear(&mut self, slot: Slot, depth: u32) -> bool {
        self.each(slot, Role::Linear, depth, |slice, index, step| {
            if step.guard != 0 && !slice.predicate(step.guard, depth + 1) {
                return false;
            }
            let [a, b, c, _] = step.sources;
            let next = depth + 1;
            let product = |slice: &mut Self| {
                (slice.linear(a, next) && slice.invariant(b, next))
                    || (slice.invariant(a, next) && slice.linear(b, next))
            };
            match step.operation {
                Operation::Alu { kind, mode, .. } if float(kind) || mode.saturate => {
                    slice.unchanged(step, next)
                }
                Operation::Alu { alu, .. } => match alu {
                    Alu::Move | Alu::Neg => slice.linear(a, next),
                    Alu::Convert { from } if !float(from) => slice.linear(a, next),
                    Alu::Add | Alu::Sub => slice.linear(a, next) && slice.linear(b, next),
                    Alu::MulLow | Alu::MulWide => product(slice),
                    Alu::MadLow | Alu::MadWide => product(slice) && slice.linear(c, next),
                    Alu::ShiftLeft => slice.linear(a, next) && slice.invariant(b, next),
                    Alu::Min | Alu::Max => {
                        slice.events[index] = true;
                        slice.linear(a, next) && slice.linear(b, next)
                    }
                    Alu::Select => {
                        slice.linear(a, next) && slice.linear(b, next) && slice.predicate(c, next)
                    }
                    _ => slice.unchanged(step, next),
                },
                Operation::ToGeneric(_) | Operation::FromGeneric(_) => slice.linear(a, next),
                Operation::Load(memory) => {
                    matches!(memory.window, Window::Param | Window::Const)
                        && slice.invariant(a, next)
                }
                Operation::InSpace(_) => slice.invariant(a, next),
                _ => false,
            }
        })
    }

    fn unchanged(&mut self, step: &Step, depth: u32) -> bool {
        step.sources
            .iter()
            .all(|&source| self.invariant(source, depth))
    }

    fn predicate(&mut self, slot: Slot, depth: u32) -> bool {
        self.each(slot, Role::Predicate, depth, |slice, index, step| {
            let [a, b, c, _] = step.sources;
            let next = depth + 1;
            match step.operation {
                Operation::SetPredicate { kind, .. } => {
                    slice.events[index] = true;
                    let compared = if float(kind) {
                        slice.invariant(a, next) && slice.invariant(b, next)
                    } else {
                        slice.linear(a, next) && slice.linear(b, next)
                    };
                    step.guard == 0 && compared && slice.predicate(c, next)
                }
                Operation::Alu {
                    kind: Scalar::Pred, ..
                } => {
                    step.guard == 0
                        && [a, b, c]
                            .into_iter()
                            .all(|source| slice.predicate(source, next))
                }
                Operation::InSpace(_) => slice.invariant(a, next),
                _ => slice.invariant(slot, next),
            }
        })
    }

    /// Linear by what was found, without new comparisons that were not checked.
    fn known_linear(&mut self, slot: Slot) -> bool {
        self.known(slot, |slice| slice.linear(slot, 0))
    }

    fn known_predicate(&mut self, slot: Slot) -> bool {
        self.seen
            .get(&(slot, Role::Predicate))
            .copied()
            .unwrap_or(false)
    }

    fn known(&mut self, slot: Slot, test: impl FnOnce(&mut Self) -> bool) -> bool {
        if let Some(&known) = self.seen.get(&(slot, Role::Linear)) {
            return known;
        }
        let events = self.events.clone();
        let mark = self.trail.len();
        let good = test(self) && self.events == events;
        self.events = events;
        if !good {
            // What was found on the way assumed that this slot is linear.
            for key in self.trail.drain(mark..) {
                self.seen.remove(&key);
            }
            self.seen.insert((slot, Role::Linear), false);
        }
        good
    }
}
