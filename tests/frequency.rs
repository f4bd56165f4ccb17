//! Profiles of real kernels, compared with counts and values that are worked out independently.

use super::support::fixtures;

use nvtune::model::frequency::{Error, Limits, profile, strays, written};
use nvtune::model::profile::{Access, Kind, Profile, Space, VARIABLES};
use nvtune::ptx::Module;
use nvtune::space::Launch;
use nvtune::workload::{Argument, Buffer, Element, Fill, Scalar, Symbol, Workload, contents};
use proptest::prelude::*;

/// A kernel's PTX with a workload that grows argument by argument.
struct Case {
    text: String,
    module: Module,
    entry: String,
    workload: Workload,
}

impl Case {
    fn new(file: &str, kernel: &str) -> Self {
        let text = fixtures::ptx(&format!("{file}/sm_90"));
        let module = Module::parse(&text).expect("cicc's PTX parses");
        let entry = module.functions.iter().find(|f| f.entry && f.name.contains(kernel)).expect("the kernel");
        let entry = entry.name.to_string();
        Self { module, entry, text, workload: Workload::default() }
    }

    fn int(mut self, value: i32) -> Self {
        self.workload.arguments.push(Argument::Scalar(value.to_le_bytes().to_vec()));
        self
    }

    fn float(mut self, value: f32) -> Self {
        self.workload.arguments.push(Argument::Scalar(value.to_le_bytes().to_vec()));
        self
    }

    fn buffer(mut self, scalar: Scalar, lanes: u8, count: u64, fill: Fill) -> Self {
        let index = self.workload.buffers.len();
        self.workload.arguments.push(Argument::Buffer(index));
        let element = Element { scalar, lanes };
        self.workload.buffers.push(Buffer { name: format!("b{index}"), element, count, fill, seed: index as u64 });
        self
    }

    fn floats(self, count: u64) -> Self {
        self.buffer(Scalar::F32, 1, count, Fill::Random { lo: 0.0, hi: 1.0 })
    }

    fn profile(&self, grid: [u32; 3], block: [u32; 3], shared: u32) -> Profile {
        let launch = Launch { grid, block, shared, carveout: None };
        profile(&self.module, &self.entry, &launch, &self.workload, &Limits::default()).expect("a profile")
    }

    /// Lines of the entry whose instruction begins with `opcode`, with their counts.
    fn counts(&self, profile: &Profile, opcode: &str) -> Vec<f64> {
        self.lines(opcode).map(|line| profile.counts.get(&line).copied().unwrap_or(0.0)).collect()
    }

    fn total(&self, profile: &Profile, opcode: &str) -> f64 {
        self.counts(profile, opcode).iter().sum()
    }

    fn accesses(&self, profile: &Profile, opcode: &str) -> Vec<Access> {
        self.lines(opcode).filter_map(|line| profile.accesses.get(&line).copied()).collect()
    }

    fn lines(&self, opcode: &str) -> impl Iterator<Item = u32> {
        let function = self.module.entry(&self.entry).expect("the entry");
        let body = function.body.as_ref().expect("a body");
        body.instructions().filter(move |i| i.opcode.starts_with(opcode)).map(|i| i.line)
    }
}

#[test]
fn a_guard_lets_only_threads_in_range_work() {
    let case = Case::new("saxpy", "saxpy").int(1000).float(2.0).floats(1000).floats(1000);
    let profile = case.profile([4, 1, 1], [256, 1, 1], 0);
    assert!(profile.exact);
    assert_eq!(case.counts(&profile, "st.global"), [1.0]);
    // Of every warp, the last one too, some threads are in range.
    let length = case.module.entry(&case.entry).unwrap().body.as_ref().unwrap().instructions().count() as f64;
    assert_eq!(profile.mean_instructions, length, "{profile:?}");
    let load = case.accesses(&profile, "ld.global.nc")[0];
    let expected = Access {
        space: Space::Global,
        kind: Kind::Load,
        width: 4,
        // Of 32 warps the last has 8 threads in range: 125 sectors.
        sectors: 125.0 / 32.0,
        lines: 1.0,
        leaving: 0.0,
        partial: 0.0,
        completed: 0.0,
        unfinished: 0.0,
        stored_before: 0.0,
        busy_ns: 0.0,
        passes: 1.0,
        reuse: 0.0,
        at_hand: 0.0,
        near: 0.0,
        unplaced: 0.0,
        hits: 0.0,
        reuse_after: 0.0,
        block_reuse: 0.0,
        block_sectors: 125.0 / 32.0,
        lanes: 1000.0 / 32.0,
        broadcast: false,
        buffer: Some(0),
    };
    assert_eq!(load, expected);
    // y is read and then written: the store meets the sectors of the load.
    assert_eq!(case.accesses(&profile, "st.global")[0].reuse, 1.0);
}

