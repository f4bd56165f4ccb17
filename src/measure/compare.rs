//! Compares the bytes of two result buffers and reports the first difference.
//!
//! In: the baseline's bytes and a candidate's, the element type and how closely they must
//! agree. Out: a [`Difference`] or nothing. Pure. Integers must agree exactly; floats within
//! |got - expected| <= absolute + relative * |expected|. A NaN agrees with a NaN only, an
//! infinity with the same infinity only.
//!
//! Without an absolute tolerance, it is derived from the magnitude of the numbers in the buffer:
//! where large terms cancel, results may differ by the rounding of the terms.

use super::outcome::Difference;
use crate::cuda::{Element, Scalar};
use crate::process::{ScopedWork, spawn_or_run};
use crate::workload::default_relative_tolerance;

/// How closely floats must agree, as the comment or the default gives it. Both are 0 for integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    pub relative: f64,
    /// `None`: `ABSOLUTE_SHARE` x `relative` x the median magnitude of the expected numbers.
    pub absolute: Option<f64>,
}

/// See [`Tolerance::absolute`].
const ABSOLUTE_SHARE: f64 = 0.1;

/// Number of elements whose median magnitude represents that of a buffer.
pub(crate) const MAGNITUDE_SAMPLE: usize = 4096;

impl Tolerance {
    /// Returns the tolerance for a scalar type without a `check` clause.
    pub fn for_scalar(scalar: Scalar) -> Tolerance {
        Tolerance { relative: default_relative_tolerance(scalar), absolute: None }
    }

    /// Tells whether it depends on the magnitude of the numbers in a buffer.
    pub(crate) fn needs_magnitude(self) -> bool {
        self.absolute.is_none() && self.relative > 0.0
    }

    /// Resolves it for a buffer with this [`magnitude`], which is used only if it is needed.
    pub(crate) fn resolve(self, magnitude: f64) -> ResolvedTolerance {
        let absolute = self.absolute.unwrap_or(ABSOLUTE_SHARE * self.relative * magnitude);
        ResolvedTolerance { relative: self.relative, absolute }
    }
}

/// Compares `got` with `expected`, both the contents of a buffer called `name`. Buffers of
/// different length differ at the first element that only one has.
pub fn compare(name: &str, element: &Element, tolerance: Tolerance, expected: &[u8], got: &[u8]) -> Option<Difference> {
    let layout = Layout::of(element);
    let resolved = tolerance.resolve(match tolerance.needs_magnitude() && expected != got {
        true => magnitude(element, expected),
        false => 0.0,
    });
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(16));
    // A slice for each thread, whole elements, and none so small that starting the thread costs
    // more than it saves.
    let slice = (expected.len() / threads).max(1 << 20).next_multiple_of(layout.stride);
    let pairs: Vec<_> = expected.chunks(slice).zip(got.chunks(slice)).enumerate().collect();
    let scan = |&(i, (expected, got)): &(usize, (&[u8], &[u8]))| {
        scan(element.scalar, layout, resolved, (i * slice / layout.stride) as u64, expected, got)
    };
    let parts: Vec<ScanResult> = if pairs.len() <= 1 {
        pairs.iter().map(scan).collect()
    } else {
        std::thread::scope(|scope| {
            let running: Vec<_> = pairs.iter().map(|pair| spawn_or_run(scope, move || scan(pair))).collect();
            running.into_iter().map(ScopedWork::join).collect()
        })
    };
    let of = (expected.len() / layout.stride) as u64;
    let missing = (expected.len().abs_diff(got.len()) / layout.stride) as u64;
    let count = parts.iter().map(|part| part.count).sum::<u64>() + missing;
    if count == 0 {
        return None;
    }
    let first = parts.into_iter().find_map(|part| part.first);
    let (index, lane, expected, got) = first.unwrap_or_else(|| {
        let shared = (expected.len().min(got.len()) / layout.stride) as u64;
        (shared, 0, "present".to_owned(), "missing".to_owned())
    });
    Some(Difference { buffer: name.to_owned(), index, lane, expected, got, count, of })
}

/// The difference of two buffers of which it is known that `count` of `of` elements differ, and
/// what stands in both at the first scalar that does, whose position counts the lanes of all
/// elements.
pub(crate) fn difference(
    name: &str,
    element: &Element,
    (count, of): (u64, u64),
    first: u64,
    (expected, got): (&[u8], &[u8]),
) -> Difference {
    let (scalar, lanes) = (element.scalar, u64::from(element.lanes.max(1)));
    let show = |bytes| Value::decode(scalar, bytes).show(scalar);
    let (index, lane) = (first / lanes, (first % lanes) as u8);
    Difference { buffer: name.to_owned(), index, lane, expected: show(expected), got: show(got), count, of }
}

