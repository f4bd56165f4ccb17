//! Interprets one thread of a launch alone.
//!
//! Every value carries whether it is known. Values of other threads (shared memory after a
//! barrier, results of atomics and of warp-wide operations, memory outside the workload) are
//! replaced by zero or the thread's own value, and unknown. A branch on an unknown value makes the
//! thread inexact. It follows the replacement, but at most [`MAX_SAME_DIRECTION`] times the same
//! way.

mod calls;
mod storage;

use super::arithmetic::{compare_values, compute_carried, compute_result, mask_bits, order_integers, sign_extend};
use super::branch_trace::LaneTrace;
use super::decode;
use super::loops::{Analyses, Event, LoopState, Loops};
use super::memory::{Initial, MemoryPlace, Overlay, place_of};
use super::operation::{Alu, Combine, bit_count, is_signed};
use super::program::{Operation, Program, ProgramStep, Slot, Special, Window};
use crate::launch::Launch;
use crate::ptx::Scalar;
use crate::ptx::{AccessKind, MemorySpace};
use std::cell::{RefCell, RefMut};

/// How often a branch on unknown data may go the same way before it is forced the other way.
const MAX_SAME_DIRECTION: u32 = 64;
/// Deepest call stack that is followed.
const MAX_CALL_DEPTH: usize = 64;

/// The position of a thread: the indices of its block and of the thread in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadPosition {
    pub block: [u32; 3],
    pub thread: [u32; 3],
}

/// A forbidden action that a thread certainly performs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchViolation {
    /// It ends in a trap, or in an assertion that does not hold.
    Failure,
    /// It reaches beyond the shared memory of its block, which has this many bytes.
    Shared { has: u64 },
    /// It accesses this byte of a buffer of the workload, behind its end or, where negative,
    /// before its beginning.
    Buffer { index: usize, byte: i64, kind: AccessKind },
}

/// One execution of a memory instruction by a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    pub step: u32,
    /// The index of this execution among those of the step by the thread.
    pub execution: u64,
    /// Instructions that the thread had executed.
    pub time: u64,
    pub space: MemorySpace,
    pub kind: AccessKind,
    pub width: u32,
    /// Address in the space (global: device address).
    pub address: u64,
}

/// What all threads of a launch share: program, initial memory, arguments, launch.
#[derive(Clone, Copy)]
pub(crate) struct LaunchContext<'p> {
    pub program: &'p Program,
    pub initial: &'p Initial<'p>,
    /// Bytes of the entry's parameters.
    pub arguments: &'p [u8],
    pub launch: &'p Launch,
    pub analyses: &'p RefCell<Analyses>,
}

/// Limits and options for running a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadAllowance {
    /// Instructions to interpret.
    pub steps: u64,
    /// Executions of each memory instruction to record.
    pub window: u32,
    /// Iterations of a loop to run before it is extrapolated.
    pub warmup: u64,
    /// Whether to record its branch trace.
    pub record_trace: bool,
    /// Whether to stop at the first [`LaunchViolation`].
    pub detect_violations: bool,
    /// Whether the contents of buffers count as unknown because other threads may have written
    /// them.
    pub buffers_unknown: bool,
}

/// The result of running a thread.
pub(crate) struct ThreadOutcome {
    /// Executions of each step.
    pub counts: Vec<u64>,
    pub exact: bool,
    /// The rest of a loop was estimated.
    pub estimated: bool,
    /// The allowance ended before the thread did.
    pub cut: bool,
    /// Whether an address was not known, or a branch depended on an unknown value.
    pub unknown_address: bool,
    /// Instructions that were interpreted (not extrapolated).
    pub interpreted: u64,
    pub touches: Vec<Touch>,
    pub trace: LaneTrace,
    /// What it wrote to global memory.
    pub global: Overlay,
    /// The violation, if one was found.
    pub violation: Option<LaunchViolation>,
}

struct Frame {
    routine: usize,
    back: u32,
    call: u32,
    /// Slots of the routine as they were, if it was active already.
    saved: Vec<(u64, bool)>,
}

