//! Arithmetic on the lanes of a warp at once: the common operations without a choice for
//! each lane, all others one lane after the other.

use crate::ptx::Scalar;
use crate::sim::arithmetic::{compute_result, mask_bits, sign_extend};
use crate::sim::operation::{Alu, Compare, Mode, Round, bit_count, is_float, is_signed};

/// A value of each lane.
pub(super) type Lanes<const N: usize> = [u64; N];

/// Returns the mask of the first `count` lanes.
pub(super) fn all_lanes(count: u32) -> u32 {
    u32::MAX.checked_shr(32 - count.min(32)).unwrap_or(0)
}

/// Lists the numbers of the lanes whose bits are set.
pub(super) fn each_lane(mut lanes: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = lanes.trailing_zeros();
        lanes &= lanes.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}

/// Returns the lanes for which `holds` is true.
pub(super) fn lanes_where<const N: usize>(holds: impl Fn(usize) -> bool) -> u32 {
    (0..N).fold(0, |found, lane| found | u32::from(holds(lane)) << lane)
}

fn map2<const N: usize>(a: &Lanes<N>, b: &Lanes<N>, f: impl Fn(u64, u64) -> u64) -> Lanes<N> {
    std::array::from_fn(|lane| f(a[lane], b[lane]))
}

fn map3<const N: usize>(a: &Lanes<N>, b: &Lanes<N>, c: &Lanes<N>, f: impl Fn(u64, u64, u64) -> u64) -> Lanes<N> {
    std::array::from_fn(|lane| f(a[lane], b[lane], c[lane]))
}

fn to_single(a: u64) -> f32 {
    f32::from_bits(a as u32)
}

fn from_single(a: f32) -> u64 {
    u64::from(a.to_bits())
}

/// Computes the results of the lanes that are `on`. The results of others have no
/// meaning.
pub(super) fn compute_lanes<const N: usize>(
    alu: Alu,
    kind: Scalar,
    mode: Mode,
    [a, b, c, d]: [&Lanes<N>; 4],
    on: u32,
) -> Lanes<N> {
    let plain = mode.round == Round::Nearest && !mode.saturate && !mode.relu;
    let whole = !is_float(kind) && plain;
    let floating = kind == Scalar::F32 && plain;
    match alu {
        Alu::Move => return *a,
        Alu::And => return map2(a, b, |a, b| a & b),
        Alu::Or => return map2(a, b, |a, b| a | b),
        Alu::Xor => return map2(a, b, |a, b| a ^ b),
        Alu::Select => return map3(a, b, c, |a, b, c| if c & 1 != 0 { a } else { b }),
        // The target's width cuts what is too much.
        Alu::Add if whole => return map2(a, b, u64::wrapping_add),
        Alu::Sub if whole => return map2(a, b, u64::wrapping_sub),
        Alu::MulLow if whole => return map2(a, b, u64::wrapping_mul),
        Alu::MadLow if whole => return map3(a, b, c, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        Alu::MulWide if whole && bit_count(kind) == 32 => {
            return if is_signed(kind) {
                map2(a, b, |a, b| i64::from(a as i32).wrapping_mul(i64::from(b as i32)) as u64)
            } else {
                map2(a, b, |a, b| u64::from(a as u32).wrapping_mul(u64::from(b as u32)))
            };
        }
        Alu::ShiftLeft if whole => {
            let width = u64::from(bit_count(kind));
            return map2(a, b, |a, b| if b & 0xffff_ffff >= width { 0 } else { a << (b & 63) });
        }
        Alu::ShiftRight if whole && kind.size() == 4 => {
            return if is_signed(kind) {
                map2(a, b, |a, b| (i64::from(a as i32) >> (b & 0xffff_ffff).min(31)) as u64)
            } else {
                map2(a, b, |a, b| if b & 0xffff_ffff >= 32 { 0 } else { u64::from(a as u32) >> (b & 31) })
            };
        }
        Alu::Convert { from } if whole && !is_float(from) => {
            let fit = |value: u64, kind: Scalar| {
                if is_signed(kind) {
                    sign_extend(value, bit_count(kind)) as u64
                } else {
                    mask_bits(value, bit_count(kind))
                }
            };
            // A conversion to a narrow signed type fills its wider register with the sign.
            return std::array::from_fn(|lane| fit(fit(a[lane], from), kind));
        }
        Alu::Add if floating => return map2(a, b, |a, b| from_single(to_single(a) + to_single(b))),
        Alu::Sub if floating => return map2(a, b, |a, b| from_single(to_single(a) - to_single(b))),
        Alu::MulLow if floating => return map2(a, b, |a, b| from_single(to_single(a) * to_single(b))),
        _ => {}
    }
    let mut results = [0; N];
    let converts = matches!(alu, Alu::Convert { .. }) && is_signed(kind);
    for lane in each_lane(on) {
        let value = compute_result(alu, kind, mode, [a[lane], b[lane], c[lane], d[lane]]);
        results[lane] = if converts { sign_extend(value, bit_count(kind)) as u64 } else { value };
    }
    results
}

/// Returns the lanes that are `on` and for which `a relation b` holds.
pub(super) fn compare_lanes<const N: usize>(
    relation: Compare,
    kind: Scalar,
    a: &Lanes<N>,
    b: &Lanes<N>,
    on: u32,
) -> u32 {
    let narrow = |value: u64| {
        if is_signed(kind) { sign_extend(value, bit_count(kind)) } else { mask_bits(value, bit_count(kind)) as i64 }
    };
    // As signed numbers only where 64 unsigned bits do not turn negative.
    if !is_float(kind) && (is_signed(kind) || bit_count(kind) < 64) {
        let by =
            |holds: fn(&i64, &i64) -> bool| lanes_where::<N>(|lane| holds(&narrow(a[lane]), &narrow(b[lane]))) & on;
        match relation {
            Compare::Eq => return by(i64::eq),
            Compare::Ne => return by(i64::ne),
            Compare::Lt => return by(i64::lt),
            Compare::Le => return by(i64::le),
            Compare::Gt => return by(i64::gt),
            Compare::Ge => return by(i64::ge),
            _ => {}
        }
    }
    each_lane(on).fold(0, |found, lane| {
        let holds = crate::sim::arithmetic::compare_values(relation, kind, a[lane], b[lane]);
        found | u32::from(holds) << lane
    })
}

/// Returns a predicate of each lane from their bits.
pub(super) fn predicate_lanes<const N: usize>(holds: u32) -> Lanes<N> {
    std::array::from_fn(|lane| u64::from(holds >> lane & 1))
}
