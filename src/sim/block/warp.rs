//! Interprets a warp: lanes at the same step execute it together.
//!
//! Each lane has its own program counter, so that lanes may diverge and reconverge. Of the lanes
//! that can run, those with the least rank ([`Program::ranks`]) run first, deeper calls before
//! others. A step is counted once for all lanes that execute it together. Values are known or
//! unknown as in [`thread`](crate::sim::thread), but those of other lanes are exact.

use super::lanes::{Lanes, compare_lanes, compute_lanes, each_lane, lanes_where};
use super::state::{BARRIERS, Recording, State};
use crate::sim::arithmetic::{compute_carried, mask_bits};
use crate::sim::decode;
use crate::sim::masked_memory::MaskedMemory;
use crate::sim::memory::{MemoryPlace, place_of};
use crate::sim::operation::Combine;
use crate::sim::program::{Operation, Program, ProgramStep, Reduction, Slot, SlotLocation, Window};
use crate::sim::thread::{LaunchContext, ThreadPosition, special_value};
use std::rc::Rc;

/// How often a branch on unknown data may go the same way before it is forced the other way.
const MAX_SAME_DIRECTION: u32 = 64;
/// Scheduling decisions for which lanes may wait for others of lower rank before they run: the
/// others may be waiting for them.
const STARVED: u32 = 1 << 14;
/// Scheduling decisions that they get then.
const RELIEF: u32 = 64;

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

pub(super) struct Warp<'p> {
    pub context: LaunchContext<'p>,
    pub number: u32,
    /// Values that no step changes, by [`SlotLocation::Uniform`]; shared by all warps of a block.
    same: Rc<Vec<(Lanes, bool)>>,
    values: Vec<u64>,
    unknown: Vec<u32>,
    /// Times that each step was executed by any of its lanes.
    pub counts: Vec<u64>,
    /// The next step of each lane, and its calls.
    pub pc: [u32; 32],
    pub stacks: [Vec<Frame>; 32],
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
    pub steps: u64,
    unknown_branches: Vec<(u32, u32)>,
    starved: u32,
    pub recording: Recording,
}

/// Returns the values that are constant within a block.
pub(super) fn fixed_lanes(context: &LaunchContext<'_>, block: [u32; 3]) -> Rc<Vec<(Lanes, bool)>> {
    let LaunchContext { program, launch, .. } = *context;
    let mut values: Vec<(Lanes, bool)> = Vec::new();
    for (&value, home) in program.slots.iter().zip(&program.locations) {
        if matches!(home, SlotLocation::Uniform(_)) {
            values.push(([value; 32], false));
        }
    }
    for &(slot, special) in &program.specials {
        if let SlotLocation::Uniform(at) = program.locations[slot as usize] {
            let value = special_value(special, launch, ThreadPosition { block, thread: [0; 3] }, program.shared);
            values[at as usize] = ([value.unwrap_or(0); 32], value.is_none());
        }
    }
    Rc::new(values)
}

impl<'p> Warp<'p> {
    pub fn new(
        context: &LaunchContext<'p>,
        same: Rc<Vec<(Lanes, bool)>>,
        block: [u32; 3],
        number: u32,
        recording: Recording,
    ) -> Self {
        let LaunchContext { program, launch, .. } = *context;
        let own = program
            .locations
            .iter()
            .map(|home| if let SlotLocation::PerLane(at) = home { *at as usize + 1 } else { 0 });
        let own = own.max().unwrap_or(0);
        let threads = launch.block_threads();
        let lanes = threads.saturating_sub(number * 32).min(32);
        let alive = if lanes == 32 { u32::MAX } else { (1 << lanes) - 1 };
        let mut warp = Self {
            context: *context,
            number,
            same,
            values: vec![0; own * 32],
            unknown: vec![0; own],
            counts: vec![0; program.steps.len()],
            pc: [0; 32],
            stacks: Default::default(),
            carry: 0,
            parameters: MaskedMemory::new(program.parameters.saturating_mul(32)),
            passed: false,
            local: MaskedMemory::new(program.local.saturating_mul(32)),
            alive,
            at_barrier: 0,
            at_collective: 0,
            exact: true,
            unknown_address: false,
            steps: 0,
            unknown_branches: Vec::new(),
            starved: 0,
            recording,
        };
        for &(slot, special) in &program.specials {
            if matches!(program.locations[slot as usize], SlotLocation::PerLane(_)) {
                for lane in each_lane(alive) {
                    let thread = crate::sim::place::unravel_index(u64::from(number * 32) + lane as u64, launch.block);
                    let value = special_value(special, launch, ThreadPosition { block, thread }, program.shared);
                    warp.set_lane(slot, lane, value.unwrap_or(0), value.is_none());
                }
            }
        }
        warp
    }