/// The largest difference of a number of `got` from `expected`, as a share of what the tolerance
/// allows it; both buffers agree.
pub(crate) fn tolerance_used(element: &Element, tolerance: Tolerance, expected: &[u8], got: &[u8]) -> f64 {
    if expected == got {
        return 0.0;
    }
    let resolved = tolerance.resolve(if tolerance.needs_magnitude() { magnitude(element, expected) } else { 0.0 });
    let (scalar, size) = (element.scalar, element.scalar.size());
    let share = |(a, b): (&[u8], &[u8])| match (Value::decode(scalar, a), Value::decode(scalar, b)) {
        (Value::Float(a), Value::Float(b)) => resolved.share(a, b),
        _ => 0.0,
    };
    let pairs = expected.chunks_exact(size).zip(got.chunks_exact(size));
    pairs.filter(|(a, b)| a != b).map(share).fold(0.0, f64::max)
}

/// A tolerance for one buffer: both parts are numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ResolvedTolerance {
    pub(crate) relative: f64,
    pub(crate) absolute: f64,
}

impl ResolvedTolerance {
    /// Tells whether a finite `got` is within the tolerance of `expected`.
    fn allow(self, expected: f64, got: f64) -> bool {
        (got - expected).abs() <= self.difference_from(expected)
    }

    /// The largest difference from an expected float that is permitted.
    fn difference_from(self, expected: f64) -> f64 {
        self.absolute + self.relative * expected.abs()
    }

    /// The share of the tolerance that the difference takes of two floats that agree; 0 where they
    /// are equal or not finite.
    fn share(self, expected: f64, got: f64) -> f64 {
        let difference = (got - expected).abs();
        let is_counted = difference > 0.0 && difference.is_finite();
        if is_counted { difference / self.difference_from(expected) } else { 0.0 }
    }
}

/// Returns the median magnitude of the finite non-zero numbers of a buffer, estimated from a
/// sample in a large one; 0 if there are none.
pub(crate) fn magnitude(element: &Element, bytes: &[u8]) -> f64 {
    let layout = Layout::of(element);
    let count = bytes.len() / layout.stride;
    let of = |index: usize| bytes.get(index * layout.stride..)?.get(..layout.scalar);
    median_magnitude(element.scalar, sample(count).filter_map(of))
        .or_else(|| median_magnitude(element.scalar, (0..count).filter_map(of)))
        .unwrap_or(0.0)
}

