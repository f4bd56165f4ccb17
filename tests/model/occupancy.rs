//! Resident blocks of an SM, and register caps that follow from them.

use super::*;

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

/// Compares resident blocks on every architecture with `cuda_occupancy.h`.
#[test]
fn occupancy_equals_cuda_occupancy_header() {
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
            assert_eq!(i64::from(compute_occupancy(&a, demand).blocks), theirs, "{}: {demand:?}", a.capability);
        }
        compared += demands.len();
    }
    assert!(compared > 400_000, "{compared}");
}

/// The limiter, the warps and the fraction of a few well-known cases.
#[test]
fn occupancy_reports_limiter() {
    for (threads, registers, shared, blocks, warps, limiter) in [
        (256, 32, 0, 8, 64, Limiter::Warps),
        (256, 40, 0, 6, 48, Limiter::Registers),
        (32, 16, 0, 32, 32, Limiter::Blocks),
        (128, 32, 100 * 1024, 2, 8, Limiter::SharedMemory),
        (1024, 65, 0, 0, 0, Limiter::Registers),
    ] {
        let demand = Demand { threads, registers, shared, ..Demand::default() };
        let found = compute_occupancy(&architecture(90), &demand);
        assert_eq!((found.blocks, found.warps, found.limiter), (blocks, warps, limiter), "{demand:?}");
        assert_eq!(found.fraction, f64::from(warps) / 64.0);
    }
}

/// `regs(auto)`: none, then the largest cap for each number of resident warps.
#[test]
fn automatic_caps_are_largest_for_each_number_of_warps() {
    assert_eq!(auto_caps(&architecture(90)), [0, 32, 40, 48, 56, 64, 72, 80, 96, 128, 168, 255]);
    assert_eq!(auto_caps(&architecture(75)), [0, 64, 72, 80, 96, 128, 168, 255]);
    assert_eq!(auto_caps(&architecture(86)), [0, 40, 48, 56, 64, 72, 80, 96, 128, 168, 255]);
}
