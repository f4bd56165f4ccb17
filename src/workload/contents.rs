//! Contents of a buffer before the launch, as a pure function of (buffer, index).

use super::{Buffer, Element, Fill, Scalar};

impl Scalar {
    /// Bytes of one value.
    pub fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }
}

impl Element {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        self.scalar.size() * usize::from(self.lanes)
    }
}

/// Writes the bytes of the elements from `first_element` on into `out`.
pub fn fill_bytes(buffer: &Buffer, first_element: u64, out: &mut [u8]) {
    let lanes = u64::from(buffer.element.lanes);
    for (index, bytes) in
        (first_element * lanes..).zip(out.chunks_mut(buffer.element.scalar.size()))
    {
        let value = match buffer.fill {
            Fill::Poison => f64::from_bits(0x7ff8_dead_beef_0000),
            Fill::Zeros => 0.0,
            Fill::Iota => (index / lanes) as f64,
            Fill::Constant(value) => value,
            Fill::Random { lo, hi } => lo + (hi - lo) * unit(buffer.seed, index),
        };
        let encoded = encode(buffer.element.scalar, value);
        bytes.copy_from_slice(&encoded[..bytes.len()]);
    }
}

/// A uniform number in [0, 1) (SplitMix64).
fn unit(seed: u64, index: u64) -> f64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

fn encode(scalar: Scalar, value: f64) -> [u8; 8] {
    let bits = match scalar {
        Scalar::F64 => value.to_bits(),
        Scalar::F32 => u64::from((value as f32).to_bits()),
        Scalar::Bf16 => u64::from((value as f32).to_bits() >> 16),
        Scalar::F16 => {
            // Truncation of a normal number; enough for contents.
            let bits = (value as f32).to_bits();
            let exponent = (bits >> 23 & 0xff) as i32 - 112;
            let sign = bits >> 16 & 0x8000;
            u64::from(if exponent <= 0 {
                sign
            } else {
                sign | (exponent as u32) << 10 | (bits >> 13 & 0x3ff)
            })
        }
        _ => value as i64 as u64,
    };
    bits.to_le_bytes()
}
