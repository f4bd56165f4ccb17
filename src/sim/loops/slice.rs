//! Finds the values of a loop that are linear in the iteration number (induction variables), from
//! the steps that one iteration executes.
//!
//! The [`Analysis`] depends on the program and the path alone, not on data, so that it serves every
//! thread that takes the same path.

use crate::ptx::Scalar;
use crate::sim::operation::{Alu, is_float};
use crate::sim::program::{Operation, ParameterLocation, Program, ProgramStep, Slot, Window};
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// How the value of a slot that a loop writes evolves from iteration to iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evolution {
    /// Linear in the iteration number, if three iterations confirm it.
    Linear,
    /// A predicate that every checked comparison leaves as it is.
    Constant,
    Unknown,
}

/// The analysis of one path through a loop.
pub(super) struct Analysis {
    executed: Vec<bool>,
    /// Branches that were asked about: only those that leave these steps, or all.
    exits_of: Option<RangeInclusive<u32>>,
    /// Whether all comparisons that decide are linear.
    pub decided: bool,
    /// Steps whose comparisons have to turn out the same.
    pub events: Vec<bool>,
    pub evolutions: Vec<(Slot, Evolution)>,
    /// The path writes memory.
    pub stores: bool,
}

impl Analysis {
    /// Analyses the path of the executed steps. With `exits_of`, only branches from there to
    /// elsewhere count.
    pub fn new(program: &Program, executed: Vec<bool>, exits_of: Option<RangeInclusive<u32>>) -> Self {
        let events = vec![false; program.steps.len()];
        let mut slice = Slice { program, executed: &executed, events, seen: HashMap::new(), trail: Vec::new() };
        let path = || (0u32..).zip(&program.steps).filter(|(index, _)| executed[*index as usize]);
        let decided = path().all(|(index, step)| slice.decides_linearly(index, step, exits_of.as_ref()));
        let mut evolutions = Vec::new();
        let mut stores = false;
        if decided {
            for (_, step) in path() {
                stores |= match step.operation {
                    Operation::Store(memory) => memory.window != Window::Param,
                    Operation::Atomic { .. } => true,
                    _ => false,
                };
                let results = match step.operation {
                    Operation::Call(call) => &program.calls[call as usize].results[..],
                    _ => &[],
                };
                let results = results.iter().filter_map(|passing| match passing {
                    ParameterLocation::Slot(slot) => Some(*slot),
                    ParameterLocation::Param(..) => None,
                });
                evolutions
                    .extend(program.written_slots(step).chain(results).map(|slot| (slot, slice.evolution_of(slot))));
            }
            evolutions.sort_unstable_by_key(|(slot, _)| *slot);
            evolutions.dedup_by_key(|(slot, _)| *slot);
        }
        let events = slice.events;
        Self { executed, exits_of, decided, events, evolutions, stores }
    }

    /// Whether this is the analysis of that path.
    pub fn is_of(&self, deltas: &[u64], exits_of: Option<&RangeInclusive<u32>>) -> bool {
        self.exits_of.as_ref() == exits_of
            && self.executed.iter().zip(deltas).all(|(executed, delta)| *executed == (*delta > 0))
    }
}

/// Follows the definitions of slots within the executed part of a loop.
struct Slice<'p> {
    program: &'p Program,
    executed: &'p [bool],
    /// Comparisons that have to be looked at.
    events: Vec<bool>,
    /// Slots that were examined for a role, and whether they have it.
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
const MAX_CHAIN: u32 = 500;

