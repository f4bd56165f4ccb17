//! Nine opcode bits -> mnemonic, class and pipe.
//!
//! Mnemonics: read off nvdisasm 13.2 by feeding it words with each opcode for sm_75, sm_90,
//! sm_100 and sm_120, and off what ptxas 13.0 writes for those and sm_80, sm_86, sm_89. Pipes:
//! "Instruction Pipelines" of NVIDIA's Nsight Compute documentation.

use crate::ptx::MemorySpace;

/// What the nine opcode bits say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opcode {
    /// As nvdisasm writes it, without modifiers; empty where the opcode is not known.
    pub mnemonic: &'static str,
    pub class: Class,
    pub pipe: Pipe,
    /// A branch or call whose immediate is relative to the next instruction.
    pub relative: bool,
}

/// What an instruction does, as far as its latency and its effect on control flow go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Integer, logic, comparison, selection and moves, of fixed latency.
    Alu,
    /// Single-precision and integer multiply-add.
    Fma,
    /// Packed half precision.
    Half,
    /// Double precision.
    Double,
    /// Matrix multiply-accumulate within a warp.
    Tensor,
    /// Matrix multiply-accumulate of a warp group or block, running asynchronously.
    AsyncTensor,
    /// Reciprocal, root, exponential, logarithm, sine.
    Special,
    /// Conversions on the special-function pipe.
    Convert,
    /// Population count, leading bit, bit reversal.
    BitCount,
    Shuffle,
    /// Reductions over a warp, and whether all of it have the same value.
    Reduce,
    /// Who of a warp has the same value (`MATCH.ANY`).
    Match,
    /// Work of the uniform datapath (one value for a warp).
    Uniform,
    Load(MemorySpace),
    Store(MemorySpace),
    Atomic(MemorySpace),
    /// Copy from global to shared memory that does not pass through registers (`cp.async`).
    AsyncCopy,
    /// Closes a group of such copies, and releases its scoreboard when they are done.
    AsyncGroup,
    /// Waits until at most this many operations are outstanding on a scoreboard.
    PartialWait,
    /// Barrier of a block.
    Barrier,
    /// Memory fence.
    Fence,
    /// Reads a special register.
    SystemRegister,
    Branch,
    /// Branch through a register.
    IndirectBranch,
    Call,
    Return,
    Exit,
    /// Sets a convergence barrier; its target is where the threads meet again.
    Converge,
    /// Other control: convergence, warp synchronisation, sleep.
    Control,
    Nop,
    /// Anything else, and opcodes that are not known.
    Other,
}

/// The execution unit that an instruction is issued to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pipe {
    Alu,
    /// Single-precision multiply-add, which integer multiply-add shares.
    Fma,
    /// Integer multiply-add, half of the single-precision pipe from compute capability 8.6 on.
    IntegerMultiply,
    Half,
    Double,
    Tensor,
    /// Special functions, conversions and bit counts.
    Special,
    /// Memory instructions, shuffles and others of the memory input/output queue.
    Memory,
    Texture,
    Uniform,
    /// Branches and convergence.
    Control,
}

impl Pipe {
    pub const COUNT: usize = 11;
    pub const ALL: [Pipe; Self::COUNT] = [
        Pipe::Alu,
        Pipe::Fma,
        Pipe::IntegerMultiply,
        Pipe::Half,
        Pipe::Double,
        Pipe::Tensor,
        Pipe::Special,
        Pipe::Memory,
        Pipe::Texture,
        Pipe::Uniform,
        Pipe::Control,
    ];

    /// What it is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Pipe::Alu => "integer and logic",
            Pipe::Fma => "single precision",
            Pipe::IntegerMultiply => "integer multiplication",
            Pipe::Half => "half precision",
            Pipe::Double => "double precision",
            Pipe::Tensor => "tensor cores",
            Pipe::Special => "special functions",
            Pipe::Memory => "memory",
            Pipe::Texture => "texture",
            Pipe::Uniform => "uniform",
            Pipe::Control => "branches",
        }
    }
}

