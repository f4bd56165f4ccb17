//! Parses mnemonic and modifiers into the interpreter's operation, with every modifier that
//! changes a value.

use crate::ptx::{Mnemonic, Scalar};

/// An operation that gives one value from at most four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alu {
    Move,
    Add,
    Sub,
    MulLow,
    MulHigh,
    MulWide,
    MadLow,
    MadHigh,
    MadWide,
    Mul24 {
        high: bool,
    },
    Mad24 {
        high: bool,
    },
    Div,
    Rem,
    Min,
    Max,
    Abs,
    Neg,
    And,
    Or,
    Xor,
    Not,
    LogicalNot,
    ShiftLeft,
    ShiftRight,
    FunnelLeft {
        wrap: bool,
    },
    FunnelRight {
        wrap: bool,
    },
    Fma,
    Sqrt,
    Rsqrt,
    Rcp,
    Ex2,
    Lg2,
    Sin,
    Cos,
    Tanh,
    CopySign,
    Test(Test),
    Popc,
    Clz,
    Brev,
    Bfind {
        amount: bool,
    },
    Bfe,
    Bfi,
    BitMask {
        clamp: bool,
    },
    SignExtend {
        clamp: bool,
    },
    Sad,
    Lop3,
    Permute(Permute),
    Select,
    SelectSign,
    Dot4 {
        b: Scalar,
    },
    Dot2 {
        b: Scalar,
        high: bool,
    },
    /// `set`: the type of the result is the destination's, `Operation::kind` the source's.
    Set {
        compare: Compare,
        to: Scalar,
    },
    Convert {
        from: Scalar,
    },
    /// Two floats to a packed pair, the first in the upper half.
    ConvertPair {
        from: Scalar,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Finite,
    Infinite,
    Number,
    NotNumber,
    Normal,
    Subnormal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permute {
    Index,
    Forward4,
    Backward4,
    Replicate8,
    EdgeLeft,
    EdgeRight,
    Replicate16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// True also where an operand is not a number.
    EqU,
    NeU,
    LtU,
    LeU,
    GtU,
    GeU,
    BothNumbers,
    AnyNan,
}

impl Compare {
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "eq" => Self::Eq,
            "ne" => Self::Ne,
            "lt" | "lo" => Self::Lt,
            "le" | "ls" => Self::Le,
            "gt" | "hi" => Self::Gt,
            "ge" | "hs" => Self::Ge,
            "equ" => Self::EqU,
            "neu" => Self::NeU,
            "ltu" => Self::LtU,
            "leu" => Self::LeU,
            "gtu" => Self::GtU,
            "geu" => Self::GeU,
            "num" => Self::BothNumbers,
            "nan" => Self::AnyNan,
            _ => return None,
        })
    }

    /// Returns whether the relation holds for an ordering. `None` is "unordered".
    pub fn holds_for(self, ordering: Option<std::cmp::Ordering>) -> bool {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let Some(ordering) = ordering else {
            return matches!(
                self,
                Self::EqU | Self::NeU | Self::LtU | Self::LeU | Self::GtU | Self::GeU | Self::AnyNan
            );
        };
        match self {
            Self::Eq | Self::EqU => ordering == Equal,
            Self::Ne | Self::NeU => ordering != Equal,
            Self::Lt | Self::LtU => ordering == Less,
            Self::Le | Self::LeU => ordering != Greater,
            Self::Gt | Self::GtU => ordering == Greater,
            Self::Ge | Self::GeU => ordering != Less,
            Self::BothNumbers => true,
            Self::AnyNan => false,
        }
    }
}

/// How `setp` and `set` combine their result with a further predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    None,
    And,
    Or,
    Xor,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Round {
    #[default]
    Nearest,
    Zero,
    Down,
    Up,
}

/// Modifiers of a value-giving operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mode {
    pub round: Round,
    /// To an integral value (`cvt.rzi`), also where the result is a float.
    pub integral: bool,
    pub saturate: bool,
    /// Negative results become zero (`.relu`).
    pub relu: bool,
    /// A NaN operand makes min and max NaN (`.NaN`).
    pub nan: bool,
}

impl Mode {
    pub fn from_modifiers(modifiers: &[&str]) -> Self {
        let mut mode = Self::default();
        for &modifier in modifiers {
            match modifier {
                "rn" | "rna" => mode.round = Round::Nearest,
                "rz" => mode.round = Round::Zero,
                "rm" => mode.round = Round::Down,
                "rp" => mode.round = Round::Up,
                "rni" | "rzi" | "rmi" | "rpi" => {
                    mode.integral = true;
                    mode.round = match modifier {
                        "rni" => Round::Nearest,
                        "rzi" => Round::Zero,
                        "rmi" => Round::Down,
                        _ => Round::Up,
                    };
                }
                "sat" | "satfinite" => mode.saturate = true,
                "relu" => mode.relu = true,
                "NaN" => mode.nan = true,
                _ => {}
            }
        }
        mode
    }
}

