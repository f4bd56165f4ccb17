//! Parses opcodes by one table of all PTX instructions.
//!
//! Text of an opcode -> [`Opcode`]: its row of the table, and its modifiers as types. An
//! instruction that the table lacks is [`Mnemonic::Unknown`]. Source: NVIDIA, "PTX ISA",
//! version 9.0; the chapter stands before each line of the table.

use super::types::{Scalar, StateSpace};
use std::sync::LazyLock;

/// The purpose of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Arithmetic,
    Comparison,
    Logic,
    Move,
    Conversion,
    Load,
    Store,
    /// Copies that do not pass through registers, and waits for them.
    AsyncCopy,
    /// Accesses to several GPUs at once.
    Multimem,
    /// Hints to caches, questions about addresses.
    Address,
    Texture,
    Surface,
    ControlFlow,
    /// Barriers of a warp, a block or a cluster.
    Barrier,
    /// Barriers as objects in shared memory.
    AsyncBarrier,
    Fence,
    Atomic,
    /// Atomic operations without a result.
    Reduction,
    /// Exchange between the lanes of a warp.
    Warp,
    /// Dependences between grids, and work that blocks take from others.
    Grid,
    Matrix,
    Stack,
    Video,
    Miscellaneous,
    Unknown,
}

/// The effect of an instruction on memory, unless its state space is the thread's or block's
/// own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    None,
    Read,
    /// Writes as many bytes as its type says.
    Write,
    /// Writes an unknown number of bytes, updates memory, or continues in code that is not
    /// known.
    Unbounded,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct OpcodeRow {
    /// The beginning of its opcodes, up to a dot or the end.
    pub name: &'static str,
    pub mnemonic: Mnemonic,
    pub class: Class,
    pub effect: Effect,
}