const UNKNOWN: Opcode = Opcode { mnemonic: "", class: Class::Other, pipe: Pipe::Alu, relative: false };
const OPCODES: usize = 1 << 9;
/// Returns the opcode with these nine bits.
pub(crate) fn find_opcode(base: u16, architecture: u32) -> Opcode {
    static BY_BASE: [Opcode; OPCODES] = by_base();
    let exception =
        EXCEPTIONS.iter().find(|(bits, from, to, ..)| *bits == base && (*from..=*to).contains(&architecture));
    match exception {
        Some(&(_, _, _, mnemonic, class, pipe)) => Opcode { mnemonic, class, pipe, relative: false },
        None => BY_BASE.get(usize::from(base)).copied().unwrap_or(UNKNOWN),
    }
}

/// Opcodes that mean something else on some architectures: bits, first and last architecture,
/// mnemonic, class and pipe.
const EXCEPTIONS: &[(u16, u32, u32, &str, Class, Pipe)] =
    &[(0x035, 120, 129, "IADD", Class::Alu, Pipe::Alu), (0x036, 70, 75, "HMMA", Class::Tensor, Pipe::Tensor)];

const fn by_base() -> [Opcode; OPCODES] {
    let mut all = [UNKNOWN; OPCODES];
    let mut row = 0;
    while row < TABLE.len() {
        let (base, mnemonic, class, pipe) = TABLE[row];
        all[base as usize] = Opcode { mnemonic, class, pipe, relative: base == BRA || base == CALL_RELATIVE };
        row += 1;
    }
    all
}

