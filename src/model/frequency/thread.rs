//! One thread of a launch, executed alone.
//!
//! Every value carries whether it is known. What other threads would have provided (shared memory after a barrier, results
//! of atomics and of warp-wide operations, memory outside the workload) is numerically zero or the thread's own value, and
//! unknown; a branch on such a value makes the thread inexact and is taken by the number, but no more than
//! [`PATIENCE`] times the same way.

use super::arithmetic::{compare, compute, integer, mask, order, sign_extend};
use super::decode;
use super::loops::{Event, Loops};
use super::memory::{FUNCTION_BASE, Initial, Overlay, Place, place, region};
use super::operation::{Alu, Combine, bits, signed};
use super::program::{
    Call, Callee, Memory, Operation, Passing, Program, Slot, Special, Step, Update, Window,
};
use crate::model::profile::{Kind, Space};
use crate::ptx::Scalar;
use crate::space::Launch;

/// How often a branch on unknown data may go the same way before it is sent the other way.
const PATIENCE: u32 = 64;
/// Deepest call stack that is followed.
const DEPTH: usize = 64;

/// Which thread of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place3 {
    pub block: [u32; 3],
    pub thread: [u32; 3],
}

/// One execution of a memory instruction by a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub step: u32,
    /// The how-manieth execution of this step by the thread.
    pub execution: u64,
    /// Instructions that the thread had executed.
    pub time: u64,
    pub space: Space,
    pub kind: Kind,
    pub width: u32,
    /// Address in the space (global: device address).
    pub address: u64,
}

/// What a thread is allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// Instructions to interpret.
    pub steps: u64,
    /// Executions of each memory instruction to record.
    pub window: u32,
    /// Iterations of a loop to run before it is extrapolated.
    pub warmup: u64,
}

/// What came of a thread.
pub(super) struct Outcome {
    /// Executions of each step.
    pub counts: Vec<u64>,
    pub exact: bool,
    /// Instructions that were interpreted (not extrapolated).
    pub interpreted: u64,
    pub touches: Vec<Touch>,
    /// What it wrote to global memory.
    pub global: Overlay,
}

struct Frame {
    routine: usize,
    back: u32,
    call: u32,
    /// Slots of the routine as they were, if it was active already.
    saved: Vec<(u64, bool)>,
}

pub(super) struct Thread<'p> {
    program: &'p Program,
    initial: &'p Initial<'p>,
    pub(super) values: Vec<u64>,
    pub(super) unknown: Vec<bool>,
    pub(super) counts: Vec<u64>,
    pub(super) pc: u32,
    carry: bool,
    stack: Vec<Frame>,
    parameters: Vec<u8>,
    parameters_unknown: Vec<bool>,
    pub(super) local: Overlay,
    pub(super) shared: Overlay,
    global: Overlay,
    /// Regions of global memory that were written, and whether a loop was skipped that may have written more.
    regions: Vec<u64>,
    pub(super) skipped_stores: bool,
    single: bool,
    pub(super) exact: bool,
    interpreted: u64,
    pub(super) extrapolated: u64,
    patience: Vec<(u32, u32)>,
    allowance: Allowance,
    recorded: Vec<u32>,
    touches: Vec<Touch>,
}

impl<'p> Thread<'p> {
    pub fn new(
        program: &'p Program,
        initial: &'p Initial<'p>,
        arguments: &[u8],
        launch: &Launch,
        at: Place3,
        allowance: Allowance,
    ) -> Self {
        let mut parameters = vec![0; program.parameters as usize];
        let mut parameters_unknown = vec![true; program.parameters as usize];
        for ((to, unknown), &from) in parameters
            .iter_mut()
            .zip(&mut parameters_unknown)
            .zip(arguments)
        {
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
        let recording = if allowance.window > 0 {
            program.steps.len()
        } else {
            0
        };
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
            interpreted: 0,
            extrapolated: 0,
            patience: Vec::new(),
            allowance,
            recorded: vec![0; recording],
            touches: Vec::new(),
        }
    }