    /// Returns the values of a slot, by lane.
    pub fn lanes_of(&self, slot: Slot) -> &Lanes {
        const NOTHING: &Lanes = &[0; 32];
        match self.context.program.locations[slot as usize] {
            SlotLocation::Uniform(at) => &self.same[at as usize].0,
            SlotLocation::PerLane(at) => self.values[at as usize * 32..].first_chunk().unwrap_or(NOTHING),
        }
    }

    /// Returns the lanes in which a slot is not known.
    pub fn unknown_lanes(&self, slot: Slot) -> u32 {
        match self.context.program.locations[slot as usize] {
            SlotLocation::Uniform(at) => {
                if self.same[at as usize].1 {
                    u32::MAX
                } else {
                    0
                }
            }
            SlotLocation::PerLane(at) => self.unknown[at as usize],
        }
    }

    pub fn any_unknown(&self, step: &ProgramStep) -> u32 {
        step.sources.iter().fold(0, |unknown, &slot| unknown | self.unknown_lanes(slot))
    }

    /// Returns the lanes in which a predicate is true.
    pub fn holding_lanes(&self, slot: Slot) -> u32 {
        let values = self.lanes_of(slot);
        lanes_where(|lane| values[lane] & 1 != 0)
    }

    pub fn lane_value(&self, slot: Slot, lane: usize) -> (u64, bool) {
        (self.lanes_of(slot)[lane], self.unknown_lanes(slot) >> lane & 1 != 0)
    }

    /// Sets a slot for the lanes that are `on`.
    pub fn set_lanes(&mut self, slot: Slot, on: u32, results: &Lanes, unknown: u32) {
        let program = self.context.program;
        let SlotLocation::PerLane(at) = program.locations[slot as usize] else { return };
        if slot == 0 {
            return;
        }
        let width = u32::from(program.widths[slot as usize]);
        let narrow = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
        if let Some(values) = self.values[at as usize * 32..].first_chunk_mut::<32>() {
            if on == u32::MAX {
                *values = std::array::from_fn(|lane| results[lane] & narrow);
            } else {
                for lane in each_lane(on) {
                    values[lane] = results[lane] & narrow;
                }
            }
        }
        let known = &mut self.unknown[at as usize];
        *known = *known & !on | unknown & on;
    }

    pub fn set_lane(&mut self, slot: Slot, lane: usize, value: u64, unknown: bool) {
        let mut results = [0; 32];
        results[lane] = value;
        self.set_lanes(slot, 1 << lane, &results, if unknown { u32::MAX } else { 0 });
    }

