//! Contents of buffers: a pure function of (buffer, index).

use super::{Buffer, Element, Fill, Scalar};

/// Bytes of one scalar.
fn scalar_size(scalar: Scalar) -> usize {
    match scalar {
        Scalar::I8 | Scalar::U8 => 1,
        Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::Bf16 => 2,
        Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
        Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
    }
}

/// Bytes of one element.
pub fn element_size(element: &Element) -> usize {
    scalar_size(element.scalar) * usize::from(element.lanes.max(1))
}

/// Writes the bytes of the elements from `first_element` on into `out`.
pub fn fill_bytes(buffer: &Buffer, first_element: u64, out: &mut [u8]) {
    let size = scalar_size(buffer.element.scalar);
    let first = first_element * u64::from(buffer.element.lanes.max(1));
    for (i, bytes) in out.chunks_mut(size).enumerate() {
        let index = first + i as u64;
        let integer = !matches!(
            buffer.element.scalar,
            Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64
        );
        let value = match buffer.fill {
            Fill::Poison => {
                bytes.fill(0xa5);
                continue;
            }
            Fill::Zeros => 0.0,
            Fill::Iota => index as f64,
            Fill::Constant(v) => v,
            Fill::Random { lo, hi } => {
                let mut x = (index + 1)
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                    .wrapping_add(buffer.seed);
                x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                let unit = ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
                lo + (hi - lo) * unit
            }
        };
        let all = match buffer.element.scalar {
            Scalar::F32 => u64::from((value as f32).to_bits()),
            Scalar::F64 => value.to_bits(),
            _ if integer => value as i64 as u64,
            _ => u64::from((value as f32).to_bits() >> 16),
        };
        bytes.copy_from_slice(&all.to_le_bytes()[..bytes.len()]);
    }
}