macro_rules! instructions {
    ($($chapter:literal $class:ident $effect:ident: $($mnemonic:ident $name:literal),+;)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Mnemonic {
            $($(#[doc = concat!("`", $name, "`, chapter ", $chapter)] $mnemonic,)+)+
            Unknown,
        }

        /// All instructions in the order of [`Mnemonic`].
        pub const INSTRUCTIONS: &[OpcodeRow] = &[
            $($(OpcodeRow {
                name: $name,
                mnemonic: Mnemonic::$mnemonic,
                class: Class::$class,
                effect: Effect::$effect,
            },)+)+
        ];
    };
}

instructions! {
    "9.7.1" Arithmetic None: Add "add", Sub "sub", Mul "mul", Mad "mad", Mul24 "mul24",
        Mad24 "mad24", Sad "sad", Div "div", Rem "rem", Abs "abs", Neg "neg", Min "min", Max "max",
        Popc "popc", Clz "clz", Bfind "bfind", Fns "fns", Brev "brev", Bfe "bfe", Bfi "bfi",
        Szext "szext", Bmsk "bmsk", Dp4a "dp4a", Dp2a "dp2a";
    "9.7.2" Arithmetic None: Addc "addc", Subc "subc", Madc "madc";
    "9.7.3" Arithmetic None: Testp "testp", Copysign "copysign", Fma "fma", Rcp "rcp", Sqrt "sqrt",
        Rsqrt "rsqrt", Sin "sin", Cos "cos", Lg2 "lg2", Ex2 "ex2", Tanh "tanh";
    "9.7.6" Comparison None: Set "set", Setp "setp", Selp "selp", Slct "slct";
    "9.7.8" Logic None: And "and", Or "or", Xor "xor", Not "not", Cnot "cnot", Lop3 "lop3",
        Shf "shf", Shl "shl", Shr "shr";
    "9.7.9" Move None: Mov "mov", Prmt "prmt";
    "9.7.9" Warp None: Shfl "shfl";
    "9.7.9" Load Read: Ld "ld", Ldu "ldu";
    "9.7.9" Store Write: St "st";
    "9.7.9" Store Unbounded: StAsync "st.async", StBulk "st.bulk";
    "9.7.9" Multimem Unbounded: Multimem "multimem";
    "9.7.9" Address None: Prefetch "prefetch", Prefetchu "prefetchu", Applypriority "applypriority",
        Createpolicy "createpolicy", Isspacep "isspacep", Mapa "mapa", Getctarank "getctarank";
    "9.7.9" Address Unbounded: Discard "discard", Tensormap "tensormap";
    "9.7.9" Conversion None: Cvta "cvta", Cvt "cvt";
    "9.7.9" AsyncCopy Read: CpAsync "cp.async";
    "9.7.9" AsyncCopy Unbounded: CpAsyncBulk "cp.async.bulk", CpReduce "cp.reduce";
    "9.7.10" Texture Read: Tex "tex", Tld4 "tld4", Txq "txq";
    "9.7.10" Texture None: Istypep "istypep";
    "9.7.11" Surface Read: Suld "suld";
    "9.7.11" Surface Unbounded: Sust "sust", Sured "sured";
    "9.7.11" Surface None: Suq "suq";
    "9.7.12" ControlFlow None: Bra "bra", Ret "ret", Exit "exit";
    "9.7.12" ControlFlow Unbounded: Brx "brx", Call "call";
    "9.7.13" Barrier None: Bar "bar", BarWarp "bar.warp", Barrier "barrier",
        BarrierCluster "barrier.cluster";
    "9.7.13" Fence None: Membar "membar", Fence "fence";
    "9.7.13" Atomic Unbounded: Atom "atom";
    "9.7.13" Reduction Unbounded: Red "red", RedAsync "red.async";
    "9.7.13" Warp None: Vote "vote", Match "match", Activemask "activemask", Redux "redux",
        Elect "elect";
    "9.7.13" Grid None: Griddepcontrol "griddepcontrol",
        Clusterlaunchcontrol "clusterlaunchcontrol";
    "9.7.13" AsyncBarrier None: Mbarrier "mbarrier";
    "9.7.14" Matrix None: WmmaMma "wmma.mma", Mma "mma", Ldmatrix "ldmatrix", Stmatrix "stmatrix",
        Movmatrix "movmatrix";
    "9.7.14" Matrix Read: WmmaLoad "wmma.load";
    "9.7.14" Matrix Unbounded: WmmaStore "wmma.store";
    "9.7.15" Matrix None: Wgmma "wgmma";
    "9.7.16" Matrix None: Tcgen05 "tcgen05";
    "9.7.17" Stack None: Stacksave "stacksave", Stackrestore "stackrestore", Alloca "alloca";
    "9.7.18" Video None: Vadd "vadd", Vsub "vsub", Vabsdiff "vabsdiff", Vmin "vmin", Vmax "vmax",
        Vshl "vshl", Vshr "vshr", Vmad "vmad", Vset "vset", Vadd2 "vadd2", Vsub2 "vsub2",
        Vavrg2 "vavrg2", Vabsdiff2 "vabsdiff2", Vmin2 "vmin2", Vmax2 "vmax2", Vset2 "vset2",
        Vadd4 "vadd4", Vsub4 "vsub4", Vavrg4 "vavrg4", Vabsdiff4 "vabsdiff4", Vmin4 "vmin4",
        Vmax4 "vmax4", Vset4 "vset4";
    "9.7.19" Miscellaneous None: Brkpt "brkpt", Nanosleep "nanosleep", Pmevent "pmevent",
        Trap "trap", Setmaxnreg "setmaxnreg";
}

/// How an access is ordered with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Semantics {
    Weak,
    Relaxed,
    Acquire,
    Release,
    AcquireRelease,
    Volatile,
    /// To memory of a device, never repeated or combined.
    MemoryMapped,
}

impl Semantics {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "weak" => Self::Weak,
            "relaxed" => Self::Relaxed,
            "acquire" => Self::Acquire,
            "release" => Self::Release,
            "acq_rel" => Self::AcquireRelease,
            "volatile" => Self::Volatile,
            "mmio" => Self::MemoryMapped,
            _ => return None,
        })
    }
}

/// The part of an integer product that `mul` and `mad` give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductPart {
    Low,
    High,
    Wide,
}

impl ProductPart {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "lo" => Self::Low,
            "hi" => Self::High,
            "wide" => Self::Wide,
            _ => return None,
        })
    }
}

/// An opcode with its modifiers: `ld.global.v4.f32`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opcode {
    text: Box<str>,
    pub mnemonic: Mnemonic,
}

