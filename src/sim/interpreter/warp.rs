//! A warp: lanes that are at the same step execute it together.
//!
//! Each lane has its own program counter, so that lanes may diverge and reconverge. Of the lanes
//! that can run, those with the least rank ([`Program::ranks`]) run first, deeper calls before
//! others. A step is counted once for all lanes that execute it together.

use super::context::{LaunchContext, ThreadPosition};
use super::lanes::{all_lanes, compare_lanes, compute_lanes, each_lane, lanes_where, predicate_lanes};
use super::registers::{UniformRegisters, WarpRegisters};
use super::state::{Recording, State};
use crate::ptx::{AccessKind, Scalar};
use crate::sim::arithmetic::{compute_carried, mask_bits, order_integers};
use crate::sim::decode;
use crate::sim::masked_memory::MaskedMemory;
use crate::sim::memory::{MemoryPlace, place_of};
use crate::sim::operation::{Alu, Combine, Compare, Mode};
use crate::sim::place::unravel_index;
use crate::sim::program::{Operation, Program, ProgramStep, Slot, Window};
use std::ops::Range;

/// How often a branch on unknown data may go the same way before it is forced the other way.
pub(super) const MAX_SAME_DIRECTION: u32 = 64;
/// Scheduling decisions for which lanes may wait for others of lower rank before they run: the
/// others may be waiting for them.
const STARVED: u32 = 1 << 14;
/// Scheduling decisions that they get then.
const RELIEF: u32 = 64;

