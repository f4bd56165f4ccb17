//! How often instructions execute, by what the source says.

use super::*;
use crate::support::full::cases;

#[test]
fn loop_that_compiler_unrolled_is_counted_to_iteration() {
    for k in [0, 1, 3, 4, 7, 1000, 2047, 8192, 1_000_003] {
        let (n, m) = (256u64, 256u64);
        let case = Case::new("matmul", "naive").int(n as i32).int(m as i32).int(k);
        let k = k as u64;
        let case = case.floats(n * k).floats(k * m).floats(n * m);
        let profile = case.profile([16, 16, 1], [16, 16, 1], 0);
        assert!(profile.exact, "k = {k}");
        // The compiler unrolls by four and finishes the rest one by one.
        assert_eq!(case.total(&profile, "fma.rn.f32"), k as f64, "k = {k}");
        assert_eq!(case.total(&profile, "ld.global.f32"), 2.0 * k as f64, "k = {k}");
        if k >= 64 {
            let loads = case.accesses(&profile, "ld.global.f32");
            // A warp of 16 x 2 threads: two rows of a (broadcast in each), 16 columns of b.
            assert!(loads.iter().any(|l| l.buffer == Some(0) && l.sectors == 2.0 && l.reuse > 0.7), "{loads:?}");
            assert!(loads.iter().any(|l| l.buffer == Some(1) && l.sectors == 2.0 && l.reuse == 0.0), "{loads:?}");
            // Every warp of the block reads the same columns of b.
            assert!(loads.iter().any(|l| l.buffer == Some(1) && l.block_sectors < 0.6), "{loads:?}");
        }
    }
}

#[test]
fn tiles_in_shared_memory_are_counted() {
    for n in [16u32, 512, 8192] {
        let size = u64::from(n) * u64::from(n);
        let case = Case::new("matmul", "tiled").int(n as i32).floats(size).floats(size).floats(size);
        let profile = case.profile([n / 16, n / 16, 1], [16, 16, 1], 0);
        assert!(profile.exact, "n = {n}");
        assert_eq!(case.total(&profile, "fma.rn.f32"), f64::from(n));
        assert_eq!(case.counts(&profile, "bar.sync"), [f64::from(n) / 16.0; 2]);
        assert_eq!(case.counts(&profile, "ld.shared").len(), 32);
        let passes: Vec<f64> = case.accesses(&profile, "ld.shared").iter().map(|a| a.passes).collect();
        // ta[threadIdx.y][i]: two words, one bank apart by 16; tb[i][threadIdx.x]: 16 words.
        assert_eq!(passes, vec![1.0; 32]);
    }
}

#[test]
fn nested_loops_are_counted() {
    for &n in cases(&[256u32, 4096, 65536, 1 << 22], 3) {
        let case = Case::new("nbody", "nbody").int(n as i32);
        let case = case.buffer(Scalar::F32, 4, u64::from(n), Fill::Random { lo: -1.0, hi: 1.0 });
        let case = case.buffer(Scalar::F32, 4, u64::from(n), Fill::Poison);
        let profile = case.profile([n / 256, 1, 1], [256, 1, 1], 256 * 16);
        assert!(profile.exact, "n = {n}");
        assert_eq!(case.total(&profile, "rsqrt"), f64::from(n));
        assert_eq!(case.counts(&profile, "bar.sync"), [f64::from(n) / 256.0; 2]);
        let shared = case.accesses(&profile, "ld.shared");
        // All lanes load one address: the two passes of a pair of quarters are one.
        assert!(shared.iter().all(|a| a.broadcast && a.passes == 0.5 && a.width == 16), "{shared:?}");
    }
}