/// Returns the indices of the sampled elements in a buffer of `count`.
pub(crate) fn sample(count: usize) -> impl Iterator<Item = usize> {
    // A step that has no factor in common with the rows of a matrix: else a sample may be a column
    // of it.
    let step = move |number: usize| (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize % count.max(1);
    (0..count.min(MAGNITUDE_SAMPLE)).map(move |number| if count > MAGNITUDE_SAMPLE { step(number) } else { number })
}

/// The median magnitude of the first of these scalars that are finite and not 0; `None` where
/// none is.
pub(crate) fn median_magnitude(scalar: Scalar, scalars: impl Iterator<Item = impl AsRef<[u8]>>) -> Option<f64> {
    let of = |bytes: &[u8]| match Value::decode(scalar, bytes) {
        Value::Float(value) if value.is_finite() && value != 0.0 => Some(value.abs()),
        _ => None,
    };
    let mut found: Vec<f64> = scalars.filter_map(|bytes| of(bytes.as_ref())).take(MAGNITUDE_SAMPLE).collect();
    let middle = found.len().checked_sub(1)? / 2;
    Some(*found.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// The layout of scalars in an element.
#[derive(Clone, Copy)]
struct Layout {
    stride: usize,
    scalar: usize,
    lanes: usize,
}

impl Layout {
    fn of(element: &Element) -> Layout {
        let stride = element.size().max(1);
        let scalar = element.scalar.size();
        Layout { stride, scalar, lanes: usize::from(element.lanes.max(1)).min(stride / scalar) }
    }
}

/// What one thread found: how many elements differ, and the first (index, lane, expected, got).
#[derive(Default)]
struct ScanResult {
    count: u64,
    first: Option<(u64, u8, String, String)>,
}

fn scan(
    scalar: Scalar,
    layout: Layout,
    tolerance: ResolvedTolerance,
    first_index: u64,
    expected: &[u8],
    got: &[u8],
) -> ScanResult {
    /// Elements that are compared as bytes before any is decoded: most of a buffer agrees to
    /// the bit.
    const ELEMENTS_PER_RUN: usize = 256;
    let mut part = ScanResult::default();
    let run = ELEMENTS_PER_RUN * layout.stride;
    for (r, (expected, got)) in expected.chunks(run).zip(got.chunks(run)).enumerate() {
        if expected == got || all_within(scalar, tolerance, expected, got) {
            continue;
        }
        let elements = expected.chunks_exact(layout.stride).zip(got.chunks_exact(layout.stride));
        for (i, (expected, got)) in elements.enumerate() {
            let lanes = expected.chunks_exact(layout.scalar).zip(got.chunks_exact(layout.scalar)).take(layout.lanes);
            let differing = lanes.enumerate().find_map(|(lane, (a, b))| {
                if a == b {
                    return None;
                }
                let (a, b) = (Value::decode(scalar, a), Value::decode(scalar, b));
                (!a.agrees(b, tolerance)).then_some((lane as u8, a, b))
            });
            let Some((lane, a, b)) = differing else {
                continue;
            };
            part.count += 1;
            let index = first_index + (r * ELEMENTS_PER_RUN + i) as u64;
            part.first.get_or_insert_with(|| (index, lane, a.show(scalar), b.show(scalar)));
        }
    }
    part
}

/// Tells whether all floats are finite and within the tolerance; if false, each must be compared.
/// This is the fast path: results with other rounding differ in most numbers of a buffer.
fn all_within(scalar: Scalar, tolerance: ResolvedTolerance, expected: &[u8], got: &[u8]) -> bool {
    match scalar {
        Scalar::F64 => scan_floats(tolerance, expected, got, f64::from_le_bytes),
        Scalar::F32 => scan_floats(tolerance, expected, got, |bytes| f32::from_le_bytes(bytes).into()),
        Scalar::Bf16 => scan_floats(tolerance, expected, got, |bytes| decode_bfloat(u16::from_le_bytes(bytes))),
        Scalar::F16 => scan_floats(tolerance, expected, got, |bytes| decode_half(u16::from_le_bytes(bytes))),
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => {
            false
        }
    }
}

/// [`all_within`] for floats of `SIZE` bytes, without a branch in the loop.
fn scan_floats<const SIZE: usize>(
    tolerance: ResolvedTolerance,
    expected: &[u8],
    got: &[u8],
    decode: impl Fn([u8; SIZE]) -> f64,
) -> bool {
    let ((expected, []), (got, [])) = (expected.as_chunks::<SIZE>(), got.as_chunks::<SIZE>()) else { return false };
    let is_near = |(&a, &b): (&[u8; SIZE], &[u8; SIZE])| {
        let (a, b) = (decode(a), decode(b));
        // Neither a NaN nor an infinity is near anything.
        tolerance.allow(a, b) & ((b - a).abs() < f64::INFINITY)
    };
    expected.len() == got.len() && expected.iter().zip(got).fold(true, |all, pair| all & is_near(pair))
}

/// A scalar of a buffer.
#[derive(Clone, Copy)]
enum Value {
    Integer(i128),
    Float(f64),
}

impl Value {
    /// `bytes` are of the scalar's size; missing ones count as 0.
    fn decode(scalar: Scalar, bytes: &[u8]) -> Value {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(bytes) {
            *to = *from;
        }
        let bits = u64::from_le_bytes(word);
        match scalar {
            Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => Value::Integer(bits.into()),
            Scalar::I8 => Value::Integer((bits as i8).into()),
            Scalar::I16 => Value::Integer((bits as i16).into()),
            Scalar::I32 => Value::Integer((bits as i32).into()),
            Scalar::I64 => Value::Integer((bits as i64).into()),
            Scalar::F16 => Value::Float(decode_half(bits as u16)),
            Scalar::Bf16 => Value::Float(decode_bfloat(bits as u16)),
            Scalar::F32 => Value::Float(f32::from_bits(bits as u32).into()),
            Scalar::F64 => Value::Float(f64::from_bits(bits)),
        }
    }

    /// Formats it with the fewest digits that identify it.
    fn show(self, scalar: Scalar) -> String {
        match self {
            Value::Integer(value) => value.to_string(),
            Value::Float(value) if scalar == Scalar::F64 => format!("{value:?}"),
            Value::Float(value) => format!("{:?}", value as f32),
        }
    }

    /// Whether `got` is close enough to `self`, the expected value.
    fn agrees(self, got: Value, tolerance: ResolvedTolerance) -> bool {
        match (self, got) {
            (Value::Float(a), Value::Float(b)) if a.is_nan() || b.is_nan() => a.is_nan() && b.is_nan(),
            (Value::Float(a), Value::Float(b)) if a.is_infinite() || b.is_infinite() => a == b,
            (Value::Float(a), Value::Float(b)) => tolerance.allow(a, b),
            (Value::Integer(a), Value::Integer(b)) => a == b,
            _ => false,
        }
    }
}

/// IEEE 754 binary16, without a branch.
fn decode_half(bits: u16) -> f64 {
    // Exponents are 112 less in a half than in a float, whose subnormal numbers take those of the
    // half for what they are.
    let magnitude = f32::from_bits(u32::from(bits & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
    let beyond = if bits & 0x3ff == 0 { f32::INFINITY } else { f32::NAN };
    let magnitude = if bits & 0x7c00 == 0x7c00 { beyond } else { magnitude };
    f64::from(f32::from_bits(magnitude.to_bits() | u32::from(bits & 0x8000) << 16))
}

/// The upper half of an IEEE 754 binary32.
fn decode_bfloat(bits: u16) -> f64 {
    f32::from_bits(u32::from(bits) << 16).into()
}
