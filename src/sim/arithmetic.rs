//! Values of PTX operations.
//!
//! Operands and results are bits in the low part of a u64. Integers and f32/f64 are exact (f64
//! is rounded to nearest in every mode); approximations of the hardware (`.approx`) are the
//! correctly rounded values; 16-bit floats go through f32.

use super::float16::{from_bfloat16, from_half, to_bfloat16, to_half};
use super::operation::{Alu, Compare, Mode, Permute, Round, Test, bit_count, is_float, is_signed};
use super::program::Update;
use crate::ptx::Scalar;
use std::cmp::Ordering;
use std::num::FpCategory;

/// Returns the low `width` bits.
pub(crate) fn mask_bits(value: u64, width: u32) -> u64 {
    if width >= 64 { value } else { value & ((1 << width) - 1) }
}

/// The low `width` bits as a signed number.
pub(crate) fn sign_extend(value: u64, width: u32) -> i64 {
    if width == 0 || width >= 64 {
        return value as i64;
    }
    ((value << (64 - width)) as i64) >> (64 - width)
}

/// Returns the value of an operand of an integer type.
pub(crate) fn integer_value(value: u64, kind: Scalar) -> i128 {
    let width = bit_count(kind);
    if is_signed(kind) { i128::from(sign_extend(value, width)) } else { i128::from(mask_bits(value, width)) }
}

/// Computes the result of `alu` in type `kind`.
pub(crate) fn compute_result(alu: Alu, kind: Scalar, mode: Mode, v: [u64; 4]) -> u64 {
    inlined_result(alu, kind, mode, v)
}

/// The same for callers that know operation and type: nothing is chosen where it runs.
#[inline(always)]
pub(crate) fn inlined_result(alu: Alu, kind: Scalar, mode: Mode, v: [u64; 4]) -> u64 {
    match alu {
        Alu::Convert { from } => return convert_value(v[0], from, kind, mode),
        Alu::ConvertPair { from } => {
            let half = if kind == Scalar::F16x2 { Scalar::F16 } else { Scalar::Bf16 };
            return convert_value(v[0], from, half, mode) << 16 | convert_value(v[1], from, half, mode);
        }
        Alu::Set { compare: relation, to } => {
            return match (compare_values(relation, kind, v[0], v[1]), to) {
                (false, _) => 0,
                (true, Scalar::F32) => u64::from(1f32.to_bits()),
                (true, Scalar::F16) => 0x3c00,
                (true, Scalar::Bf16) => 0x3f80,
                (true, Scalar::F16x2) => 0x3c00_3c00,
                (true, _) => 0xffff_ffff,
            };
        }
        Alu::Select => return if v[2] & 1 != 0 { v[0] } else { v[1] },
        Alu::SelectSign => {
            let positive =
                if kind == Scalar::F32 { f32::from_bits(v[2] as u32) >= 0.0 } else { sign_extend(v[2], 32) >= 0 };
            return if positive { v[0] } else { v[1] };
        }
        Alu::Move => return v[0],
        Alu::And => return v[0] & v[1],
        Alu::Or => return v[0] | v[1],
        Alu::Xor => return v[0] ^ v[1],
        Alu::Not => return mask_bits(!v[0], bit_count(kind)),
        _ => {}
    }
    match kind {
        Scalar::F32 => compute_single(alu, mode, v),
        Scalar::F64 => compute_double(alu, mode, v),
        Scalar::F16 => {
            u64::from(to_half(f32_of(compute_single(alu, mode, v.map(|x| u64::from(from_half(x as u16).to_bits()))))))
        }
        Scalar::Bf16 => u64::from(to_bfloat16(f32_of(compute_single(
            alu,
            mode,
            v.map(|x| u64::from(from_bfloat16(x as u16).to_bits())),
        )))),
        Scalar::F16x2 | Scalar::Bf16x2 => {
            let half = if kind == Scalar::F16x2 { Scalar::F16 } else { Scalar::Bf16 };
            let low = compute_result(alu, half, mode, v.map(|x| x & 0xffff));
            let high = compute_result(alu, half, mode, v.map(|x| x >> 16 & 0xffff));
            high << 16 | low
        }
        Scalar::F32x2 => {
            let low = compute_single(alu, mode, v.map(|x| x & 0xffff_ffff));
            let high = compute_single(alu, mode, v.map(|x| x >> 32));
            high << 32 | low
        }
        _ => compute_integer(alu, kind, mode, v),
    }
}

fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// Returns whether `a relation b` holds in type `kind`.
#[inline(always)]
pub(crate) fn compare_values(relation: Compare, kind: Scalar, a: u64, b: u64) -> bool {
    let ordering = match kind {
        Scalar::F32 => f32_of(a).partial_cmp(&f32_of(b)),
        Scalar::F64 => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
        Scalar::F16 | Scalar::F16x2 => from_half(a as u16).partial_cmp(&from_half(b as u16)),
        Scalar::Bf16 | Scalar::Bf16x2 => from_bfloat16(a as u16).partial_cmp(&from_bfloat16(b as u16)),
        _ => {
            let width = bit_count(kind);
            Some(if is_signed(kind) {
                sign_extend(a, width).cmp(&sign_extend(b, width))
            } else {
                mask_bits(a, width).cmp(&mask_bits(b, width))
            })
        }
    };
    relation.holds_for(ordering)
}

#[inline(always)]
fn compute_integer(alu: Alu, kind: Scalar, mode: Mode, v: [u64; 4]) -> u64 {
    let width = bit_count(kind);
    let [a, b, c, d] = v;
    let narrow = |value: u64| mask_bits(value, width);
    let (sa, sb) = (sign_extend(a, width), sign_extend(b, width));
    let (ua, ub) = (narrow(a), narrow(b));
    let has_sign = is_signed(kind);
    let product = || integer_value(a, kind).wrapping_mul(integer_value(b, kind));
    match alu {
        Alu::Add | Alu::Sub if mode.saturate && has_sign => {
            let exact = if alu == Alu::Add { i128::from(sa) + i128::from(sb) } else { i128::from(sa) - i128::from(sb) };
            let limit = 1i128 << (width - 1);
            narrow(exact.clamp(-limit, limit - 1) as u64)
        }
        Alu::Add => narrow(a.wrapping_add(b)),
        Alu::Sub => narrow(a.wrapping_sub(b)),
        Alu::MulLow => narrow(a.wrapping_mul(b)),
        Alu::MulHigh => narrow((product() >> width) as u64),
        Alu::MulWide => mask_bits(product() as u64, width * 2),
        Alu::MadLow => narrow(a.wrapping_mul(b).wrapping_add(c)),
        Alu::MadHigh => narrow(((product() >> width) as u64).wrapping_add(c)),
        Alu::MadWide => mask_bits((product() as u64).wrapping_add(c), width * 2),
        Alu::Mul24 { high } | Alu::Mad24 { high } => {
            let factor = |x: u64| {
                if has_sign { i128::from(sign_extend(x, 24)) } else { i128::from(mask_bits(x, 24)) }
            };
            let product = factor(a) * factor(b);
            let part = (if high { product >> 16 } else { product }) as u64;
            narrow(if matches!(alu, Alu::Mad24 { .. }) { part.wrapping_add(c) } else { part })
        }
        // Division by zero gives all ones on the device.
        Alu::Div if ub == 0 => narrow(u64::MAX),
        Alu::Rem if ub == 0 => ua,
        Alu::Div if has_sign => narrow(sa.wrapping_div(sb) as u64),
        Alu::Rem if has_sign => narrow(sa.wrapping_rem(sb) as u64),
        Alu::Div => ua / ub,
        Alu::Rem => ua % ub,
        Alu::Min | Alu::Max => {
            let first = if has_sign { sa < sb } else { ua < ub };
            let chosen = if first == (alu == Alu::Min) { ua } else { ub };
            if mode.relu && sign_extend(chosen, width) < 0 { 0 } else { chosen }
        }
        Alu::Abs => narrow(sa.unsigned_abs()),
        Alu::Neg => narrow(a.wrapping_neg()),
        Alu::LogicalNot => u64::from(ua == 0),
        Alu::ShiftLeft => {
            let amount = mask_bits(b, 32);
            if amount >= u64::from(width) { 0 } else { narrow(ua << amount) }
        }
        Alu::ShiftRight => {
            let amount = mask_bits(b, 32).min(u64::from(width));
            if has_sign {
                narrow((sa >> amount.min(63)) as u64)
            } else if amount >= 64 {
                0
            } else {
                ua >> amount
            }
        }
        Alu::FunnelLeft { wrap } | Alu::FunnelRight { wrap } => {
            let amount = if wrap { c & 31 } else { mask_bits(c, 32).min(32) };
            let pair = mask_bits(b, 32) << 32 | mask_bits(a, 32);
            match alu {
                Alu::FunnelLeft { .. } if amount == 32 => mask_bits(a, 32),
                Alu::FunnelLeft { .. } => mask_bits((pair << amount) >> 32, 32),
                _ => mask_bits(pair >> amount, 32),
            }
        }
        Alu::Popc => u64::from(ua.count_ones()),
        Alu::Clz => u64::from(ua.leading_zeros() - (64 - width.min(64))),
        Alu::Brev => ua.reverse_bits() >> (64 - width.clamp(1, 64)),
        Alu::Bfind { amount } => {
            let searched = if has_sign && sa < 0 { narrow(!ua) } else { ua };
            match searched.checked_ilog2() {
                None => 0xffff_ffff,
                Some(position) if amount => u64::from(width - 1 - position),
                Some(position) => u64::from(position),
            }
        }
        Alu::Bfe => {
            let (position, length) = ((b & 0xff) as u32, (c & 0xff) as u32);
            let sign_at = (position + length).saturating_sub(1).min(width - 1);
            let negative = has_sign && length > 0 && ua >> sign_at & 1 != 0;
            let available = width.saturating_sub(position).min(length);
            let field = if position >= width { 0 } else { mask_bits(ua >> position, available) };
            let field = if negative && available < 64 { field | u64::MAX << available } else { field };
            narrow(field)
        }
        Alu::Bfi => {
            let (position, length) = ((c & 0xff) as u32, (d & 0xff) as u32);
            if position >= width {
                return ub;
            }
            let field = narrow(mask_bits(u64::MAX, length.min(width)) << position);
            ub & !field | (ua << position) & field
        }
        Alu::BitMask { clamp } => {
            let (position, length) = if clamp { (ua.min(32), ub.min(32)) } else { (ua & 31, ub & 31) };
            mask_bits(mask_bits(u64::MAX, length as u32) << position, 32)
        }
        Alu::SignExtend { clamp } => {
            let position = if clamp { ub.min(32) } else { ub & 31 } as u32;
            let field = mask_bits(ua, position);
            if has_sign && position > 0 { narrow(sign_extend(field, position) as u64) } else { field }
        }
        Alu::Sad => {
            narrow(integer_value(a, kind).abs_diff(integer_value(b, kind)) as u64).wrapping_add(c)
                & mask_bits(u64::MAX, width)
        }
        Alu::Lop3 => narrow(look_up_bits(d, a, b, c)),
        Alu::Permute(permute) => permute_bytes(permute, a, b, c),
        Alu::Dot4 { b: b_kind } => {
            let lane = |x: u64, kind: Scalar, i: u32| {
                let byte = x >> (8 * i) & 0xff;
                if is_signed(kind) { sign_extend(byte, 8) } else { byte as i64 }
            };
            let sum: i64 = (0..4).map(|i| lane(a, kind, i) * lane(b, b_kind, i)).sum();
            mask_bits((sum as u64).wrapping_add(c), 32)
        }
        Alu::Dot2 { b: b_kind, high } => {
            let part = |x: u64, width: u32, at: u32, kind: Scalar| {
                let field = mask_bits(x >> at, width);
                if is_signed(kind) { sign_extend(field, width) } else { field as i64 }
            };
            let base = if high { 16 } else { 0 };
            let sum: i64 = (0..2).map(|i| part(a, 16, 16 * i, kind) * part(b, 8, base + 8 * i, b_kind)).sum();
            mask_bits((sum as u64).wrapping_add(c), 32)
        }
        _ => 0,
    }
}

