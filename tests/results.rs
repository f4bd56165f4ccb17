//! Every recorded space under `kernels/results/` can be read, says all that it should, and holds the code that was timed.

use super::support::full::is_full;
use expect_test::expect;
use nvtune::model::{Analysis, Bottleneck, Inputs, score_configuration};
use nvtune::ptx::Module;
use nvtune::ptx::{AccessKind, MemorySpace};
use nvtune::record::{RecordedSpace, SPACE_EXTENSION};
use nvtune::sass::Cubin;
use nvtune::sim;
use nvtune::tune;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// All of them together, in bytes.
const LIMIT: u64 = 60_000_000;

/// Two runs must not differ by more than this in the median.
const REPEATABILITY: f64 = 0.02;

fn records() -> Vec<PathBuf> {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/results");
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        entries.map(|entry| entry.expect("readable").path()).collect()
    };
    let folders = entries(&results).into_iter().filter(|path| path.is_dir());
    folders
        .flat_map(|folder| entries(&folder))
        .filter(|path| path.to_string_lossy().ends_with(SPACE_EXTENSION))
        .collect()
}

/// That of a kernel of the suite on an H200.
fn recorded(kernel: &str) -> RecordedSpace {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("kernels/results/h200/{kernel}{SPACE_EXTENSION}"));
    RecordedSpace::read(&path).expect("a record")
}

#[test]
fn every_record_is_valid_and_complete() {
    let sizes = records().into_iter().map(|path| std::fs::metadata(path).expect("it is there").len());
    let size: u64 = sizes.sum();
    assert!(size < LIMIT, "the records take {size} bytes");
    for path in records().into_iter().step_by(if is_full() { 1 } else { 4 }) {
        let name = path.display();
        // Reading checks what can be checked without the code.
        let space = RecordedSpace::read(&path).unwrap_or_else(|error| panic!("{name} {error}"));
        assert_eq!(space.code_problems(), Vec::<String>::new(), "{name}");
        assert!(space.is_complete(), "{name}: not every point was timed");
        assert!(path.ends_with(format!("{}{SPACE_EXTENSION}", space.kernel)), "{name} is of `{}`", space.kernel);
        let state = space.state.as_ref().unwrap_or_else(|| panic!("{name}: neither driver nor clocks are told"));
        assert!(!state.driver.is_empty() && state.sm_mhz > 0.0, "{name}: {state:?}");
        let again = space.repeatability.unwrap_or_else(|| panic!("{name}: times were taken once"));
        assert!(again.median < REPEATABILITY, "{name}: {again:?}");
    }
}

/// What bounds the baseline of a record in the model.
fn bottleneck(path: &Path) -> (String, Bottleneck) {
    let space = RecordedSpace::read(path).expect("a record");
    let input = tune::recorded_scoring_input(&space).expect("whole");
    let index = input.baseline;
    let code = &input.codes[*input.variants[index].as_ref().expect("it was compiled")];
    let (source, launch) = (&input.sources[input.source_of[index]], &input.launches[index]);
    let module = Module::parse(source.ptx.as_deref().expect("its PTX")).expect("PTX");
    let workload = input.workloads[index].as_deref().expect("its workload");
    let limits = sim::Limits::default();
    let profile = sim::profile_entry(&module, &source.symbol, launch, workload, &limits).expect("a profile");
    let cubin = Cubin::parse(&code.cubin).expect("a cubin");
    let kernel = Analysis::new(cubin.kernel(&code.symbol).expect("the kernel"), Some(&profile));
    let sizes: Vec<u64> = workload.buffers.iter().map(|buffer| buffer.bytes()).collect();
    let inputs = Inputs { machine: &input.machine, kernel: &kernel, launch, buffers: Some(&sizes) };
    (space.kernel, score_configuration(&inputs).bottleneck)
}

