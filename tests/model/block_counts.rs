//! How often the blocks of machine code execute, by the counts of PTX lines.

use super::*;

/// The profile of `unrolled.ptx`, whose loop (lines 22 to 27) runs `n` times.
fn unrolled(n: f64) -> Profile {
    counts((12..=21).chain(29..=32).map(|line| (line, 1.0)).chain((22..=27).map(|line| (line, n))))
}

/// ptxas unrolls a loop by 4 and leaves 2 and 1 as straight code: together they execute each line as often as the PTX does.
#[test]
fn unrolled_loop_executes_each_line_as_often_as_ptx() {
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

/// ptxas recomputes values in each of two loops for lack of registers; that does not make them copies of one loop.
#[test]
fn loops_with_recomputed_values_in_common_are_counted_apart() {
    let element = Element { scalar: Scalar::U32, lanes: 1 };
    let x = Buffer { name: "x".to_owned(), element, count: 12 * 32, fill: Fill::Zeros, seed: 0 };
    let n = Argument::Scalar(50_i32.to_le_bytes().to_vec());
    let workload = Workload { arguments: vec![n, Argument::Buffer(0)], buffers: vec![x], ..Workload::default() };
    let launch = Launch { grid: [1, 1, 1], block: [32, 1, 1], shared: 0, carveout: None, coarsening: None };
    let module = Module::parse(&fixtures::ptx("lookups/sm_90")).unwrap();
    for cap in [24, 28, 64] {
        let cubin = fixtures::cubin(&format!("lookups/sm_90.cap_{cap}"));
        let profile = sim::profile_entry(&module, "lookups", &launch, &workload, &sim::Limits::default());
        let analysis = Analysis::new(&Cubin::parse(&cubin).unwrap().kernels()[0], Some(&profile.unwrap()));
        let loops = &analysis.flow().loops;
        let counts: Vec<f64> = loops.iter().map(|one| analysis.block_counts()[one.header]).collect();
        assert_eq!(counts, [50.0, 50.0], "at most {cap} registers");
    }
}

/// All warps execute a block; its guarded instructions are executed by the warps whose guard holds.
#[test]
fn guarded_instructions_do_not_set_block_count() {
    let (cubin, ptx) = (fixtures::cubin("guarded/sm_90"), fixtures::ptx("guarded/sm_90"));
    let (rows, threads) = (64, 256);
    let element = Element { scalar: Scalar::F32, lanes: 1 };
    let out = Buffer { name: "out".to_owned(), element, count: rows * threads, fill: Fill::Zeros, seed: 0 };
    let n = Argument::Scalar((rows as i32).to_le_bytes().to_vec());
    let workload = Workload { arguments: vec![n, Argument::Buffer(0)], buffers: vec![out], ..Workload::default() };
    let launch = Launch { grid: [1, 1, 1], block: [threads as u32, 1, 1], shared: 0, carveout: None, coarsening: None };
    let profile =
        sim::profile_entry(&Module::parse(&ptx).unwrap(), "guarded", &launch, &workload, &sim::Limits::default());
    let analysis = Analysis::new(&Cubin::parse(&cubin).unwrap().kernels()[0], Some(&profile.unwrap()));
    assert_eq!(analysis.work.barriers, 9.0 * rows as f64);
    // Stores besides the first: of 4, 2 and 1 of 8 warps, and then of one of them for each further halving.
    let halvings = (4.0 + 2.0 + 1.0 + 5.0) / 8.0;
    let passes = analysis.work.shared_cycles / rows as f64;
    assert!((1.0 + 3.0 * halvings..2.0 + 4.0 * halvings).contains(&passes), "{passes}");
}
