//! Arithmetic on the lanes of a warp at once: the common operations without a choice for
//! each lane, all others one lane after the other. What an operation does, `arithmetic` says.

use crate::ptx::Scalar;
use crate::sim::arithmetic::{compare_values, compute_result, inlined_result, sign_extend};
use crate::sim::operation::{Alu, Compare, Mode, bit_count, is_signed};

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

/// Expands `$run!` for the listed pair of operation and type that `$given` is, so that the compiler
/// knows both and makes code for all lanes at once; `$otherwise` where it is none of them.
macro_rules! with_known {
    ($given:expr, $run:ident, $otherwise:expr, $($of:ident::$known:ident: $($scalar:ident)*,)*) => {
        match $given {
            $($(($of::$known, Scalar::$scalar) => $run!($of::$known, Scalar::$scalar),)*)*
            _ => $otherwise,
        }
    };
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
    macro_rules! all_results {
        ($alu:expr, $kind:expr) => {
            std::array::from_fn(|lane| {
                let value = inlined_result($alu, $kind, Mode::default(), [a[lane], b[lane], c[lane], d[lane]]);
                fill_register($alu, $kind, value)
            })
        };
    }
    let results_on = || {
        let mut results = [0; N];
        for lane in each_lane(on) {
            let value = compute_result(alu, kind, mode, [a[lane], b[lane], c[lane], d[lane]]);
            results[lane] = fill_register(alu, kind, value);
        }
        results
    };
    macro_rules! all_converted {
        ($from:expr, $kind:expr) => {
            all_results!(Alu::Convert { from: $from }, $kind)
        };
    }
    if mode != Mode::default() {
        return results_on();
    }
    if let Alu::Convert { from } = alu {
        return with_known!((from, kind), all_converted, results_on(),
            Scalar::S32: S64 U64,
            Scalar::U32: S64 U64 U16,
            Scalar::U64: U32 S32,
            Scalar::U16: U32 S32,
        );
    }
    with_known!((alu, kind), all_results, results_on(),
        Alu::Move: U32 S32 B32 F32 U64 S64 B64 F64 U16 S16 B16,
        Alu::And: B32 B64 B16,
        Alu::Or: B32 B64 B16,
        Alu::Xor: B32 B64,
        Alu::Select: U32 S32 B32 F32 U64 S64 B64 F64,
        Alu::Add: U32 S32 U64 S64 U16 S16 F32,
        Alu::Sub: U32 S32 U64 S64 U16 S16 F32,
        Alu::MulLow: U32 S32 U64 S64 F32,
        Alu::MulWide: U32 S32,
        Alu::MadLow: U32 S32 U64 S64,
        Alu::ShiftLeft: B32 B64,
        Alu::ShiftRight: U32 S32 B32,
    )
}

/// What a register of any width holds: a conversion to a narrow signed type fills it with the sign.
#[inline(always)]
fn fill_register(alu: Alu, kind: Scalar, value: u64) -> u64 {
    match alu {
        Alu::Convert { .. } if is_signed(kind) => sign_extend(value, bit_count(kind)) as u64,
        _ => value,
    }
}

/// Returns the lanes that are `on` and for which `a relation b` holds.
pub(super) fn compare_lanes<const N: usize>(
    relation: Compare,
    kind: Scalar,
    a: &Lanes<N>,
    b: &Lanes<N>,
    on: u32,
) -> u32 {
    macro_rules! all_lanes {
        ($relation:expr, $kind:expr) => {
            lanes_where::<N>(|lane| compare_values($relation, $kind, a[lane], b[lane])) & on
        };
    }
    let lanes_on = || {
        let holds = |lane: &usize| compare_values(relation, kind, a[*lane], b[*lane]);
        each_lane(on).filter(holds).fold(0, |found, lane| found | 1 << lane)
    };
    with_known!((relation, kind), all_lanes, lanes_on(),
        Compare::Eq: U32 S32 B32 F32 U64 S64 B64 U16 S16 B16,
        Compare::Ne: U32 S32 B32 F32 U64 S64 B64 U16 S16 B16,
        Compare::Lt: U32 S32 F32 U64 S64,
        Compare::Le: U32 S32 F32 U64 S64,
        Compare::Gt: U32 S32 F32 U64 S64,
        Compare::Ge: U32 S32 F32 U64 S64,
    )
}

/// Returns a predicate of each lane from their bits.
pub(super) fn predicate_lanes<const N: usize>(holds: u32) -> Lanes<N> {
    std::array::from_fn(|lane| u64::from(holds >> lane & 1))
}
