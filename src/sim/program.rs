//! The compact form of an entry and everything it calls: registers, constants and special
//! registers are slots of one file.

use super::address_map::AddressMap;
use super::operation::{Alu, Combine, Compare, Mode};
use crate::ptx::{AccessKind, MemorySpace, PtxVariable, Scalar, StateSpace};

/// Index of a value in a thread's slots. Slot 0 is the constant zero.
pub(crate) type Slot = u32;

/// One decoded instruction.
#[derive(Clone, Debug)]
pub(crate) struct ProgramStep {
    pub operation: Operation,
    /// The guard predicate's slot; 0 for none.
    pub guard: Slot,
    pub negated: bool,
    /// The comparison is logged while a loop is being looked at.
    pub event: bool,
    pub target: Slot,
    pub sources: [Slot; 4],
    pub line: u32,
}

/// A memory access: address = `sources[0]` + offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryAccess {
    pub window: Window,
    pub scalar: Scalar,
    /// First and number of the value slots in [`Program::lists`].
    pub list: u32,
    pub count: u32,
    pub offset: i64,
}

/// The address space of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    Generic,
    Global,
    Shared,
    Local,
    Const,
    Param,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exchange,
    CompareSwap,
    Increment,
    Decrement,
}

/// What a barrier makes of a predicate of all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    Count,
    All,
    Any,
}

/// What lanes of a warp exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collective {
    /// `shfl`: the other lane or distance is in `sources[1]`, clamp and segments are in
    /// `sources[2]`.
    Shuffle(Shuffle),
    Vote(Vote),
    /// `match`: who has the same value of this many bits; with `all`, whether everybody has.
    Match {
        all: bool,
        width: u32,
    },
    Reduce {
        update: Update,
        kind: Scalar,
    },
    Active,
    Elect,
    /// `bar.warp.sync`
    SyncWarp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Nothing,
    Alu {
        alu: Alu,
        kind: Scalar,
        mode: Mode,
    },
    /// `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`.
    Carry {
        alu: Alu,
        kind: Scalar,
        takes: bool,
        gives: bool,
    },
    /// Targets: `target`, and `second` for the negation (0: none). `sources[2]` is combined.
    SetPredicate {
        compare: Compare,
        kind: Scalar,
        combine: Combine,
        invert: bool,
        second: Slot,
    },
    /// Several slots of `width` bits into one.
    Pack {
        list: u32,
        count: u32,
        width: u32,
    },
    Unpack {
        list: u32,
        count: u32,
        width: u32,
    },
    /// `isspacep`
    InSpace(Window),
    /// `cvta`: adds or takes away the base of a window.
    ToGeneric(Window),
    FromGeneric(Window),
    Load(MemoryAccess),
    Store(MemoryAccess),
    /// With `target` 0 nothing is returned.
    Atomic {
        memory: MemoryAccess,
        update: Update,
    },
    /// An access whose addresses are not followed (textures, bulk copies): its values are
    /// unknown.
    Opaque {
        list: u32,
        count: u32,
        space: Option<(MemorySpace, AccessKind, u32)>,
    },
    /// A barrier of the block, whose number is in `sources[0]` and the threads that it waits
    /// for in `sources[1]` (0: all). What is reduced is the predicate in `sources[2]`,
    /// inverted or not, and `target` gets the result.
    Barrier {
        waits: bool,
        reduction: Option<Reduction>,
        invert: bool,
    },
    /// What lanes of a warp do together. `sources[0]` is each lane's own value, `sources[3]`
    /// the mask of those that take part; `second` gets the predicate (0: none).
    Collective {
        collective: Collective,
        second: Slot,
        invert: bool,
    },
    Branch(u32),
    /// Index in `sources[0]`, targets in [`Program::lists`].
    BranchTable {
        list: u32,
        count: u32,
    },
    /// Index in [`Program::calls`].
    Call(u32),
    Return,
    Exit,
}

/// Where a parameter is passed: in a slot or in parameter memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterLocation {
    Slot(Slot),
    /// Byte and size in parameter memory.
    Param(u64, u64),
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callee {
    Function(usize),
    /// By an address in a slot.
    Indirect(Slot),
    /// What `assert` calls where it does not hold.
    Assertion,
    Unknown,
}

#[derive(Clone, Debug)]
pub(crate) struct RoutineCall {
    pub callee: Callee,
    pub results: Vec<ParameterLocation>,
    pub arguments: Vec<ParameterLocation>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Routine {
    /// First instruction and the one after the last.
    pub steps: std::ops::Range<u32>,
    /// The function's registers among the slots.
    pub slots: std::ops::Range<u32>,
    pub formals: Vec<ParameterLocation>,
    pub returns: Vec<ParameterLocation>,
}

/// Special registers that differ from thread to thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Thread(usize),
    BlockSize(usize),
    Block(usize),
    GridSize(usize),
    Lane,
    WarpOfBlock,
    WarpsOfBlock,
    LaneMask(Compare),
    DynamicShared,
    TotalShared,
    Constant(u64),
    Unknown,
}