/// What is known of threads that do not belong to the warp, and what is observed as it runs.
pub(super) trait Policy<'p, const N: usize>: Sized {
    /// Lets lanes arrive at a barrier; tells whether they wait there.
    fn arrive_at_barrier(warp: &mut Warp<'p, N, Self>, state: &mut State<'p>, step: &ProgramStep, lanes: u32) -> bool;
    /// Records that the lanes `on` have reached a collective. Returns the lanes that reached it
    /// before, once all lanes of its mask have; otherwise `None`.
    fn join_collective(warp: &mut Warp<'p, N, Self>, step: &ProgramStep, at: u32, on: u32, forced: bool)
    -> Option<u32>;
    fn execute_collective(warp: &mut Warp<'p, N, Self>, step: &ProgramStep, on: u32);
    /// Tells whether threads that are not run may have made an atomic update before.
    fn is_updated_by_others(place: MemoryPlace) -> bool;

    /// Tells whether a place may hold another value than the one that is stored.
    fn may_differ(_warp: &Warp<'p, N, Self>, _state: &State<'p>, _place: MemoryPlace) -> bool {
        false
    }
    /// Observes that a step begins.
    fn enter_step(&mut self, _program: &Program, _at: u32) {}
    /// Observes a comparison of the first lane's operands.
    fn observe_comparison(&mut self, _at: u32, _operands: [u64; 2], _holds: impl FnOnce() -> bool) {}
    /// Observes a branch to `target`, taken or not, before the lanes follow it.
    fn observe_branch(_warp: &mut Warp<'p, N, Self>, _at: u32, _target: u32, _taken: bool) {}
    /// Observes an access of the first lane to an address that is known or not.
    fn observe_access(
        _warp: &mut Warp<'p, N, Self>,
        _step: &ProgramStep,
        _access: (MemoryPlace, bool),
        _kind: AccessKind,
        _width: u32,
    ) {
    }
    /// Observes that lanes end in a trap or a failed assertion.
    fn observe_failure(_warp: &mut Warp<'p, N, Self>) {}
}

/// Why a warp stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// All its lanes have ended.
    Ended,
    /// All its lanes wait at barriers.
    Waits,
    /// It has used its steps.
    Spent,
}

pub(super) struct Frame {
    pub routine: usize,
    pub back: u32,
    pub call: u32,
    /// Slots of the routine as they were, if it was active already.
    pub saved: Vec<(u64, bool)>,
}

pub(super) struct Warp<'p, const N: usize, P> {
    pub context: LaunchContext<'p>,
    pub policy: P,
    pub number: u32,
    pub registers: WarpRegisters<'p, N>,
    /// Times that each step was executed by any of its lanes.
    pub counts: Vec<u64>,
    /// The next step of each lane, and its calls.
    pub pc: [u32; N],
    pub stacks: [Vec<Frame>; N],
    carry: u32,
    /// Parameters and local memory, a lane after the other.
    pub parameters: MaskedMemory,
    /// A call has written parameters.
    pub passed: bool,
    pub local: MaskedMemory,
    /// Masks of the lanes that have not ended; that wait at a barrier; that wait for other lanes
    /// at a collective.
    pub alive: u32,
    pub at_barrier: u32,
    pub at_collective: u32,
    /// Whether no branch depended on an unknown value and no collective deadlocked.
    pub exact: bool,
    /// Whether an address was not known.
    pub unknown_address: bool,
    /// Steps that were run, and steps that were counted without being run.
    pub steps: u64,
    pub extrapolated: u64,
    /// How often each branch depended on an unknown value.
    pub unknown_branches: Vec<(u32, u32)>,
    starved: u32,
    pub recording: Recording<N>,
}

impl<'p, const N: usize, P: Policy<'p, N>> Warp<'p, N, P> {
    /// A warp of these threads of a block, by their linear indices.
    pub fn new(
        context: &LaunchContext<'p>,
        uniform: UniformRegisters<N>,
        (block, threads): ([u32; 3], Range<u32>),
        recording: Recording<N>,
        policy: P,
    ) -> Self {
        let LaunchContext { program, launch, .. } = *context;
        let mut registers = WarpRegisters::new(program, uniform);
        for &(slot, special) in &program.specials {
            for (lane, thread) in threads.clone().enumerate() {
                let at = ThreadPosition { block, thread: unravel_index(u64::from(thread), launch.block) };
                let value = context.special_value(special, at);
                registers.set_lane(slot, lane, (value.unwrap_or(0), value.is_none()));
            }
        }
        Self {
            context: *context,
            policy,
            number: threads.start / 32,
            registers,
            counts: vec![0; program.steps.len()],
            pc: [0; N],
            stacks: std::array::from_fn(|_| Vec::new()),
            carry: 0,
            parameters: MaskedMemory::new(program.parameters.saturating_mul(N as u64)),
            passed: false,
            local: MaskedMemory::new(program.local.saturating_mul(N as u64)),
            alive: all_lanes(threads.len() as u32),
            at_barrier: 0,
            at_collective: 0,
            exact: true,
            unknown_address: false,
            steps: 0,
            extrapolated: 0,
            unknown_branches: Vec::new(),
            starved: 0,
            recording,
        }
    }

    /// Returns the lanes that run next, and their step.
    fn next_group(&mut self) -> Option<(u32, u32)> {
        let runnable = self.alive & !self.at_barrier & !self.at_collective;
        let first = runnable.trailing_zeros() as usize;
        if first >= N {
            return None;
        }
        let pc = self.pc[first];
        if lanes_where::<N>(|lane| self.pc[lane] == pc) & runnable == runnable {
            self.starved = 0;
            return Some((runnable, pc));
        }
        self.starved += 1;
        if self.starved > STARVED + RELIEF {
            self.starved = 0;
        }
        let program = self.context.program;
        let order = |lane: &usize| {
            let rank = program.ranks.get(self.pc[*lane] as usize).copied().unwrap_or(u32::MAX);
            (usize::MAX - self.stacks[*lane].len(), rank)
        };
        let behind = if self.starved > STARVED {
            each_lane(runnable).max_by_key(order)
        } else {
            each_lane(runnable).min_by_key(order)
        };
        let behind = behind?;
        let (pc, depth) = (self.pc[behind], self.stacks[behind].len());
        let together = lanes_where::<N>(|lane| self.pc[lane] == pc && self.stacks[lane].len() == depth) & runnable;
        Some((together, pc))
    }

    /// Sets the next step of lanes.
    pub fn park_lanes(&mut self, lanes: u32, pc: u32) {
        for lane in each_lane(lanes) {
            self.pc[lane] = pc;
        }
    }

    /// Runs the warp until all its lanes have ended or wait, or until it has taken this many
    /// steps in all.
    pub fn run_until(&mut self, state: &mut State<'p>, until: u64) -> Stop {
        let program = self.context.program;
        loop {
            if self.alive == 0 {
                return Stop::Ended;
            }
            let mut forced = false;
            let Some((on, pc)) = self.next_group().or_else(|| {
                // Those that the others would have to come to do not come.
                forced = true;
                self.release_collective()
            }) else {
                return Stop::Waits;
            };
            if !self.run_group(program, state, on, pc, until, forced) {
                return Stop::Spent;
            }
        }
    }

    /// Releases lanes that wait at a collective for lanes that never reach it.
    fn release_collective(&mut self) -> Option<(u32, u32)> {
        let first = self.at_collective.trailing_zeros() as usize;
        let pc = *self.pc.get(first)?;
        let together = lanes_where::<N>(|lane| self.pc[lane] == pc) & self.at_collective;
        self.at_collective &= !together;
        self.exact = false;
        Some((together, pc))
    }

    /// Runs lanes together until they diverge or may reconverge with others. Returns false if
    /// the steps are used up.
    fn run_group(
        &mut self,
        program: &'p Program,
        state: &mut State<'p>,
        mut on: u32,
        mut pc: u32,
        until: u64,
        mut forced: bool,
    ) -> bool {
        let alone = self.alive & !self.at_barrier & !self.at_collective == on;
        loop {
            let Some(step) = program.steps.get(pc as usize) else {
                self.alive &= !on;
                return true;
            };
            if self.steps >= until {
                self.park_lanes(on, pc);
                return false;
            }
            let at = pc;
            if let Operation::Collective { .. } = step.operation {
                let taking_part = if step.guard == 0 { on } else { on & self.guarded_lanes(step, at, on) };
                match P::join_collective(self, step, at, taking_part, forced) {
                    Some(more) => on |= more,
                    None => {
                        // Some are held here until the others come; the rest passes by.
                        self.park_lanes(taking_part, at);
                        self.at_collective |= taking_part;
                        self.park_lanes(on & !taking_part, at + 1);
                        return true;
                    }
                }
            }
            forced = false;
            self.steps += 1;
            self.policy.enter_step(program, at);
            self.counts[at as usize] += 1;
            pc += 1;
            let taken = if step.guard == 0 { on } else { on & self.guarded_lanes(step, at, on) };
            if step.guard != 0 && self.registers.unknown_lanes(step.guard) & on != 0 {
                // Who accesses what is not known.
                state.races = None;
            }
            match step.operation {
                Operation::Branch(target) => {
                    P::observe_branch(self, at, target, taken != 0);
                    if taken == on {
                        pc = target;
                    } else if taken != 0 {
                        self.park_lanes(taken, target);
                        self.park_lanes(on & !taken, pc);
                        return true;
                    }
                }
                Operation::BranchTable { list, count } => {
                    self.park_lanes(on & !taken, pc);
                    let [slot, ..] = step.sources;
                    let (index, unknown) = self.registers.read(slot);
                    if unknown & taken != 0 {
                        self.count_unknown_branch(at);
                    }
                    for lane in each_lane(taken) {
                        let index = mask_bits(index[lane], 32).min(u64::from(count.saturating_sub(1)));
                        match program.slot_list(list, count).get(index as usize) {
                            Some(&target) => self.pc[lane] = target,
                            None => self.alive &= !(1 << lane),
                        }
                    }
                    return true;
                }
                Operation::Exit | Operation::Return | Operation::Call(_) => {
                    self.park_lanes(on, pc);
                    match step.operation {
                        Operation::Return => each_lane(taken).for_each(|lane| self.return_lane(lane)),
                        Operation::Call(index) => self.call_lanes(index, taken),
                        _ => {
                            if taken != 0 && program.traps.contains(&at) {
                                P::observe_failure(self);
                            }
                            self.alive &= !taken;
                        }
                    }
                    return true;
                }
                Operation::Barrier { .. } => {
                    self.park_lanes(on, pc);
                    if P::arrive_at_barrier(self, state, step, taken) {
                        return true;
                    }
                }
                _ if taken == 0 => {}
                Operation::Alu { alu, kind, mode } => self.compute_step(step, at, (alu, kind, mode), taken),
                Operation::SetPredicate { compare, kind, combine, invert, second } => {
                    self.compare_step(step, at, (compare, kind), (combine, invert, second), taken);
                }
                _ => {
                    self.execute_step(step, at, taken, state);
                    if self.alive & on == 0 {
                        return true;
                    }
                }
            }
            if !alone && program.leaders[pc as usize] {
                self.park_lanes(on, pc);
                return true;
            }
        }
    }

    /// Returns the lanes that execute a guarded step.
    fn guarded_lanes(&mut self, step: &ProgramStep, at: u32, on: u32) -> u32 {
        let holds = self.registers.holding_lanes(step.guard);
        let taken = if step.negated { !holds } else { holds };
        let unknown = self.registers.unknown_lanes(step.guard) & on;
        if unknown == 0 {
            return taken;
        }
        if !matches!(step.operation, Operation::Branch(_) | Operation::Return | Operation::Exit | Operation::Call(_)) {
            return taken;
        }
        if self.count_unknown_branch(at) <= MAX_SAME_DIRECTION {
            return taken;
        }
        let backward = matches!(step.operation, Operation::Branch(target) if target <= at);
        if backward { taken & !unknown } else { taken | unknown }
    }

    /// Counts a branch on an unknown value; returns how often its step was one.
    fn count_unknown_branch(&mut self, at: u32) -> u32 {
        self.exact = false;
        let found = self.unknown_branches.iter().position(|(step, _)| *step == at).unwrap_or_else(|| {
            self.unknown_branches.push((at, 0));
            self.unknown_branches.len() - 1
        });
        let count = &mut self.unknown_branches[found].1;
        *count += 1;
        *count
    }

    fn compute_step(&mut self, step: &ProgramStep, at: u32, (alu, kind, mode): (Alu, Scalar, Mode), on: u32) {
        let operands = step.sources.map(|slot| self.registers.lanes(slot));
        if step.event {
            let [a, b, ..] = operands.map(|lanes| lanes[0]);
            self.policy.observe_comparison(at, [a, b], || order_integers(kind, a, b).is_lt());
        }
        let results = compute_lanes(alu, kind, mode, operands, on);
        let unknown = self.registers.any_unknown(step);
        self.registers.set_lanes(step.target, on, &results, unknown);
    }

    fn compare_step(
        &mut self,
        step: &ProgramStep,
        at: u32,
        (compare, kind): (Compare, Scalar),
        (combine, invert, second): (Combine, bool, Slot),
        on: u32,
    ) {
        let [a, b, c, _] = step.sources;
        let (left, right) = (self.registers.lanes(a), self.registers.lanes(b));
        let holds = compare_lanes(compare, kind, left, right, on);
        self.policy.observe_comparison(at, [left[0], right[0]], || holds & 1 != 0);
        let with = if combine == Combine::None { 0 } else { self.registers.holding_lanes(c) };
        let with = with ^ if invert { u32::MAX } else { 0 };
        let joined = |holds: u32| match combine {
            Combine::None => holds,
            Combine::And => holds & with,
            Combine::Or => holds | with,
            Combine::Xor => holds ^ with,
        };
        let unknown = self.registers.any_unknown(step);
        self.registers.set_lanes(step.target, on, &predicate_lanes(joined(holds)), unknown);
        if second != 0 {
            self.registers.set_lanes(second, on, &predicate_lanes(joined(!holds)), unknown);
        }
    }

    /// Executes a step that leads to the next one and is not computed from registers alone.
    fn execute_step(&mut self, step: &'p ProgramStep, at: u32, on: u32, state: &mut State<'p>) {
        let program = self.context.program;
        match step.operation {
            Operation::Load(memory) => self.load_lanes(step, memory, at, on, state),
            Operation::Store(memory) => self.store_lanes(step, memory, at, on, state),
            Operation::Atomic { memory, update } => self.update_atomically(step, memory, update, at, on, state),
            Operation::Collective { .. } => P::execute_collective(self, step, on),
            Operation::Carry { alu, kind, takes, gives } => {
                let unknown = self.registers.any_unknown(step);
                let mut results = [0; N];
                for lane in each_lane(on) {
                    let v = step.sources.map(|slot| self.registers.lanes(slot)[lane]);
                    let (value, carry) = compute_carried(alu, kind, v, takes && self.carry >> lane & 1 != 0);
                    results[lane] = value;
                    if gives {
                        self.carry = self.carry & !(1 << lane) | u32::from(carry) << lane;
                    }
                }
                self.registers.set_lanes(step.target, on, &results, unknown);
            }
            Operation::Pack { list, count, width } => {
                let (mut results, mut unknown) = ([0u64; N], 0);
                for (index, &slot) in program.slot_list(list, count).iter().enumerate() {
                    unknown |= self.registers.unknown_lanes(slot);
                    for (result, &part) in results.iter_mut().zip(self.registers.lanes(slot)) {
                        *result |= mask_bits(part, width).checked_shl(width * index as u32).unwrap_or(0);
                    }
                }
                self.registers.set_lanes(step.target, on, &results, unknown);
            }
            Operation::Unpack { list, count, width } => {
                let (values, unknown) = self.registers.read(step.sources[0]);
                for (index, &slot) in program.slot_list(list, count).iter().enumerate() {
                    let part = |value: u64| mask_bits(value.checked_shr(width * index as u32).unwrap_or(0), width);
                    self.registers.set_lanes(slot, on, &values.map(part), unknown);
                }
            }
            Operation::ToGeneric(window) => {
                let results =
                    self.registers.lanes(step.sources[0]).map(|value| value.wrapping_add(decode::window_base(window)));
                self.registers.set_lanes(step.target, on, &results, self.registers.unknown_lanes(step.sources[0]));
            }
            Operation::FromGeneric(window) => {
                let results =
                    self.registers.lanes(step.sources[0]).map(|value| value.wrapping_sub(decode::window_base(window)));
                self.registers.set_lanes(step.target, on, &results, self.registers.unknown_lanes(step.sources[0]));
            }
            Operation::InSpace(window) => {
                let inside = |value: u64| {
                    let inside = matches!(
                        (window, place_of(value)),
                        (Window::Shared, MemoryPlace::Shared(_))
                            | (Window::Local, MemoryPlace::Local(_))
                            | (Window::Const, MemoryPlace::Const(_))
                            | (Window::Param, MemoryPlace::Param(_))
                            | (Window::Global, MemoryPlace::Global(_))
                    );
                    u64::from(inside)
                };
                let results = self.registers.lanes(step.sources[0]).map(inside);
                self.registers.set_lanes(step.target, on, &results, self.registers.unknown_lanes(step.sources[0]));
            }
            Operation::Opaque { list, count, space } => {
                for &slot in program.slot_list(list, count) {
                    self.registers.mark_unknown(slot, on);
                }
                if let Some(what) = space {
                    self.record_touch(at, what, on, |_| 0);
                }
            }
            _ => {}
        }
    }
}