#[test]
fn grid_stride_loop_is_counted_for_busiest_thread() {
    for (n, blocks) in [(1 << 20, 64u32), (10_000_000, 132), (777, 8)] {
        let mut case = Case::new("blackscholes", "blackscholes").int(n).float(0.02).float(0.3);
        for _ in 0..3 {
            case = case.buffer(Scalar::F32, 1, n as u64, Fill::Random { lo: 1.0, hi: 30.0 });
        }
        let case = case.floats(n as u64).floats(n as u64);
        let profile = case.profile([blocks, 1, 1], [256, 1, 1], 0);
        assert!(profile.exact, "n = {n}");
        let trips = (n as u32).div_ceil(blocks * 256);
        assert_eq!(case.counts(&profile, "sqrt.rn"), [f64::from(trips)]);
        assert_eq!(case.counts(&profile, "st.global"), [f64::from(trips); 2]);
    }
}

#[test]
fn halving_loop_is_counted() {
    let case = Case::new("reduction", "reduce").int(1 << 20).floats(1 << 20).floats(4096);
    let profile = case.profile([4096, 1, 1], [256, 1, 1], 1024);
    assert!(profile.exact);
    let barriers = case.counts(&profile, "bar.sync");
    assert_eq!(barriers, [1.0, 8.0]);
    // Thread 0 adds in all eight rounds and writes the sum; thread 255 in none.
    assert_eq!(case.counts(&profile, "add.f32"), [8.0]);
    assert_eq!(case.counts(&profile, "st.global"), [1.0]);
}

#[test]
fn data_dependent_loop_is_run_on_data() {
    let n = 32;
    let case = Case::new("control", "collatz").int(n);
    let case = case.buffer(Scalar::U32, 1, n as u64, Fill::Random { lo: 0.0, hi: 100_000.0 });
    let case = case.buffer(Scalar::U32, 1, n as u64, Fill::Poison);
    let profile = case.profile([1, 1, 1], [32, 1, 1], 0);
    let steps = |start: u32| {
        let (mut v, mut steps) = (start + 1, 0);
        while v != 1 {
            v = if v & 1 == 1 { v.wrapping_mul(3).wrapping_add(1) } else { v / 2 };
            steps += 1;
        }
        steps
    };
    let most = (0..n as u64)
        .map(|i| {
            let mut bytes = [0; 4];
            assert!(contents::fill_bytes(&case.workload.buffers[0], i..i + 1, &mut bytes));
            steps(u32::from_le_bytes(bytes))
        })
        .max();
    assert!(profile.exact);
    // All 32 threads of the one warp are looked at, so the maximum is the warp's.
    let body = case.counts(&profile, "selp.b32");
    assert_eq!(body, [f64::from(most.unwrap())], "{}", case.text);
}

#[test]
fn called_function_is_counted() {
    let case = Case::new("control", "gcds");
    let fill = |v| Fill::Constant(v);
    let case = case.buffer(Scalar::I32, 1, 64, fill(1071.0)).buffer(Scalar::I32, 1, 64, fill(462.0));
    let case = case.buffer(Scalar::I32, 1, 64, Fill::Poison);
    let profile = case.profile([2, 1, 1], [32, 1, 1], 0);
    assert!(profile.exact);
    let gcd = case.module.functions.iter().find(|f| f.name.contains("gcd") && !f.entry).unwrap();
    let remainder = gcd.body.as_ref().unwrap().instructions().find(|i| i.opcode.text().starts_with("rem")).unwrap();
    // 1071 = 2 * 462 + 147, 462 = 3 * 147 + 21, 147 = 7 * 21.
    assert_eq!(profile.counts[&remainder.line], 3.0);
}