#[derive(Default)]
pub(crate) struct Program {
    pub steps: Vec<ProgramStep>,
    /// Values of all slots before a thread starts (constants are set).
    pub slots: Vec<u64>,
    /// Bits of each slot.
    pub widths: Vec<u8>,
    pub specials: Vec<(Slot, Special)>,
    pub lists: Vec<u32>,
    pub calls: Vec<RoutineCall>,
    /// The entry is the first.
    pub routines: Vec<Routine>,
    /// Parameter memory in bytes, the entry's parameters first.
    pub parameters: u64,
    /// Static shared memory in bytes, and local memory of a thread.
    pub shared: u64,
    pub local: u64,
    /// Steps that end a thread, and the launch with it, as a failure.
    pub traps: Vec<u32>,
    /// Where shared memory of the launch's size begins.
    pub dynamic_shared: u64,
    pub globals: Image,
    pub constants: Image,
    /// Variables of global and constant memory.
    pub variables: Vec<PlacedVariable>,
    /// Variables of shared memory whose size the module gives, as far as the code names them.
    pub shared_variables: Vec<PlacedVariable>,
    /// Whether a basic block begins at a step, or at the end.
    pub leaders: Vec<bool>,
    /// The head of the outermost loop around each step.
    pub outermost: Vec<u32>,
    /// Steps that define each slot.
    pub definitions: Vec<Vec<u32>>,
    /// Of diverged lanes, those at the step of the least rank run first.
    pub ranks: Vec<u32>,
    /// Where a warp stores each slot.
    pub locations: Vec<SlotLocation>,
}

/// Where a warp stores a slot: an index into the values of each lane, or into those that no step
/// changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotLocation {
    PerLane(u32),
    Uniform(u32),
}

impl Program {
    /// Returns the name of the variable at an offset in shared memory.
    pub fn shared_variable(&self, offset: u64) -> Option<&str> {
        let is_there = |placed: &&PlacedVariable| offset.checked_sub(placed.offset).is_some_and(|at| at < placed.size);
        self.shared_variables.iter().find(is_there).map(|placed| &*placed.name)
    }

    pub fn slot_list(&self, first: u32, count: u32) -> &[u32] {
        self.lists.get(first as usize..(first + count) as usize).unwrap_or(&[])
    }

    /// Lists the slots that a step writes, except those that a call writes.
    pub fn written_slots<'p>(&'p self, step: &'p ProgramStep) -> impl Iterator<Item = Slot> + 'p {
        let (list, count, second) = match step.operation {
            Operation::Load(memory) => (memory.list, memory.count, 0),
            Operation::Unpack { list, count, .. } | Operation::Opaque { list, count, .. } => (list, count, 0),
            Operation::SetPredicate { second, .. } | Operation::Collective { second, .. } => (0, 0, second),
            _ => (0, 0, 0),
        };
        self.slot_list(list, count).iter().copied().chain([step.target, second]).filter(|&slot| slot != 0)
    }
}

pub(crate) fn blank_step(operation: Operation, line: u32) -> ProgramStep {
    ProgramStep { operation, guard: 0, negated: false, event: false, target: 0, sources: [0; 4], line }
}

/// A run of initial bytes of variables: what is given, what is zero, what the host may have
/// written.
#[derive(Default)]
pub(crate) struct Image {
    /// Variables with an initialiser: first byte, end, and values by absolute offset (size,
    /// bits).
    pub ranges: Vec<(u64, u64)>,
    pub values: AddressMap<u8>,
}

impl Image {
    /// Reads bits, and whether they are unknown.
    pub fn read_bits(&self, offset: u64, size: u32) -> (u64, bool) {
        let end = offset.saturating_add(u64::from(size));
        let known = self.ranges.iter().any(|&(from, to)| from <= offset && end <= to);
        if !known {
            return (0, true);
        }
        let bits = (0..u64::from(size.min(8)))
            .fold(0, |bits, i| bits | u64::from(self.values.get(&(offset + i)).copied().unwrap_or(0)) << (8 * i));
        (bits, false)
    }
}

/// A variable of the module, by its offset in its window.
pub(crate) struct PlacedVariable {
    pub name: Box<str>,
    pub constant: bool,
    pub offset: u64,
    pub size: u64,
}

impl PlacedVariable {
    pub fn new(variable: &PtxVariable, offset: u64) -> Self {
        let constant = variable.space == StateSpace::Const;
        Self { name: variable.name.clone(), constant, offset, size: variable.size }
    }
}