/// The suite's baselines by what bounds them on an H200, in the terms of Ryoo et al. (PPoPP'08, table 3).
#[test]
#[ignore = "long: in the full run"]
fn baselines_of_suite_have_known_bottlenecks() {
    let mut kernels: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in records().into_iter().filter(|path| path.parent().is_some_and(|folder| folder.ends_with("h200"))) {
        let (kernel, bound) = bottleneck(&path);
        kernels.entry(bound.to_string()).or_default().push(kernel);
    }
    kernels.values_mut().for_each(|of_bound| of_bound.sort());
    let table: String = kernels.iter().map(|(bound, of_bound)| format!("{bound}: {}\n", of_bound.join(", "))).collect();
    expect![[r#"
        constant cache misses: cp
        exchange within warps (match, shuffle): radix_pass
        execution units (integer and logic): overlapped, overloaded, rc5
        execution units (special functions): mri_fhd, mri_q
        global memory bandwidth: fdtd, hash_lookup, lbm, matrix_add, random_access, reduction, saxpy, scan, scattered, transpose
        global memory latency: black_scholes, histogram, layer_norm, reduction_adaptive, spmv
        instruction issue: conv2d, particles, rpes, sad, softmax, tpacf
        instruction latency: nbody
        level-1 cache bandwidth: matmul_naive, sound3d
        level-2 cache bandwidth: fem, marching_cubes, pns
        register file capacity: cfd
        shared memory bandwidth: attention, gemm_wmma, h264_me, matmul_block, matmul_rect, matmul_tiled, stencil3d
    "#]]
    .assert_eq(&table);
}

/// How far the model is off what the profiler counts of a kernel's loads from global memory on an H200, in requests and in sectors: the root mean
/// square of the logarithms over its configurations in traffic.json.
fn loads_off(traffic: &serde_json::Value, kernel: &str) -> [f64; 2] {
    let space = recorded(kernel);
    let input = tune::recorded_scoring_input(&space).expect("whole");
    let names: Vec<&str> = traffic["metrics"].as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
    let place = |name: &str| 2 + names.iter().position(|of| *of == name).expect("a metric");
    let [requests, sectors] =
        ["requests", "sectors"].map(|of| place(&format!("l1tex__t_{of}_pipe_lsu_mem_global_op_ld.sum")));
    let rows = traffic["suite"].as_array().unwrap().iter().filter(|row| row[0] == kernel);
    let (mut sums, mut count) = ([0.0; 2], 0.0);
    for row in rows {
        let index = row[1].as_u64().unwrap() as usize;
        let (source, launch) = (&input.sources[input.source_of[index]], &input.launches[index]);
        let module = Module::parse(source.ptx.as_deref().expect("its PTX")).expect("PTX");
        let workload = input.workloads[index].as_deref().expect("its workload");
        let limits = sim::Limits::default();
        let profile = sim::profile_entry(&module, &source.symbol, launch, workload, &limits).expect("a profile");
        let warps = launch.blocks() as f64 * f64::from(launch.block_threads().div_ceil(32));
        let loads =
            || profile.accesses.iter().filter(|(_, of)| (of.space, of.kind) == (MemorySpace::Global, AccessKind::Load));
        let mean = |line: &u32| profile.mean.get(line).copied().unwrap_or(0.0) * warps;
        let expected = [
            (requests, loads().map(|(line, _)| mean(line)).sum::<f64>()),
            (sectors, loads().map(|(line, of)| mean(line) * of.sectors).sum()),
        ];
        let off = expected.map(|(at, expected)| (expected / row[at].as_f64().unwrap()).ln().powi(2));
        if off.iter().all(|off| off.is_finite()) {
            sums = [sums[0] + off[0], sums[1] + off[1]];
            count += 1.0;
        }
    }
    sums.map(|sum: f64| (sum / f64::max(count, 1.0)).sqrt())
}

/// What a sparse matrix's rows make warps load is what the profiler counts, whatever the shape (traffic.json). That of all kernels is printed.
#[test]
#[ignore = "long: in the full run"]
fn loads_equal_profiler_counts() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/results/h200/traffic.json");
    let traffic: serde_json::Value = serde_json::from_slice(&std::fs::read(path).expect("it is there")).expect("JSON");
    let [requests, sectors] = loads_off(&traffic, "spmv");
    assert!(requests < 0.05 && sectors < 0.08, "spmv: requests {requests:.3} off, sectors {sectors:.3}");
    let mut kernels: Vec<&str> =
        traffic["suite"].as_array().unwrap().iter().filter_map(|row| row[0].as_str()).collect();
    kernels.dedup();
    let all: Vec<[f64; 2]> = kernels.iter().map(|kernel| loads_off(&traffic, kernel)).collect();
    for (kernel, [requests, sectors]) in kernels.iter().zip(&all) {
        println!("{kernel:20} requests {requests:.3} off, sectors {sectors:.3}");
    }
    let mean = [0, 1].map(|at| all.iter().map(|of| of[at]).sum::<f64>() / all.len() as f64);
    println!("mean of {} kernels: requests {:.3}, sectors {:.3}", all.len(), mean[0], mean[1]);
    assert!(mean[0] < 0.05 && mean[1] < 0.08, "{mean:?}");
}

/// How often a sparse matrix's rows ask the level-2 cache is what the profiler counts, to 16% on average (traffic.json): the blocks of an SM gather from
/// parts of the vector that are the farther apart, the more rows a block has. Were they all at one place it would be 29%.
#[test]
#[ignore = "long: in the full run"]
fn level_2_requests_of_spmv_equal_profiler_counts() {
    // Cycles of an SM for a look-up, as the model has them.
    const LOOK_UP: f64 = 1.8;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/results/h200/traffic.json");
    let traffic: serde_json::Value = serde_json::from_slice(&std::fs::read(path).expect("it is there")).expect("JSON");
    let requests = traffic["metrics"].as_array().unwrap().iter().position(|name| *name == "lts__t_requests.sum");
    let place = 2 + requests.expect("a metric");
    let space = recorded("spmv");
    let Ok(scored) = tune::score(tune::recorded_scoring_input(&space).expect("whole")) else {
        panic!("its baseline fits")
    };
    let machine = &scored.input.machine;
    let of = |row: &serde_json::Value| -> Option<f64> {
        let us = scored.scores[row[1].as_u64()? as usize]?.terms.cache;
        let counted = row[place].as_f64()? * LOOK_UP / f64::from(machine.sms) / (machine.clock_ghz * 1e3);
        Some((us / counted).ln().abs())
    };
    let off: Vec<f64> =
        traffic["suite"].as_array().unwrap().iter().filter(|row| row[0] == "spmv").filter_map(of).collect();
    let mean = off.iter().sum::<f64>() / off.len() as f64;
    assert!(off.len() > 12 && mean < 0.18, "{mean:.3} off: {off:.2?}");
}

/// The average warp of a sparse matrix's rows is gone long before the busiest, and sooner than its instructions say: the busiest unrolls its row. So sixteen
/// lanes a row are predicted to be faster than eight, as they are.
#[test]
#[ignore = "long: in the full run"]
fn sixteen_lanes_of_spmv_are_predicted_faster_than_eight() {
    let space = recorded("spmv");
    let Ok(scored) = tune::score(tune::recorded_scoring_input(&space).expect("whole")) else {
        panic!("its baseline fits")
    };
    // The predicted and the recorded time with so many lanes in blocks of so many threads.
    let times = |lanes: i64, threads: u32| {
        let is_it = |index: &usize| {
            let found = &scored.input.configurations[*index];
            let macros = (found.macros.get("LANES"), found.macros.get("UNROLL"));
            macros == (Some(&lanes), Some(&4)) && scored.input.launches[*index].block[0] == threads && found.cap == 0
        };
        let index = (0..space.configurations.len()).find(is_it).expect("a configuration");
        let recorded = space.configurations[index].time.expect("a time").us();
        (scored.scores[index].expect("a score").predicted_us, recorded)
    };
    for threads in [128, 256] {
        let (sixteen, eight) = (times(16, threads), times(8, threads));
        assert!(sixteen.1 < eight.1 && sixteen.0 < eight.0, "{threads}: {sixteen:?} {eight:?}");
        // It takes 13 and 15% longer by the model: look-ups of the level-2 cache bind it alone, where the model rounds the corner to what it waits.
        assert!((sixteen.0 / sixteen.1 - 1.0).abs() < 0.16, "{threads}: {sixteen:?}");
    }
}

/// The coefficients of a finite element model are a few lines more than the first constant cache holds. Its loops load displacements besides, so that
/// constants bound none of its configurations, and the one that is predicted to be the fastest is nearly so.
#[test]
#[ignore = "long: in the full run"]
fn constants_bound_no_configuration_of_fem() {
    let space = recorded("fem");
    let Ok(scored) = tune::score(tune::recorded_scoring_input(&space).expect("whole")) else {
        panic!("its baseline fits")
    };
    let scores = || scored.scores.iter().enumerate().filter_map(|(index, score)| Some((index, score.as_ref()?)));
    assert!(scores().all(|(_, score)| score.bottleneck != Bottleneck::ConstantCache));
    let time = |index: usize| space.configurations[index].time.map(|time| time.us());
    let timed = || scores().filter_map(|(index, score)| Some((score.predicted_us, time(index)?)));
    let best = timed().map(|(_, us)| us).fold(f64::INFINITY, f64::min);
    let (_, chosen) = timed().min_by(|a, b| a.0.total_cmp(&b.0)).expect("timed points");
    assert!(chosen <= best * 1.06, "{chosen} us for {best}");
}