#[test]
fn loops_of_every_shape_are_counted_exactly() {
    // (body, trips of the line with `add.f32` for n)
    type Trips = fn(u64) -> u64;
    let cases: [(&str, Trips); 7] = [
        // Down to zero, tested for inequality.
        (
            "mov.u32 %r2, %r1;\nL: add.f32 %f1, %f1, %f1; add.s32 %r2, %r2, -1;\nsetp.ne.s32 %p1, %r2, 0;\n@%p1 bra L; ret;",
            |n| n,
        ),
        // Left in the middle by a forward branch.
        (
            "mov.u32 %r2, 0;\nL: setp.ge.u32 %p1, %r2, %r1;\n@%p1 bra E;\nadd.f32 %f1, %f1, %f1; add.u32 %r2, %r2, 3; bra L;\nE: ret;",
            |n| n.div_ceil(3),
        ),
        // A pointer as the counter.
        (
            "mul.wide.u32 %rd2, %r1, 8; add.s64 %rd3, %rd1, %rd2;\nL: add.f32 %f1, %f1, %f1; add.s64 %rd1, %rd1, 8; setp.lt.u64 %p1, %rd1, %rd3;\n@%p1 bra L; ret;",
            |n| n,
        ),
        // A triangle: the inner loop runs i times.
        (
            "mov.u32 %r2, 1;\nO: mov.u32 %r3, 0;\nL: add.f32 %f1, %f1, %f1; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r2;\n@%p1 bra L;\nadd.u32 %r2, %r2, 1; setp.le.u32 %p2, %r2, 1000; setp.le.and.u32 %p2, %r2, %r1, %p2;\n@%p2 bra O; ret;",
            |n| {
                let m = n.min(1000);
                m * (m + 1) / 2
            },
        ),
        // A bound that is a minimum: the last block is short.
        (
            "mov.u32 %r2, 0;\nO: sub.u32 %r4, %r1, %r2; min.u32 %r4, %r4, 64; mov.u32 %r3, 0;\nL: add.f32 %f1, %f1, %f1; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r4;\n@%p1 bra L;\nadd.u32 %r2, %r2, 64; setp.lt.u32 %p2, %r2, %r1;\n@%p2 bra O; ret;",
            |n| n,
        ),
        // The path changes half way.
        (
            "mov.u32 %r2, 0; shr.u32 %r5, %r1, 1;\nL: setp.lt.u32 %p1, %r2, %r5;\n@%p1 bra S;\nadd.f32 %f1, %f1, %f1;\nS: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r1;\n@%p2 bra L; ret;",
            |n| n - n / 2,
        ),
        // Every fourth iteration: never regular, but run to the end.
        (
            "mov.u32 %r2, 0; min.u32 %r1, %r1, 40000;\nL: and.b32 %r3, %r2, 3; setp.ne.u32 %p1, %r3, 0;\n@%p1 bra S;\nadd.f32 %f1, %f1, %f1;\nS: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r1;\n@%p2 bra L; ret;",
            |n| n.min(40000).div_ceil(4),
        ),
    ];
    for (body, trips) in cases {
        for n in [1, 2, 5, 6, 7, 100, 12_345, 100_000_000] {
            let case = with_n(body, n);
            let profile = case.profile([1, 1, 1], [1, 1, 1], 0);
            assert!(profile.exact, "n = {n}: {body}");
            let expected = trips(n as u64) as f64;
            let line = case.text.lines().position(|l| l.contains("add.f32")).unwrap() as u32 + 1;
            assert_eq!(profile.counts.get(&line).copied().unwrap_or(0.0), expected, "n = {n}: {body}");
        }
    }
}

#[test]
fn long_loop_with_data_dependent_branch_is_estimated() {
    // Counts the values below a tenth; a thread's whole course would be 100 million iterations.
    let body = "mov.u32 %r2, 0;\nL: rem.u32 %r3, %r2, 16384; mul.wide.u32 %rd2, %r3, 4; add.s64 %rd3, %rd1, %rd2;\n\
                ld.global.u32 %r4, [%rd3]; setp.ge.u32 %p1, %r4, 100;\n@%p1 bra S;\nadd.f32 %f1, %f1, %f1;\n\
                S: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r1;\n@%p2 bra L; ret;";
    let n = 100_000_000;
    let case = by_hand(body).buffer(Scalar::U32, 1, 16384, Fill::Random { lo: 0.0, hi: 1000.0 }).int(n);
    let profile = case.profile([1, 1, 1], [1, 1, 1], 0);
    let count = |text: &str| {
        let line = case.text.lines().position(|l| l.contains(text)).unwrap() as u32 + 1;
        profile.counts[&line]
    };
    assert!(!profile.exact);
    assert!((count("ld.global") / f64::from(n) - 1.0).abs() < 1e-6, "{}", count("ld.global"));
    assert!((count("add.f32") / f64::from(n) - 0.1).abs() < 0.01, "{}", count("add.f32"));
}
