//! Samples -> medians and verdicts; result buffers -> differences.

use nvtune::cuda::{Element, Scalar};
use nvtune::measure::compare::{Tolerance, compare};
use nvtune::measure::verdict::{ERROR_RATE, MINIMUM_GAIN, Verdict, faster, slower_by};
use nvtune::measure::{Reason, Timing};
use proptest::prelude::*;

#[test]
fn timing_has_the_median_and_the_spread_of_its_samples() {
    for (samples, median, spread) in
        [(vec![4.0], 4.0, 0.0), (vec![3.0, 1.0], 2.0, 0.0), (vec![9.0, 10.0, 11.0, 10.0, 100.0], 10.0, 0.1)]
    {
        let timing = Timing::new(samples.clone()).unwrap();
        assert_eq!(timing.median_us, median, "{samples:?}");
        assert!((timing.spread - spread).abs() < 1e-9, "{samples:?}");
        assert_eq!(timing.samples_us, samples);
    }
    assert_eq!(Timing::new(vec![]), None);
}

/// Bytes of numbers.
trait Bytes {
    fn bytes(&self) -> Vec<u8>;
}

macro_rules! bytes {
    ($($type:ty),*) => {$(
        impl Bytes for [$type] {
            fn bytes(&self) -> Vec<u8> {
                self.iter().flat_map(|value| value.to_le_bytes()).collect()
            }
        }
    )*};
}
bytes!(i8, u16, i32, i64, u64, f32, f64);

/// Compares as without a `check` clause; what differs, in short.
fn differs(scalar: Scalar, lanes: u8, expected: Vec<u8>, got: Vec<u8>) -> String {
    let element = Element { scalar, lanes };
    let tolerance = Tolerance::for_scalar(scalar);
    match compare("y", &element, tolerance, &expected, &got) {
        None => "same".to_owned(),
        Some(d) => format!("{} of {}: [{}].{} {} {}", d.count, d.of, d.index, d.lane, d.expected, d.got),
    }
}

