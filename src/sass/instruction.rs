//! Machine code of sm_70 and later -> instructions, as far as scoring needs them.
//!
//! Every instruction is 128 bits. The bit positions are the same from sm_70 to sm_121 (checked
//! against nvdisasm's output for sm_75 to sm_120; they agree with Mesa's `sm70_encode.rs` and
//! CuAssembler's `CuControlCode.py`); only the place of a branch's offset and a few opcodes
//! differ. An opcode that is not in the table is decoded as [`Class::Other`]: decoding never
//! fails.

use super::opcode::{Class, Opcode};
use crate::ptx::{AccessKind, MemorySpace};

/// Bytes of an instruction.
pub const INSTRUCTION_BYTES: u32 = 16;
/// Opcodes whose operand size is encoded otherwise than their like's.
const WIDE_LOAD: u64 = 0x17e;
const WIDE_STORE: u64 = 0x17f;
const FLOAT_ATOM: u64 = 0x1a2;
const FLOAT_ATOMG: u64 = 0x1a3;
const FLOAT_REDG: u64 = 0x1a6;
const WARPSYNC: u64 = 0x148;
/// The bit of `MATCH.ANY`; without it, the instruction is `MATCH.ALL`.
const MATCH_ANY: u32 = 79;
/// The bit of `WARPSYNC.COLLECTIVE`.
const COLLECTIVE: u32 = 86;
/// What a branch tests besides its guard: `BRA.DIV`.
const IF_DIVERGED: u64 = 2;
/// Scoreboards of a warp.
pub const SCOREBOARDS: usize = 6;

/// One decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instruction {
    /// Bytes from the section's start.
    pub offset: u32,
    pub opcode: Opcode,
    pub guard: Guard,
    pub control: Control,
    /// Where a direct branch or call goes (or threads meet again), in bytes from the section's
    /// start.
    pub target: Option<u32>,
    /// What a load, store or atomic accesses.
    pub memory: Option<MemoryOperand>,
    /// General registers; 255 is the zero register, which stands for "none" too.
    pub registers: Registers,
    /// `DEPBAR.LE`: the scoreboard and how many operations may remain outstanding on it.
    pub partial_wait: Option<(u8, u8)>,
    /// A branch, call, return or exit that is not always taken: it has a guard, or a condition
    /// among its operands.
    pub is_conditional: bool,
    /// A branch that is taken only where threads of the warp have parted (`BRA.DIV`): to code
    /// that does for some of them at a time what the code after it does for all.
    pub if_diverged: bool,
}

/// The predicate that an instruction executes under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// 7 is always true.
    pub predicate: u8,
    pub negated: bool,
}

impl Guard {
    /// Whether the instruction always executes.
    pub fn is_always(self) -> bool {
        self.predicate == 7 && !self.negated
    }
}

/// How ptxas scheduled an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Cycles until the warp may issue again (0 in padding).
    pub stall: u8,
    /// Whether the scheduler is to prefer another warp.
    pub yields: bool,
    /// Scoreboard released when the result is written.
    pub write: Option<u8>,
    /// Scoreboard released when the operands have been read.
    pub read: Option<u8>,
    /// Scoreboards to wait for, a bit each.
    pub wait: u8,
}

/// The memory operand of a load, store or atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOperand {
    pub space: MemorySpace,
    pub kind: AccessKind,
    /// Bytes accessed by one thread.
    pub width: u32,
}

/// Register operands by slot, as encoded; which of them an opcode uses differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    pub destination: u8,
    pub sources: [u8; 3],
    /// Operands taken from the reuse cache, a bit each.
    pub reuse: u8,
}

/// Decodes the instructions of a text section. Bytes after the last whole instruction are not
/// looked at.
pub fn decode_section(code: &[u8], architecture: u32) -> Vec<Instruction> {
    let (words, _) = code.as_chunks::<16>();
    let offsets = (0u32..).step_by(INSTRUCTION_BYTES as usize);
    words
        .iter()
        .zip(offsets)
        .map(|(word, offset)| decode_word(u128::from_le_bytes(*word), offset, architecture))
        .collect()
}

/// `count` bits of `word` from bit `low`.
fn bits_of(word: u128, low: u32, count: u32) -> u64 {
    ((word >> low) & ((1 << count) - 1)) as u64
}

fn byte_of(word: u128, low: u32, count: u32) -> u8 {
    bits_of(word, low, count) as u8
}

