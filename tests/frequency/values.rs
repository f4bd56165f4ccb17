//! What the interpreter computes, compared with the host.

use super::*;

#[test]
fn integer_arithmetic_equals_host() {
    let random = Fill::Random { lo: -2e9, hi: 2e9 };
    let case = Case::new("arithmetic", "integers")
        .buffer(Scalar::I32, 1, 64, random)
        .buffer(Scalar::U32, 1, 64, Fill::Random { lo: 0.0, hi: 4e9 })
        .buffer(Scalar::U32, 1, 64 * 24, Fill::Poison);
    for i in 0..64u64 {
        let (b, a) = (u32_of(&case.input(1, i)), u32_of(&case.input(0, i)) as i32);
        let ua = a as u32;
        let bytes = u64::from(ua) << 32 | u64::from(b);
        let byte = |n: u32| (bytes >> (8 * n)) as u32 & 0xff;
        let pair = u64::from(ua) << 32 | u64::from(b);
        let dot: i32 = (0..4).map(|n| i32::from((ua >> (8 * n)) as i8) * i32::from((b >> (8 * n)) as i8)).sum();
        let expected = [
            ua.wrapping_add(b.wrapping_mul(3)),
            (a / 7) as u32,
            b % 13,
            ((u64::from(b) * 0x9e37_79b9) >> 32) as u32,
            ((i64::from(a) * 123_456_789) >> 32) as u32,
            b.count_ones(),
            b.leading_zeros(),
            b.reverse_bits(),
            byte(1) | byte(4) << 8 | byte(7) << 16 | byte(2) << 24,
            (pair << 11 >> 32) as u32,
            (pair >> 5) as u32,
            (a.min(5) as u32).wrapping_add(b.max(17)),
            a.abs_diff(100) + 7,
            a.unsigned_abs(),
            (a >> 3) as u32,
            b << (ua & 31),
            if b == 0 { 0 } else { b.trailing_zeros() + 1 },
            (i64::from(a).wrapping_mul(i64::from(b as i32)) >> 20) as u32,
            (u64::from(b) * u64::from(b) / 1_000_003) as u32,
            (b & 0xff0f) ^ (ua | 0x1234) ^ (!b & ua),
            [10, 20, 30, 40][(b & 3) as usize],
            b >> 5 & 0x3ff,
            b as i8 as u32,
            (dot + 3) as u32,
        ];
        let found: Vec<u32> = case.output(i as u32, 2, i * 24, 24, 4).iter().map(|v| u32_of(v)).collect();
        assert_eq!(found, expected, "a = {a}, b = {b}");
    }
}

#[test]
fn float_arithmetic_equals_host() {
    let case = Case::new("arithmetic", "floats")
        .buffer(Scalar::F32, 1, 64, Fill::Random { lo: -2.0, hi: 2.0 })
        .buffer(Scalar::F32, 1, 64, Fill::Random { lo: 0.0, hi: 1.2 })
        .buffer(Scalar::F32, 1, 64 * 16, Fill::Poison);
    for i in 0..64u64 {
        let (a, b) = (f32_of(&case.input(0, i)), f32_of(&case.input(1, i)));
        let expected = [
            a.mul_add(b, 1.5),
            a / b,
            b.sqrt(),
            a.min(b),
            a.max(0.25),
            a.abs() - b,
            (a * 100.0).trunc() + 0.0,
            (a * 10.0).floor(),
            (b * 10.0).ceil(),
            (a * 10.0).round_ties_even(),
            ((b * 200.0).round_ties_even() as u32 & 0xff) as f32,
            (a * 3.0).clamp(0.0, 1.0),
            b.copysign(a),
            if a < b { a } else { -b },
            -b,
            a.exp(),
        ];
        let found: Vec<f32> = case.output(i as u32, 2, i * 16, 16, 4).iter().map(|v| f32_of(v)).collect();
        assert_eq!(found[..15], expected[..15], "a = {a}, b = {b}");
        assert!((found[15] / expected[15] - 1.0).abs() < 1e-6, "exp({a}) = {}", found[15]);
    }
}

