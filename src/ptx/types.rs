//! State spaces and fundamental types: NVIDIA, "PTX ISA", version 9.0, chapters 5.1 and 5.2.

/// The state space of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StateSpace {
    Global,
    Shared,
    Const,
    Local,
    Param,
    /// `.tex` (deprecated spelling of a texture variable).
    Texture,
}

/// A fundamental type of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    F32,
    F32x2,
    F64,
    /// `.texref`, `.samplerref`, `.surfref`: a handle.
    Opaque,
}

impl StateSpace {
    /// Reads a modifier without its dot; `shared` and `shared::cta` are the same space.
    pub fn from_modifier(modifier: &str) -> Option<Self> {
        Some(match modifier.split("::").next()? {
            "global" => Self::Global,
            "shared" => Self::Shared,
            "const" => Self::Const,
            "local" => Self::Local,
            "param" => Self::Param,
            _ => return None,
        })
    }
}

impl Scalar {
    /// The type that `name` (without its dot) spells.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "pred" => Self::Pred,
            "b8" => Self::B8,
            "b16" => Self::B16,
            "b32" => Self::B32,
            "b64" => Self::B64,
            "b128" => Self::B128,
            "u8" => Self::U8,
            "u16" => Self::U16,
            "u32" => Self::U32,
            "u64" => Self::U64,
            "s8" => Self::S8,
            "s16" => Self::S16,
            "s32" => Self::S32,
            "s64" => Self::S64,
            "f16" => Self::F16,
            "f16x2" => Self::F16x2,
            "bf16" => Self::Bf16,
            "bf16x2" => Self::Bf16x2,
            "f32" => Self::F32,
            "f32x2" => Self::F32x2,
            "f64" => Self::F64,
            "texref" | "samplerref" | "surfref" => Self::Opaque,
            _ => return None,
        })
    }

    /// Bytes that a value takes in memory (a predicate counts as 1, a handle as 8).
    pub fn size(self) -> u32 {
        match self {
            Self::Pred | Self::B8 | Self::U8 | Self::S8 => 1,
            Self::B16 | Self::U16 | Self::S16 | Self::F16 | Self::Bf16 => 2,
            Self::B32 | Self::U32 | Self::S32 | Self::F16x2 | Self::Bf16x2 | Self::F32 => 4,
            Self::B64 | Self::U64 | Self::S64 | Self::F32x2 | Self::F64 | Self::Opaque => 8,
            Self::B128 => 16,
        }
    }
}