    /// Runs the thread to its end or to the end of its allowance.
    pub fn run(mut self) -> Outcome {
        let program = self.program;
        let mut loops = Loops::new(self.allowance.warmup);
        while let Some(step) = program.steps.get(self.pc as usize) {
            if self.interpreted >= self.allowance.steps {
                self.exact = false;
                break;
            }
            self.interpreted += 1;
            let at = self.pc;
            self.counts[at as usize] += 1;
            self.pc += 1;
            if step.guard != 0 && !self.guarded(step, at) {
                if let Operation::Branch(target) = step.operation
                    && target <= at
                {
                    loops.left(at);
                }
                continue;
            }
            match step.operation {
                Operation::Alu { alu, kind, mode } => {
                    let v = step.sources.map(|slot| self.values[slot as usize]);
                    if step.event && loops.recording() {
                        loops.log(Event {
                            step: at,
                            a: v[0],
                            b: v[1],
                            holds: order(kind, v[0], v[1]).is_lt(),
                        });
                    }
                    let unknown = self.any_unknown(step);
                    let value = compute(alu, kind, mode, v);
                    // A conversion to a narrow signed type fills its wider register with the sign.
                    let value = match alu {
                        Alu::Convert { .. } if signed(kind) => {
                            sign_extend(value, bits(kind)) as u64
                        }
                        _ => value,
                    };
                    self.set(step.target, value, unknown);
                }
                Operation::SetPredicate {
                    compare: relation,
                    kind,
                    combine,
                    invert,
                    second,
                } => {
                    let [a, b, c, _] = step.sources.map(|slot| self.values[slot as usize]);
                    let holds = compare(relation, kind, a, b);
                    if loops.recording() {
                        loops.log(Event {
                            step: at,
                            a,
                            b,
                            holds,
                        });
                    }
                    let with = (c & 1 != 0) != invert;
                    let joined = |holds: bool| match combine {
                        Combine::None => holds,
                        Combine::And => holds && with,
                        Combine::Or => holds || with,
                        Combine::Xor => holds != with,
                    };
                    let unknown = self.any_unknown(step);
                    self.set(step.target, u64::from(joined(holds)), unknown);
                    self.set(second, u64::from(joined(!holds)), unknown);
                }
                Operation::Branch(target) => {
                    self.pc = target;
                    if target <= at {
                        loops.back(&mut self, program, at, target);
                    }
                }
                Operation::BranchTable { list, count } => {
                    let slot = step.sources[0] as usize;
                    self.exact &= !self.unknown[slot];
                    let index = mask(self.values[slot], 32).min(u64::from(count.saturating_sub(1)));
                    let Some(&target) = program.list(list, count).get(index as usize) else {
                        break;
                    };
                    self.pc = target;
                }
                Operation::Return => {
                    let Some(frame) = self.stack.pop() else { break };
                    self.returned(frame);
                }
                Operation::Exit => break,
                Operation::Call(index) => {
                    if let Some(call) = program.calls.get(index as usize) {
                        self.call(call, index);
                    }
                }
                _ => self.other(step, at),
            }
        }
        let Self {
            counts,
            exact,
            interpreted,
            touches,
            global,
            ..
        } = self;
        Outcome {
            counts,
            exact,
            interpreted,
            touches,
            global,
        }
    }

    /// Whether a guarded step is executed.
    fn guarded(&mut self, step: &Step, at: u32) -> bool {
        let taken = (self.values[step.guard as usize] & 1 != 0) != step.negated;
        if !self.unknown[step.guard as usize] {
            return taken;
        }
        if !matches!(
            step.operation,
            Operation::Branch(_) | Operation::Return | Operation::Exit | Operation::Call(_)
        ) {
            return taken;
        }
        self.exact = false;
        let patience = match self.patience.iter_mut().find(|(step, _)| *step == at) {
            Some((_, patience)) => patience,
            None => {
                self.patience.push((at, 0));
                match self.patience.last_mut() {
                    Some((_, patience)) => patience,
                    None => return taken,
                }
            }
        };
        *patience += 1;
        let backward = matches!(step.operation, Operation::Branch(target) if target <= at);
        if *patience > PATIENCE {
            !backward
        } else {
            taken
        }
    }

    fn any_unknown(&self, step: &Step) -> bool {
        step.sources.iter().any(|&slot| self.unknown[slot as usize])
    }

    fn set(&mut self, slot: Slot, value: u64, unknown: bool) {
        if slot != 0 {
            self.values[slot as usize] = mask(value, u32::from(self.program.widths[slot as usize]));
            self.unknown[slot as usize] = unknown;
        }
    }

    fn value(&self, slot: Slot) -> (u64, bool) {
        (self.values[slot as usize], self.unknown[slot as usize])
    }

