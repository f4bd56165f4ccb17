//! The contents of buffers before a launch.
//!
//! Buffer, index -> bytes: a pure function, so that any element can be computed alone, in any
//! process, in any order. The n-th scalar of a random buffer is the n-th number of the stream
//! of its seed ([`Random`]).
//!
//! `out[n]` is poisoned: floating types with a quiet NaN that has a payload of its own (so that
//! what a kernel leaves unwritten shows in every comparison), integers with bytes 0xA5.

use super::buffer::{Buffer, Fill};
use super::random::Random;
use crate::comment::Value;
use crate::cuda::Scalar;
use std::ops::Range;

/// The largest element: `double4`.
pub const MAX_ELEMENT: usize = 32;

/// Writes the elements of `range` into `bytes`, which must have room for exactly these; returns
/// false, with nothing written, where it does not or the range goes beyond the buffer.
pub fn fill_bytes(buffer: &Buffer, range: Range<u64>, bytes: &mut [u8]) -> bool {
    let size = buffer.element.scalar.size();
    let elements = range.end.checked_sub(range.start).filter(|_| range.end <= buffer.count);
    let expected = elements.and_then(|elements| elements.checked_mul(buffer.element.size() as u64));
    if expected != Some(bytes.len() as u64) {
        return false;
    }
    let first = range.start * u64::from(buffer.element.lanes);
    if buffer.fill == Fill::Zeros {
        bytes.fill(0);
        return true;
    }
    if let Fill::File(file) = &buffer.fill {
        let start = usize::try_from(first).ok().and_then(|first| first.checked_mul(size));
        let part = start.and_then(|start| file.bytes().get(start..start.checked_add(bytes.len())?));
        return part.map(|part| bytes.copy_from_slice(part)).is_some();
    }
    let recipe = recipe(buffer);
    for (lane, into) in (first..).zip(bytes.chunks_exact_mut(size)) {
        into.copy_from_slice(&scalar_bits(buffer, recipe, lane).to_le_bytes()[..size]);
    }
    true
}

/// One element; the first [`size`](crate::cuda::Element::size) bytes are its own, the rest is
/// 0.
pub fn element_bytes(buffer: &Buffer, index: u64) -> [u8; MAX_ELEMENT] {
    let size = buffer.element.scalar.size();
    let (lanes, recipe) = (u64::from(buffer.element.lanes), recipe(buffer));
    let mut bytes = [0; MAX_ELEMENT];
    for (lane, into) in (0..lanes).zip(bytes.chunks_exact_mut(size)) {
        let bits = scalar_bits(buffer, recipe, index.wrapping_mul(lanes).wrapping_add(lane));
        into.copy_from_slice(&bits.to_le_bytes()[..size]);
    }
    bytes
}

/// The value of one scalar, counted over the lanes of all elements. Poison in a floating type
/// is not a number.
pub fn value(buffer: &Buffer, lane: u64) -> f64 {
    decode(buffer.element.scalar, scalar_bits(buffer, recipe(buffer), lane))
}

/// The value of the low bits as a scalar.
pub fn decode(scalar: Scalar, bits: u64) -> f64 {
    match scalar {
        Scalar::I8 => f64::from(bits as i8),
        Scalar::U8 => f64::from(bits as u8),
        Scalar::I16 => f64::from(bits as i16),
        Scalar::U16 => f64::from(bits as u16),
        Scalar::I32 => f64::from(bits as i32),
        Scalar::U32 => f64::from(bits as u32),
        Scalar::I64 => bits as i64 as f64,
        Scalar::U64 => bits as f64,
        Scalar::F16 => from_half(bits as u16),
        Scalar::Bf16 => f64::from(f32::from_bits((bits as u32 & 0xffff) << 16)),
        Scalar::F32 => f64::from(f32::from_bits(bits as u32)),
        Scalar::F64 => f64::from_bits(bits),
    }
}

/// The bits of a value in a scalar type: floats rounded to nearest, ties to even; integers
/// truncated and held at the ends of their range.
pub fn encode(scalar: Scalar, value: f64) -> u64 {
    match scalar {
        Scalar::I8 => value as i8 as u8 as u64,
        Scalar::U8 => value as u8 as u64,
        Scalar::I16 => value as i16 as u16 as u64,
        Scalar::U16 => value as u16 as u64,
        Scalar::I32 => value as i32 as u32 as u64,
        Scalar::U32 => value as u32 as u64,
        Scalar::I64 => value as i64 as u64,
        Scalar::U64 => value as u64,
        Scalar::F16 => u64::from(round_to(value, 10, 5) as u16),
        Scalar::Bf16 => u64::from(round_to(value, 7, 8) as u16),
        Scalar::F32 => u64::from((value as f32).to_bits()),
        Scalar::F64 => value.to_bits(),
    }
}