pub(crate) struct Thread<'p> {
    program: &'p Program,
    initial: &'p Initial<'p>,
    pub(crate) values: Vec<u64>,
    pub(crate) unknown: Vec<bool>,
    pub(crate) counts: Vec<u64>,
    pub(crate) pc: u32,
    carry: bool,
    stack: Vec<Frame>,
    parameters: Vec<u8>,
    parameters_unknown: Vec<bool>,
    pub(crate) local: Overlay,
    pub(crate) shared: Overlay,
    global: Overlay,
    /// Regions of global memory that were written, and whether a loop was skipped that may have
    /// written more.
    regions: Vec<u64>,
    pub(crate) skipped_stores: bool,
    single: bool,
    pub(crate) exact: bool,
    pub(crate) estimated: bool,
    unknown_address: bool,
    interpreted: u64,
    extrapolated: u64,
    /// Iterations of a loop that were skipped just now.
    pub(crate) skipped: u64,
    trace: LaneTrace,
    pub(crate) analyses: &'p RefCell<Analyses>,
    unknown_branches: Vec<(u32, u32)>,
    allowance: ThreadAllowance,
    recorded: Vec<u32>,
    touches: Vec<Touch>,
    /// Bytes of shared memory of its block.
    block_memory: u64,
    violation: Option<LaunchViolation>,
}

impl<'p> Thread<'p> {
    pub fn new(context: &LaunchContext<'p>, at: ThreadPosition, allowance: ThreadAllowance) -> Self {
        let LaunchContext { program, initial, arguments, launch, .. } = *context;
        let mut parameters = vec![0; program.parameters as usize];
        let mut parameters_unknown = vec![true; program.parameters as usize];
        for ((to, unknown), &from) in parameters.iter_mut().zip(&mut parameters_unknown).zip(arguments) {
            *to = from;
            *unknown = false;
        }
        let mut values = program.slots.clone();
        let mut unknown = vec![false; values.len()];
        for &(slot, special) in &program.specials {
            let value = special_value(special, launch, at, program.shared);
            values[slot as usize] = value.unwrap_or(0);
            unknown[slot as usize] = value.is_none();
        }
        let recording = if allowance.window > 0 { program.steps.len() } else { 0 };
        Self {
            program,
            initial,
            values,
            unknown,
            counts: vec![0; program.steps.len()],
            pc: 0,
            carry: false,
            stack: Vec::new(),
            parameters,
            parameters_unknown,
            local: Overlay::default(),
            shared: Overlay::default(),
            global: Overlay::default(),
            regions: Vec::new(),
            skipped_stores: false,
            single: launch.block_threads() == 1,
            exact: true,
            estimated: false,
            unknown_address: false,
            interpreted: 0,
            extrapolated: 0,
            skipped: 0,
            trace: LaneTrace::default(),
            analyses: context.analyses,
            unknown_branches: Vec::new(),
            allowance,
            recorded: vec![0; recording],
            touches: Vec::new(),
            block_memory: program.dynamic_shared.saturating_add(launch.shared.into()),
            violation: None,
        }
    }

    /// Runs the thread to its end or to the end of its allowance.
    pub fn run_to_end(mut self) -> ThreadOutcome {
        let program = self.program;
        let mut loops = Loops::new(program.steps.len(), self.allowance.warmup);
        let mut cut = false;
        while let Some(step) = program.steps.get(self.pc as usize) {
            if self.interpreted >= self.allowance.steps {
                self.exact = false;
                cut = true;
                break;
            }
            self.interpreted += 1;
            let at = self.pc;
            if self.allowance.record_trace && program.leaders[at as usize] {
                self.trace.enter_block(at, program.outermost[at as usize]);
            }
            self.counts[at as usize] += 1;
            self.pc += 1;
            if step.guard != 0 && !self.is_executed(step, at) {
                if let Operation::Branch(target) = step.operation
                    && target <= at
                {
                    loops.leave_loop(at);
                    self.trace.continue_at(self.pc, self.stack.len());
                }
                continue;
            }
            match step.operation {
                Operation::Alu { alu, kind, mode } => {
                    let v = step.sources.map(|slot| self.values[slot as usize]);
                    if step.event && loops.is_recording() {
                        loops.log_event(Event {
                            step: at,
                            a: v[0],
                            b: v[1],
                            holds: order_integers(kind, v[0], v[1]).is_lt(),
                        });
                    }
                    let unknown = self.any_unknown(step);
                    let value = compute_result(alu, kind, mode, v);
                    // A conversion to a narrow signed type fills its wider register with the sign.
                    let value = match alu {
                        Alu::Convert { .. } if is_signed(kind) => sign_extend(value, bit_count(kind)) as u64,
                        _ => value,
                    };
                    self.set_slot(step.target, value, unknown);
                }
                Operation::SetPredicate { compare: relation, kind, combine, invert, second } => {
                    let [a, b, c, _] = step.sources.map(|slot| self.values[slot as usize]);
                    let holds = compare_values(relation, kind, a, b);
                    if loops.is_recording() {
                        loops.log_event(Event { step: at, a, b, holds });
                    }
                    let with = (c & 1 != 0) != invert;
                    let joined = |holds: bool| match combine {
                        Combine::None => holds,
                        Combine::And => holds && with,
                        Combine::Or => holds || with,
                        Combine::Xor => holds != with,
                    };
                    let unknown = self.any_unknown(step);
                    self.set_slot(step.target, u64::from(joined(holds)), unknown);
                    self.set_slot(second, u64::from(joined(!holds)), unknown);
                }
                Operation::Branch(target) => {
                    self.pc = target;
                    if target <= at {
                        loops.branch_back(&mut self, program, at, target);
                        let skipped = std::mem::take(&mut self.skipped);
                        self.trace.loop_back(target, at, skipped, self.stack.len());
                    } else {
                        self.trace.continue_at(target, self.stack.len());
                    }
                }
                Operation::BranchTable { list, count } => {
                    let slot = step.sources[0] as usize;
                    self.exact &= !self.unknown[slot];
                    self.unknown_address |= self.unknown[slot];
                    let index = mask_bits(self.values[slot], 32).min(u64::from(count.saturating_sub(1)));
                    let Some(&target) = program.slot_list(list, count).get(index as usize) else {
                        break;
                    };
                    self.pc = target;
                }
                Operation::Return => {
                    let Some(frame) = self.stack.pop() else { break };
                    self.return_from(frame);
                }
                Operation::Exit => {
                    if self.allowance.detect_violations && self.exact && program.traps.contains(&at) {
                        self.violation = Some(LaunchViolation::Failure);
                    }
                    break;
                }
                Operation::Call(index) => {
                    if let Some(call) = program.calls.get(index as usize) {
                        self.call_routine(call, index);
                    }
                }
                _ => self.execute_other(step, at),
            }
        }
        let Self {
            counts, exact, estimated, unknown_address, interpreted, touches, mut trace, global, violation, ..
        } = self;
        trace.cut |= cut;
        ThreadOutcome { counts, exact, estimated, cut, unknown_address, interpreted, touches, trace, global, violation }
    }

