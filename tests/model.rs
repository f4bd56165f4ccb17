//! Kernel, profile, launch and machine -> score, against NVIDIA's header, the papers and what is known of simple kernels.

use super::support::{fixtures, toolkit};

use nvtune::cubin::Cubin;
use nvtune::model::frequency;
use nvtune::model::occupancy::{Demand, Limiter, occupancy};
use nvtune::model::profile::{Access, Kind, Profile, Space, Spread};
use nvtune::model::{Analysis, Architecture, Bottleneck, Inputs, Machine, Score, Terms, Traffic, auto_caps, score};
use nvtune::ptx::Module;
use nvtune::space::Launch;
use nvtune::workload::{Argument, Buffer, Element, Fill, Scalar, Workload};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

fn architecture(capability: u32) -> Architecture {
    Architecture::find(capability).expect("an architecture of the table")
}

/// Questions to the header: every number of registers under every block size, and every 512 bytes of shared memory with its edges,
/// under barriers, virtual resources and carve-outs.
fn demands(architecture: &Architecture) -> Vec<Demand> {
    let warps = (1..=32).map(|warps| 32 * warps);
    let threads: Vec<u32> = warps.chain([1, 31, 33, 95, 129, 257, 1023, 1025]).collect();
    let mut all = Vec::new();
    let mut ask = |threads, registers, shared, barriers, virtual_resources, carveout| {
        all.push(Demand { threads, registers, shared, barriers, virtual_resources, carveout });
    };
    for &threads in &threads {
        for registers in 0..=255 {
            for shared in [0, 9000] {
                ask(threads, registers, shared, 1, 0, None);
            }
        }
        for barriers in 0..=16 {
            for virtual_resources in [0, 1, 5, 16, 100] {
                ask(threads, 24, 1000, barriers, virtual_resources, None);
            }
        }
    }
    let most = architecture.shared_per_block + 1024;
    for shared in (0..most).step_by(512).flat_map(|shared| [shared, shared + 1, shared + 511]) {
        for threads in [32, 96, 256, 1024] {
            for carveout in [None, Some(0), Some(14), Some(29), Some(50), Some(75), Some(100)] {
                ask(threads, 40, shared, 1, 0, carveout);
            }
        }
    }
    all
}

/// Resident blocks on every architecture as `cuda_occupancy.h` has them.
#[test]
fn occupancy_is_that_of_the_header() {
    let include = toolkit::program("../include");
    assert!(include.join("cuda_occupancy.h").exists(), "the toolkit has no cuda_occupancy.h");
    let compiler = which::which("c++").or_else(|_| which::which("g++")).expect("nvcc's own host compiler");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("header");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/model/header.cpp");
    let mut compile = Command::new(compiler);
    compile.args(["-O1", "-w", "-I"]).arg(include).arg(source).arg("-o").arg(&program);
    assert!(compile.status().unwrap().success());

    let mut compared = 0;
    for a in Architecture::all() {
        let demands = demands(&a);
        let mut questions = String::new();
        for demand in &demands {
            let Demand { threads, registers, shared, barriers, virtual_resources, carveout } = demand;
            questions += &format!(
                "{} {} {} {} {} {} {threads} {registers} {shared} {barriers} {virtual_resources} {}\n",
                a.capability / 10,
                a.capability % 10,
                a.max_threads,
                a.shared,
                a.shared_per_block,
                a.shared_reserved,
                carveout.map_or(-1, i32::from)
            );
        }
        let mut header = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = header.stdin.take().unwrap();
        let writer = std::thread::spawn(move || input.write_all(questions.as_bytes()).unwrap());
        let output = header.wait_with_output().unwrap();
        writer.join().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let theirs: Vec<i64> = text.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(demands.len(), theirs.len());
        for (demand, theirs) in demands.iter().zip(theirs) {
            assert_eq!(i64::from(occupancy(&a, demand).blocks), theirs, "{}: {demand:?}", a.capability);
        }
        compared += demands.len();
    }
    assert!(compared > 400_000, "{compared}");
}

/// The limiter, the warps and the fraction of a few well-known cases.
#[test]
fn occupancy_names_its_limit() {
    for (threads, registers, shared, blocks, warps, limiter) in [
        (256, 32, 0, 8, 64, Limiter::Warps),
        (256, 40, 0, 6, 48, Limiter::Registers),
        (32, 16, 0, 32, 32, Limiter::Blocks),
        (128, 32, 100 * 1024, 2, 8, Limiter::SharedMemory),
        (1024, 65, 0, 0, 0, Limiter::Registers),
    ] {
        let demand = Demand { threads, registers, shared, ..Demand::default() };
        let found = occupancy(&architecture(90), &demand);
        assert_eq!((found.blocks, found.warps, found.limiter), (blocks, warps, limiter), "{demand:?}");
        assert_eq!(found.fraction, f64::from(warps) / 64.0);
    }
}