/// How the scalars of a buffer follow from its seed and their positions, where no more than
/// these is needed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Recipe {
    /// All have these bits.
    Bits(u64),
    /// Each is its own position.
    Iota,
    /// Random numbers of [lo, hi).
    Floats { lo: f64, hi: f64 },
    /// Random integers of which `lo` is the least (its low 64 bits) and of which there are
    /// `span` (0: 2^64).
    Integers { lo: u64, span: u64 },
}

/// The recipe of a buffer; `None` where the contents are a file's, a table's or a formula's.
pub(crate) fn recipe(buffer: &Buffer) -> Option<Recipe> {
    let scalar = buffer.element.scalar;
    Some(match buffer.fill {
        Fill::File(_) | Fill::Table(_) | Fill::Each(_) => return None,
        Fill::Zeros => Recipe::Bits(0),
        Fill::Poison | Fill::Overwritten => Recipe::Bits(poison(scalar)),
        Fill::Constant(value) => Recipe::Bits(encode(scalar, value)),
        Fill::Iota => Recipe::Iota,
        Fill::Random { lo, hi } => match scalar.integer_bounds() {
            None => Recipe::Floats { lo, hi },
            Some((least, most)) => {
                let (lo, hi) = ((lo.ceil() as i128).clamp(least, most), (hi.floor() as i128).clamp(least, most));
                Recipe::Integers { lo: lo as u64, span: ((hi - lo).max(0) as u128 + 1) as u64 }
            }
        },
    })
}

impl Recipe {
    /// The bits of a scalar, counted over the lanes of all elements.
    fn bits(self, scalar: Scalar, seed: u64, lane: u64) -> u64 {
        let random = || Random::number_at(seed, lane);
        match self {
            Recipe::Bits(bits) => bits,
            Recipe::Iota if scalar.is_float() => encode(scalar, lane as f64),
            Recipe::Iota => lane,
            Recipe::Floats { lo, hi } => random_float(scalar, random(), lo, hi),
            Recipe::Integers { lo, span } => lo.wrapping_add(match span {
                0 => random(),
                _ => ((u128::from(random()) * u128::from(span)) >> 64) as u64,
            }),
        }
    }
}

/// The bits of a scalar of a buffer with this [`recipe`], counted over the lanes of all
/// elements.
fn scalar_bits(buffer: &Buffer, recipe: Option<Recipe>, lane: u64) -> u64 {
    let scalar = buffer.element.scalar;
    if let Some(recipe) = recipe {
        return recipe.bits(scalar, buffer.seed, lane);
    }
    match &buffer.fill {
        Fill::File(file) => {
            let start = usize::try_from(lane).ok().and_then(|lane| lane.checked_mul(scalar.size()));
            let bytes = start.and_then(|start| file.bytes().get(start..start.checked_add(scalar.size())?));
            bytes.unwrap_or_default().iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
        }
        Fill::Table(bits) => usize::try_from(lane).ok().and_then(|lane| bits.get(lane).copied()).unwrap_or(0),
        Fill::Each(formula) => match formula.value(lane) {
            Some(Value::Int(value)) if !scalar.is_float() => value as u64,
            Some(value) => encode(scalar, value.as_f64()),
            // The elements that were probed have values (see `Formula::new`).
            None => 0,
        },
        Fill::Zeros | Fill::Poison | Fill::Overwritten | Fill::Constant(_) | Fill::Iota | Fill::Random { .. } => 0,
    }
}

/// A number of [lo, hi), from the 53 upper bits; never `hi` by rounding, unless the range is
/// empty.
fn random_float(scalar: Scalar, random: u64, lo: f64, hi: f64) -> u64 {
    let unit = (random >> 11) as f64 / (1u64 << 53) as f64;
    let bits = encode(scalar, lo + unit * (hi - lo));
    if decode(scalar, bits) < hi { bits } else { encode(scalar, lo) }
}