/// Returns the arithmetic operation of an opcode with its type; `None` for any other opcode.
pub(crate) fn parse_arithmetic(mnemonic: Mnemonic, modifiers: &[&str]) -> Option<(Alu, Scalar)> {
    use crate::ptx::Mnemonic::*;
    let has = |word: &str| modifiers.contains(&word);
    let types: Vec<Scalar> = modifiers.iter().filter_map(|m| Scalar::from_name(m)).collect();
    let kind = types.last().copied()?;
    let part = |low, high, wide| {
        if has("wide") {
            wide
        } else if has("hi") {
            high
        } else {
            low
        }
    };
    let alu = match mnemonic {
        Mov => Alu::Move,
        Add => Alu::Add,
        Sub => Alu::Sub,
        Mul => part(Alu::MulLow, Alu::MulHigh, Alu::MulWide),
        Mad => part(if is_float(kind) { Alu::Fma } else { Alu::MadLow }, Alu::MadHigh, Alu::MadWide),
        Mul24 => Alu::Mul24 { high: has("hi") },
        Mad24 => Alu::Mad24 { high: has("hi") },
        Div => Alu::Div,
        Rem => Alu::Rem,
        Min => Alu::Min,
        Max => Alu::Max,
        Abs => Alu::Abs,
        Neg => Alu::Neg,
        And => Alu::And,
        Or => Alu::Or,
        Xor => Alu::Xor,
        Not => Alu::Not,
        Cnot => Alu::LogicalNot,
        Shl => Alu::ShiftLeft,
        Shr => Alu::ShiftRight,
        Shf if has("l") => Alu::FunnelLeft { wrap: has("wrap") },
        Shf => Alu::FunnelRight { wrap: has("wrap") },
        Fma => Alu::Fma,
        Sqrt => Alu::Sqrt,
        Rsqrt => Alu::Rsqrt,
        Rcp => Alu::Rcp,
        Ex2 => Alu::Ex2,
        Lg2 => Alu::Lg2,
        Sin => Alu::Sin,
        Cos => Alu::Cos,
        Tanh => Alu::Tanh,
        Copysign => Alu::CopySign,
        Testp => Alu::Test(match *modifiers.first()? {
            "finite" => Test::Finite,
            "infinite" => Test::Infinite,
            "number" => Test::Number,
            "notanumber" => Test::NotNumber,
            "normal" => Test::Normal,
            _ => Test::Subnormal,
        }),
        Popc => Alu::Popc,
        Clz => Alu::Clz,
        Brev => Alu::Brev,
        Bfind => Alu::Bfind { amount: has("shiftamt") },
        Bfe => Alu::Bfe,
        Bfi => Alu::Bfi,
        Bmsk => Alu::BitMask { clamp: has("clamp") },
        Szext => Alu::SignExtend { clamp: has("clamp") },
        Sad => Alu::Sad,
        Lop3 if !has("BoolOp") => Alu::Lop3,
        Prmt => Alu::Permute(match modifiers.last().copied()? {
            "f4e" => Permute::Forward4,
            "b4e" => Permute::Backward4,
            "rc8" => Permute::Replicate8,
            "ecl" => Permute::EdgeLeft,
            "ecr" => Permute::EdgeRight,
            "rc16" => Permute::Replicate16,
            _ => Permute::Index,
        }),
        Selp => Alu::Select,
        Slct => {
            // `slct.dtype.ctype`: the sign of the third operand decides.
            return Some((Alu::SelectSign, *types.last()?));
        }
        Dp4a if types.len() == 2 => return Some((Alu::Dot4 { b: types[1] }, types[0])),
        Dp2a if types.len() == 2 => {
            return Some((Alu::Dot2 { b: types[1], high: has("hi") }, types[0]));
        }
        Set if types.len() == 2 => {
            let compare = modifiers.iter().find_map(|m| Compare::from_name(m))?;
            return Some((Alu::Set { compare, to: types[0] }, types[1]));
        }
        Cvt if types.len() == 2 => {
            let pair = matches!(types[0], Scalar::F16x2 | Scalar::Bf16x2);
            let from = types[1];
            return Some((if pair { Alu::ConvertPair { from } } else { Alu::Convert { from } }, types[0]));
        }
        _ => return None,
    };
    Some((alu, kind))
}

pub(crate) fn is_float(kind: Scalar) -> bool {
    matches!(
        kind,
        Scalar::F16 | Scalar::F16x2 | Scalar::Bf16 | Scalar::Bf16x2 | Scalar::F32 | Scalar::F32x2 | Scalar::F64
    )
}

pub(crate) fn is_signed(kind: Scalar) -> bool {
    matches!(kind, Scalar::S8 | Scalar::S16 | Scalar::S32 | Scalar::S64)
}

/// Returns the bits of a value of this type (1 for a predicate).
pub(crate) fn bit_count(kind: Scalar) -> u32 {
    if kind == Scalar::Pred { 1 } else { kind.size() * 8 }
}