impl Opcode {
    /// Finds the instruction with the longest name that `text` begins with.
    pub fn parse(text: impl Into<Box<str>>) -> Self {
        static BY_NAME: LazyLock<Vec<OpcodeRow>> = LazyLock::new(|| {
            let mut rows = INSTRUCTIONS.to_vec();
            rows.sort_unstable_by_key(|row| row.name);
            rows
        });
        let text = text.into();
        let first = text.split('.').next().unwrap_or_default();
        let end = BY_NAME.partition_point(|row| row.name <= &*text);
        // All names between an instruction and its opcode in sorted order begin with that
        // instruction.
        let mut family = BY_NAME[..end].iter().rev().take_while(|row| row.name.starts_with(first));
        let begins = |name: &str| text.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let mnemonic = family.find(|row| begins(row.name)).map(|row| row.mnemonic);
        Self { mnemonic: mnemonic.unwrap_or(Mnemonic::Unknown), text }
    }

    /// As it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn class(&self) -> Class {
        self.row().map_or(Class::Unknown, |row| row.class)
    }

    pub fn effect(&self) -> Effect {
        self.row().map_or(Effect::None, |row| row.effect)
    }

    fn row(&self) -> Option<&'static OpcodeRow> {
        INSTRUCTIONS.get(self.mnemonic as usize)
    }

    /// The parts behind the first dot.
    pub fn modifiers(&self) -> impl DoubleEndedIterator<Item = &str> + Clone {
        self.text.split_once('.').into_iter().flat_map(|(_, modifiers)| modifiers.split('.'))
    }

    /// The types among the modifiers.
    pub fn types(&self) -> impl DoubleEndedIterator<Item = Scalar> {
        self.modifiers().filter_map(Scalar::from_name)
    }

    /// The state spaces among the modifiers; none for generic addresses.
    pub fn spaces(&self) -> impl Iterator<Item = StateSpace> {
        self.modifiers().filter_map(StateSpace::from_modifier)
    }

    /// The part of the product that it gives.
    pub fn part(&self) -> Option<ProductPart> {
        self.modifiers().find_map(ProductPart::from_name)
    }

    /// The first memory semantics among the modifiers.
    pub fn semantics(&self) -> Option<Semantics> {
        self.modifiers().find_map(Semantics::from_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_the_order_of_mnemonics() {
        for (index, row) in INSTRUCTIONS.iter().enumerate() {
            assert_eq!(row.mnemonic as usize, index);
            assert_eq!(Opcode::parse(row.name).mnemonic, row.mnemonic);
        }
    }

    #[test]
    fn opcode_has_the_longest_name_of_the_table() {
        for (text, mnemonic) in [
            ("st.global.f32", Mnemonic::St),
            ("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32", Mnemonic::StAsync),
            ("cp.async.ca.shared.global", Mnemonic::CpAsync),
            ("cp.async.bulk.global.shared::cta.bulk_group", Mnemonic::CpAsyncBulk),
            ("bar.sync", Mnemonic::Bar),
            ("bar.warp.sync", Mnemonic::BarWarp),
            ("barrier.cluster.arrive", Mnemonic::BarrierCluster),
            ("red.global.add.u32", Mnemonic::Red),
            ("redux.sync.add.u32", Mnemonic::Redux),
            ("ret", Mnemonic::Ret),
            ("", Mnemonic::Unknown),
            ("stx.global", Mnemonic::Unknown),
            ("s", Mnemonic::Unknown),
            ("wmma", Mnemonic::Unknown),
        ] {
            assert_eq!(Opcode::parse(text).mnemonic, mnemonic, "{text}");
        }
        assert_eq!(Opcode::parse("stx.global").class(), Class::Unknown);
    }

    #[test]
    fn modifiers_are_typed() {
        let opcode = Opcode::parse("cp.async.bulk.shared::cluster.global.L2::cache_hint");
        assert_eq!(Vec::from_iter(opcode.spaces()), [StateSpace::Shared, StateSpace::Global]);
        assert_eq!(Vec::from_iter(Opcode::parse("cvt.rn.f16x2.f32").types()), [Scalar::F16x2, Scalar::F32]);
        assert_eq!(Opcode::parse("ld.mmio.relaxed.sys.u32").semantics(), Some(Semantics::MemoryMapped));
        assert_eq!(Opcode::parse("ld.f32").semantics(), None);
    }
}