fn decode_word(word: u128, offset: u32, architecture: u32) -> Instruction {
    let mut opcode = super::opcode::find_opcode(bits_of(word, 0, 9) as u16, architecture);
    if opcode.class == Class::Match && bits_of(word, MATCH_ANY, 1) == 0 {
        opcode.class = Class::Reduce;
    }
    let scoreboard = |low| Some(byte_of(word, low, 3)).filter(|&index| usize::from(index) < SCOREBOARDS);
    let target = branch_target(word, offset, opcode, architecture);
    Instruction {
        offset,
        opcode,
        guard: Guard { predicate: byte_of(word, 12, 3), negated: bits_of(word, 15, 1) == 1 },
        control: Control {
            stall: byte_of(word, 105, 4),
            yields: bits_of(word, 109, 1) == 0,
            write: scoreboard(110),
            read: scoreboard(113),
            wait: byte_of(word, 116, 6),
        },
        target,
        memory: memory_operand(word, opcode, architecture),
        registers: Registers {
            destination: byte_of(word, 16, 8),
            sources: [byte_of(word, 24, 8), byte_of(word, 32, 8), byte_of(word, 64, 8)],
            reuse: byte_of(word, 122, 4),
        },
        partial_wait: (opcode.class == Class::PartialWait).then(|| (byte_of(word, 44, 3), byte_of(word, 38, 6))),
        is_conditional: is_conditional(word, opcode),
        if_diverged: opcode.class == Class::Branch && opcode.relative && bits_of(word, 32, 2) == IF_DIVERGED,
    }
}

/// Besides the guard, a branch may have a predicate (`BRA P1, ..`: bits 87 to 90, 7 is none), a
/// uniform predicate or a test for divergence (`BRA.U UP0, ..`, `BRA.DIV`: bits 32 and 33).
fn is_conditional(word: u128, opcode: Opcode) -> bool {
    match opcode.class {
        Class::Branch => bits_of(word, 12, 4) != 7 || bits_of(word, 87, 4) != 7 || bits_of(word, 32, 2) != 0,
        Class::Exit => bits_of(word, 12, 4) != 7 || bits_of(word, 87, 4) != 7,
        Class::IndirectBranch | Class::Call | Class::Return => bits_of(word, 12, 4) != 7,
        _ => false,
    }
}

/// The target of a direct branch, call or convergence point: relative to the next instruction,
/// in units of 4 bytes.
fn branch_target(word: u128, offset: u32, opcode: Opcode, architecture: u32) -> Option<u32> {
    let is_immediate = bits_of(word, 9, 3) == 4;
    let far = || {
        let high = bits_of(word, 34, 48);
        if architecture >= 90 { sign_extend((high << 8) | bits_of(word, 16, 8), 56) } else { sign_extend(high, 48) }
    };
    let distance = match opcode.class {
        Class::Converge => sign_extend(bits_of(word, 34, 30), 30),
        Class::Branch if opcode.relative => far(),
        // Calls through a register have no distance.
        Class::Call if opcode.relative && is_immediate => far(),
        // Where the threads are that one of them executed the instructions between for.
        Class::Control if bits_of(word, 0, 9) == WARPSYNC && bits_of(word, COLLECTIVE, 1) == 1 => far(),
        _ => return None,
    };
    let next = i64::from(offset) + i64::from(INSTRUCTION_BYTES);
    u32::try_from(next.checked_add(distance.checked_mul(4)?)?).ok()
}

fn sign_extend(value: u64, width: u32) -> i64 {
    let unused = 64 - width;
    ((value << unused) as i64) >> unused
}

/// Bytes that an atomic accesses in a thread. Until sm_89 floating types have codes among the
/// others; from sm_90 on they have opcodes of their own.
fn atomic_width(word: u128, architecture: u32) -> u32 {
    let is_wide = match (bits_of(word, 0, 9), bits_of(word, 73, 3)) {
        (FLOAT_ATOM | FLOAT_ATOMG | FLOAT_REDG, kind) => kind == 7,
        (_, kind) if architecture >= 90 => matches!(kind, 2 | 3),
        (_, kind) => matches!(kind, 2 | 5 | 6),
    };
    if is_wide { 8 } else { 4 }
}

fn memory_operand(word: u128, opcode: Opcode, architecture: u32) -> Option<MemoryOperand> {
    let (space, kind) = match opcode.class {
        Class::Load(space) => (space, AccessKind::Load),
        Class::Store(space) => (space, AccessKind::Store),
        Class::Atomic(space) => (space, AccessKind::Atomic),
        Class::AsyncCopy => (MemorySpace::Global, AccessKind::Load),
        _ => return None,
    };
    let width = match (kind, space) {
        // The 256-bit forms of sm_100 and later.
        _ if matches!(bits_of(word, 0, 9), WIDE_LOAD | WIDE_STORE) => 32,
        // 4, 8 or 16 bytes: 0, 2 or 4 from sm_100 on, as loads have them before.
        _ if opcode.class == Class::AsyncCopy && architecture >= 100 => 4 << (bits_of(word, 73, 3) / 2).min(2),
        // 1, 2 or 4 matrices of 8 rows of 16 bytes, of which each lane holds a 32nd.
        _ if opcode.mnemonic == "LDSM" || opcode.mnemonic == "STSM" => 4 << bits_of(word, 72, 2).min(2),
        // Barrier objects.
        _ if opcode.mnemonic == "SYNCS" => 8,
        (AccessKind::Atomic, _) => atomic_width(word, architecture),
        (_, MemorySpace::Texture) => 4,
        // U8, S8, U16, S16, 32, 64, 128
        _ => match bits_of(word, 73, 3) {
            0 | 1 => 1,
            2 | 3 => 2,
            4 => 4,
            5 => 8,
            _ => 16,
        },
    };
    Some(MemoryOperand { space, kind, width })
}