/// `regs(auto)`: none, then the largest cap for each number of resident warps.
#[test]
fn automatic_caps() {
    assert_eq!(auto_caps(&architecture(90)), [0, 32, 40, 48, 56, 64, 72, 80, 96, 128, 168, 255]);
    assert_eq!(auto_caps(&architecture(75)), [0, 64, 72, 80, 96, 128, 168, 255]);
    assert_eq!(auto_caps(&architecture(86)), [0, 40, 48, 56, 64, 72, 80, 96, 128, 168, 255]);
}

fn counts(lines: impl IntoIterator<Item = (u32, f64)>) -> Profile {
    let counts: BTreeMap<u32, f64> = lines.into_iter().collect();
    let mean_instructions = counts.values().sum();
    Profile { mean: counts.clone(), counts, mean_instructions, exact: true, ..Profile::default() }
}

/// The profile of `unrolled.ptx`, whose loop (lines 22 to 27) runs `n` times.
fn unrolled(n: f64) -> Profile {
    counts((12..=21).chain(29..=32).map(|line| (line, 1.0)).chain((22..=27).map(|line| (line, n))))
}

/// ptxas unrolls a loop by 4 and leaves 2 and 1 as straight code: together they execute each line as often as the PTX does.
#[test]
fn frequencies_of_a_loop_that_ptxas_unrolled() {
    for architecture in fixtures::ARCHITECTURES {
        let bytes = fixtures::cubin(&format!("unrolled/sm_{architecture}"));
        let cubin = Cubin::parse(&bytes).unwrap();
        for n in [0.0, 1.0, 3.0, 7.0, 64.0, 103.0] {
            let analysis = Analysis::new(&cubin.kernels()[0], Some(&unrolled(n)));
            assert!(analysis.exact);
            let mut loads = 0.0;
            for (block, count) in analysis.flow().blocks.iter().zip(analysis.block_counts()) {
                let of_block =
                    analysis.code()[block.instructions.clone()].iter().filter(|i| i.opcode.mnemonic == "LDG");
                loads += of_block.count() as f64 * count;
            }
            assert_eq!(loads, n, "sm_{architecture}, {n} iterations: {:?}", analysis.block_counts());
        }
    }
}

const CUDA12_SM90: &[u8] = include_bytes!("cubin/cuda12.sm_90.cubin");

/// The profile of `cuda12.ptx` with `n` iterations of its loop, whose load (line 38) is as `access` says.
fn total(n: f64, access: Access) -> Profile {
    let once = (26..=33).chain(46..=62).chain(9..=14);
    let mut profile = counts(once.map(|line| (line, 1.0)).chain((34..=41).map(|line| (line, n))));
    profile.accesses.insert(38, access);
    profile
}

/// What takes longest counts, alone where it is the start of blocks, rounded where two meet; 2 us are the launch's. What blocks wait
/// for memory in a queue makes them live longer.
#[test]
fn parts_of_a_prediction_meet() {
    let rows = [
        (Terms { launch: 300.0, latency: 100.0, device: 100.0, ..Terms::default() }, 302.0),
        (Terms { launch: 30.0, latency: 30.0, issue: 40.0, ..Terms::default() }, 52.0),
        (Terms { issue: 40.0, memory_pipe: 30.0, constant: 20.0, ..Terms::default() }, 42.0),
        (Terms { constant: 120.0, device: 50.0, ..Terms::default() }, 132.0),
        (Terms { device: 40.0, queue: 0.75, ..Terms::default() }, 52.0),
    ];
    for (terms, us) in rows {
        assert_eq!(terms.us(), us, "{terms:?}");
    }
}

fn coalesced() -> Access {
    Access {
        space: Space::Global,
        kind: Kind::Load,
        width: 4,
        sectors: 4.0,
        passes: 1.0,
        lanes: 32.0,
        ..Access::default()
    }
}

fn scored(analysis: &Analysis, grid: u32, block: u32) -> Score {
    let machine = Machine::nominal(architecture(90));
    let launch = Launch { grid: [grid, 1, 1], block: [block, 1, 1], shared: 0, carveout: None };
    score(&Inputs { machine: &machine, kernel: analysis, launch: &launch, buffers: None })
}