/// Computes each bit of the result of `lop3` from the table of eight bits.
fn look_up_bits(table: u64, a: u64, b: u64, c: u64) -> u64 {
    let pick = |x: u64, on: bool| if on { x } else { !x };
    let set = (0..8u64).filter(|bit| table >> bit & 1 != 0);
    set.fold(0, |result, bit| result | pick(a, bit & 4 != 0) & pick(b, bit & 2 != 0) & pick(c, bit & 1 != 0))
}

fn permute_bytes(permute: Permute, a: u64, b: u64, c: u64) -> u64 {
    let bytes = mask_bits(b, 32) << 32 | mask_bits(a, 32);
    let byte = |index: u64| bytes >> (8 * (index & 7)) & 0xff;
    let s = c & 3;
    let selector: [u64; 4] = match permute {
        Permute::Index => {
            return (0..4).fold(0, |result, i| {
                let control = c >> (4 * i) & 0xf;
                let value = byte(control);
                let value = if control & 8 == 0 {
                    value
                } else if value & 0x80 != 0 {
                    0xff
                } else {
                    0
                };
                result | value << (8 * i)
            });
        }
        Permute::Forward4 => [s, s + 1, s + 2, s + 3],
        Permute::Backward4 => [s, s + 7, s + 6, s + 5],
        Permute::Replicate8 => [s; 4],
        Permute::EdgeLeft => [s, s.max(1), s.max(2), 3],
        Permute::EdgeRight => [0, s.min(1), s.min(2), s.min(3)],
        Permute::Replicate16 => {
            let base = (s & 1) * 2;
            [base, base + 1, base, base + 1]
        }
    };
    selector.iter().rev().fold(0, |result, &index| result << 8 | byte(index))
}