#[test]
fn double_arithmetic_equals_host() {
    let case = Case::new("arithmetic", "doubles")
        .buffer(Scalar::F64, 1, 64, Fill::Random { lo: -0.9, hi: 3.0 })
        .buffer(Scalar::F64, 1, 64 * 8, Fill::Poison);
    for i in 0..64u64 {
        let a = f64_of(&case.input(0, i));
        let expected = [
            a.mul_add(a, 0.5),
            1.0 / (a + 2.0),
            (a + 1.0).sqrt(),
            f64::from(a as f32),
            (a * 1e6).trunc(),
            a.min(0.5),
            a.exp(),
            (a * 10.0).floor(),
        ];
        let found: Vec<f64> = case.output(i as u32, 1, i * 8, 8, 8).iter().map(|v| f64_of(v)).collect();
        for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert!((found - expected).abs() <= 1e-15 * expected.abs(), "{index}: {found} {expected}");
        }
    }
}

#[test]
fn half_arithmetic_rounds_as_specified() {
    let case = Case::new("arithmetic", "halves")
        .buffer(Scalar::F16, 1, 64, Fill::Constant(0.3125))
        .buffer(Scalar::F16, 1, 64 * 4, Fill::Poison)
        .buffer(Scalar::Bf16, 1, 64, Fill::Poison);
    let found: Vec<u16> =
        case.output(5, 1, 20, 4, 2).iter().map(|v| u16::from_le_bytes(v[..].try_into().unwrap())).collect();
    // 0.625, 1.09765625 (rounded to 1.0977), 0.3125 / 3 = 0.10416..., 0.09765625
    assert_eq!(found, [0x3900, 0x3c64, 0x2eab, 0x2e40]);
    assert_eq!(case.output(5, 2, 5, 1, 2), [vec![0xa0, 0x3e]]);
}

/// A kernel that stores the sum of a word of `ck` and of `dv`.
fn sum_of_variables() -> Case {
    let mut case = by_hand(
        "ld.const.u32 %r2, [ck+4];\nld.global.u32 %r3, [dv];\nadd.u32 %r4, %r2, %r3;\nst.global.u32 [%rd1], %r4; ret;",
    )
    .buffer(Scalar::U32, 1, 4, Fill::Poison)
    .int(0);
    case.text = case.text.replace(".shared .align", ".const .align 4 .b8 ck[16];\n.global .u32 dv;\n.shared .align");
    case.module = Module::parse(&case.text).expect("PTX");
    case
}

/// Gives the variables contents whose sum is 42.
fn fill_variables(case: &mut Case) {
    for (symbol, count, fill) in [("ck", 2, Fill::Iota), ("dv", 1, Fill::Constant(41.0))] {
        let element = Element { scalar: Scalar::U32, lanes: 1 };
        let contents = Buffer { name: symbol.into(), element, count, fill, seed: 0 };
        case.workload.symbols.push(Symbol { symbol: symbol.into(), contents });
    }
}

fn stored(case: &Case) -> Option<u32> {
    let launch = Launch { grid: [1; 3], block: [1; 3], shared: 0, carveout: None, coarsening: None };
    let bytes = written_by_thread(&case.module, "k", &launch, &case.workload, ([0; 3], [0; 3]), &Limits::default());
    let bytes: Vec<u8> = bytes.expect("it runs").into_values().collect();
    bytes.try_into().ok().map(u32::from_le_bytes)
}

#[test]
fn variable_without_contents_is_unknown() {
    assert_eq!(stored(&sum_of_variables()), None);
}

#[test]
fn variable_with_contents_is_read() {
    let mut case = sum_of_variables();
    fill_variables(&mut case);
    assert_eq!(stored(&case), Some(42));
}

#[test]
fn load_of_variable_is_access_to_variables() {
    let mut case = sum_of_variables();
    fill_variables(&mut case);
    let profile = case.profile([1, 1, 1], [32, 1, 1], 0);
    assert_eq!((profile.variables, case.accesses(&profile, "ld.global")[0].buffer), (4, Some(VARIABLES)));
}