/// Cycles, instructions and regions of the fixture's loop, worked out by hand from its listing (see `flow_and_control_bits_of_cuda_12_for_sm_90`).
#[test]
fn replay_of_a_loop() {
    let cubin = Cubin::parse(CUDA12_SM90).unwrap();
    let kernel = &cubin.kernels()[0];
    let [fifty, hundred] = [50.0, 100.0].map(|n| Analysis::new(kernel, Some(&total(n, coalesced()))));
    // IMAD.WIDE 6, then LDG 1 + IADD3 4 + ISETP 1 within the load's 745 cycles, then FADD 12 and BRA 5.
    let iteration = 6.0 + 745.0 + 12.0 + 5.0;
    assert_eq!(((hundred.cycles - fifty.cycles) / 50.0).round(), iteration);
    assert_eq!((hundred.instructions - fifty.instructions) / 50.0, 6.0);
    // Each iteration waits once; besides, the barrier, and the start.
    assert_eq!(hundred.regions, 100.0 + 2.0);
    let cached = Analysis::new(kernel, Some(&total(100.0, Access { reuse: 1.0, at_hand: 1.0, ..coalesced() })));
    assert_eq!((hundred.cycles - cached.cycles).round(), 100.0 * (745.0 - 40.0));
    // Of sectors of which one in four is new, a load waits a quarter of the way where they lie side by side, for another warp has brought
    // the rim; lanes that gather from all over wait for the last, and for 28 more sectors to arrive. The fewer sectors come from
    // device memory, the sooner the last of them is there: one 2 doublings sooner than a line of 4, and 32 of them 3 doublings later.
    let doubling = 0.17 * 745.0;
    let (lone, all) = (745.0 - 2.0 * doubling, 745.0 + 3.0 * doubling);
    let partly = Access { reuse: 0.75, at_hand: 0.75, ..coalesced() };
    let gather = Access { sectors: 32.0, lines: 32.0, ..partly };
    for (access, hits, waits) in
        [(partly, 0.0, 0.75 * 40.0 + 0.25 * lone), (gather, 0.0, all + 28.0), (gather, 1.0, 40.0 + 28.0)]
    {
        let analysis = Analysis::new(kernel, Some(&total(100.0, Access { hits, ..access })));
        let saved: f64 = 100.0 * (745.0 - waits);
        assert_eq!((hundred.cycles - analysis.cycles).round(), saved.round(), "{hits} {access:?}");
    }
}

/// Lone sectors that an SM reads here and there from a window of 64 KiB are mostly in its level-1 cache, from all of a buffer hardly any.
#[test]
fn what_is_gathered_from_a_small_window_is_read_from_the_level_1_cache() {
    let cubin = Cubin::parse(CUDA12_SM90).unwrap();
    let kernel = &cubin.kernels()[0];
    let access = Access { sectors: 32.0, lines: 32.0, unplaced: 1.0, buffer: Some(0), ..coalesced() };
    let bytes = 4 << 20;
    let launch = Launch { grid: [32768, 1, 1], block: [128, 1, 1], shared: 0, carveout: None };
    let us = |together: f64| {
        let spread = [(0, Spread { alone: together / 4.0, together })].into();
        let profile = Profile { spread, ..total(8.0, access) }.shared(&[bytes], 4.0 * 32768.0);
        let analysis = Analysis::new(kernel, Some(&profile));
        let machine = Machine::nominal(architecture(90));
        let inputs = Inputs { machine: &machine, kernel: &analysis, launch: &launch, buffers: Some(&[bytes]) };
        score(&inputs).predicted_us
    };
    // Sixteen blocks at once look at as many windows of 4 KiB; at one of 64 KiB each, the last of them far from the first.
    let (narrow, apart, middle, wide) = (us(1.0 / 1024.0), us(1.0 / 64.0), us(1.0 / 8.0), us(1.0));
    assert!(narrow < wide / 2.0 && narrow < apart, "{narrow} {apart} {wide} us");
    assert!(apart < middle && middle < wide, "{apart} {middle} {wide} us");
}