/// An f64 value as f32 under a rounding mode.
fn round_single(value: f64, round: Round) -> f32 {
    let nearest = value as f32;
    let exact = f64::from(nearest);
    if exact == value || nearest.is_nan() {
        return nearest;
    }
    match round {
        Round::Nearest => nearest,
        Round::Zero if exact.abs() < value.abs() => nearest,
        Round::Zero if value > 0.0 => nearest.next_down(),
        Round::Zero => nearest.next_up(),
        Round::Down => {
            if exact > value {
                nearest.next_down()
            } else {
                nearest
            }
        }
        Round::Up => {
            if exact < value {
                nearest.next_up()
            } else {
                nearest
            }
        }
    }
}

#[inline(always)]
fn compute_single(alu: Alu, mode: Mode, v: [u64; 4]) -> u64 {
    let [a, b, c] = [f32_of(v[0]), f32_of(v[1]), f32_of(v[2])];
    let (wide_a, wide_b, wide_c) = (f64::from(a), f64::from(b), f64::from(c));
    let directed = mode.round != Round::Nearest;
    let result = match alu {
        Alu::Add if directed => round_single(wide_a + wide_b, mode.round),
        Alu::Sub if directed => round_single(wide_a - wide_b, mode.round),
        Alu::MulLow if directed => round_single(wide_a * wide_b, mode.round),
        Alu::Fma if directed => round_single(wide_a * wide_b + wide_c, mode.round),
        Alu::Div if directed => round_single(wide_a / wide_b, mode.round),
        Alu::Add => a + b,
        Alu::Sub => a - b,
        Alu::MulLow => a * b,
        Alu::Fma => a.mul_add(b, c),
        Alu::Div => a / b,
        Alu::Min | Alu::Max if mode.nan && (a.is_nan() || b.is_nan()) => f32::NAN,
        Alu::Min => a.min(b),
        Alu::Max => a.max(b),
        Alu::Abs => a.abs(),
        Alu::Neg => -a,
        Alu::Sqrt => round_single(wide_a.sqrt(), mode.round),
        Alu::Rsqrt => (1.0 / wide_a.sqrt()) as f32,
        Alu::Rcp => round_single(1.0 / wide_a, mode.round),
        Alu::Ex2 => a.exp2(),
        Alu::Lg2 => a.log2(),
        Alu::Sin => a.sin(),
        Alu::Cos => a.cos(),
        Alu::Tanh => a.tanh(),
        // `copysign a, b`: the sign of a on the magnitude of b.
        Alu::CopySign => b.copysign(a),
        Alu::Test(test) => return u64::from(passes_test(test, a.classify())),
        _ => return 0,
    };
    let result = if mode.saturate { if result.is_nan() { 0.0 } else { result.clamp(0.0, 1.0) } } else { result };
    let result = if mode.relu && (result < 0.0 || result.is_nan()) { 0.0 } else { result };
    u64::from(result.to_bits())
}