fn poison(scalar: Scalar) -> u64 {
    match scalar {
        Scalar::F16 => 0x7ea5,
        Scalar::Bf16 => 0x7fe5,
        Scalar::F32 => 0x7fe5_a5a5,
        Scalar::F64 => 0x7ffc_a5a5_a5a5_a5a5,
        _ => 0xa5a5_a5a5_a5a5_a5a5,
    }
}

/// The bits of a value in an IEEE format of this many bits of mantissa and exponent (16 in all),
/// rounded once.
fn round_to(value: f64, mantissa: u32, exponent: u32) -> u32 {
    let bias = (1i32 << (exponent - 1)) - 1;
    let infinity = ((1u32 << exponent) - 1) << mantissa;
    let sign = u32::from(value.is_sign_negative()) << (mantissa + exponent);
    if value.is_nan() {
        return sign | infinity | (1 << (mantissa - 1));
    }
    let size = value.abs();
    let power = ((size.to_bits() >> 52) as i32 - 1023).max(1 - bias);
    // In units of the last place at that power; exact, for it only moves the exponent of a normal
    // number.
    let units = if size.is_finite() {
        size * 2f64.powi(mantissa as i32 - power)
    } else {
        return sign | infinity;
    };
    let rounded = units.round_ties_even();
    if power > bias {
        return sign | infinity;
    }
    // A mantissa that rounds up to the next power carries into the exponent, up to infinity.
    let field = ((power + bias - 1) as u32) << mantissa;
    sign | (field + rounded as u32).min(infinity)
}

fn from_half(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match (exponent, mantissa) {
        (0, mantissa) => mantissa * 2f64.powi(-24),
        (31, 0.0) => f64::INFINITY,
        (31, _) => f64::NAN,
        (exponent, mantissa) => (1024.0 + mantissa) * 2f64.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::{decode, encode, fill_bytes};
    use crate::cuda::{Element, Scalar};
    use crate::workload::buffer::{Buffer, Fill};

    #[test]
    fn halves_are_rounded_to_nearest_even() {
        for (scalar, value, bits) in [
            (Scalar::F16, 0.0, 0x0000),
            (Scalar::F16, -0.0, 0x8000),
            (Scalar::F16, 1.0, 0x3c00),
            (Scalar::F16, -2.0, 0xc000),
            (Scalar::F16, 65504.0, 0x7bff),
            (Scalar::F16, 65519.9, 0x7bff),
            (Scalar::F16, 65520.0, 0x7c00),
            (Scalar::F16, 1.0 + 1.0 / 2048.0, 0x3c00),
            (Scalar::F16, 1.0 + 3.0 / 2048.0, 0x3c02),
            (Scalar::F16, 6.103515625e-5, 0x0400),
            (Scalar::F16, 5.960464477539063e-8, 0x0001),
            (Scalar::F16, 2.98e-8, 0x0000),
            (Scalar::F16, f64::INFINITY, 0x7c00),
            (Scalar::F16, 1.0 / 3.0, 0x3555),
            (Scalar::Bf16, 1.0, 0x3f80),
            (Scalar::Bf16, 1.0 / 3.0, 0x3eab),
            (Scalar::Bf16, 3.4e38, 0x7f80),
            (Scalar::Bf16, 1e-40, 0x0001),
        ] {
            assert_eq!(encode(scalar, value), bits, "{scalar:?} {value}");
        }
        // Every half has exactly one encoding, found again from its value.
        for scalar in [Scalar::F16, Scalar::Bf16] {
            for bits in 0..=0xffffu64 {
                let value = decode(scalar, bits);
                assert!(value.is_nan() || encode(scalar, value) == bits, "{scalar:?} {bits:#x}");
            }
        }
    }

    #[test]
    fn ranges_that_do_not_fit_write_nothing() {
        let element = Element { scalar: Scalar::F32, lanes: 1 };
        let buffer = Buffer { name: "x".into(), element, count: 4, fill: Fill::Iota, seed: 1 };
        let mut bytes = [7u8; 8];
        for (start, end) in [(0, 4), (3, 5), (2, 1), (0, u64::MAX)] {
            assert!(!fill_bytes(&buffer, start..end, &mut bytes));
        }
        assert_eq!(bytes, [7; 8]);
        assert!(fill_bytes(&buffer, 2..4, &mut bytes));
        assert_eq!(bytes, [0, 0, 0, 0x40, 0, 0, 0x40, 0x40]);
    }
}
