//! What the numbers of a buffer or an argument are: scalars of the device, and short vectors of
//! them.

use serde::{Deserialize, Serialize};

/// A scalar type of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scalar {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

impl Scalar {
    pub const ALL: [Scalar; 12] = {
        use Scalar::*;
        [I8, U8, I16, U16, I32, U32, I64, U64, F16, Bf16, F32, F64]
    };

    /// Bytes.
    pub fn size(self) -> usize {
        match self {
            Scalar::I8 | Scalar::U8 => 1,
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::Bf16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64)
    }

    /// Returns the smallest and largest value of an integer type, or `None` for floating
    /// types.
    pub fn integer_bounds(self) -> Option<(i128, i128)> {
        match self {
            Scalar::I8 => Some((i8::MIN.into(), i8::MAX.into())),
            Scalar::U8 => Some((0, u8::MAX.into())),
            Scalar::I16 => Some((i16::MIN.into(), i16::MAX.into())),
            Scalar::U16 => Some((0, u16::MAX.into())),
            Scalar::I32 => Some((i32::MIN.into(), i32::MAX.into())),
            Scalar::U32 => Some((0, u32::MAX.into())),
            Scalar::I64 => Some((i64::MIN.into(), i64::MAX.into())),
            Scalar::U64 => Some((0, u64::MAX.into())),
            Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64 => None,
        }
    }

    /// The name in CUDA C++.
    pub fn name(self) -> &'static str {
        match self {
            Scalar::I8 => "signed char",
            Scalar::U8 => "unsigned char",
            Scalar::I16 => "short",
            Scalar::U16 => "unsigned short",
            Scalar::I32 => "int",
            Scalar::U32 => "unsigned int",
            Scalar::I64 => "long long",
            Scalar::U64 => "unsigned long long",
            Scalar::F16 => "half",
            Scalar::Bf16 => "bfloat16",
            Scalar::F32 => "float",
            Scalar::F64 => "double",
        }
    }
}

/// What a buffer is made of: `lanes` scalars (4 for `float4`), one after the other (12 bytes
/// for `float3`, as in CUDA).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Element {
    pub scalar: Scalar,
    pub lanes: u8,
}

impl Element {
    /// Bytes.
    pub fn size(self) -> usize {
        self.scalar.size() * usize::from(self.lanes)
    }
}