/// `testp` on a number of this category.
fn passes_test(test: Test, category: FpCategory) -> bool {
    match test {
        Test::Finite => !matches!(category, FpCategory::Nan | FpCategory::Infinite),
        Test::Infinite => category == FpCategory::Infinite,
        Test::Number => category != FpCategory::Nan,
        Test::NotNumber => category == FpCategory::Nan,
        Test::Normal => category == FpCategory::Normal,
        Test::Subnormal => category == FpCategory::Subnormal,
    }
}

fn compute_double(alu: Alu, mode: Mode, v: [u64; 4]) -> u64 {
    let [a, b, c] = [f64::from_bits(v[0]), f64::from_bits(v[1]), f64::from_bits(v[2])];
    let result = match alu {
        Alu::Add => a + b,
        Alu::Sub => a - b,
        Alu::MulLow => a * b,
        Alu::Fma => a.mul_add(b, c),
        Alu::Div => a / b,
        Alu::Min | Alu::Max if mode.nan && (a.is_nan() || b.is_nan()) => f64::NAN,
        Alu::Min => a.min(b),
        Alu::Max => a.max(b),
        Alu::Abs => a.abs(),
        Alu::Neg => -a,
        Alu::Sqrt => a.sqrt(),
        Alu::Rsqrt => 1.0 / a.sqrt(),
        Alu::Rcp => 1.0 / a,
        Alu::Ex2 => a.exp2(),
        Alu::Lg2 => a.log2(),
        Alu::CopySign => b.copysign(a),
        Alu::Test(test) => return u64::from(passes_test(test, a.classify())),
        _ => return 0,
    };
    let result = if mode.saturate { if result.is_nan() { 0.0 } else { result.clamp(0.0, 1.0) } } else { result };
    result.to_bits()
}

/// `cvt`: a value of type `from` as type `to`.
#[inline(always)]
fn convert_value(value: u64, from: Scalar, to: Scalar, mode: Mode) -> u64 {
    if !is_float(from) && !is_float(to) {
        let exact = integer_value(value, from);
        let width = bit_count(to);
        let exact = if mode.saturate { clamp_to(exact, to) } else { exact };
        return mask_bits(exact as u64, width);
    }
    if !is_float(from) {
        let exact = integer_value(value, from);
        // Rounded once: i128 to f32 directly, not by way of f64.
        return match to {
            Scalar::F64 => (exact as f64).to_bits(),
            Scalar::F32 if mode.round == Round::Nearest => u64::from((exact as f32).to_bits()),
            _ => narrow_float(exact as f64, to, mode),
        };
    }
    let exact = match from {
        Scalar::F64 => f64::from_bits(value),
        Scalar::F32 => f64::from(f32_of(value)),
        Scalar::F16 => f64::from(from_half(value as u16)),
        _ => f64::from(from_bfloat16(value as u16)),
    };
    let integral = |x: f64| match mode.round {
        Round::Nearest => x.round_ties_even(),
        Round::Zero => x.trunc(),
        Round::Down => x.floor(),
        Round::Up => x.ceil(),
    };
    if is_float(to) {
        return narrow_float(if mode.integral { integral(exact) } else { exact }, to, mode);
    }
    // Conversions to integers always saturate; NaN gives zero, or the top bit for 64-bit results.
    if exact.is_nan() {
        return if bit_count(to) == 64 { 1 << 63 } else { 0 };
    }
    mask_bits(clamp_to(integral(exact) as i128, to) as u64, bit_count(to))
}