/// Who brings data into the level-2 cache waits for device memory, and others do not.
#[test]
fn what_neighbours_bring_is_told_from_what_is_new() {
    let (planes, threads, blocks) = (64u64, 128u64, 100u64);
    let places = threads * blocks;
    let plane = places + threads;
    let case = Case::new("neighbours", "neighbours").int(planes as i32).floats((planes + 4) * plane).floats(threads);
    let case = case.buffer(Scalar::I32, 1, places, Fill::Random { lo: 0.0, hi: 4096.0 }).floats(4096).floats(places);
    let profile = case.profile([blocks as u32, 1, 1], [threads as u32, 1, 1], 0);
    let near = |buffer: u32| -> Vec<f64> {
        let loads = case.accesses(&profile, "ld.global").into_iter().filter(|access| access.buffer == Some(buffer));
        loads.map(|access| (access.near * 1000.0).round() / 1000.0).collect()
    };
    assert_eq!(near(0), [0.0, 1.0], "the planes ahead, and the neighbour's place four planes later");
    assert_eq!(near(1), [0.99], "what all of 100 blocks read");
    assert_eq!(near(2), [0.0], "what each block reads of its own");
    // 12,800 places of 4096 values, of which a warp asks for many sectors of its own.
    assert!((0.5..1.0).contains(&near(3)[0]), "read here and there: {:?}", near(3));
}

