//! Every recorded space under `kernels/results/` can be read, says all that it should, and holds the code that was timed.

use expect_test::expect;
use nvtune::bench;
use nvtune::cubin::Cubin;
use nvtune::model::{Analysis, Bottleneck, Inputs, frequency, score};
use nvtune::ptx::Module;
use nvtune::record::{RecordedSpace, SPACE_EXTENSION};
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

#[test]
fn every_record_is_valid_and_complete() {
    let mut size = 0;
    for path in records() {
        let name = path.display();
        size += std::fs::metadata(&path).expect("it is there").len();
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
    assert!(size < LIMIT, "the records take {size} bytes");
}

/// What bounds the baseline of a record in the model.
fn bottleneck(path: &Path) -> (String, Bottleneck) {
    let space = RecordedSpace::read(path).expect("a record");
    let laid = bench::laid(&space).expect("whole");
    let index = laid.baseline;
    let code = &laid.codes[*laid.variants[index].as_ref().expect("it was compiled")];
    let (source, launch) = (&laid.sources[laid.source_of[index]], &laid.launches[index]);
    let module = Module::parse(source.ptx.as_deref().expect("its PTX")).expect("PTX");
    let workload = laid.workloads[index].as_deref().expect("its workload");
    let limits = frequency::Limits::default();
    let profile = frequency::profile(&module, &source.symbol, launch, workload, &limits).expect("a profile");
    let cubin = Cubin::parse(&code.cubin).expect("a cubin");
    let kernel = Analysis::new(cubin.kernel(&code.symbol).expect("the kernel"), Some(&profile));
    let sizes: Vec<u64> = workload.buffers.iter().map(|buffer| buffer.bytes()).collect();
    let inputs = Inputs { machine: &laid.machine, kernel: &kernel, launch, buffers: Some(&sizes) };
    (space.kernel, score(&inputs).bottleneck)
}

/// The suite's baselines by what bounds them, in the terms of Ryoo et al. (PPoPP'08, table 3).
#[test]
fn every_bottleneck_has_its_kernels() {
    let mut kernels: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in records() {
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