fn clamp_to(value: i128, kind: Scalar) -> i128 {
    let width = bit_count(kind);
    if is_signed(kind) {
        value.clamp(-(1 << (width - 1)), (1 << (width - 1)) - 1)
    } else {
        value.clamp(0, (1 << width) - 1)
    }
}

fn narrow_float(value: f64, to: Scalar, mode: Mode) -> u64 {
    let value = if mode.saturate && !matches!(to, Scalar::F16x2 | Scalar::Bf16x2) {
        if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) }
    } else {
        value
    };
    let value = if mode.relu && (value < 0.0 || value.is_nan()) { 0.0 } else { value };
    match to {
        Scalar::F64 => value.to_bits(),
        Scalar::F32 => {
            u64::from(round_single(value, if mode.integral { Round::Nearest } else { mode.round }).to_bits())
        }
        Scalar::F16 => u64::from(to_half(value as f32)),
        _ => u64::from(to_bfloat16(value as f32)),
    }
}

/// Orders two integers of a type (for min, max and the events of loops).
pub(crate) fn order_integers(kind: Scalar, a: u64, b: u64) -> Ordering {
    integer_value(a, kind).cmp(&integer_value(b, kind))
}

/// Computes an addition or subtraction with a carry in, and returns the carry out.
pub(crate) fn compute_carried(alu: Alu, kind: Scalar, v: [u64; 4], carry: bool) -> (u64, bool) {
    let width = bit_count(kind);
    let carry = i128::from(carry);
    let unsigned = |value: u64| i128::from(mask_bits(value, width));
    let product = integer_value(v[0], kind).wrapping_mul(integer_value(v[1], kind));
    let exact = match alu {
        Alu::Add => unsigned(v[0]) + unsigned(v[1]) + carry,
        Alu::Sub => unsigned(v[0]) - unsigned(v[1]) - carry,
        Alu::MadHigh => unsigned((product >> width) as u64) + unsigned(v[2]) + carry,
        _ => unsigned(product as u64) + unsigned(v[2]) + carry,
    };
    (exact as u64, exact < 0 || exact >> width != 0)
}

/// Returns the value that an atomic stores in place of `old`. `b` is the new value of a
/// compare-and-swap.
pub(crate) fn update_value(update: Update, kind: Scalar, old: u64, a: u64, b: u64) -> u64 {
    let width = bit_count(kind);
    let join = |alu| compute_result(alu, kind, Mode::default(), [old, a, 0, 0]);
    match update {
        Update::Add => join(Alu::Add),
        Update::Min => join(Alu::Min),
        Update::Max => join(Alu::Max),
        Update::And => old & a,
        Update::Or => old | a,
        Update::Xor => old ^ a,
        Update::Exchange => a,
        Update::CompareSwap => {
            if mask_bits(old, width) == mask_bits(a, width) {
                b
            } else {
                old
            }
        }
        Update::Increment => {
            if old >= mask_bits(a, width) {
                0
            } else {
                old + 1
            }
        }
        Update::Decrement => {
            if old == 0 || old > mask_bits(a, width) {
                a
            } else {
                old - 1
            }
        }
    }
}