    /// Whether a guarded step is executed.
    fn is_executed(&mut self, step: &ProgramStep, at: u32) -> bool {
        let taken = (self.values[step.guard as usize] & 1 != 0) != step.negated;
        if !self.unknown[step.guard as usize] {
            return taken;
        }
        if !matches!(step.operation, Operation::Branch(_) | Operation::Return | Operation::Exit | Operation::Call(_)) {
            return taken;
        }
        self.exact = false;
        self.unknown_address = true;
        let unknown_branches = match self.unknown_branches.iter_mut().find(|(step, _)| *step == at) {
            Some((_, unknown_branches)) => unknown_branches,
            None => {
                self.unknown_branches.push((at, 0));
                match self.unknown_branches.last_mut() {
                    Some((_, unknown_branches)) => unknown_branches,
                    None => return taken,
                }
            }
        };
        *unknown_branches += 1;
        let backward = matches!(step.operation, Operation::Branch(target) if target <= at);
        if *unknown_branches > MAX_SAME_DIRECTION { !backward } else { taken }
    }

    fn any_unknown(&self, step: &ProgramStep) -> bool {
        step.sources.iter().any(|&slot| self.unknown[slot as usize])
    }

    fn set_slot(&mut self, slot: Slot, value: u64, unknown: bool) {
        if slot != 0 {
            self.values[slot as usize] = mask_bits(value, u32::from(self.program.widths[slot as usize]));
            self.unknown[slot as usize] = unknown;
        }
    }

    fn slot_value(&self, slot: Slot) -> (u64, bool) {
        (self.values[slot as usize], self.unknown[slot as usize])
    }