const BRA: u16 = 0x147;
const CALL_RELATIVE: u16 = 0x144;
/// Opcode bits, mnemonic, class and pipe.
#[rustfmt::skip]
const TABLE: &[(u16, &str, Class, Pipe)] = &[
    (0x001, "PMTRIG", Class::Other, Pipe::Control),
    (0x002, "MOV", Class::Alu, Pipe::Alu),
    (0x003, "P2R", Class::Alu, Pipe::Alu),
    (0x004, "R2P", Class::Alu, Pipe::Alu),
    (0x005, "CS2R", Class::Alu, Pipe::Alu),
    (0x006, "VOTE", Class::Alu, Pipe::Alu),
    (0x007, "SEL", Class::Alu, Pipe::Alu),
    (0x008, "FSEL", Class::Alu, Pipe::Alu),
    (0x009, "FMNMX", Class::Alu, Pipe::Alu),
    (0x00a, "FSET", Class::Alu, Pipe::Alu),
    (0x00b, "FSETP", Class::Alu, Pipe::Alu),
    (0x00c, "ISETP", Class::Alu, Pipe::Alu),
    (0x00d, "CSMTEST", Class::Alu, Pipe::Alu),
    (0x00f, "VIMNMX3", Class::Alu, Pipe::Alu),
    (0x010, "IADD3", Class::Alu, Pipe::Alu),
    (0x011, "LEA", Class::Alu, Pipe::Alu),
    (0x012, "LOP3", Class::Alu, Pipe::Alu),
    (0x013, "IABS", Class::Alu, Pipe::Alu),
    (0x014, "VABSDIFF", Class::Alu, Pipe::Alu),
    (0x015, "VABSDIFF4", Class::Alu, Pipe::Alu),
    (0x016, "PRMT", Class::Alu, Pipe::Alu),
    (0x017, "IMNMX", Class::Alu, Pipe::Alu),
    (0x019, "SHF", Class::Alu, Pipe::Alu),
    (0x01a, "SGXT", Class::Alu, Pipe::Alu),
    (0x01b, "BMSK", Class::Alu, Pipe::Alu),
    (0x01c, "PLOP3", Class::Alu, Pipe::Alu),
    (0x01d, "PLOP3", Class::Alu, Pipe::Alu),
    (0x01e, "PLOP3", Class::Alu, Pipe::Alu),
    (0x01f, "PLOP3", Class::Alu, Pipe::Alu),
    (0x020, "FMUL", Class::Fma, Pipe::Fma),
    (0x021, "FADD", Class::Fma, Pipe::Fma),
    (0x022, "FSWZADD", Class::Fma, Pipe::Fma),
    (0x023, "FFMA", Class::Fma, Pipe::Fma),
    (0x024, "IMAD", Class::Fma, Pipe::IntegerMultiply),
    (0x025, "IMAD", Class::Fma, Pipe::IntegerMultiply),
    (0x026, "IDP", Class::Fma, Pipe::IntegerMultiply),
    (0x027, "IMAD", Class::Fma, Pipe::IntegerMultiply),
    (0x028, "DMUL", Class::Double, Pipe::Double),
    (0x029, "DADD", Class::Double, Pipe::Double),
    (0x02a, "DSETP", Class::Double, Pipe::Double),
    (0x02b, "DFMA", Class::Double, Pipe::Double),
    (0x02d, "PREEXIT", Class::Control, Pipe::Control),
    (0x02e, "ACQBULK", Class::Control, Pipe::Control),
    (0x02f, "ELECT", Class::Alu, Pipe::Alu),
    (0x030, "HADD2", Class::Half, Pipe::Half),
    (0x031, "HFMA2", Class::Half, Pipe::Half),
    (0x032, "HMUL2", Class::Half, Pipe::Half),
    (0x033, "HSET2", Class::Half, Pipe::Half),
    (0x034, "HSETP2", Class::Half, Pipe::Half),
    (0x035, "HFMA2", Class::Half, Pipe::Half),
    (0x036, "VIADD", Class::Alu, Pipe::Alu),
    (0x037, "IMMA", Class::Tensor, Pipe::Tensor),
    (0x038, "I2I", Class::Alu, Pipe::Alu),
    (0x039, "I2IP", Class::Alu, Pipe::Alu),
    (0x03a, "MOVM", Class::Shuffle, Pipe::Memory),
    (0x03b, "LDSM", Class::Load(MemorySpace::Shared), Pipe::Memory),
    (0x03c, "HMMA", Class::Tensor, Pipe::Tensor),
    (0x03d, "BMMA", Class::Tensor, Pipe::Tensor),
    (0x03e, "F2FP", Class::Alu, Pipe::Alu),
    (0x03f, "DMMA", Class::Tensor, Pipe::Tensor),
    (0x040, "HMNMX2", Class::Alu, Pipe::Alu),
    (0x043, "F2IP", Class::Alu, Pipe::Alu),
    (0x044, "STSM", Class::Store(MemorySpace::Shared), Pipe::Memory),
    (0x045, "I2FP", Class::Alu, Pipe::Alu),
    (0x046, "VIADDMNMX", Class::Alu, Pipe::Alu),
    (0x047, "VHMNMX", Class::Alu, Pipe::Alu),
    (0x048, "VIMNMX", Class::Alu, Pipe::Alu),
    (0x049, "UVIADD", Class::Uniform, Pipe::Uniform),
    (0x04a, "UVIMNMX", Class::Uniform, Pipe::Uniform),
    (0x04c, "UVIRTCOUNT", Class::Uniform, Pipe::Uniform),
    (0x04d, "UIABS", Class::Uniform, Pipe::Uniform),
    (0x04e, "UI2I", Class::Uniform, Pipe::Uniform),
    (0x04f, "UI2IP", Class::Uniform, Pipe::Uniform),
    (0x050, "UFMNMX", Class::Uniform, Pipe::Uniform),
    (0x051, "UFSEL", Class::Uniform, Pipe::Uniform),
    (0x052, "UFSET", Class::Uniform, Pipe::Uniform),
    (0x053, "UFSETP", Class::Uniform, Pipe::Uniform),
    (0x054, "UFADD", Class::Uniform, Pipe::Uniform),
    (0x055, "UFFMA", Class::Uniform, Pipe::Uniform),
    (0x056, "UFMUL", Class::Uniform, Pipe::Uniform),
    (0x059, "UF2IP", Class::Uniform, Pipe::Uniform),
    (0x05a, "UI2F", Class::Uniform, Pipe::Uniform),
    (0x05e, "UI2FP", Class::Uniform, Pipe::Uniform),
    (0x076, "FMNMX3", Class::Alu, Pipe::Alu),
    (0x077, "ACQSHMINIT", Class::Control, Pipe::Control),
    (0x07a, "QMMA", Class::Tensor, Pipe::Tensor),
    (0x07f, "OMMA", Class::Tensor, Pipe::Tensor),
    (0x082, "UMOV", Class::Uniform, Pipe::Uniform),
    (0x083, "UP2UR", Class::Uniform, Pipe::Uniform),
    (0x084, "UR2UP", Class::Uniform, Pipe::Uniform),
    (0x085, "UIMNMX", Class::Uniform, Pipe::Uniform),
    (0x086, "VOTEU", Class::Uniform, Pipe::Uniform),
    (0x087, "USEL", Class::Uniform, Pipe::Uniform),
    (0x08c, "UISETP", Class::Uniform, Pipe::Uniform),
    (0x090, "UIADD3", Class::Uniform, Pipe::Uniform),
    (0x091, "ULEA", Class::Uniform, Pipe::Uniform),
    (0x092, "ULOP3", Class::Uniform, Pipe::Uniform),
    (0x096, "UPRMT", Class::Uniform, Pipe::Uniform),
    (0x097, "UIADD3", Class::Uniform, Pipe::Uniform),
    (0x099, "USHF", Class::Uniform, Pipe::Uniform),
    (0x09a, "USGXT", Class::Uniform, Pipe::Uniform),
    (0x09b, "UBMSK", Class::Uniform, Pipe::Uniform),
    (0x09c, "UPLOP3", Class::Uniform, Pipe::Uniform),
    (0x09d, "UPLOP3", Class::Uniform, Pipe::Uniform),
    (0x09e, "UPLOP3", Class::Uniform, Pipe::Uniform),
    (0x09f, "UPLOP3", Class::Uniform, Pipe::Uniform),
    (0x0a4, "UIMAD", Class::Uniform, Pipe::Uniform),
    (0x0a5, "UIMAD", Class::Uniform, Pipe::Uniform),
    (0x0a6, "UIMAD", Class::Uniform, Pipe::Uniform),
    (0x0b8, "ULDC", Class::Uniform, Pipe::Uniform),
    (0x0b9, "ULDC", Class::Uniform, Pipe::Uniform),
    (0x0ba, "UF2FP", Class::Uniform, Pipe::Uniform),
    (0x0bb, "ULDC", Class::Uniform, Pipe::Uniform),
    (0x0bc, "UCLEA", Class::Uniform, Pipe::Uniform),
    (0x0bd, "UFLO", Class::Uniform, Pipe::Uniform),
    (0x0be, "UBREV", Class::Uniform, Pipe::Uniform),
    (0x0bf, "UPOPC", Class::Uniform, Pipe::Uniform),
    (0x0ca, "R2UR", Class::Alu, Pipe::Alu),
    (0x0cb, "CS2UR", Class::Uniform, Pipe::Uniform),
    (0x0cc, "CREDUX", Class::Reduce, Pipe::Alu),
    (0x100, "FLO", Class::BitCount, Pipe::Special),
    (0x101, "BREV", Class::BitCount, Pipe::Special),
    (0x102, "FCHK", Class::Special, Pipe::Special),
    (0x104, "F2F", Class::Convert, Pipe::Special),
    (0x105, "F2I", Class::Convert, Pipe::Special),
    (0x106, "I2F", Class::Convert, Pipe::Special),
    (0x107, "FRND", Class::Convert, Pipe::Special),
    (0x108, "MUFU", Class::Special, Pipe::Special),
    (0x109, "POPC", Class::BitCount, Pipe::Special),
    (0x110, "F2F", Class::Convert, Pipe::Special),
    (0x111, "F2I", Class::Convert, Pipe::Special),
    (0x112, "I2F", Class::Convert, Pipe::Special),
    (0x113, "FRND", Class::Convert, Pipe::Special),
    (0x118, "NOP", Class::Nop, Pipe::Control),
    (0x119, "S2R", Class::SystemRegister, Pipe::Memory),
    (0x11a, "DEPBAR", Class::PartialWait, Pipe::Control),
    (0x11b, "ENDCOLLECTIVE", Class::Control, Pipe::Control),
    (0x11c, "B2R", Class::SystemRegister, Pipe::Memory),
    (0x11d, "BAR", Class::Barrier, Pipe::Memory),
    (0x11f, "SETCTAID", Class::Other, Pipe::Control),
    (0x120, "AL2P", Class::Other, Pipe::Memory),
    (0x121, "ALD", Class::Other, Pipe::Memory),
    (0x122, "AST", Class::Other, Pipe::Memory),
    (0x123, "ISBERD", Class::Other, Pipe::Memory),
    (0x124, "OUT", Class::Other, Pipe::Memory),
    (0x125, "PIXLD", Class::Other, Pipe::Memory),
    (0x126, "IPA", Class::Other, Pipe::Special),
    (0x127, "ISBEWR", Class::Other, Pipe::Memory),
    (0x13f, "CCTL", Class::Other, Pipe::Memory),
    (0x140, "CCTL", Class::Other, Pipe::Memory),
    (0x141, "BSYNC", Class::Control, Pipe::Control),
    (0x142, "BREAK", Class::Control, Pipe::Control),
    (0x143, "CALL", Class::Call, Pipe::Control),
    (0x144, "CALL", Class::Call, Pipe::Control),
    (0x145, "BSSY", Class::Converge, Pipe::Control),
    (0x146, "YIELD", Class::Control, Pipe::Control),
    (0x147, "BRA", Class::Branch, Pipe::Control),
    (0x148, "WARPSYNC", Class::Control, Pipe::Control),
    (0x149, "BRX", Class::IndirectBranch, Pipe::Control),
    (0x14a, "JMP", Class::Branch, Pipe::Control),
    (0x14c, "JMX", Class::IndirectBranch, Pipe::Control),
    (0x14d, "EXIT", Class::Exit, Pipe::Control),
    (0x14e, "LEPC", Class::Control, Pipe::Control),
    (0x14f, "RTT", Class::Return, Pipe::Control),
    (0x150, "RET", Class::Return, Pipe::Control),
    (0x152, "RPCMOV", Class::Control, Pipe::Control),
    (0x153, "RPCMOV", Class::Control, Pipe::Control),
    (0x154, "RPCMOV", Class::Control, Pipe::Control),
    (0x155, "BMOV", Class::Control, Pipe::Control),
    (0x156, "BMOV", Class::Control, Pipe::Control),
    (0x157, "BMOV", Class::Control, Pipe::Control),
    (0x158, "BRXU", Class::IndirectBranch, Pipe::Control),
    (0x159, "JMXU", Class::IndirectBranch, Pipe::Control),
    (0x15b, "KILL", Class::Exit, Pipe::Control),
    (0x15c, "BPT", Class::Control, Pipe::Control),
    (0x15d, "NANOSLEEP", Class::Control, Pipe::Control),
    (0x15e, "WARPGROUPSET", Class::Control, Pipe::Control),
    (0x160, "TEX", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x161, "TEX", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x162, "TEX", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x163, "TLD4", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x164, "TLD4", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x165, "TLD4", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x166, "TLD", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x167, "TLD", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x168, "TLD", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x169, "TMML", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x16a, "TMML", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x16b, "TMML", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x16c, "TXD", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x16d, "TXD", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x16e, "TXD", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x16f, "TXQ", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x170, "TXQ", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x171, "TXQ", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x172, "FOOTPRINT", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x173, "FOOTPRINT", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x174, "FOOTPRINT", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x17e, "LDG", Class::Load(MemorySpace::Global), Pipe::Memory),
    (0x17f, "STG", Class::Store(MemorySpace::Global), Pipe::Memory),
    (0x180, "LD", Class::Load(MemorySpace::Global), Pipe::Memory),
    (0x181, "LDG", Class::Load(MemorySpace::Global), Pipe::Memory),
    (0x182, "LDC", Class::Load(MemorySpace::Constant), Pipe::Memory),
    (0x183, "LDL", Class::Load(MemorySpace::Local), Pipe::Memory),
    (0x184, "LDS", Class::Load(MemorySpace::Shared), Pipe::Memory),
    (0x185, "ST", Class::Store(MemorySpace::Global), Pipe::Memory),
    (0x186, "STG", Class::Store(MemorySpace::Global), Pipe::Memory),
    (0x187, "STL", Class::Store(MemorySpace::Local), Pipe::Memory),
    (0x188, "STS", Class::Store(MemorySpace::Shared), Pipe::Memory),
    (0x189, "SHFL", Class::Shuffle, Pipe::Memory),
    (0x18a, "ATOM", Class::Atomic(MemorySpace::Global), Pipe::Memory),
    (0x18b, "ATOM", Class::Atomic(MemorySpace::Global), Pipe::Memory),
    (0x18c, "ATOMS", Class::Atomic(MemorySpace::Shared), Pipe::Memory),
    (0x18d, "ATOMS", Class::Atomic(MemorySpace::Shared), Pipe::Memory),
    (0x18e, "RED", Class::Atomic(MemorySpace::Global), Pipe::Memory),
    (0x18f, "CCTL", Class::Other, Pipe::Memory),
    (0x190, "CCTLL", Class::Other, Pipe::Memory),
    (0x191, "CCTLT", Class::Other, Pipe::Memory),
    (0x192, "MEMBAR", Class::Fence, Pipe::Memory),
    (0x193, "SUATOM", Class::Atomic(MemorySpace::Global), Pipe::Texture),
    (0x194, "SUATOM", Class::Atomic(MemorySpace::Global), Pipe::Texture),
    (0x195, "SUATOM", Class::Atomic(MemorySpace::Global), Pipe::Texture),
    (0x196, "SUATOM", Class::Atomic(MemorySpace::Global), Pipe::Texture),
    (0x197, "SULD", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x198, "SULD", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x199, "SULD", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x19a, "SULD", Class::Load(MemorySpace::Texture), Pipe::Texture),
    (0x19b, "SUST", Class::Store(MemorySpace::Texture), Pipe::Texture),
    (0x19c, "SUST", Class::Store(MemorySpace::Texture), Pipe::Texture),
    (0x19d, "SUST", Class::Store(MemorySpace::Texture), Pipe::Texture),
    (0x19e, "SUST", Class::Store(MemorySpace::Texture), Pipe::Texture),
    (0x19f, "SURED", Class::Atomic(MemorySpace::Global), Pipe::Texture),
    (0x1a0, "SURED", Class::Atomic(MemorySpace::Global), Pipe::Texture),
    (0x1a1, "MATCH", Class::Match, Pipe::Memory),
    (0x1a2, "ATOM", Class::Atomic(MemorySpace::Global), Pipe::Memory),
    (0x1a3, "ATOMG", Class::Atomic(MemorySpace::Global), Pipe::Memory),
    (0x1a6, "REDG", Class::Atomic(MemorySpace::Global), Pipe::Memory),
    (0x1a7, "SYNCS", Class::Atomic(MemorySpace::Shared), Pipe::Memory),
    (0x1a8, "ATOMG", Class::Atomic(MemorySpace::Global), Pipe::Memory),
    (0x1a9, "ATOMG", Class::Atomic(MemorySpace::Global), Pipe::Memory),
    (0x1aa, "QSPC", Class::Other, Pipe::Memory),
    (0x1ab, "ERRBAR", Class::Other, Pipe::Control),
    (0x1ac, "LDCU", Class::Load(MemorySpace::Constant), Pipe::Memory),
    (0x1ad, "LDTRAM", Class::Load(MemorySpace::Shared), Pipe::Memory),
    (0x1ae, "LDGSTS", Class::AsyncCopy, Pipe::Memory),
    (0x1af, "LDGDEPBAR", Class::AsyncGroup, Pipe::Memory),
    (0x1b0, "ARRIVES", Class::Other, Pipe::Memory),
    (0x1b1, "SYNCS", Class::Atomic(MemorySpace::Shared), Pipe::Memory),
    (0x1b2, "SYNCS", Class::Atomic(MemorySpace::Shared), Pipe::Memory),
    (0x1b3, "SUQUERY", Class::Other, Pipe::Texture),
    (0x1b4, "UTMALDG", Class::Other, Pipe::Memory),
    (0x1b5, "UTMASTG", Class::Other, Pipe::Memory),
    (0x1b6, "UTMAREDG", Class::Other, Pipe::Memory),
    (0x1b7, "UTMACMDFLUSH", Class::Other, Pipe::Memory),
    (0x1b8, "UTMAPF", Class::Other, Pipe::Memory),
    (0x1b9, "UTMACCTL", Class::Other, Pipe::Memory),
    (0x1ba, "UBLKCP", Class::Other, Pipe::Memory),
    (0x1bb, "UBLKRED", Class::Other, Pipe::Memory),
    (0x1bc, "UBLKPF", Class::Other, Pipe::Memory),
    (0x1bd, "STAS", Class::Store(MemorySpace::Shared), Pipe::Memory),
    (0x1be, "REDAS", Class::Atomic(MemorySpace::Shared), Pipe::Memory),
    (0x1c0, "GETLMEMBASE", Class::Other, Pipe::Memory),
    (0x1c1, "SETLMEMBASE", Class::Other, Pipe::Memory),
    (0x1c2, "R2UR", Class::Alu, Pipe::Alu),
    (0x1c3, "S2UR", Class::SystemRegister, Pipe::Memory),
    (0x1c4, "REDUX", Class::Reduce, Pipe::Memory),
    (0x1c5, "WARPGROUP", Class::Control, Pipe::Control),
    (0x1c6, "FENCE", Class::Fence, Pipe::Memory),
    (0x1c7, "UCGABAR", Class::Barrier, Pipe::Memory),
    (0x1c8, "USETMAXREG", Class::Control, Pipe::Control),
    (0x1c9, "USETSHMSZ", Class::Other, Pipe::Memory),
    (0x1ca, "UGETNEXTWORKID", Class::Other, Pipe::Memory),
    (0x1cb, "UMEMSETS", Class::Other, Pipe::Memory),
    (0x1ce, "ULEPC", Class::Control, Pipe::Control),
    (0x1e3, "UTCATOMSWS", Class::Other, Pipe::Memory),
    (0x1e6, "UTCSHIFT", Class::Other, Pipe::Tensor),
    (0x1e7, "UTCCP", Class::Other, Pipe::Tensor),
    (0x1e9, "UTCBAR", Class::Other, Pipe::Tensor),
    (0x1ea, "UTCHMMA", Class::AsyncTensor, Pipe::Tensor),
    (0x1ed, "STTM", Class::Other, Pipe::Memory),
    (0x1ee, "LDTM", Class::Other, Pipe::Memory),
    (0x1f0, "HGMMA", Class::AsyncTensor, Pipe::Tensor),
    (0x1f1, "IGMMA", Class::AsyncTensor, Pipe::Tensor),
    (0x1f2, "BGMMA", Class::AsyncTensor, Pipe::Tensor),
    (0x1f3, "QGMMA", Class::AsyncTensor, Pipe::Tensor),
];