    /// Steps that are not on the way of ordinary loops.
    fn other(&mut self, step: &Step, at: u32) {
        let program = self.program;
        let (first, first_unknown) = self.value(step.sources[0]);
        match step.operation {
            Operation::Load(memory) => self.load(step, memory, at),
            Operation::Store(memory) => self.store(step, memory, at),
            Operation::Atomic { memory, update } => self.atomic(step, memory, update, at),
            Operation::Barrier => {
                if !self.single {
                    self.shared.distrust();
                }
            }
            Operation::Carry {
                alu,
                kind,
                takes,
                gives,
            } => self.carry(step, alu, kind, takes, gives),
            Operation::Pack { list, count, width } => {
                let (mut value, mut unknown) = (0, false);
                for (index, &slot) in program.list(list, count).iter().enumerate() {
                    let (part, part_unknown) = self.value(slot);
                    value |= mask(part, width)
                        .checked_shl(width * index as u32)
                        .unwrap_or(0);
                    unknown |= part_unknown;
                }
                self.set(step.target, value, unknown);
            }
            Operation::Unpack { list, count, width } => {
                for (index, &slot) in program.list(list, count).iter().enumerate() {
                    let part = first.checked_shr(width * index as u32).unwrap_or(0);
                    self.set(slot, mask(part, width), first_unknown);
                }
            }
            Operation::ToGeneric(window) => {
                self.set(
                    step.target,
                    first.wrapping_add(decode::base(window)),
                    first_unknown,
                );
            }
            Operation::FromGeneric(window) => {
                self.set(
                    step.target,
                    first.wrapping_sub(decode::base(window)),
                    first_unknown,
                );
            }
            Operation::InSpace(window) => {
                let inside = matches!(
                    (window, place(first)),
                    (Window::Shared, Place::Shared(_))
                        | (Window::Local, Place::Local(_))
                        | (Window::Const, Place::Const(_))
                        | (Window::Param, Place::Param(_))
                        | (Window::Global, Place::Global(_))
                );
                self.set(step.target, u64::from(inside), first_unknown);
            }
            Operation::Opaque { list, count, space } => {
                for &slot in program.list(list, count) {
                    // The thread's own value is kept where there is one: nothing better is known.
                    if slot != 0 {
                        self.unknown[slot as usize] = true;
                    }
                }
                if let Some((space, kind, width)) = space {
                    self.touch(at, space, kind, width, 0);
                }
            }
            _ => {}
        }
    }

    fn carry(&mut self, step: &Step, alu: Alu, kind: Scalar, takes: bool, gives: bool) {
        let width = bits(kind);
        let v = step.sources.map(|slot| self.values[slot as usize]);
        let unknown = self.any_unknown(step);
        let carry = i128::from(takes && self.carry);
        let unsigned = |value: u64| i128::from(mask(value, width));
        let product = integer(v[0], kind).wrapping_mul(integer(v[1], kind));
        let exact = match alu {
            Alu::Add => unsigned(v[0]) + unsigned(v[1]) + carry,
            Alu::Sub => unsigned(v[0]) - unsigned(v[1]) - carry,
            Alu::MadHigh => unsigned((product >> width) as u64) + unsigned(v[2]) + carry,
            _ => unsigned(product as u64) + unsigned(v[2]) + carry,
        };
        if gives {
            self.carry = exact < 0 || exact >> width != 0;
        }
        self.set(step.target, exact as u64, unknown);
    }

    fn address(&self, step: &Step, memory: &Memory) -> (Place, bool) {
        let (base, unknown) = self.value(step.sources[0]);
        let address = base.wrapping_add(memory.offset as u64);
        let place = match memory.window {
            Window::Generic => place(address),
            Window::Global => Place::Global(address),
            Window::Shared => Place::Shared(mask(address, 32)),
            Window::Local => Place::Local(address),
            Window::Const => Place::Const(address),
            Window::Param => Place::Param(address),
        };
        (place, unknown)
    }

    fn touch_place(&mut self, at: u32, place: Place, kind: Kind, width: u32) {
        let (space, address) = match place {
            Place::Global(address) => (Space::Global, address),
            Place::Shared(address) => (Space::Shared, address),
            Place::Local(address) => (Space::Local, address),
            Place::Const(address) => (Space::Constant, address),
            Place::Param(_) => return,
        };
        self.touch(at, space, kind, width, address);
    }

    fn touch(&mut self, step: u32, space: Space, kind: Kind, width: u32, address: u64) {
        let Some(recorded) = self.recorded.get_mut(step as usize) else {
            return;
        };
        if *recorded < self.allowance.window {
            *recorded += 1;
            let execution = self.counts[step as usize];
            let time = self.interpreted + self.extrapolated;
            self.touches.push(Touch {
                step,
                execution,
                time,
                space,
                kind,
                width,
                address,
            });
        }
    }

