//! The spaces recorded in `kernels/results/` on a GPU: their code once more, against the driver or under a profiler.

use cudarc::driver::{result, sys};
use nvtune::gpu::Architecture;
use nvtune::measure::{Candidate, Measurer, Options, Plan, Process};
use nvtune::model::occupancy::{Demand, compute_occupancy};
use nvtune::record::{RecordedSpace, SPACE_EXTENSION};
use nvtune::sass::Cubin;
use nvtune::tune::recorded_scoring_input;
use std::collections::{BTreeSet, HashSet};
use std::ffi::{CString, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Every record below `kernels/results/`, of this folder or of the checkout.
fn records() -> Vec<PathBuf> {
    let places = [PathBuf::from("kernels/results"), Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/results")];
    let results = places.iter().find(|place| place.is_dir()).expect("kernels/results");
    let inside = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let mut found: Vec<PathBuf> = inside(results).iter().flat_map(|folder| inside(folder)).collect();
    found.retain(|path| path.to_string_lossy().ends_with(SPACE_EXTENSION));
    found.sort();
    found
}

/// Resident blocks of every variant of the suite under every launch of its space, by our formula and by the driver's.
pub fn occupancy_is_the_drivers() {
    result::init().expect("a driver");
    let device = result::device::get(0).expect("a GPU");
    // SAFETY: `device` is one that the driver gave; its primary context is kept to the end of the process.
    let context = unsafe { result::primary_ctx::retain(device) }.expect("a context");
    // SAFETY: `context` was just made.
    unsafe { result::ctx::set_current(context) }.expect("a context");
    let attribute = |which| unsafe { result::device::get_attribute(device, which) }.expect("an attribute") as u32;
    use sys::CUdevice_attribute_enum as A;
    let capability = 10 * attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        + attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    let architecture = Architecture::find(capability).expect("an architecture of the table");

    let (mut compared, mut variants, mut wrong) = (0, 0, Vec::new());
    // What was timed on several GPUs is the same code in each of their records.
    let mut seen = HashSet::new();
    for path in records() {
        let space = RecordedSpace::read(&path).unwrap_or_else(|error| panic!("{} {error}", path.display()));
        let input = recorded_scoring_input(&space).unwrap_or_else(|error| panic!("{} {error}", path.display()));
        for (number, code) in input.codes.iter().enumerate() {
            let cubin = Cubin::parse(&code.cubin).expect("a cubin that was timed");
            if cubin.architecture() != capability || !seen.insert((space.kernel.clone(), Arc::clone(&code.cubin))) {
                continue;
            }
            let kernel = cubin.kernel(&code.symbol).expect("its kernel");
            variants += 1;
            let symbol = CString::new(code.symbol.as_str()).expect("a plain name");
            // SAFETY: the image is a whole cubin, as ptxas wrote it, and the module is not unloaded while its function is used.
            let module = unsafe { result::module::load_data(code.cubin.as_ptr().cast()) }.expect("it loads");
            // SAFETY: the module was just loaded.
            let function = unsafe { result::module::get_function(module, symbol) }.expect("its function");
            let launches = input.launches.iter().zip(&input.variants).filter(|(_, of)| **of == Ok(number));
            let demands: BTreeSet<_> =
                launches.map(|(l, _)| (l.block.iter().product::<u32>(), l.shared, l.carveout)).collect();
            for (threads, shared, carveout) in demands {
                let found = &kernel.resources;
                let demand = Demand {
                    threads,
                    registers: found.registers,
                    shared: found.static_shared + shared,
                    barriers: found.barriers,
                    virtual_resources: found.virtual_resources,
                    carveout,
                };
                let ours = compute_occupancy(&architecture, &demand).blocks;
                let theirs = drivers(function, threads, shared, carveout);
                compared += 1;
                if theirs != Some(ours) {
                    wrong.push(format!("{} variant {number}: {ours}, not {theirs:?}, for {demand:?}", space.kernel));
                }
            }
            // SAFETY: nothing of the module is used after this.
            unsafe { result::module::unload(module) }.expect("it unloads");
        }
    }
    println!("{compared} launches of {variants} variants compared, {} differ", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(variants > 0, "no record is of compute capability {capability}");
}

/// What the driver says; none where it refuses the shared memory.
fn drivers(function: sys::CUfunction, threads: u32, shared: u32, carveout: Option<u8>) -> Option<u32> {
    use sys::CUfunction_attribute_enum as A;
    let set = |attribute, value: i32| {
        // SAFETY: the module of the function is loaded.
        unsafe { result::function::set_function_attribute(function, attribute, value) }
    };
    set(A::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as i32).ok()?;
    set(A::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, carveout.map_or(-1, i32::from)).ok()?;
    let mut blocks = 0;
    // SAFETY: the module of the function is loaded, and `blocks` takes the integer that is written.
    let told = unsafe {
        sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, function, threads as i32, shared as usize)
    };
    told.result().ok()?;
    u32::try_from(blocks).ok()
}

/// Launches configurations of these records on their workloads: of `RECORD@3,17` those with these indices, of `RECORD` the baseline.
pub fn replay(arguments: &[OsString]) {
    for argument in arguments {
        let text = argument.to_string_lossy();
        let (path, indices) = text.split_once('@').unwrap_or((&text, ""));
        let space = RecordedSpace::read(Path::new(path)).unwrap_or_else(|error| panic!("{path} {error}"));
        let input = recorded_scoring_input(&space).unwrap_or_else(|error| panic!("{path} {error}"));
        let listed: Vec<usize> = indices.split(',').filter_map(|index| index.parse().ok()).collect();
        let mut process = Process::start(Options::default()).expect("a GPU");
        for index in if listed.is_empty() { vec![input.baseline] } else { listed } {
            let code = &input.codes[*input.variants[index].as_ref().expect("a configuration with code")];
            let candidate = Candidate {
                id: 0,
                label: index.to_string(),
                cubin: Arc::clone(&code.cubin),
                kernel: code.symbol.clone(),
                launch: input.launches[index],
                cooperative: input.waits_for_grid,
                needs_comparison: false,
                workload: Arc::clone(input.workloads[index].as_ref().expect("a configuration with a workload")),
            };
            // Under a profiler a launch takes long.
            let plan = Plan { rounds: 1, patience_s: 120.0, budget_s: 240.0, ..Plan::default() };
            match process.time(&candidate, &[], &plan) {
                Ok(timings) => println!("{} {index}: {:.2} us", space.kernel, timings.baseline.median_us),
                Err(error) => println!("{} {index}: {error}", space.kernel),
            }
        }
    }
}