#[test]
fn results_agree_within_the_tolerance_of_their_type() {
    use Scalar::*;
    let nan = f32::NAN;
    let inf = f32::INFINITY;
    type Row = (Scalar, u8, Vec<u8>, Vec<u8>, &'static str);
    #[rustfmt::skip]
    let table: &[Row] = &[
        (I32, 1, [1i32, -2].bytes(), [1i32, -2].bytes(), "same"),
        (I32, 1, [1i32, -2].bytes(), [1i32, -3].bytes(), "1 of 2: [1].0 -2 -3"),
        (U64, 1, [u64::MAX].bytes(), [u64::MAX - 1].bytes(), "1 of 1: [0].0 18446744073709551615 18446744073709551614"),
        (I64, 1, [i64::MIN].bytes(), [i64::MIN + 1].bytes(), "1 of 1: [0].0 -9223372036854775808 -9223372036854775807"),
        (I8, 4, [1i8, 2, 3, 4, 5, 6, 7, 8].bytes(), [1i8, 2, 3, 4, 5, 6, -7, 0].bytes(), "1 of 2: [1].2 7 -7"),
        (F32, 1, [1f32, 100.0].bytes(), [1.00009f32, 100.009].bytes(), "same"),
        (F32, 1, [1f32, 100.0].bytes(), [1.0003f32, 100.0].bytes(), "1 of 2: [0].0 1.0 1.0003"),
        // A sum that cancels may differ by rounding.
        (F32, 1, [1f32, 1.0, 1e-7].bytes(), [1f32, 1.0, 9e-6].bytes(), "same"),
        (F32, 1, [1f32, 1.0, 1e-7].bytes(), [1f32, 1.0, 2e-5].bytes(), "1 of 3: [2].0 1e-7 2e-5"),
        (F64, 1, [0f64, 1.0].bytes(), [-1e-6f64, 1.0].bytes(), "same"),
        // As much as the numbers of the buffer have it, and nothing where there are none.
        (F32, 1, [1e6f32, 1e6, 1e-7].bytes(), [1e6f32, 1e6, 5.0].bytes(), "same"),
        (F32, 1, [1e-9f32, 2e-9, 3e-9].bytes(), [1e-9f32, 2e-9, 3.1e-9].bytes(), "1 of 3: [2].0 3e-9 3.1e-9"),
        (F64, 1, [0f64].bytes(), [-1e-6f64].bytes(), "1 of 1: [0].0 0.0 -1e-6"),
        (F32, 1, [0f32, 0.0].bytes(), [0f32, -0.0].bytes(), "same"),
        (F32, 1, [nan, 1.0].bytes(), [-nan, 1.0].bytes(), "same"),
        (F32, 1, [nan, 1.0].bytes(), [0f32, 1.0].bytes(), "1 of 2: [0].0 NaN 0.0"),
        (F32, 1, [1f32, 1.0].bytes(), [nan, 1.0].bytes(), "1 of 2: [0].0 1.0 NaN"),
        (F32, 1, [inf, -inf].bytes(), [inf, inf].bytes(), "1 of 2: [1].0 -inf inf"),
        (F32, 1, [inf, f32::MAX].bytes(), [inf, inf].bytes(), "1 of 2: [1].0 3.4028235e38 inf"),
        (F64, 1, [1f64].bytes(), [1.00009f64].bytes(), "same"),
        (F64, 2, [1f64, 2.0].bytes(), [1f64, 2.1].bytes(), "1 of 1: [0].1 2.0 2.1"),
        // 1 and its neighbour; 1 and 1.004; 1 and 1.01; the smallest subnormal and 0.
        (F16, 1, [0x3c00u16].bytes(), [0x3c01u16].bytes(), "same"),
        (F16, 1, [0x3c00u16].bytes(), [0x3c04u16].bytes(), "same"),
        (F16, 1, [0x3c00u16].bytes(), [0x3c0au16].bytes(), "1 of 1: [0].0 1.0 1.0097656"),
        (F16, 1, [0x3c00u16, 0x3c00, 1].bytes(), [0x3c00u16, 0x3c00, 0].bytes(), "same"),
        (F16, 1, [0x7c00u16, 0x7e00].bytes(), [0x7c00u16, 0x7c00].bytes(), "1 of 2: [1].0 NaN inf"),
        (Bf16, 1, [0x3f80u16].bytes(), [0x3f81u16].bytes(), "same"),
        (Bf16, 1, [0x3f80u16].bytes(), [0x3f90u16].bytes(), "1 of 1: [0].0 1.0 1.125"),
        (F32, 1, [1f32, 1.0].bytes(), [1f32].bytes(), "1 of 2: [1].0 present missing"),
        (F32, 1, vec![], vec![], "same"),
    ];
    for (scalar, lanes, expected, got, verdict) in table {
        let said = differs(*scalar, *lanes, expected.clone(), got.clone());
        assert_eq!(said, *verdict, "{scalar:?} {expected:?} {got:?}");
    }
}

/// The value of a float by its fields, as IEEE 754 has them (bfloat16 as the upper half of a float).
fn value(bits: u64, exponent: u32, fraction: u32) -> f64 {
    let field = |at: u32, length: u32| bits >> at & ((1 << length) - 1);
    let (raised, below) = (field(fraction, exponent), field(0, fraction) as f64 / 2f64.powi(fraction as i32));
    let bias = (1 << (exponent - 1)) - 1;
    let magnitude = match raised {
        0 => below * 2f64.powi(1 - bias),
        all if all == (1 << exponent) - 1 => {
            if below == 0.0 {
                f64::INFINITY
            } else {
                f64::NAN
            }
        }
        raised => (1.0 + below) * 2f64.powi(raised as i32 - bias),
    };
    if field(fraction + exponent, 1) == 1 { -magnitude } else { magnitude }
}

proptest! {
    /// Buffers are compared in runs, most numbers of which need no look of their own: each counts as by itself, also where the
    /// tolerance is just above or below how far the farthest is off.
    #[test]
    fn floats_agree_in_runs_as_they_do_one_by_one(
        kind in 0usize..4,
        lanes in prop::sample::select(vec![1u8, 2, 4]),
        of_farthest in prop_oneof![Just(0.0), Just(0.5), Just(0.999), Just(1.001)],
        absolute in prop_oneof![3 => Just(0.0), 1 => 1e-9..1e-3f64],
        // Numbers of any bits, and from 1 to 2; what is got has another low bit.
        numbers in prop_oneof![
            prop::collection::vec((any::<u64>(), Just(false), 0u32..12), 1..700),
            prop::collection::vec((any::<u64>(), any::<bool>(), 0u32..12), 1..4),
            prop::collection::vec((any::<u64>(), any::<bool>(), 0u32..12), 200..700),
        ],
    ) {
        let (scalar, bytes, exponent, fraction) =
            [(Scalar::F16, 2, 5, 10), (Scalar::Bf16, 2, 8, 7), (Scalar::F32, 4, 8, 23), (Scalar::F64, 8, 11, 52)][kind];
        let one = ((1u64 << (exponent - 1)) - 1) << fraction;
        let pairs: Vec<[u64; 2]> = numbers
            .into_iter()
            .map(|(bits, any, flipped)| {
                // Of any bits, a fourth are the least numbers and those that are none.
                let special = [0, ((1 << exponent) - 1) << fraction][(bits >> 63) as usize];
                let bits = match any {
                    true if flipped % 4 == 0 => special | bits & ((1 << fraction) - 1),
                    true => bits,
                    false => one | bits & ((1 << fraction) - 1),
                };
                [bits, bits ^ ((1 << flipped) >> 1)].map(|bits| bits & (u64::MAX >> (64 - 8 * bytes)))
            })
            .collect();
        let values: Vec<[f64; 2]> = pairs.iter().map(|pair| pair.map(|bits| value(bits, exponent, fraction))).collect();
        let farthest = values.iter().map(|[a, b]| ((b - a) / a).abs()).filter(|off| off.is_finite()).fold(0.0, f64::max);
        let relative = of_farthest * farthest;
        let agree = |&[a, b]: &[f64; 2]| {
            let is_close = a.is_finite() && b.is_finite() && (b - a).abs() <= absolute + relative * a.abs();
            a.is_nan() && b.is_nan() || a == b || is_close
        };
        // What is not a whole element is left out.
        let whole = values.len() / usize::from(lanes) * usize::from(lanes);
        let differing = values[..whole].chunks(lanes.into()).filter(|lanes| !lanes.iter().all(agree)).count();
        let of = |which: usize| pairs[..whole].iter().flat_map(|pair| pair[which].to_le_bytes()[..bytes].to_vec()).collect::<Vec<u8>>();
        let tolerance = Tolerance { relative, absolute: Some(absolute) };
        let found = compare("y", &Element { scalar, lanes }, tolerance, &of(0), &of(1));
        prop_assert_eq!(found.map_or(0, |difference| difference.count), differing as u64);
    }
}

#[test]
fn large_results_are_compared_whole_and_in_order() {
    let expected: Vec<i32> = (0..2_000_000).collect();
    let mut got = expected.clone();
    for index in [700_001, 1_999_999] {
        got[index] = -1;
    }
    assert_eq!(differs(Scalar::I32, 1, expected.bytes(), got.bytes()), "2 of 2000000: [700001].0 700001 -1");
}

#[test]
fn verdict_depends_on_gain_noise_and_number_of_pairs() {
    let steady = |us: f64, n: usize| vec![us; n];
    let noisy = |us: f64, n: usize| -> Vec<f64> {
        (0..n).map(|i| us * (1.0 + 0.05 * ((i * 7 % 11) as f64 / 5.0 - 1.0))).collect()
    };
    let mut drifting: (Vec<f64>, Vec<f64>) = (vec![], vec![]);
    for i in 0..20 {
        let clock = 1.0 + 0.1 * f64::from(i);
        drifting.0.push(100.0 * clock);
        drifting.1.push(95.0 * clock);
    }
    for (case, baseline, challenger, expected) in [
        ("clear gain", steady(100.0, 10), steady(80.0, 10), "faster 1.25"),
        ("clear loss", steady(100.0, 10), steady(120.0, 10), "slower 0.83"),
        ("the same", steady(100.0, 10), steady(100.0, 10), "slower 1.00"),
        ("gain below the minimum", steady(100.0, 10), steady(99.5, 10), "slower 1.01"),
        ("gain below 0.2 us", steady(1.0, 10), steady(0.85, 10), "slower 1.18"),
        ("gain of 0.3 us", steady(1.0, 10), steady(0.7, 10), "faster 1.43"),
        ("nothing takes so little", steady(0.05, 10), steady(0.01, 10), "slower 5.00"),
        ("too few pairs", steady(100.0, 7), steady(80.0, 7), "ambiguous 1.25"),
        ("no pairs", vec![], vec![], "ambiguous 0.00"),
        ("drift that both see", drifting.0, drifting.1, "faster 1.05"),
        ("noise as large as the gain", noisy(100.0, 9), steady(98.5, 9), "ambiguous 1.02"),
        ("one wild sample", [steady(100.0, 15), vec![1e6]].concat(), steady(100.0, 16), "slower 1.00"),
        ("nonsense is left out", vec![0.0, f64::NAN, 1.0], vec![1.0; 3], "ambiguous 1.00"),
    ] {
        let said = match faster(&baseline, &challenger) {
            Verdict::Faster { ratio } => format!("faster {ratio:.2}"),
            Verdict::NotFaster { ratio } => format!("slower {ratio:.2}"),
            Verdict::Ambiguous { ratio } => format!("ambiguous {ratio:.2}"),
        };
        assert_eq!(said, expected, "{case}");
    }
}

#[test]
fn loss_counts_however_short_the_kernel_is() {
    let lost = slower_by(&[1.5; 12], &[1.65; 12], ERROR_RATE);
    assert!(matches!(lost, Verdict::Faster { ratio } if (ratio - 1.1).abs() < 1e-9), "{lost:?}");
    assert!(matches!(slower_by(&[1.5; 12], &[1.5; 12], ERROR_RATE), Verdict::NotFaster { .. }));
    assert!(matches!(faster(&[1.65; 12], &[1.5; 12]), Verdict::NotFaster { .. }), "as a gain it is too small");
}

proptest! {
    /// Whatever the samples: not both are faster than the other, the scale of time does not matter where 1% is more than 0.2 us, and
    /// a gain that is claimed is one.
    #[test]
    fn verdict_does_not_depend_on_the_scale_and_never_favours_both(pairs in prop::collection::vec((100.0f64..200.0, 100.0f64..200.0), 0..60), scale in 1.0f64..10.0) {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let scaled = |samples: &[f64]| -> Vec<f64> { samples.iter().map(|us| us * scale).collect() };
        let verdict = faster(&a, &b);
        let kind = std::mem::discriminant;
        prop_assert_eq!(kind(&verdict), kind(&faster(&scaled(&a), &scaled(&b))));
        if let Verdict::Faster { ratio } = verdict {
            prop_assert!(ratio >= MINIMUM_GAIN);
            let slower = matches!(faster(&b, &a), Verdict::NotFaster { .. });
            prop_assert!(slower);
        }
    }

    /// Two samplings of one distribution are hardly ever told apart.
    #[test]
    fn samples_of_one_distribution_are_not_told_apart(noise in prop::collection::vec((0.0f64..1.0, 0.0f64..1.0), 30)) {
        let (a, b): (Vec<f64>, Vec<f64>) =
            noise.into_iter().map(|(x, y)| (100.0 + 0.5 * x, 100.0 + 0.5 * y)).unzip();
        let claimed = matches!(faster(&a, &b), Verdict::Faster { .. });
        prop_assert!(!claimed);
    }
}

#[test]
fn refusal_by_a_difference_reads_as_a_sentence() {
    use nvtune::measure::Difference;
    let difference = Difference {
        buffer: "y".to_owned(),
        index: 7,
        lane: 2,
        expected: "1.5".to_owned(),
        got: "NaN".to_owned(),
        count: 3,
        of: 1024,
    };
    assert_eq!(
        Reason::Differs(difference).to_string(),
        "3 of 1024 elements of `y` differ from the baseline's: y[7], lane 2 is NaN, not 1.5"
    );
}