    fn read(&self, place: Place, offset: u64, size: u32) -> (u64, bool) {
        match place {
            Place::Global(address) => {
                let address = address.wrapping_add(offset);
                let (below, below_unknown) = self.initial.global(address, size);
                let (value, whole, unknown) = self.global.read(address, size, below);
                let dirty = self.skipped_stores && self.regions.contains(&region(address));
                (value, unknown || dirty || (below_unknown && !whole))
            }
            Place::Shared(address) => {
                let (value, whole, unknown) =
                    self.shared.read(address.wrapping_add(offset), size, 0);
                (value, unknown || !whole || self.skipped_stores)
            }
            Place::Local(address) => {
                let (value, whole, unknown) =
                    self.local.read(address.wrapping_add(offset), size, 0);
                (value, unknown || !whole || self.skipped_stores)
            }
            Place::Const(address) => self.initial.constant(address.wrapping_add(offset), size),
            Place::Param(address) => {
                let first = address.wrapping_add(offset);
                let mut value = 0;
                let mut unknown = false;
                for byte in 0..u64::from(size) {
                    let index = first.wrapping_add(byte) as usize;
                    value |=
                        u64::from(self.parameters.get(index).copied().unwrap_or(0)) << (8 * byte);
                    unknown |= self.parameters_unknown.get(index).copied().unwrap_or(true);
                }
                (value, unknown)
            }
        }
    }

    fn write(&mut self, place: Place, offset: u64, size: u32, value: u64, unknown: bool) {
        match place {
            Place::Global(address) => {
                let address = address.wrapping_add(offset);
                if !self.regions.contains(&region(address)) {
                    self.regions.push(region(address));
                }
                self.global.write(address, size, value, unknown);
            }
            Place::Shared(address) => {
                self.shared
                    .write(address.wrapping_add(offset), size, value, unknown)
            }
            Place::Local(address) => {
                self.local
                    .write(address.wrapping_add(offset), size, value, unknown)
            }
            Place::Const(_) => {}
            Place::Param(address) => {
                let first = address.wrapping_add(offset);
                for byte in 0..u64::from(size) {
                    let index = first.wrapping_add(byte) as usize;
                    if let (Some(to), Some(to_unknown)) = (
                        self.parameters.get_mut(index),
                        self.parameters_unknown.get_mut(index),
                    ) {
                        *to = (value >> (8 * byte)) as u8;
                        *to_unknown = unknown;
                    }
                }
            }
        }
    }

    fn load(&mut self, step: &Step, memory: Memory, at: u32) {
        let program = self.program;
        let size = memory.scalar.size();
        let (place, address_unknown) = self.address(step, &memory);
        for (index, &slot) in program.list(memory.list, memory.count).iter().enumerate() {
            if slot == 0 {
                continue;
            }
            let (value, unknown) = self.read(place, u64::from(size) * index as u64, size);
            let value = if signed(memory.scalar) {
                sign_extend(value, size * 8) as u64
            } else {
                value
            };
            self.set(slot, value, unknown || address_unknown);
        }
        self.touch_place(at, place, Kind::Load, size * memory.count);
    }

    fn store(&mut self, step: &Step, memory: Memory, at: u32) {
        let program = self.program;
        let size = memory.scalar.size();
        let (place, address_unknown) = self.address(step, &memory);
        for (index, &slot) in program.list(memory.list, memory.count).iter().enumerate() {
            let (value, unknown) = self.value(slot);
            self.write(
                place,
                u64::from(size) * index as u64,
                size,
                value,
                unknown || address_unknown,
            );
        }
        self.touch_place(at, place, Kind::Store, size * memory.count);
    }

    fn atomic(&mut self, step: &Step, memory: Memory, update: Update, at: u32) {
        let (kind, size) = (memory.scalar, memory.scalar.size());
        let (place, _) = self.address(step, &memory);
        let (old, _) = self.read(place, 0, size);
        let (a, b) = (self.value(step.sources[1]).0, self.value(step.sources[2]).0);
        let join = |alu| compute(alu, kind, Default::default(), [old, a, 0, 0]);
        let new = match update {
            Update::Add => join(Alu::Add),
            Update::Min => join(Alu::Min),
            Update::Max => join(Alu::Max),
            Update::And => old & a,
            Update::Or => old | a,
            Update::Xor => old ^ a,
            Update::Exchange => a,
            Update::CompareSwap => {
                if mask(old, size * 8) == mask(a, size * 8) {
                    b
                } else {
                    old
                }
            }
            Update::Increment => {
                if old >= mask(a, size * 8) {
                    0
                } else {
                    old + 1
                }
            }
            Update::Decrement => {
                if old == 0 || old > mask(a, size * 8) {
                    a
                } else {
                    old - 1
                }
            }
        };
        // Other threads may have come first.
        self.write(place, 0, size, new, true);
        self.set(step.target, old, true);
        self.touch_place(at, place, Kind::Atomic, size);
    }