impl<'p> Slice<'p> {
    fn definitions_of(&self, slot: Slot) -> impl Iterator<Item = (usize, &'p ProgramStep)> + use<'p> {
        let (program, executed) = (self.program, self.executed);
        let all = program.definitions.get(slot as usize).map_or(&[][..], |d| d.as_slice());
        all.iter()
            .map(|&index| index as usize)
            .filter(move |&index| executed[index])
            .map(move |index| (index, &program.steps[index]))
    }

    fn all_definitions(
        &mut self,
        slot: Slot,
        role: Role,
        depth: u32,
        test: impl Fn(&mut Self, usize, &'p ProgramStep) -> bool,
    ) -> bool {
        if let Some(&known) = self.seen.get(&(slot, role)) {
            return known;
        }
        if depth > MAX_CHAIN {
            return false;
        }
        // A cycle is what makes an induction variable, but nothing in a cycle is invariant.
        self.seen.insert((slot, role), role != Role::Invariant);
        self.trail.push((slot, role));
        let good = self.definitions_of(slot).all(|(index, step)| test(self, index, step));
        self.seen.insert((slot, role), good);
        good
    }

    fn is_invariant(&mut self, slot: Slot, depth: u32) -> bool {
        self.all_definitions(slot, Role::Invariant, depth, |slice, _, step| {
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
                Operation::Pack { list, count, .. } => slice.program.slot_list(list, count),
                _ => &[],
            };
            pure && step.guard == 0
                && step.sources.iter().chain(list).all(|&source| slice.is_invariant(source, depth + 1))
        })
    }

    fn is_linear(&mut self, slot: Slot, depth: u32) -> bool {
        self.all_definitions(slot, Role::Linear, depth, |slice, index, step| {
            if step.guard != 0 && !slice.is_predicate_known(step.guard, depth + 1) {
                return false;
            }
            let [a, b, c, _] = step.sources;
            let next = depth + 1;
            let product = |slice: &mut Self| {
                (slice.is_linear(a, next) && slice.is_invariant(b, next))
                    || (slice.is_invariant(a, next) && slice.is_linear(b, next))
            };
            match step.operation {
                Operation::Alu { kind, mode, .. } if is_float(kind) || mode.saturate => slice.is_unchanged(step, next),
                Operation::Alu { alu, .. } => match alu {
                    Alu::Move | Alu::Neg => slice.is_linear(a, next),
                    Alu::Convert { from } if !is_float(from) => slice.is_linear(a, next),
                    Alu::Add | Alu::Sub => slice.is_linear(a, next) && slice.is_linear(b, next),
                    Alu::MulLow | Alu::MulWide => product(slice),
                    Alu::MadLow | Alu::MadWide => product(slice) && slice.is_linear(c, next),
                    Alu::ShiftLeft => slice.is_linear(a, next) && slice.is_invariant(b, next),
                    Alu::Min | Alu::Max => {
                        slice.events[index] = true;
                        slice.is_linear(a, next) && slice.is_linear(b, next)
                    }
                    Alu::Select => {
                        slice.is_linear(a, next) && slice.is_linear(b, next) && slice.is_predicate_known(c, next)
                    }
                    _ => slice.is_unchanged(step, next),
                },
                Operation::ToGeneric(_) | Operation::FromGeneric(_) => slice.is_linear(a, next),
                Operation::Load(memory) => {
                    matches!(memory.window, Window::Param | Window::Const) && slice.is_invariant(a, next)
                }
                Operation::InSpace(_) => slice.is_invariant(a, next),
                _ => false,
            }
        })
    }

    fn is_unchanged(&mut self, step: &ProgramStep, depth: u32) -> bool {
        step.sources.iter().all(|&source| self.is_invariant(source, depth))
    }

    fn is_predicate_known(&mut self, slot: Slot, depth: u32) -> bool {
        self.all_definitions(slot, Role::Predicate, depth, |slice, index, step| {
            let [a, b, c, _] = step.sources;
            let next = depth + 1;
            match step.operation {
                Operation::SetPredicate { kind, .. } => {
                    slice.events[index] = true;
                    let compared = if is_float(kind) {
                        slice.is_invariant(a, next) && slice.is_invariant(b, next)
                    } else {
                        slice.is_linear(a, next) && slice.is_linear(b, next)
                    };
                    step.guard == 0 && compared && slice.is_predicate_known(c, next)
                }
                Operation::Alu { kind: Scalar::Pred, .. } => {
                    step.guard == 0 && [a, b, c].into_iter().all(|source| slice.is_predicate_known(source, next))
                }
                Operation::InSpace(_) => slice.is_invariant(a, next),
                _ => slice.is_invariant(slot, next),
            }
        })
    }

    /// Whether what decides a step is known to be linear.
    fn decides_linearly(&mut self, index: u32, step: &ProgramStep, exits_of: Option<&RangeInclusive<u32>>) -> bool {
        if let Some(inside) = exits_of {
            let leaves = match step.operation {
                Operation::Branch(target) => index == *inside.end() || !inside.contains(&target),
                Operation::Return | Operation::Exit => true,
                _ => false,
            };
            if !leaves || !inside.contains(&index) {
                return true;
            }
        }
        match step.operation {
            Operation::BranchTable { .. } => self.is_invariant(step.sources[0], 0),
            Operation::Branch(_) | Operation::Return | Operation::Exit | Operation::Call(_) => {
                step.guard == 0 || self.is_predicate_known(step.guard, 0)
            }
            _ => true,
        }
    }

    /// Returns the evolution of a slot, without adding comparisons that would have to be checked.
    fn evolution_of(&mut self, slot: Slot) -> Evolution {
        if self.program.widths[slot as usize] == 1 {
            let known = self.seen.get(&(slot, Role::Predicate)).copied().unwrap_or(false);
            return if known { Evolution::Constant } else { Evolution::Unknown };
        }
        let events = self.events.clone();
        let mark = self.trail.len();
        let good = self.is_linear(slot, 0) && self.events == events;
        self.events = events;
        if good {
            return Evolution::Linear;
        }
        // What was found on the way assumed that this slot is linear.
        for key in self.trail.drain(mark..) {
            self.seen.remove(&key);
        }
        self.seen.insert((slot, Role::Linear), false);
        Evolution::Unknown
    }
}