    /// Steps that are not on the way of ordinary loops.
    fn execute_other(&mut self, step: &ProgramStep, at: u32) {
        let program = self.program;
        let (first, first_unknown) = self.slot_value(step.sources[0]);
        match step.operation {
            Operation::Load(memory) => self.load_value(step, memory, at),
            Operation::Store(memory) => self.store_value(step, memory, at),
            Operation::Atomic { memory, update } => self.update_atomically(step, memory, update, at),
            Operation::Barrier { reduction, .. } => {
                if !self.single {
                    self.shared.mark_overwritable();
                }
                if reduction.is_some() && step.target != 0 {
                    self.unknown[step.target as usize] = true;
                }
            }
            // The thread's own value is kept where there is one: nothing better is known.
            Operation::Collective { second, .. } => {
                for slot in [step.target, second].into_iter().filter(|&slot| slot != 0) {
                    self.unknown[slot as usize] = true;
                }
            }
            Operation::Carry { alu, kind, takes, gives } => self.compute_carry(step, alu, kind, takes, gives),
            Operation::Pack { list, count, width } => {
                let (mut value, mut unknown) = (0, false);
                for (index, &slot) in program.slot_list(list, count).iter().enumerate() {
                    let (part, part_unknown) = self.slot_value(slot);
                    value |= mask_bits(part, width).checked_shl(width * index as u32).unwrap_or(0);
                    unknown |= part_unknown;
                }
                self.set_slot(step.target, value, unknown);
            }
            Operation::Unpack { list, count, width } => {
                for (index, &slot) in program.slot_list(list, count).iter().enumerate() {
                    let part = first.checked_shr(width * index as u32).unwrap_or(0);
                    self.set_slot(slot, mask_bits(part, width), first_unknown);
                }
            }
            Operation::ToGeneric(window) => {
                self.set_slot(step.target, first.wrapping_add(decode::window_base(window)), first_unknown);
            }
            Operation::FromGeneric(window) => {
                self.set_slot(step.target, first.wrapping_sub(decode::window_base(window)), first_unknown);
            }
            Operation::InSpace(window) => {
                let inside = matches!(
                    (window, place_of(first)),
                    (Window::Shared, MemoryPlace::Shared(_))
                        | (Window::Local, MemoryPlace::Local(_))
                        | (Window::Const, MemoryPlace::Const(_))
                        | (Window::Param, MemoryPlace::Param(_))
                        | (Window::Global, MemoryPlace::Global(_))
                );
                self.set_slot(step.target, u64::from(inside), first_unknown);
            }
            Operation::Opaque { list, count, space } => {
                for &slot in program.slot_list(list, count) {
                    // The thread's own value is kept where there is one: nothing better is known.
                    if slot != 0 {
                        self.unknown[slot as usize] = true;
                    }
                }
                if let Some((space, kind, width)) = space {
                    self.record_touch(at, space, kind, width, 0);
                }
            }
            _ => {}
        }
    }

    fn compute_carry(&mut self, step: &ProgramStep, alu: Alu, kind: Scalar, takes: bool, gives: bool) {
        let v = step.sources.map(|slot| self.values[slot as usize]);
        let unknown = self.any_unknown(step);
        let (value, carry) = compute_carried(alu, kind, v, takes && self.carry);
        if gives {
            self.carry = carry;
        }
        self.set_slot(step.target, value, unknown);
    }
}

pub(crate) fn special_value(special: Special, launch: &Launch, at: ThreadPosition, shared: u64) -> Option<u64> {
    let [bx, by, _] = launch.block.map(u64::from);
    let [x, y, z] = at.thread.map(u64::from);
    let linear = x + bx * (y + by * z);
    let lane = linear % 32;
    Some(match special {
        Special::Thread(axis) => u64::from(at.thread[axis]),
        Special::BlockSize(axis) => u64::from(launch.block[axis]),
        Special::Block(axis) => u64::from(at.block[axis]),
        Special::GridSize(axis) => u64::from(launch.grid[axis]),
        Special::Lane => lane,
        Special::WarpOfBlock => linear / 32,
        Special::WarpsOfBlock => u64::from(launch.block_threads().div_ceil(32)),
        Special::LaneMask(relation) => (0..32u64)
            .filter(|other| relation.holds_for(Some(other.cmp(&lane))))
            .fold(0, |mask, other| mask | 1 << other),
        Special::DynamicShared => u64::from(launch.shared),
        Special::TotalShared => u64::from(launch.shared) + shared,
        Special::Constant(value) => value,
        Special::Unknown => return None,
    })
}

impl LoopState for Thread<'_> {
    fn values(&self) -> &[u64] {
        &self.values
    }

    fn values_mut(&mut self) -> &mut [u64] {
        &mut self.values
    }

    fn set_unknown(&mut self, slot: usize) {
        self.unknown[slot] = true;
    }

    fn counts(&self) -> &[u64] {
        &self.counts
    }

    fn count_more(&mut self, more: impl Iterator<Item = u64>) {
        for (count, more) in self.counts.iter_mut().zip(more) {
            *count = count.saturating_add(more);
            self.extrapolated = self.extrapolated.saturating_add(more);
        }
    }

    fn is_expensive(&self) -> bool {
        self.interpreted > self.allowance.steps / 3
    }

    fn set_estimated(&mut self) {
        self.estimated = true;
    }

    fn set_skipped(&mut self, iterations: u64, stores: bool) {
        self.skipped = iterations;
        self.skipped_stores |= stores;
    }

    fn analyses(&self) -> RefMut<'_, Analyses> {
        self.analyses.borrow_mut()
    }
}