    fn pass(&mut self, from: Passing, to: Passing) {
        match (from, to) {
            (Passing::Slot(from), Passing::Slot(to)) => {
                let (value, unknown) = self.value(from);
                self.set(to, value, unknown);
            }
            (Passing::Slot(from), Passing::Param(to, size)) => {
                let (value, unknown) = self.value(from);
                self.write(Place::Param(to), 0, size.min(8) as u32, value, unknown);
            }
            (Passing::Param(from, size), Passing::Slot(to)) => {
                let (value, unknown) = self.read(Place::Param(from), 0, size.min(8) as u32);
                self.set(to, value, unknown);
            }
            (Passing::Param(from, from_size), Passing::Param(to, to_size)) => {
                for byte in 0..from_size.min(to_size).min(1 << 16) {
                    let (value, unknown) = self.read(Place::Param(from), byte, 1);
                    self.write(Place::Param(to), byte, 1, value, unknown);
                }
            }
        }
    }

    fn forget(&mut self, passing: Passing) {
        match passing {
            Passing::Slot(slot) => self.set(slot, 0, true),
            Passing::Param(at, size) => {
                for byte in 0..size.min(1 << 16) {
                    self.write(Place::Param(at), byte, 1, 0, true);
                }
            }
        }
    }

    fn call(&mut self, call: &'p Call, index: u32) {
        let callee = match call.callee {
            Callee::Function(function) => Some(function),
            Callee::Indirect(slot) => {
                let (address, unknown) = self.value(slot);
                self.exact &= !unknown;
                address
                    .checked_sub(FUNCTION_BASE)
                    .map(|offset| (offset / 16) as usize)
            }
            Callee::Unknown => None,
        };
        let program = self.program;
        let routine = callee.and_then(|callee| Some((callee, program.routines.get(callee)?)));
        let Some((number, routine)) = routine.filter(|_| self.stack.len() < DEPTH) else {
            // What an external function returns is unknown; what it costs is not counted.
            self.exact &= matches!(call.callee, Callee::Unknown);
            call.results.iter().for_each(|&result| self.forget(result));
            return;
        };
        let active = self.stack.iter().any(|frame| frame.routine == number);
        let slots = routine.slots.start as usize..routine.slots.end as usize;
        let saved = if active {
            slots
                .map(|slot| (self.values[slot], self.unknown[slot]))
                .collect()
        } else {
            Vec::new()
        };
        for (&from, &to) in call.arguments.iter().zip(&routine.formals) {
            self.pass(from, to);
        }
        self.stack.push(Frame {
            routine: number,
            back: self.pc,
            call: index,
            saved,
        });
        self.pc = routine.steps.start;
    }

    fn returned(&mut self, frame: Frame) {
        let program = self.program;
        let routine = &program.routines[frame.routine];
        self.pc = frame.back;
        // Results first: registers of a recursive caller are put back around them.
        let results: Vec<(Passing, Passing)> = match program.calls.get(frame.call as usize) {
            Some(call) => routine
                .returns
                .iter()
                .copied()
                .zip(call.results.iter().copied())
                .collect(),
            None => Vec::new(),
        };
        let kept: Vec<_> = results
            .iter()
            .map(|&(from, _)| match from {
                Passing::Slot(slot) => Some(self.value(slot)),
                Passing::Param(..) => None,
            })
            .collect();
        for (slot, (value, unknown)) in (routine.slots.start as usize..).zip(frame.saved) {
            // Constants that were met later lie among the slots too, but never change.
            self.values[slot] = value;
            self.unknown[slot] = unknown;
        }
        for ((from, to), kept) in results.into_iter().zip(kept) {
            match (kept, to) {
                (Some((value, unknown)), Passing::Slot(slot)) => self.set(slot, value, unknown),
                (Some((value, unknown)), Passing::Param(at, size)) => {
                    self.write(Place::Param(at), 0, size.min(8) as u32, value, unknown);
                }
                (None, to) => self.pass(from, to),
            }
        }
    }
}

fn special_value(special: Special, launch: &Launch, at: Place3, shared: u64) -> Option<u64> {
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
            .filter(|other| relation.holds(Some(other.cmp(&lane))))
            .fold(0, |mask, other| mask | 1 << other),
        Special::DynamicShared => u64::from(launch.shared),
        Special::TotalShared => u64::from(launch.shared) + shared,
        Special::Constant(value) => value,
        Special::Unknown => return None,
    })
}