    /// Returns the lanes that run next, and their step.
    fn next_group(&mut self) -> Option<(u32, u32)> {
        let runnable = self.alive & !self.at_barrier & !self.at_collective;
        let first = runnable.trailing_zeros() as usize;
        if first >= 32 {
            return None;
        }
        let pc = self.pc[first];
        if lanes_where(|lane| self.pc[lane] == pc) & runnable == runnable {
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
        let together = lanes_where(|lane| self.pc[lane] == pc && self.stacks[lane].len() == depth) & runnable;
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
        let together = lanes_where(|lane| self.pc[lane] == pc) & self.at_collective;
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
            if let Operation::Collective { collective, .. } = step.operation {
                let taking_part = if step.guard == 0 { on } else { on & self.guarded_lanes(step, at, on) };
                match self.join_collective(step, collective, at, taking_part, forced) {
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
            self.counts[at as usize] += 1;
            pc += 1;
            let taken = if step.guard == 0 { on } else { on & self.guarded_lanes(step, at, on) };
            match step.operation {
                Operation::Branch(target) => {
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
                    let (index, unknown) = (*self.lanes_of(step.sources[0]), self.unknown_lanes(step.sources[0]));
                    self.exact &= unknown & taken == 0;
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
                        _ => self.alive &= !taken,
                    }
                    return true;
                }
                Operation::Barrier { waits, reduction, invert } => {
                    self.park_lanes(on, pc);
                    self.arrive_at_barrier(state, step, taken, reduction.map(|reduction| (reduction, invert)));
                    if waits {
                        self.at_barrier |= taken;
                        return true;
                    }
                }
                _ => self.execute_step(step, at, taken, state),
            }
            if !alone && program.leaders[pc as usize] {
                self.park_lanes(on, pc);
                return true;
            }
        }
    }

    /// Returns the lanes that execute a guarded step.
    fn guarded_lanes(&mut self, step: &ProgramStep, at: u32, on: u32) -> u32 {
        let holds = self.holding_lanes(step.guard);
        let taken = if step.negated { !holds } else { holds };
        let unknown = self.unknown_lanes(step.guard) & on;
        if unknown == 0 {
            return taken;
        }
        if !matches!(step.operation, Operation::Branch(_) | Operation::Return | Operation::Exit | Operation::Call(_)) {
            return taken;
        }
        self.exact = false;
        let found = self.unknown_branches.iter().position(|(step, _)| *step == at).unwrap_or_else(|| {
            self.unknown_branches.push((at, 0));
            self.unknown_branches.len() - 1
        });
        let unknown_branches = &mut self.unknown_branches[found].1;
        *unknown_branches += 1;
        if *unknown_branches <= MAX_SAME_DIRECTION {
            return taken;
        }
        let backward = matches!(step.operation, Operation::Branch(target) if target <= at);
        if backward { taken & !unknown } else { taken | unknown }
    }

    fn execute_step(&mut self, step: &'p ProgramStep, at: u32, on: u32, state: &mut State<'p>) {
        let program = self.context.program;
        match step.operation {
            Operation::Alu { alu, kind, mode } => {
                let unknown = self.any_unknown(step);
                let results = compute_lanes(alu, kind, mode, step.sources.map(|slot| self.lanes_of(slot)), on);
                self.set_lanes(step.target, on, &results, unknown);
            }
            Operation::SetPredicate { compare, kind, combine, invert, second } => {
                let unknown = self.any_unknown(step);
                let [a, b, c, _] = step.sources;
                let holds = compare_lanes(compare, kind, self.lanes_of(a), self.lanes_of(b), on);
                let with = self.holding_lanes(c) ^ if invert { u32::MAX } else { 0 };
                let joined = |holds: u32| match combine {
                    Combine::None => holds,
                    Combine::And => holds & with,
                    Combine::Or => holds | with,
                    Combine::Xor => holds ^ with,
                };
                self.set_lanes(step.target, on, &predicate_lanes(joined(holds)), unknown);
                if second != 0 {
                    self.set_lanes(second, on, &predicate_lanes(joined(!holds)), unknown);
                }
            }
            Operation::Load(memory) => self.load_lanes(step, memory, at, on, state),
            Operation::Store(memory) => self.store_lanes(step, memory, at, on, state),
            Operation::Atomic { memory, update } => self.update_atomically(step, memory, update, at, on, state),
            Operation::Collective { collective, second, invert } => {
                self.execute_collective(step, collective, second, invert, on)
            }
            Operation::Carry { alu, kind, takes, gives } => {
                let unknown = self.any_unknown(step);
                let mut results = [0; 32];
                for lane in each_lane(on) {
                    let v = step.sources.map(|slot| self.lanes_of(slot)[lane]);
                    let (value, carry) = compute_carried(alu, kind, v, takes && self.carry >> lane & 1 != 0);
                    results[lane] = value;
                    if gives {
                        self.carry = self.carry & !(1 << lane) | u32::from(carry) << lane;
                    }
                }
                self.set_lanes(step.target, on, &results, unknown);
            }
            Operation::Pack { list, count, width } => {
                let (mut results, mut unknown) = ([0u64; 32], 0);
                for (index, &slot) in program.slot_list(list, count).iter().enumerate() {
                    unknown |= self.unknown_lanes(slot);
                    for (result, &part) in results.iter_mut().zip(self.lanes_of(slot)) {
                        *result |= mask_bits(part, width).checked_shl(width * index as u32).unwrap_or(0);
                    }
                }
                self.set_lanes(step.target, on, &results, unknown);
            }
            Operation::Unpack { list, count, width } => {
                let (values, unknown) = (*self.lanes_of(step.sources[0]), self.unknown_lanes(step.sources[0]));
                for (index, &slot) in program.slot_list(list, count).iter().enumerate() {
                    let part = |value: u64| mask_bits(value.checked_shr(width * index as u32).unwrap_or(0), width);
                    self.set_lanes(slot, on, &values.map(part), unknown);
                }
            }
            Operation::ToGeneric(window) => {
                let results =
                    self.lanes_of(step.sources[0]).map(|value| value.wrapping_add(decode::window_base(window)));
                self.set_lanes(step.target, on, &results, self.unknown_lanes(step.sources[0]));
            }
            Operation::FromGeneric(window) => {
                let results =
                    self.lanes_of(step.sources[0]).map(|value| value.wrapping_sub(decode::window_base(window)));
                self.set_lanes(step.target, on, &results, self.unknown_lanes(step.sources[0]));
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
                let results = self.lanes_of(step.sources[0]).map(inside);
                self.set_lanes(step.target, on, &results, self.unknown_lanes(step.sources[0]));
            }
            Operation::Opaque { list, count, space } => {
                for &slot in program.slot_list(list, count).iter().filter(|&&slot| slot != 0) {
                    let values = *self.lanes_of(slot);
                    self.set_lanes(slot, on, &values, u32::MAX);
                }
                if let Some(what) = space {
                    self.record_touch(at, what, on, [0; 32]);
                }
            }
            _ => {}
        }
    }

    /// Records the arrival of lanes at a barrier, where they wait until it is complete.
    fn arrive_at_barrier(
        &mut self,
        state: &mut State<'p>,
        step: &ProgramStep,
        lanes: u32,
        reduction: Option<(Reduction, bool)>,
    ) {
        let Some(first) = each_lane(lanes).next() else { return };
        let ((id, unknown), (threads, _)) =
            (self.lane_value(step.sources[0], first), self.lane_value(step.sources[1], first));
        self.exact &= !unknown;
        let barrier = &mut state.barriers[id as usize % BARRIERS];
        barrier.arrived += lanes.count_ones();
        barrier.expected = u32::try_from(threads).ok().filter(|&threads| threads > 0).or(barrier.expected);
        if let Some((reduction, invert)) = reduction {
            let holds = self.holding_lanes(step.sources[2]) ^ if invert { u32::MAX } else { 0 };
            barrier.reduction = Some(reduction);
            barrier.holding += (holds & lanes).count_ones();
            barrier.unknown |= self.unknown_lanes(step.sources[2]) & lanes != 0;
        }
        barrier.waiting.push((self.number, lanes, step.target));
    }
}

/// Returns a predicate of each lane from their bits.
pub(super) fn predicate_lanes(holds: u32) -> Lanes {
    std::array::from_fn(|lane| u64::from(holds >> lane & 1))
}