/// The copy of a loop that no warp looked at came to accesses memory as what was looked at does.
#[test]
fn what_was_not_looked_at_is_like_what_was() {
    let cubin = Cubin::parse(CUDA12_SM90).unwrap();
    let kernel = &cubin.kernels()[0];
    let traffic =
        |profile: &Profile| Analysis::new(kernel, Some(profile)).traffic.iter().map(|of| of.sectors).sum::<f64>();
    let gather = Access { sectors: 32.0, lines: 32.0, ..coalesced() };
    let seen = total(64.0, gather);
    let elsewhere = |access: Access| {
        let mut profile = total(64.0, access);
        let access = profile.accesses.remove(&38).unwrap();
        profile.accesses.insert(9999, access);
        profile.mean.insert(9999, 1.0);
        profile
    };
    assert_eq!(traffic(&elsewhere(gather)), traffic(&seen));
    // Another width tells nothing: threads side by side.
    assert_eq!(traffic(&elsewhere(Access { width: 8, ..gather })), traffic(&total(64.0, coalesced())));
}

/// What ptxas recomputes in each of two loops, for want of registers, does not make them copies of one.
#[test]
fn loops_that_share_what_was_recomputed_are_two() {
    let element = Element { scalar: Scalar::U32, lanes: 1 };
    let x = Buffer { name: "x".to_owned(), element, count: 12 * 32, fill: Fill::Zeros, seed: 0 };
    let n = Argument::Scalar(50_i32.to_le_bytes().to_vec());
    let workload = Workload { arguments: vec![n, Argument::Buffer(0)], buffers: vec![x], ..Workload::default() };
    let launch = Launch { grid: [1, 1, 1], block: [32, 1, 1], shared: 0, carveout: None };
    let module = Module::parse(&fixtures::ptx("lookups/sm_90")).unwrap();
    for cap in [24, 28, 64] {
        let cubin = fixtures::cubin(&format!("lookups/sm_90.cap_{cap}"));
        let profile = frequency::profile(&module, "lookups", &launch, &workload, &frequency::Limits::default());
        let analysis = Analysis::new(&Cubin::parse(&cubin).unwrap().kernels()[0], Some(&profile.unwrap()));
        let loops = &analysis.flow().loops;
        let counts: Vec<f64> = loops.iter().map(|one| analysis.block_counts()[one.header]).collect();
        assert_eq!(counts, [50.0, 50.0], "at most {cap} registers");
    }
}

/// A block of which most instructions have guards is executed by all warps, and what has a guard by those for which it holds.
#[test]
fn blocks_are_counted_by_what_always_executes() {
    let (cubin, ptx) = (fixtures::cubin("guarded/sm_90"), fixtures::ptx("guarded/sm_90"));
    let (rows, threads) = (64, 256);
    let element = Element { scalar: Scalar::F32, lanes: 1 };
    let out = Buffer { name: "out".to_owned(), element, count: rows * threads, fill: Fill::Zeros, seed: 0 };
    let n = Argument::Scalar((rows as i32).to_le_bytes().to_vec());
    let workload = Workload { arguments: vec![n, Argument::Buffer(0)], buffers: vec![out], ..Workload::default() };
    let launch = Launch { grid: [1, 1, 1], block: [threads as u32, 1, 1], shared: 0, carveout: None };
    let profile =
        frequency::profile(&Module::parse(&ptx).unwrap(), "guarded", &launch, &workload, &frequency::Limits::default());
    let analysis = Analysis::new(&Cubin::parse(&cubin).unwrap().kernels()[0], Some(&profile.unwrap()));
    assert_eq!(analysis.work.barriers, 9.0 * rows as f64);
    // Stores besides the first: of 4, 2 and 1 of 8 warps, and then of one of them for each further halving.
    let halvings = (4.0 + 2.0 + 1.0 + 5.0) / 8.0;
    let passes = analysis.work.shared_cycles / rows as f64;
    assert!((1.0 + 3.0 * halvings..2.0 + 4.0 * halvings).contains(&passes), "{passes}");
}

/// Returns cubin and PTX of `structures.cu`, whose structures are stored whole.
fn structures(words: u64, at_once: u64) -> (Vec<u8>, String) {
    stored(words, at_once, words)
}

/// Returns cubin and PTX of `structures.cu`, of whose structures the first `stored` words are written.
fn stored(words: u64, at_once: u64, stored: u64) -> (Vec<u8>, String) {
    let name = fixtures::structures([words, at_once, stored]);
    (fixtures::cubin(&name), fixtures::ptx(&name))
}