#[test]
fn a_long_product_is_counted_to_the_iteration() {
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
fn nested_loops_over_all_bodies_are_counted() {
    for n in [256u32, 4096, 65536, 1 << 22] {
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
fn a_grid_stride_loop_is_counted_for_its_busiest_thread() {
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
fn a_shrinking_loop_halves_until_one() {
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
fn atomics_are_accesses() {
    let n = 1 << 20;
    let case = Case::new("histogram", "histogram").int(n);
    let case = case.buffer(Scalar::U8, 1, n as u64, Fill::Random { lo: 0.0, hi: 255.0 });
    let case = case.buffer(Scalar::U32, 1, 256, Fill::Zeros);
    let profile = case.profile([64, 1, 1], [256, 1, 1], 0);
    assert!(profile.exact, "no branch hangs on an atomic's result");
    assert_eq!(case.counts(&profile, "atom.shared"), [64.0]);
    let shared = case.accesses(&profile, "atom.shared")[0];
    assert_eq!((shared.space, shared.kind), (Space::Shared, Kind::Atomic));
    assert!(shared.passes > 1.5 && shared.passes < 8.0, "random bins collide: {shared:?}");
    let bytes = case.accesses(&profile, "ld.global.u8")[0];
    assert_eq!((bytes.width, bytes.sectors), (1, 1.0));
}

#[test]
fn loops_that_hang_on_data_are_run_on_the_data() {
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
fn a_function_that_is_called_is_counted() {
    let case = Case::new("control", "gcds");
    let fill = |v| Fill::Constant(v);
    let case = case.buffer(Scalar::I32, 1, 64, fill(1071.0)).buffer(Scalar::I32, 1, 64, fill(462.0));
    let case = case.buffer(Scalar::I32, 1, 64, Fill::Poison);
    let profile = case.profile([2, 1, 1], [32, 1, 1], 0);
    assert!(profile.exact);
    let gcd = case.module.functions.iter().find(|f| f.name.contains("gcd") && !f.entry).unwrap();
    let remainder = gcd.body.as_ref().unwrap().instructions().find(|i| i.opcode.starts_with("rem")).unwrap();
    // 1071 = 2 * 462 + 147, 462 = 3 * 147 + 21, 147 = 7 * 21.
    assert_eq!(profile.counts[&remainder.line], 3.0);
}

impl Case {
    fn input(&self, buffer: usize, index: u64) -> Vec<u8> {
        let buffer = &self.workload.buffers[buffer];
        let mut bytes = vec![0; buffer.element.size()];
        assert!(contents::fill_bytes(buffer, index..index + 1, &mut bytes));
        bytes
    }

    /// `count` values of `size` bytes that thread `thread` writes to `buffer` from element `first` on.
    fn output(&self, thread: u32, buffer: usize, first: u64, count: u64, size: u64) -> Vec<Vec<u8>> {
        let launch = Launch { grid: [1, 1, 1], block: [64, 1, 1], shared: 0, carveout: None };
        let place = ([0; 3], [thread, 0, 0]);
        let bytes = written(&self.module, &self.entry, &launch, &self.workload, place, &Limits::default()).unwrap();
        let value = |i: u64| (0..size).map(|byte| bytes[&(buffer, (first + i) * size + byte)]).collect();
        (0..count).map(value).collect()
    }
}

fn u32_of(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap())
}

fn f32_of(bytes: &[u8]) -> f32 {
    f32::from_bits(u32_of(bytes))
}

fn f64_of(bytes: &[u8]) -> f64 {
    f64::from_le_bytes(bytes.try_into().unwrap())
}

#[test]
fn integers_are_the_hosts() {
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
fn floats_are_the_hosts() {
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
fn doubles_and_halves_are_the_hosts() {
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

#[test]
fn a_switch_goes_where_the_data_says() {
    for (selector, opcode) in [(2.0, "fma.rn.f32"), (3.0, "sqrt"), (4.0, "rcp"), (7.0, "neg")] {
        let case = Case::new("control", "choose").buffer(Scalar::U32, 1, 64, Fill::Constant(selector)).buffer(
            Scalar::F32,
            1,
            66,
            Fill::Constant(2.0),
        );
        let profile = case.profile([2, 1, 1], [32, 1, 1], 0);
        assert!(profile.exact);
        assert!(case.total(&profile, opcode) >= 1.0, "{selector}: {opcode}");
        let value = f32_of(&case.output(0, 1, 0, 1, 4)[0]);
        let expected = match selector as u32 {
            2 => 5.0,
            3 => 2f32.sqrt(),
            4 => 0.5,
            _ => -2.0,
        };
        assert_eq!(value, expected, "{selector}");
    }
}

/// A kernel written by hand: `body` between declarations that fit anything.
fn by_hand(body: &str) -> Case {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 4 .b8 s[1024];\n\
         .entry k(.param .u64 a, .param .u32 n) {{\n.reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<9>;\n\
         ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n];\n{body}\n}}\n"
    );
    let module = Module::parse(&text).unwrap();
    Case { text, module, entry: "k".into(), workload: Workload::default() }
}

#[test]
fn variables_that_the_workload_fills_are_read() {
    let mut case = by_hand(
        "ld.const.u32 %r2, [ck+4];\nld.global.u32 %r3, [dv];\nadd.u32 %r4, %r2, %r3;\nst.global.u32 [%rd1], %r4; ret;",
    )
    .buffer(Scalar::U32, 1, 4, Fill::Poison)
    .int(0);
    case.text = case.text.replace(".shared .align", ".const .align 4 .b8 ck[16];\n.global .u32 dv;\n.shared .align");
    case.module = Module::parse(&case.text).expect("PTX");
    let launch = Launch { grid: [1; 3], block: [1; 3], shared: 0, carveout: None };
    let stored = |case: &Case| {
        let bytes = written(&case.module, "k", &launch, &case.workload, ([0; 3], [0; 3]), &Limits::default());
        let bytes: Vec<u8> = bytes.expect("it runs").into_values().collect();
        bytes.try_into().ok().map(u32::from_le_bytes)
    };
    assert_eq!(stored(&case), None, "what the host wrote is not known");
    for (symbol, count, fill) in [("ck", 2, Fill::Iota), ("dv", 1, Fill::Constant(41.0))] {
        let element = Element { scalar: Scalar::U32, lanes: 1 };
        let contents = Buffer { name: symbol.into(), element, count, fill, seed: 0 };
        case.workload.symbols.push(Symbol { symbol: symbol.into(), contents });
    }
    assert_eq!(stored(&case), Some(42));
    let profile = case.profile([1, 1, 1], [32, 1, 1], 0);
    assert_eq!((profile.variables, case.accesses(&profile, "ld.global")[0].buffer), (4, Some(VARIABLES)));
}

#[test]
fn what_surely_lies_beyond_its_memory_is_told() {
    let seen = |body: &str, shared: u32| {
        let case = by_hand(&format!(
            "mov.u32 %r2, %tid.x;\nmul.wide.u32 %rd2, %r2, 4;\nadd.s64 %rd3, %rd1, %rd2;\n{body}\nret;"
        ))
        .buffer(Scalar::U32, 1, 64, Fill::Iota)
        .int(7);
        let launch = Launch { grid: [1; 3], block: [64, 1, 1], shared, carveout: None };
        let places = [0, 63].map(|x| ([0; 3], [x, 0, 0]));
        let found = strays(&case.module, "k", &launch, &case.workload, &places, 100).expect("it runs");
        found.iter().map(|stray| format!("{stray:?}")).collect::<Vec<_>>().join(" ")
    };
    let at = "cvt.u64.u32 %rd4, %r2; mov.u64 %rd5, s; add.s64 %rd5, %rd5, %rd4;\n";
    let own = "{ .shared .align 4 .b8 t[32]; st.shared.u32 [t+28], %r1; st.shared.u32 [t+32], %r1; }";
    let by_data = "ld.global.u32 %r4, [%rd1+4]; mul.wide.u32 %rd4, %r4, 1024; add.s64 %rd4, %rd4, %rd1; ld.global.u32 %r3, [%rd4];";
    for (body, shared, expected) in [
        ("ld.global.u32 %r3, [%rd3];", 0, ""),
        ("ld.global.u32 %r3, [%rd3+4];", 0, "Buffer { index: 0, byte: 256, kind: Load }"),
        ("st.global.u32 [%rd3+-8], %r1;", 0, "Buffer { index: 0, byte: -8, kind: Store }"),
        (
            "atom.global.add.u32 %r3, [%rd1+256], 1;",
            0,
            "Buffer { index: 0, byte: 256, kind: Atomic } Buffer { index: 0, byte: 256, kind: Atomic }",
        ),
        // Part of a vector is beyond the end.
        ("ld.global.v2.u32 {%r3, %r4}, [%rd3];", 0, "Buffer { index: 0, byte: 252, kind: Load }"),
        // Not executed; executed or not by what others have written; at an address that they have.
        ("setp.gt.u32 %p1, %r2, 64; @%p1 ld.global.u32 %r3, [%rd3+4];", 0, ""),
        ("ld.shared.u32 %r4, [s]; setp.ne.u32 %p1, %r4, 1; @%p1 ld.global.u32 %r3, [%rd3+4];", 0, ""),
        ("ld.shared.u32 %r4, [s]; setp.ne.u32 %p1, %r4, 0; @%p1 bra L; ld.global.u32 %r3, [%rd3+4]; L:", 0, ""),
        ("ld.shared.u64 %rd4, [s]; add.s64 %rd4, %rd4, %rd1; ld.global.u32 %r3, [%rd4+256];", 0, ""),
        // The last thread alone: 63 bytes from where four are left.
        (&format!("{at}ld.shared.u32 %r3, [%rd5+957];"), 0, ""),
        (&format!("{at}ld.shared.u32 %r3, [%rd5+958];"), 0, "Shared { has: 1024 }"),
        (&format!("{at}ld.shared.u32 %r3, [%rd5+958];"), 16, ""),
        (own, 0, "Shared { has: 1056 } Shared { has: 1056 }"),
        (own, 4, ""),
        ("setp.gt.u32 %p1, %r2, 62; @%p1 trap;", 0, "Failure"),
        // By what a buffer has, unless others may have written it before.
        (
            &format!("{by_data} ret;"),
            0,
            "Buffer { index: 0, byte: 1024, kind: Load } Buffer { index: 0, byte: 1024, kind: Load }",
        ),
        (&format!("bar.sync 0; {by_data} ret;"), 0, ""),
        ("ld.shared.u32 %r4, [s]; setp.ne.u32 %p1, %r4, 1; @%p1 trap;", 0, ""),
        ("setp.lt.u32 %p1, %r2, 63; @%p1 bra L; call.uni __assertfail, (%rd1); L:", 0, "Failure"),
    ] {
        assert_eq!(seen(body, shared), expected, "{body}");
    }
}

fn with_n(body: &str, n: i32) -> Case {
    by_hand(body).buffer(Scalar::U32, 1, 1 << 16, Fill::Iota).int(n)
}

#[test]
fn warps_share_what_the_end_of_a_long_loops_body_loads() {
    // Each warp loads its own words and then, after so many instructions, by what they are, those of the next: few can be run to their end.
    for instructions in [10, 4000] {
        let work = "add.u32 %r5, %r5, 1;\n".repeat(instructions);
        let case = by_hand(&format!(
            "mov.u32 %r3, %tid.x;\n\
             mul.wide.u32 %rd2, %r3, 4;\n\
             add.s64 %rd3, %rd1, %rd2;\n\
             mov.u32 %r2, 0;\n\
             L: ld.global.u32 %r4, [%rd3];\n\
             {work}\
             setp.eq.u32 %p2, %r4, 7;\n\
             @%p2 bra M;\n\
             ld.global.u32 %r4, [%rd3+128];\n\
             M: add.s64 %rd3, %rd3, 2048;\n\
             add.u32 %r2, %r2, 1;\n\
             setp.lt.u32 %p1, %r2, 20;\n\
             @%p1 bra L;\n\
             ret;"
        ))
        .buffer(Scalar::U32, 1, 1 << 17, Fill::Iota)
        .int(0);
        let profile = case.profile([132, 1, 1], [512, 1, 1], 0);
        let [own, next] = case.accesses(&profile, "ld.global")[..] else { panic!("two loads") };
        assert!(own.block_reuse < 0.1 && next.block_reuse > 0.75, "{instructions}: {own:?} {next:?}");
    }
}

#[test]
fn a_walk_beyond_the_record_comes_back_to_what_it_has_read() {
    // 512 steps over a buffer of 64 sectors, a sector each; 32 of them are recorded, and none of these comes back.
    let case = by_hand(
        "mov.u32 %r2, 0;\n\
         L: and.b32 %r3, %r2, 63;\n\
         mul.wide.u32 %rd2, %r3, 32;\n\
         add.s64 %rd3, %rd1, %rd2;\n\
         ld.global.u32 %r4, [%rd3];\n\
         add.u32 %r2, %r2, 1;\n\
         setp.lt.u32 %p1, %r2, 512;\n\
         @%p1 bra L;\n\
         ret;",
    )
    .buffer(Scalar::U32, 1, 64 * 8, Fill::Iota)
    .int(0);
    let profile = case.profile([1, 1, 1], [32, 1, 1], 0);
    assert_eq!(case.counts(&profile, "ld.global"), [512.0]);
    let load = case.accesses(&profile, "ld.global")[0];
    // It may begin within a sector, so one more may be new.
    assert_eq!((load.sectors, load.reuse), (1.0, 1.0 - 65.0 / 512.0));
    let instructions_of_a_step = profile.mean_instructions / 512.0;
    assert!((load.reuse_after / (65.0 * instructions_of_a_step) - 1.0).abs() < 0.01, "{load:?}");
}

#[test]
fn lanes_that_drop_out_of_a_loop_access_nothing_more() {
    // Lane i reads a line of its own 8 i + 8 times, counting down by the ones that it reads; the record ends when the first have dropped out.
    let case = by_hand(
        "mov.u32 %r2, %tid.x; mul.wide.u32 %rd4, %r2, 128; add.s64 %rd5, %rd1, %rd4; mad.lo.u32 %r4, %r2, 8, 8;\n\
         L: ld.volatile.global.u32 %r5, [%rd5];\nsub.u32 %r4, %r4, %r5; setp.ne.u32 %p1, %r4, 0;\n@%p1 bra L;\nret;",
    )
    .buffer(Scalar::U32, 1, 1 << 10, Fill::Constant(1.0))
    .int(0);
    let profile = case.profile([1, 1, 1], [32, 1, 1], 0);
    let load = case.accesses(&profile, "ld.volatile")[0];
    assert_eq!(case.counts(&profile, "ld.volatile"), [256.0]);
    assert_eq!((load.lanes, load.sectors, load.lines), (16.5, 16.5, 16.5));
}

#[test]
fn warps_that_part_all_the_time_are_run_as_far_as_the_allowance_goes() {
    // Each lane has its long turn while the others wait: a warp takes as long as all of its lanes one after another.
    let case = with_n(
        "mov.u32 %r2, %tid.x; and.b32 %r2, %r2, 31; mov.u32 %r3, 0;\n\
         L: mul.wide.u32 %rd2, %r3, 4; add.s64 %rd3, %rd1, %rd2; ld.global.u32 %r4, [%rd3];\n\
         setp.ne.u32 %p1, %r4, %r2;\n@%p1 bra S;\nmov.u32 %r5, 0; mov.u32 %r6, 1;\n\
         M: mad.lo.u32 %r6, %r6, 1103515245, 12345; and.b32 %r7, %r6, 4096; setp.eq.u32 %p2, %r7, 0;\n\
         @%p2 bra N;\nadd.u32 %r8, %r8, %r6;\n\
         N: add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 400;\n@%p3 bra M;\n\
         S: add.u32 %r3, %r3, 1; setp.lt.u32 %p4, %r3, 32;\n@%p4 bra L;\nst.global.u32 [%rd1], %r8; ret;",
        0,
    );
    let profile = case.profile([4, 1, 1], [512, 1, 1], 0);
    assert_eq!(case.counts(&profile, "mad.lo"), [32.0 * 400.0]);
    assert!(
        profile.exact && (70_000.0..100_000.0).contains(&profile.mean_instructions),
        "{}",
        profile.mean_instructions
    );
}

#[test]
fn lone_warps_that_do_more_count_by_how_many_they_are() {
    // Of every sixteen warps of the grid one takes 400 turns and the others 10, whichever blocks they are in; and of its lanes two take part.
    let case = with_n(
        "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n\
         mad.lo.u32 %r5, %r2, %r3, %r4;\n\
         shr.u32 %r6, %r5, 5;\n\
         and.b32 %r6, %r6, 15;\n\
         setp.eq.u32 %p1, %r6, 5;\n\
         selp.u32 %r7, 400, 10, %p1;\n\
         and.b32 %r8, %r5, 15;\n\
         setp.ne.u32 %p2, %r8, 0;\n\
         and.pred %p2, %p1, %p2;\n\
         @%p2 ret;\n\
         mul.wide.u32 %rd2, %r5, 32;\n\
         add.s64 %rd3, %rd1, %rd2;\n\
         mov.u32 %r9, 0;\n\
         L: ld.global.u32 %r10, [%rd3];\n\
         add.s64 %rd3, %rd3, 128;\n\
         add.u32 %r9, %r9, 1;\n\
         setp.lt.u32 %p3, %r9, %r7;\n\
         @%p3 bra L;\n\
         ret;",
        0,
    );
    let line = 1 + case.text.lines().position(|line| line.contains("ld.global.u32 %r10")).unwrap() as u32;
    let (turns, lanes) = ((400.0 + 15.0 * 10.0) / 16.0, (400.0 * 2.0 + 15.0 * 10.0 * 32.0) / (400.0 + 15.0 * 10.0));
    for block in [32, 64, 128, 256, 1024] {
        let profile = case.profile([(1 << 17) / block, 1, 1], [block, 1, 1], 0);
        let (mean, access) = (profile.mean[&line], profile.accesses[&line]);
        assert!((mean / turns - 1.0).abs() < 0.1, "blocks of {block}: {mean} turns, not {turns}");
        assert!((access.lanes / lanes - 1.0).abs() < 0.1, "blocks of {block}: {} lanes, not {lanes}", access.lanes);
        assert!((access.sectors / lanes - 1.0).abs() < 0.1, "a sector for each: {access:?}");
    }
}

#[test]
fn what_only_the_first_warp_of_a_block_loads_is_seen() {
    // The last four warps of eight are looked at first.
    let case = with_n(
        "mov.u32 %r2, %tid.x; mul.wide.u32 %rd2, %r2, 64; add.s64 %rd3, %rd1, %rd2;\n\
         setp.ge.u32 %p1, %r2, 32; @%p1 bra E;\nld.global.u32 %r4, [%rd3];\nE: st.shared.u32 [s], %r2; ret;",
        0,
    );
    let profile = case.profile([3, 1, 1], [256, 1, 1], 0);
    let load = case.accesses(&profile, "ld.global")[0];
    assert_eq!((load.sectors, load.buffer), (32.0, Some(0)));
}

#[test]
fn a_branch_table_is_followed() {
    for (index, expected) in [(0, 10), (1, 11), (2, 12)] {
        let case = with_n(
            "t: .branchtargets A, B, C;\nbrx.idx %r1, t;\n\
             A: mov.u32 %r2, 10; bra D;\nB: mov.u32 %r2, 11; bra D;\nC: mov.u32 %r2, 12;\n\
             D: st.global.u32 [%rd1], %r2; ret;",
            index,
        );
        assert_eq!(u32_of(&case.output(0, 0, 0, 1, 4)[0]), expected);
    }
}

#[test]
fn loops_of_every_shape_are_skipped_exactly() {
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
fn a_long_loop_that_branches_on_data_is_estimated() {
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

#[test]
fn what_is_not_known_makes_a_profile_inexact_but_ends() {
    let spin =
        "L: atom.global.cas.b32 %r2, [%rd1], 7, 1; setp.ne.s32 %p1, %r2, 7;\n@%p1 bra L;\nadd.f32 %f1, %f1, %f1; ret;";
    let forever = "L: bra L;";
    let clock = "mov.u32 %r2, %clock;\nL: mov.u32 %r3, %clock; sub.u32 %r4, %r3, %r2; setp.lt.u32 %p1, %r4, 9;\n@%p1 bra L; ret;";
    let shared =
        "ld.shared.u32 %r2, [s+8]; bar.sync 0; setp.eq.u32 %p1, %r2, 0;\n@%p1 ret;\nadd.f32 %f1, %f1, %f1; ret;";
    let outside = "ld.global.u32 %r2, [%rd1+1000000]; setp.eq.u32 %p1, %r2, 0;\n@%p1 ret;\nret;";
    let unknown = "frobnicate.b32 %r2, %r1, [%rd1]; setp.eq.u32 %p1, %r2, 0;\n@%p1 ret;\nret;";
    for body in [spin, forever, clock, shared, outside, unknown] {
        let profile = with_n(body, 5).profile([2, 1, 1], [64, 1, 1], 0);
        assert!(!profile.exact, "{body}");
        assert!(!profile.counts.is_empty());
    }
    // An unknown value that decides nothing does no harm.
    let harmless = "frobnicate.b32 %r2, %r1; st.global.u32 [%rd1], %r2; ret;";
    assert!(with_n(harmless, 5).profile([1, 1, 1], [32, 1, 1], 0).exact);
}

#[test]
fn sizes_beyond_reason_cost_nothing() {
    let text = ".version 8.0\n.target sm_90\n.global .align 2147483648 .b8 g[18446744073709551615];\n\
                .entry k(.param .align 1073741824 .b8 a[4], .param .align 2147483648 .u32 n)\n{\n\
                .reg .b32 %r<4294967295>;\n.reg .v4 .f64 %v<4294967295>;\n.local .b8 l[9223372036854775807];\n\
                .param .b8 p[9223372036854775807];\nmov.u32 %r4294967294, %r1; mov.u64 %r1, l; st.param.u32 [p+9000000000000000000], %r1;\n\
                ld.param.u32 %r2, [n]; ld.local.u32 %r3, [l+9223372036854775807]; ret;\n}\n";
    let module = Module::parse(text).unwrap();
    let arguments = vec![Argument::Scalar(vec![0; 4]); 2];
    let workload = Workload { arguments, ..Workload::default() };
    let launch = Launch { grid: [u32::MAX, u32::MAX, 1], block: [32, 1, 1], shared: u32::MAX, carveout: None };
    let limits = Limits { warps: 1, ..Limits::default() };
    let profile = profile(&module, "k", &launch, &workload, &limits).unwrap();
    assert_eq!(profile.mean_instructions, 6.0);
}

#[test]
fn a_request_that_does_not_fit_is_an_error() {
    let case = with_n("ret;", 1);
    let launch = Launch { grid: [1, 1, 1], block: [32, 1, 1], shared: 0, carveout: None };
    let limits = Limits::default();
    let ask = |entry: &str, launch: &Launch, workload: &Workload| {
        profile(&case.module, entry, launch, workload, &limits).unwrap_err()
    };
    assert_eq!(ask("other", &launch, &case.workload), Error::NoEntry { name: "other".into() });
    let huge = Launch { block: [2048, 2048, 2048], ..launch };
    assert!(matches!(ask("k", &huge, &case.workload), Error::Launch { .. }));
    assert!(matches!(ask("k", &Launch { grid: [0, 1, 1], ..launch }, &case.workload), Error::Launch { .. }));
    let mut workload = case.workload.clone();
    workload.arguments[1] = Argument::Scalar(vec![0; 8]);
    assert_eq!(ask("k", &launch, &workload), Error::Size { index: 1, expected: 4, given: 8 });
    workload.arguments.pop();
    assert_eq!(ask("k", &launch, &workload), Error::Arguments { expected: 2, given: 1 });
    workload.arguments.push(Argument::Buffer(9));
    assert_eq!(ask("k", &launch, &workload), Error::Buffer { index: 1 });
}

/// Lines of plausible PTX, put together without sense.
fn lines() -> impl Strategy<Value = String> {
    let register = (0u32..6).prop_map(|i| format!("%r{i}"));
    let operand = prop_oneof![
        (0u32..6).prop_map(|i| format!("%r{i}")),
        any::<i32>().prop_map(|i| i.to_string()),
        Just("%tid.x".to_owned()),
        Just("s".to_owned())
    ];
    let opcode = prop::sample::select(vec![
        "add.s32",
        "sub.u32",
        "mul.lo.s32",
        "mul.hi.u32",
        "mad.lo.s32",
        "div.s32",
        "rem.s32",
        "div.u32",
        "shl.b32",
        "shr.s32",
        "shr.u32",
        "bfe.u32",
        "bfe.s32",
        "bfi.b32",
        "min.s32",
        "max.u32",
        "popc.b32",
        "clz.b32",
        "brev.b32",
        "bfind.s32",
        "bmsk.clamp.b32",
        "szext.wrap.s32",
        "sad.u32",
        "lop3.b32",
        "prmt.b32",
        "shf.l.wrap.b32",
        "shf.r.clamp.b32",
        "add.cc.u32",
        "madc.hi.cc.u32",
        "add.rn.f32",
        "fma.rm.f32.sat",
        "cvt.rni.s8.f32",
        "cvt.s64.s32",
        "cvt.u8.s32",
        "cvt.rn.f16.f32",
        "abs.s32",
        "neg.s64",
        "selp.b32",
        "slct.u32.s32",
        "set.eq.u32.s32",
        "dp4a.u32.s32",
        "mov.u32",
        "mov.b64",
        "cvta.shared.u64",
        "shfl.sync.down.b32",
        "add.f16x2",
        "vadd.s32",
        "mul24.hi.s32",
    ]);
    let arithmetic = (opcode, register.clone(), prop::collection::vec(operand.clone(), 0..5)).prop_map(
        |(opcode, target, sources)| format!("{opcode} {target}, {};", sources.join(", ")).replace(", ;", ";"),
    );
    let label = (0u32..4).prop_map(|l| format!("L{l}"));
    let branch = (any::<bool>(), 0u32..3, label)
        .prop_map(|(not, p, label)| format!("@{}%p{p} bra {label};", if not { "!" } else { "" }));
    let compare =
        (0u32..3, operand.clone(), operand.clone()).prop_map(|(p, a, b)| format!("setp.lt.s32 %p{p}, {a}, {b};"));
    let memory = (prop::sample::select(vec!["global", "shared", "local", "param"]), register, any::<i32>()).prop_map(
        |(space, r, at)| {
            format!(
                "st.{space}.u32 [%rd1+{at}], {r}; ld.{space}.s16 {r}, [{r}+{at}]; ld.v2.u64 {{%rd2, %rd3}}, [%rd1];"
            )
        },
    );
    prop_oneof![4 => arithmetic, 1 => branch, 2 => compare, 1 => memory]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]
    #[test]
    fn no_kernel_makes_the_interpreter_panic_or_hang(body in prop::collection::vec(lines(), 1..30), n in any::<i32>()) {
        let mut text: Vec<String> = Vec::new();
        for (index, line) in body.iter().enumerate() {
            if index % 8 == 0 {
                text.push(format!("L{}:", index / 8));
            }
            text.push(line.clone());
        }
        let case = with_n(&text.join("\n"), n);
        let launch = Launch { grid: [3, 1, 1], block: [40, 1, 1], shared: 16, carveout: None };
        let limits = Limits { instructions: 20_000, ..Limits::default() };
        let profile = profile(&case.module, "k", &launch, &case.workload, &limits).unwrap();
        prop_assert!(profile.mean_instructions >= 0.0);
    }
}