/// What a kernel of `structures.cu` takes on an H200 by the model, in microseconds, with buffers of so many floats; and what it was taken to move.
fn predicted_us(
    (cubin, ptx): &(Vec<u8>, String),
    kernel: &str,
    (grid, block): (u32, u32),
    (names, floats): (&[&str], u64),
    scalars: &[u32],
) -> (f64, Vec<Traffic>) {
    let element = Element { scalar: Scalar::F32, lanes: 1 };
    let buffer = |name: &&str| Buffer { name: name.to_string(), element, count: floats, fill: Fill::Zeros, seed: 0 };
    let buffers: Vec<Buffer> = names.iter().map(buffer).collect();
    let mut arguments: Vec<Argument> = (0..buffers.len()).map(Argument::Buffer).collect();
    arguments.extend(scalars.iter().map(|scalar| Argument::Scalar(scalar.to_le_bytes().to_vec())));
    let bytes = vec![floats * 4; buffers.len()];
    let workload = Workload { arguments, buffers, ..Workload::default() };
    let launch = Launch { grid: [grid, 1, 1], block: [block, 1, 1], shared: 0, carveout: None };
    let module = Module::parse(ptx).unwrap();
    let profile = frequency::profile(&module, kernel, &launch, &workload, &frequency::Limits::default()).unwrap();
    let cubin = Cubin::parse(cubin).unwrap();
    let found = cubin.kernels().iter().find(|of| of.name == kernel).unwrap();
    let analysis = Analysis::new(found, Some(&profile));
    let machine = Machine::nominal(architecture(90));
    let inputs = Inputs { machine: &machine, kernel: &analysis, launch: &launch, buffers: Some(&bytes) };
    (score(&inputs).predicted_us, analysis.traffic)
}

/// Sectors that are written in parts cost the more, the more is written between (results/h200/stores.txt, columns 8 and 64 of stores alone).
#[test]
fn parts_of_sectors_cost_more_the_more_warps_write_such() {
    let floats = 1 << 27;
    for (words, measured) in [(4, 126.0 / 122.2), (8, 308.8 / 305.8), (16, 517.6 / 372.4), (32, 936.0 / 582.0)] {
        let code = structures(words, 4);
        let number = (floats / words) as u32;
        let predicted =
            [8, 64].map(|warps| predicted_us(&code, "store", (264, warps * 16), (&["out"], floats), &[number]).0);
        let ratio = predicted[1] / predicted[0];
        assert!((0.75..1.25).contains(&(ratio / measured)), "{words} words: {predicted:?} us, {ratio} for {measured}");
    }
}

/// Sectors that are never whole cost what an H200 takes to fetch the rest of them (results/h200/stores.txt, column 8).
#[test]
fn what_is_never_written_whole_is_fetched_first() {
    // Words of a structure, of a store, and those that are stored; structures, and the microseconds.
    for (words, at_once, part, number, measured) in
        [(36, 4, 24, 2_500_000, 516.1), (8, 1, 1, 1 << 22, 73.5), (64, 1, 1, 1 << 22, 245.3)]
    {
        let code = stored(words, at_once, part);
        let floats = words * u64::from(number);
        let (predicted, traffic) = predicted_us(&code, "store", (264, 128), (&["out"], floats), &[number]);
        assert!(
            (0.6..1.3).contains(&(predicted / measured)),
            "{part} of {words} words by {at_once}: {predicted} us for {measured}, {traffic:?}"
        );
    }
}

/// Words of a structure that are stored one after another cost what an H200 takes for them (results/h200/stores.txt, column g64).
#[test]
fn parts_of_sectors_cost_more_than_whole_ones() {
    let floats = 1 << 26;
    // Words of a structure, words of a store, and the microseconds.
    for (words, at_once, measured) in
        [(4, 4, 130.4), (4, 1, 129.3), (8, 4, 148.5), (16, 4, 198.9), (8, 1, 457.9), (12, 1, 542.4), (16, 1, 739.7)]
    {
        let blocks = (floats / words / 128) as u32;
        let code = structures(words, at_once);
        let (predicted, traffic) = predicted_us(&code, "copy", (blocks, 128), (&["in", "out"], floats), &[]);
        assert!(
            (0.65..1.35).contains(&(predicted / measured)),
            "{words} words by {at_once}: {predicted} us for {measured}, {traffic:?}"
        );
    }
}

/// Threads at once, by blocks that fit, or by those that the grid has.
#[test]
fn threads_in_flight() {
    let cubin = Cubin::parse(CUDA12_SM90).unwrap();
    let analysis = Analysis::new(&cubin.kernels()[0], Some(&total(1.0, coalesced())));
    for (grid, block, expected) in
        [(132 * 64, 128, 1.0), (132 * 64, 16, 0.25), (132 * 4, 128, 0.25), (33, 128, 1.0 / 64.0)]
    {
        assert_eq!(scored(&analysis, grid, block).in_flight, expected, "{grid} blocks of {block}");
    }
}

/// What a rise of one input does to the predicted time and what bounds it.
#[test]
fn predictions_follow_the_work() {
    let cubin = Cubin::parse(CUDA12_SM90).unwrap();
    let kernel = &cubin.kernels()[0];
    let wide = Access { sectors: 16.0, width: 16, ..coalesced() };
    let streaming = Analysis::new(kernel, Some(&total(64.0, wide)));
    let scattered = Analysis::new(kernel, Some(&total(64.0, Access { sectors: 32.0, ..coalesced() })));
    let cached = Analysis::new(kernel, Some(&total(64.0, Access { reuse: 1.0, at_hand: 1.0, ..coalesced() })));

    let many = scored(&streaming, 132 * 16 * 8, 128);
    assert_eq!(many.bottleneck, Bottleneck::GlobalBandwidth);
    // 64 loads of 16 bytes and a store of 4 for each thread, at 4.32 TB/s.
    let least = f64::from(132 * 16 * 8 * 128) * (64.0 * 16.0 + 4.0) / 4.32e6;
    assert!((least..1.5 * least).contains(&many.predicted_us), "{} for {least}", many.predicted_us);

    assert_eq!(scored(&streaming, 8, 128).bottleneck, Bottleneck::GlobalLatency, "a short grid hides nothing");
    let apart = scored(&scattered, 132 * 16 * 8, 128);
    assert!(apart.predicted_us > 1.8 * many.predicted_us, "{apart:?} {many:?}");
    assert!(scored(&cached, 132 * 128, 128).predicted_us < many.predicted_us);
    assert_ne!(scored(&cached, 132 * 128, 128).bottleneck, Bottleneck::GlobalBandwidth);
    // One block more than a wave holds costs a wave more, where latency is the bound.
    let [full, over] = [132 * 16, 132 * 16 + 1].map(|grid| scored(&cached, grid, 128).predicted_us);
    assert!(over > 1.2 * full, "{over} for {full}");

    let refused = scored(&streaming, 1, 256);
    assert!(!refused.feasible && refused.predicted_us.is_infinite(), "launch bounds of 128 threads");
    assert!(!scored(&streaming, 0, 128).feasible && !scored(&streaming, 1, 0).feasible);
}

/// Without a profile each loop is taken for 32 iterations, and the score says so.
#[test]
fn a_score_without_a_profile() {
    let cubin = Cubin::parse(CUDA12_SM90).unwrap();
    let analysis = Analysis::new(&cubin.kernels()[0], None);
    let score = scored(&analysis, 1024, 128);
    assert!(!score.exact && score.feasible && score.c > 32.0 * 600.0 / 2.0, "{score:?}");
    assert_eq!((score.occupancy, score.blocks_per_sm, score.registers), (1.0, 16, 12));
    let [few, many] =
        [8.0, 512.0].map(|trips| scored(&Analysis::assuming(&cubin.kernels()[0], None, &[trips]), 1024, 128));
    assert!(few.c < score.c && score.c < many.c, "{} {} {}", few.c, score.c, many.c);
    assert_eq!((score.t, score.ro), (0.0, 12.0 / 255.0));
    let json = serde_json::to_value(score).unwrap();
    assert_eq!(json["limiter"], "warps");
}

/// A variant is analysed in about a millisecond and a configuration scored in microseconds (generous bounds: this is a debug build).
#[test]
fn scoring_is_fast() {
    let everything_once = counts((1..2000).map(|line| (line, 1.0)));
    for cubin in fixtures::decoded().iter().filter(|c| c.architecture == 90) {
        for kernel in Cubin::parse(&cubin.bytes).unwrap().kernels() {
            let started = Instant::now();
            let analysis = Analysis::new(kernel, Some(&everything_once));
            let analysed = started.elapsed();
            let rounds = 1000;
            let started = Instant::now();
            let sum: f64 = (1..=rounds).map(|grid| scored(&analysis, grid, 64).c).sum();
            let each = started.elapsed() / rounds;
            assert!(sum > 0.0);
            eprintln!(
                "{}: {} instructions, analysed in {analysed:?}, scored in {each:?}",
                kernel.name,
                analysis.code().len()
            );
            assert!(analysed.as_millis() < 50 && each.as_micros() < 100, "{}: {analysed:?} {each:?}", kernel.name);
        }
    }
}
