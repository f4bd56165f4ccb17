//! Measuring on a GPU. Needs the CUDA driver and nothing else: `cargo test --test gpu`, or the executable carried to a machine
//! with a GPU; `gpu NAME` runs the cases whose names contain NAME.
//!
//! Called as `gpu measure` it is the measuring process, which it starts itself; as `gpu replay RECORD[@INDEX,...]...` it launches
//! these configurations of each recorded space, or its baseline, as they were timed, for profilers. No GPU is a failure here, not a pass.

#[path = "gpu/device_code.rs"]
mod device_code;
#[path = "gpu/recorded.rs"]
mod recorded;

use nvtune::cuda::{Element, Scalar};
use nvtune::launch::Launch;
use nvtune::measure::verdict::{Verdict, faster};
use nvtune::measure::{
    Caches, Candidate, Error, Measurer, Options, Outcome, Plan, Process, ProcessPool, Timing, Timings, sanitize,
};
use nvtune::recording::RecordedKernel;
use nvtune::workload::{Argument, Buffer, Check, Fill, Symbol, VariableCheck, Workload, WrittenVariable};
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

const CASES: &[(&str, fn())] = &[
    ("device", device),
    ("right_candidates_are_timed", right_candidates_are_timed),
    ("wrong_candidates_are_refused", wrong_candidates_are_refused),
    (
        "candidate_that_only_a_comparison_proves_needs_compared_results",
        candidate_that_only_a_comparison_proves_needs_compared_results,
    ),
    ("in_out_buffers_are_restored", in_out_buffers_are_restored),
    ("crashes_do_not_end_the_work", crashes_do_not_end_the_work),
    ("twelve_faults_are_refused", twelve_faults_are_refused),
    ("too_many_resources", too_many_resources),
    ("baselines_that_cannot_serve", baselines_that_cannot_serve),
    ("checks_say_what_is_compared", checks_say_what_is_compared),
    ("contents_are_made_on_the_gpu_as_on_the_host", device_code::contents_are_made_on_the_gpu_as_on_the_host),
    ("results_are_compared_on_the_gpu_as_on_the_host", device_code::results_are_compared_on_the_gpu_as_on_the_host),
    (
        "results_that_do_not_fit_beside_a_candidate_go_to_the_host",
        device_code::results_that_do_not_fit_beside_a_candidate_go_to_the_host,
    ),
    ("workloads_may_differ", workloads_may_differ),
    ("variables_have_their_contents", variables_have_their_contents),
    ("written_variables_are_compared_and_restored", written_variables_are_compared_and_restored),
    ("structures_hold_addresses", structures_hold_addresses),
    ("carve_outs_are_preferred_launch_by_launch", carve_outs_are_preferred_launch_by_launch),
    ("timings_repeat", timings_repeat),
    ("short_kernels_are_timed_in_graphs", short_kernels_are_timed_in_graphs),
    ("graphs_keep_carve_outs_and_contents", graphs_keep_carve_outs_and_contents),
    (
        "kernels_that_wait_for_their_grid_are_launched_cooperatively",
        kernels_that_wait_for_their_grid_are_launched_cooperatively,
    ),
    ("clocks_are_watched", clocks_are_watched),
    ("one_measures_at_a_time", one_measures_at_a_time),
    ("a_paused_gpu_is_free_for_others_and_keeps_what_it_has", a_paused_gpu_is_free_for_others_and_keeps_what_it_has),
    ("several_gpus_share_candidates", several_gpus_share_candidates),
    ("a_second_request_runs_no_baseline_again", a_second_request_runs_no_baseline_again),
    ("a_baseline_sent_ahead_is_not_waited_for", a_baseline_sent_ahead_is_not_waited_for),
    ("duels_tell_apart", duels_tell_apart),
    ("warm_caches_hold_what_the_launch_before_left", warm_caches_hold_what_the_launch_before_left),
    ("rounds_with_warm_caches_have_buffers_at_twelve_places", rounds_with_warm_caches_have_buffers_at_twelve_places),
    ("the_sanitizer_sees_what_the_results_do_not_show", the_sanitizer_sees_what_the_results_do_not_show),
    ("occupancy_is_the_drivers", recorded::occupancy_is_the_drivers),
    ("remapped_launches", remapped_launches),
    ("launches_by_the_header", launches_by_the_header),
    ("a_program_is_tuned_on_what_it_recorded", a_program_is_tuned_on_what_it_recorded),
    ("only_accessed_parts_of_a_slab_are_recorded", only_accessed_parts_of_a_slab_are_recorded),
    ("textures_and_surfaces_are_recorded_and_tuned", textures_and_surfaces_are_recorded_and_tuned),
    (
        "variant_that_writes_another_value_to_a_variable_never_wins",
        variant_that_writes_another_value_to_a_variable_never_wins,
    ),
    ("math_options_win_within_the_tolerance_alone", math_options_win_within_the_tolerance_alone),
    ("factors_and_shared_spills_change_no_result", factors_and_shared_spills_change_no_result),
];

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|word| word == "measure") {
        return nvtune::measure::serve(&arguments[2..]);
    }
    if arguments.get(1).is_some_and(|word| word == "replay") {
        recorded::replay(&arguments[2..]);
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<_> = arguments[1..].iter().map(|a| a.to_string_lossy()).collect();
    let (mut run, mut failed) = (0, 0);
    for (name, case) in CASES {
        let names = wanted.iter().filter(|word| !word.starts_with('-'));
        if names.clone().count() > 0 && !names.clone().any(|word| name.contains(&**word)) {
            continue;
        }
        let begin = Instant::now();
        let well = catch_unwind(case).is_ok();
        let seconds = begin.elapsed().as_secs_f64();
        println!("test {name} ... {} ({seconds:.2} s)", if well { "ok" } else { "FAILED" });
        run += 1;
        failed += usize::from(!well);
    }
    println!("{run} cases, {failed} failed");
    ExitCode::from(u8::from(failed > 0 || run == 0))
}

/// A program built by nvtune under a recorded decision, with and without relocatable device code: it checks every kind of launch by
/// itself.
fn remapped_launches() {
    let sources =
        [("launches.cu", include_str!("gpu/launches.cu")), ("elsewhere.cu", include_str!("gpu/elsewhere.cu"))];
    let cases: [(&str, &[&str]); 4] = [
        ("block=64", &["-rdc=false"]),
        ("block=64", &["-rdc=true"]),
        ("block=64 reqntid coarsen=4", &["-rdc=false", "-DCOARSENED"]),
        ("block=64 reqntid coarsen=4", &["-rdc=true", "-DCOARSENED"]),
    ];
    for (winner, options) in cases {
        let lines = lines_of_program(&sources, winner, options);
        assert!(lines.len() >= 8, "{lines:#?}");
    }
}

/// A program that launches by the functions of its header.
fn launches_by_the_header() {
    let lines = lines_of_program(&[("header.cu", include_str!("gpu/header.cu"))], "block=64", &["-std=c++17"]);
    assert_eq!(lines.len(), 5, "{lines:#?}");
}

/// A program of one source that says itself whether its results are right.
struct CheckedProgram {
    folder: tempfile::TempDir,
}

impl CheckedProgram {
    fn new(source: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("program.cu"), source).expect("written");
        Self { folder }
    }

    /// Builds it by nvtune and runs it; returns what nvtune says.
    fn build_and_run(&self, mode: &str) -> String {
        let nvtune = std::env::var_os("NVTUNE_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_nvtune").into());
        let architecture = format!("-arch=sm_{}", start().device().compute_capability);
        let run = |command: &mut std::process::Command| {
            let output = command.current_dir(self.folder.path()).output().expect("it starts");
            let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert!(output.status.success(), "{text}");
            text
        };
        let mut compile = std::process::Command::new(&nvtune);
        compile.args(["nvcc", "-O3", &architecture, "-c", "program.cu", "-o", "program.o"]);
        let said = run(compile.env("NVTUNE", mode).env("NVTUNE_CACHE_SIZE", "0"));
        run(std::process::Command::new("nvcc").args([&architecture, "program.o", "-o", "program"]));
        let printed = run(&mut std::process::Command::new(self.folder.path().join("program")));
        println!("{mode}\n{said}{printed}");
        assert_eq!(printed, "0 wrong, no error\n");
        said
    }
}

/// A program without workloads in its comments: it runs as plain nvcc's while it records, and once it is tuned.
fn a_program_is_tuned_on_what_it_recorded() {
    let program = CheckedProgram::new(include_str!("gpu/recording.cu"));
    program.build_and_run("off");
    program.build_and_run("capture");
    let said = program.build_and_run("measure");
    let timed = |kernel: &str| said.lines().any(|line| line.starts_with(kernel) && line.contains(" points timed"));
    assert!(timed("nvtune: scaled: ") && timed("nvtune: moved: ") && timed("nvtune: halved: "), "{said}");
    assert!(!said.contains("nothing proves that it works"), "{said}");
}

/// A program whose slab is larger than its recordings may be: parts of it are recorded, and its kernels are tuned on them.
fn only_accessed_parts_of_a_slab_are_recorded() {
    let program = CheckedProgram::new(include_str!("gpu/slab.cu"));
    program.build_and_run("capture");
    for (kernel, arrays) in [("scaled", 2), ("gathered", 3)] {
        let recorded = RecordedKernel::read(&program.folder.path().join("program.capture"), kernel);
        assert!(recorded.left_out.is_empty() && recorded.launches.len() == 1, "{kernel}: {recorded:?}");
        let sizes: Vec<u64> = recorded.launches[0].launch.buffers.iter().map(|place| place.end - place.start).collect();
        let is_array = |bytes: &u64| (4 << 20..(4 << 20) + 512).contains(bytes);
        assert!(sizes.len() == arrays && sizes.iter().all(is_array), "{kernel}: {sizes:?}");
    }
    let said = program.build_and_run("measure");
    let timed = |kernel: &str| said.lines().any(|line| line.starts_with(kernel) && line.contains(" points timed"));
    assert!(timed("nvtune: scaled: ") && timed("nvtune: gathered: "), "{said}");
}

/// A program whose kernels read textures and write surfaces: these are recorded, and compared with the baseline's.
fn textures_and_surfaces_are_recorded_and_tuned() {
    let program = CheckedProgram::new(include_str!("gpu/textures.cu"));
    program.build_and_run("off");
    program.build_and_run("capture");
    let kernels = [("resampled", 1, 1), ("looked_up", 0, 1), ("marked", 2, 2), ("summed", 1, 1)];
    for (kernel, arrays, objects) in kernels {
        let recorded = RecordedKernel::read(&program.folder.path().join("program.capture"), kernel);
        assert!(recorded.left_out.is_empty() && recorded.launches.len() == 1, "{kernel}: {recorded:?}");
        let launch = &recorded.launches[0].launch;
        assert_eq!((launch.arrays.len(), launch.textures.len()), (arrays, objects), "{kernel}: {launch:?}");
    }
    let said = program.build_and_run("measure");
    for (kernel, _, _) in kernels {
        let is_timed = |line: &str| line.starts_with(&format!("nvtune: {kernel}: ")) && line.contains(" points timed");
        assert!(said.lines().any(is_timed), "{kernel}: {said}");
    }
    assert!(!said.contains("candidate refused") && !said.contains("nothing proves that it works"), "{said}");
}

/// A program whose kernel writes variables: the fast variant wins, the one that is wrong in a variable alone is refused.
fn variant_that_writes_another_value_to_a_variable_never_wins() {
    let said = CheckedProgram::new(include_str!("gpu/variables.cu")).build_and_run("measure");
    let winner =
        said.lines().find(|line| line.starts_with("nvtune: count: ") && line.contains("VARIANT=")).unwrap_or_default();
    assert!(winner.contains("VARIANT=1"), "{said}");
    let refused =
        |line: &str| line.contains("VARIANT=2") && line.contains("elements of `sums` differ from the baseline's");
    assert!(said.lines().any(refused), "{said}");
    assert!(!said.lines().any(|line| line.contains("refused") && line.contains("VARIANT=1")), "{said}");
}

/// A program of which one kernel is faster by a math option, and one loses its results by one.
fn math_options_win_within_the_tolerance_alone() {
    let said = CheckedProgram::new(include_str!("gpu/math.cu")).build_and_run("measure");
    let line = |kernel: &str| said.lines().find(|line| line.starts_with(kernel)).unwrap_or_default();
    assert!(line("nvtune: quotients: block=").contains(" math=fast_div ("), "{said}");
    assert!(!line("nvtune: tiny: block=").contains("math="), "{said}");
    let refused = |line: &str| line.contains("math=ftz") && line.contains("elements of `y` differ from the baseline's");
    assert!(said.lines().any(refused), "{said}");
}

/// A program of which one kernel is tried with its loop unrolled, and one with its spills in shared memory.
fn factors_and_shared_spills_change_no_result() {
    let program = CheckedProgram::new(include_str!("gpu/loops.cu"));
    let said = program.build_and_run("measure");
    assert!(!said.contains("refused"), "{said}");
    let record = std::fs::read_to_string(program.folder.path().join("program.tune.json")).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    let is_timed = |kernel: usize, name: &str| {
        let rows = record["kernels"][kernel]["configurations"].as_array().expect("a list");
        rows.iter().any(|row| !row[name].is_null() && !row["timing"].is_null())
    };
    assert!(is_timed(0, "unroll") && is_timed(1, "shared_spills"), "{record}");
}

/// Builds a program, its first source by nvtune under the recorded decision `winner`, and runs it; gives the lines of what it
/// found well. Needs nvcc on PATH; `NVTUNE_PROGRAM` names nvtune where it is not the one that cargo built.
fn lines_of_program(sources: &[(&str, &str)], winner: &str, options: &[&str]) -> Vec<String> {
    let program = std::env::var_os("NVTUNE_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_nvtune").into());
    let folder = tempfile::tempdir().expect("a folder");
    let capability = start().device().compute_capability;
    let recorded = format!(
        r#"{{"device": {{"name": "GPU", "compute_capability": {capability}}},
        "entries": [{{"label": "{winner}", "time_us": 5, "spread": 0.01}}, {{"time_us": 10, "spread": 0.01}}]}}"#
    );
    for (name, text) in sources.iter().copied().chain([("recorded.json", recorded.as_str())]) {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let run = |command: &mut std::process::Command| {
        let output = command.current_dir(folder.path()).output().expect("it starts");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(output.status.success(), "{options:?}: {text}");
        text
    };
    let architecture = format!("-arch=sm_{capability}");
    let options = [&["-O3", architecture.as_str()], options].concat();
    let mut objects = Vec::new();
    for (index, (name, _)) in sources.iter().enumerate() {
        let object = format!("{index}.o");
        let mut command = std::process::Command::new(if index == 0 { program.as_os_str() } else { "nvcc".as_ref() });
        if index == 0 {
            command.arg("nvcc").env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json");
        }
        let said = run(command.args(&options).args(["-c", name, "-o", &object]));
        assert!(index > 0 || said.contains(&format!("scale: {winner} (")), "{said}");
        objects.push(object);
    }
    run(std::process::Command::new("nvcc").args(&options).args(&objects).args(["-o", "program"]));
    let said = run(&mut std::process::Command::new(folder.path().join("program")));
    println!("{options:?}\n{said}");
    said.lines().filter(|line| line.starts_with("ok ")).map(str::to_owned).collect()
}

/// Elements of the buffers: large enough that a launch takes tens of microseconds, and no multiple of any block.
const N: u64 = (1 << 24) - 13;

fn start() -> Process {
    Process::start(Options::default()).expect("these cases need a GPU")
}

fn buffer(name: &str, count: u64, fill: Fill, seed: u64) -> Buffer {
    Buffer { name: name.to_owned(), element: Element { scalar: Scalar::F32, lanes: 1 }, count, fill, seed }
}

const RANDOM: Fill = Fill::Random { lo: 0.0, hi: 1.0 };

/// `(int n, float a, const float *x, float *y)`
fn workload(n: u64, y: Fill) -> Workload {
    Workload {
        arguments: vec![
            Argument::Scalar((n as i32).to_le_bytes().to_vec()),
            Argument::Scalar(2f32.to_le_bytes().to_vec()),
            Argument::Buffer(0),
            Argument::Buffer(1),
        ],
        buffers: vec![buffer("x", n, RANDOM, 1), buffer("y", n, y, 2)],
        symbols: vec![],
        written: vec![],
        arrays: vec![],
        textures: vec![],
        checks: None,
    }
}

fn candidate(kernel: &str, block: u32, workload: &Arc<Workload>) -> Candidate {
    let n = workload.buffers[0].count as u32;
    Candidate {
        id: 0,
        label: format!("block={block}"),
        cubin: Arc::from(&include_bytes!("gpu/kernels.ptx")[..]),
        kernel: kernel.to_owned(),
        launch: Launch {
            grid: [n.div_ceil(block), 1, 1],
            block: [block, 1, 1],
            shared: 0,
            carveout: None,
            coarsening: None,
        },
        cooperative: false,
        needs_comparison: false,
        workload: Arc::clone(workload),
    }
}

fn plan() -> Plan {
    Plan { rounds: 9, patience_s: 2.0, ..Plan::default() }
}

/// The reason of a refusal, or `timed`.
fn outcomes(timings: &Timings) -> Vec<String> {
    let short = |outcome: &Outcome| match outcome {
        Outcome::Timed(_) => "timed".to_owned(),
        Outcome::Refused(reason) => reason.to_string(),
        Outcome::Skipped => "skipped".to_owned(),
    };
    timings.candidates.iter().map(short).collect()
}

/// Times kernels of blocks against `scale` with blocks of 256.
fn against_scale(process: &mut Process, kernels: &[(&str, u32)]) -> Timings {
    let workload = Arc::new(workload(N, Fill::Poison));
    let candidates: Vec<_> = kernels.iter().map(|(kernel, block)| candidate(kernel, *block, &workload)).collect();
    process.time(&candidate("scale", 256, &workload), &candidates, &plan()).unwrap()
}

fn device() {
    let begin = Instant::now();
    let process = start();
    println!("ready after {:.0} ms", begin.elapsed().as_secs_f64() * 1e3);
    let device = process.device();
    println!("{device:?}");
    assert!(device.name.contains("NVIDIA") || !device.name.is_empty());
    assert_eq!(device.uuid.len(), "GPU-".len() + 36);
    assert!((50..200).contains(&device.compute_capability));
    assert!(device.driver >= 11000);
    assert!(device.sms > 0 && device.l2_bytes > 0 && device.memory_bytes > 1 << 30);
    assert!(device.bandwidth > 1e10);
    assert!(device.shared_per_block_optin >= device.shared_per_block);
}

fn right_candidates_are_timed() {
    let mut process = start();
    let bandwidth = process.device().bandwidth;
    let kernels = [("scale", 64), ("scale", 1024), ("slow", 256), ("rounded", 128), ("prints", 256)];
    let begin = Instant::now();
    let timings = against_scale(&mut process, &kernels);
    println!("timed after {:.0} ms", begin.elapsed().as_secs_f64() * 1e3);
    println!("baseline {:.2} us, spread {:.4}", timings.baseline.median_us, timings.baseline.spread);
    assert_eq!(outcomes(&timings), ["timed"; 5]);
    // All of x is read from memory and all of y is written, though the last of it may still be in the cache.
    let bytes = 2.0 * 4.0 * N as f64;
    let least = bytes / bandwidth * 1e6;
    for (outcome, (kernel, block)) in timings.candidates.iter().zip(kernels) {
        let Outcome::Timed(timing) = outcome else { unreachable!("all were timed") };
        println!("{kernel} {block}: {:.2} us, spread {:.4}", timing.median_us, timing.spread);
        assert!(timing.median_us > 0.5 * least, "{kernel}: faster than memory ({least} us)");
        assert!(timing.median_us < 100.0 * least);
        let dropped = timing.median_us > 1.5 * timings.baseline.median_us;
        assert!(dropped || timing.samples_us.len() >= 3);
    }
}

fn candidate_that_only_a_comparison_proves_needs_compared_results() {
    // `untouched` leaves the last 100 elements alone: with 100 it writes nothing.
    for (baseline, n, first) in
        [("untouched", 100, "writes no compared buffer or variable"), ("untouched", N, "timed"), ("scale", N, "timed")]
    {
        let workload = Arc::new(workload(n, Fill::Poison));
        let proved = candidate(baseline, 128, &workload);
        let unproved = Candidate { needs_comparison: true, ..candidate(baseline, 512, &workload) };
        let timings = start().time(&candidate(baseline, 256, &workload), &[unproved, proved], &plan()).unwrap();
        let outcomes = outcomes(&timings);
        println!("{baseline} of {n}: {outcomes:?}");
        assert!(outcomes[0].contains(first) && outcomes[1] == "timed", "{outcomes:?}");
    }
}

fn wrong_candidates_are_refused() {
    let kernels = [
        ("wrong_at_96", 128),
        ("wrong_at_96", 96),
        ("untouched", 256),
        ("stray", 256),
        ("overrun", 256),
        ("missing", 256),
        // What the wrong ones spoiled is made good again.
        ("scale", 512),
    ];
    let outcomes = outcomes(&against_scale(&mut start(), &kernels));
    println!("{outcomes:#?}");
    assert_eq!(outcomes[0], "timed");
    let wrong = N.div_ceil(1000);
    let begins = format!("{wrong} of {N} elements of `y` differ from the baseline's: y[7] is ");
    assert!(outcomes[1].starts_with(&begins));
    let first = N - 100;
    let begins = format!("100 of {N} elements of `y` differ from the baseline's: y[{first}] is ");
    assert!(outcomes[2].starts_with(&begins));
    assert!(outcomes[3].starts_with("writes to `x` where the baseline leaves it alone"));
    assert!(outcomes[4].starts_with("writes to `y` where the baseline leaves it alone"));
    assert_eq!(outcomes[5], "finding the kernel `missing` failed: CUDA_ERROR_NOT_FOUND");
    assert_eq!(outcomes[6], "timed");
}

fn in_out_buffers_are_restored() {
    let workload = Arc::new(workload(N, RANDOM));
    let candidates = [64, 128, 1024].map(|block| candidate("saxpy", block, &workload));
    let mut process = start();
    // A second time: the first has left its results in the buffers.
    for _ in 0..2 {
        let timings = process.time(&candidate("saxpy", 256, &workload), &candidates, &plan()).unwrap();
        assert_eq!(outcomes(&timings), ["timed"; 3]);
    }
    let timings =
        process.time(&candidate("saxpy", 256, &workload), &[candidate("scale", 256, &workload)], &plan()).unwrap();
    assert!(outcomes(&timings)[0].contains("elements of `y` differ"));
}

fn crashes_do_not_end_the_work() {
    let kernels = [("scale", 64), ("fault", 256), ("scale", 128), ("forever", 256), ("trap", 256), ("scale", 512)];
    let begin = Instant::now();
    let timings = against_scale(&mut start(), &kernels);
    println!("done after {:.2} s", begin.elapsed().as_secs_f64());
    let outcomes = outcomes(&timings);
    println!("{outcomes:#?}");
    for right in [0, 2, 5] {
        assert_eq!(outcomes[right], "timed");
    }
    assert_eq!(outcomes[1], "crashed on the GPU: CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_eq!(outcomes[3], "did not end within 2 s");
    assert!(
        ["CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_ILLEGAL_INSTRUCTION"]
            .iter()
            .any(|error| outcomes[4] == format!("crashed on the GPU: {error}"))
    );
}

fn twelve_faults_are_refused() {
    let workload = Arc::new(workload(N, Fill::Poison));
    let mut process = start();
    let most = process.device().shared_per_block_optin;
    let with_shared = |mut candidate: Candidate| {
        candidate.launch.shared = most + 4;
        candidate
    };
    let faults = [
        ("wrong result", candidate("wrong", 256, &workload), "elements of `y` differ"),
        ("race at one block size", candidate("races", 1024, &workload), "elements of `y` differ"),
        ("out-of-bounds write", candidate("fault", 256, &workload), "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("infinite loop", candidate("forever", 256, &workload), "did not end within 2 s"),
        ("trap", candidate("trap", 256, &workload), "crashed on the GPU: CUDA_ERROR_"),
        ("too much shared memory", with_shared(candidate("shared", 256, &workload)), "bytes of shared memory are more"),
        ("NaN", candidate("not_a_number", 256, &workload), "is NaN, not "),
        ("untouched output", candidate("untouched", 256, &workload), "elements of `y` differ"),
        ("depends on the block size", candidate("by_block", 128, &workload), "elements of `y` differ"),
        ("writes its input", candidate("stray", 256, &workload), "writes to `x`"),
        ("misaligned access", candidate("misaligned", 256, &workload), "CUDA_ERROR_MISALIGNED_ADDRESS"),
        ("device assert", candidate("asserts", 256, &workload), "CUDA_ERROR_ASSERT"),
    ];
    let right =
        [("races", 32), ("by_block", 256), ("scale", 512)].map(|(kernel, block)| candidate(kernel, block, &workload));
    let candidates: Vec<Candidate> = faults.iter().map(|(_, candidate, _)| candidate.clone()).chain(right).collect();
    let timings = process.time(&candidate("scale", 256, &workload), &candidates, &plan()).unwrap();
    let outcomes = outcomes(&timings);
    for ((fault, _, said), outcome) in faults.iter().zip(&outcomes) {
        println!("{fault}: {outcome}");
        assert!(outcome.contains(said), "{fault}: {outcome}");
    }
    assert_eq!(outcomes[12..], ["timed"; 3], "the same kernels where they are right, and one after all the faults");
}

fn too_many_resources() {
    let workload = Arc::new(workload(N, Fill::Poison));
    let mut process = start();
    let most = process.device().shared_per_block_optin;
    let with_shared = |bytes: u32| {
        let mut candidate = candidate("shared", 256, &workload);
        candidate.launch.shared = bytes;
        candidate
    };
    let mut fewer = (*workload).clone();
    fewer.arguments.pop();
    let mut narrow = (*workload).clone();
    narrow.arguments[0] = Argument::Scalar(vec![0; 8]);
    let candidates = [
        with_shared(1024),
        with_shared(most),
        with_shared(most + 4),
        candidate("scale", 2048, &workload),
        candidate("scale", 256, &Arc::new(fewer)),
        candidate("scale", 256, &Arc::new(narrow)),
    ];
    let timings = process.time(&candidate("scale", 256, &workload), &candidates, &plan()).unwrap();
    let outcomes = outcomes(&timings);
    println!("{outcomes:#?}");
    assert_eq!(outcomes[..2], ["timed", "timed"]);
    assert_eq!(outcomes[2], format!("{} bytes of shared memory are more than the {most} of the GPU", most + 4));
    assert_eq!(outcomes[3], "a block of 2048 threads is more than the 1024 that its code allows");
    if process.device().driver >= 12040 {
        assert_eq!(outcomes[4], "its launch failed: the kernel takes 4 arguments, the workload gives 3");
        assert_eq!(outcomes[5], "its launch failed: argument 0 has 8 bytes, the kernel takes 4");
    }
}

fn baselines_that_cannot_serve() {
    let sound = Arc::new(workload(N, Fill::Poison));
    let mut huge = workload(N, Fill::Poison);
    huge.buffers.push(buffer("z", 1 << 50, Fill::Zeros, 3));
    let mut process = start();
    for (baseline, expected) in [
        (candidate("unsteady", 256, &sound), "its results change from run to run"),
        (candidate("fault", 256, &sound), "crashed on the GPU"),
        (candidate("scale", 256, &Arc::new(huge)), "do not fit into the GPU's memory"),
    ] {
        let error = process.time(&baseline, &[], &plan()).unwrap_err();
        assert!(matches!(error, Error::Baseline(_)));
        assert!(error.to_string().contains(expected), "{error}");
    }
    // The process serves on.
    process.time(&candidate("scale", 256, &sound), &[], &plan()).unwrap();
}

fn checks_say_what_is_compared() {
    let checked = |checks| {
        let mut workload = workload(N, Fill::Poison);
        workload.checks = Some(checks);
        Arc::new(workload)
    };
    let check = |relative| Check { buffer: 1, relative, absolute: Some(0.0) };
    for (checks, expected) in
        [(vec![check(1e-6)], "elements of `y` differ"), (vec![check(1e-4)], "timed"), (vec![], "timed")]
    {
        let workload = checked(checks);
        let timings = start()
            .time(&candidate("scale", 256, &workload), &[candidate("rounded", 256, &workload)], &plan())
            .unwrap();
        let said = outcomes(&timings).concat();
        assert!(said.contains(expected), "{said}");
    }
}

fn workloads_may_differ() {
    let whole = Arc::new(workload(N, Fill::Poison));
    let half = Arc::new(workload(N / 2, Fill::Poison));
    let timings = start()
        .time(
            &candidate("scale", 256, &whole),
            &[candidate("scale", 256, &half), candidate("scale", 128, &whole)],
            &plan(),
        )
        .unwrap();
    assert_eq!(
        outcomes(&timings),
        ["`y` has another size or type than the baseline's, so the results cannot be compared", "timed"]
    );
}

fn variables_have_their_contents() {
    let given = |table: Fill| {
        let mut workload = workload(N, Fill::Poison);
        let counts = Buffer {
            element: Element { scalar: Scalar::I32, lanes: 1 },
            ..buffer("counts", 1024, Fill::Constant(5.0), 4)
        };
        let named = |contents: Buffer| Symbol { symbol: contents.name.clone(), contents };
        workload.symbols = vec![named(buffer("table", 64, table, 3)), named(counts)];
        // Code that does not have the variable is launched without it.
        workload.symbols.push(named(buffer("nowhere", 64, Fill::Zeros, 5)));
        Arc::new(workload)
    };
    let (twos, ones) = (given(Fill::Constant(2.0)), given(Fill::Constant(1.0)));
    let timings = start()
        .time(
            &candidate("tabled", 256, &twos),
            &[candidate("tabled", 64, &twos), candidate("tabled", 64, &ones), candidate("tabled", 512, &twos)],
            &plan(),
        )
        .unwrap();
    let outcomes = outcomes(&timings);
    println!("{outcomes:#?}");
    // A baseline that found its counts changed would be refused as unsteady.
    assert_eq!((outcomes[0].as_str(), outcomes[2].as_str()), ("timed", "timed"));
    assert!(outcomes[1].contains("elements of `y` differ"));
}

fn written_variables_are_compared_and_restored() {
    let variable = |name: &str, scalar: Scalar| WrittenVariable {
        symbol: name.to_owned(),
        name: name.to_owned(),
        element: Element { scalar, lanes: 1 },
        check: Some(VariableCheck { relative: if scalar == Scalar::F32 { 1e-4 } else { 0.0 }, absolute: None }),
    };
    let written = vec![variable("events", Scalar::U64), variable("sums", Scalar::F32)];
    let mut process = start();
    // Launches of a short kernel are timed in a graph.
    for n in [N, 1 << 16] {
        let workload = Arc::new(Workload { written: written.clone(), ..workload(n, Fill::Poison) });
        let kernels = [
            ("counted", 64),
            ("counted_nearly", 128),
            ("counted_twice", 256),
            ("summed_twice", 256),
            ("scale", 256),
            ("counted", 512),
        ];
        let candidates = kernels.map(|(kernel, block)| candidate(kernel, block, &workload));
        // A second time: all of these have changed the variables of one module.
        for _ in 0..2 {
            let outcomes =
                outcomes(&process.time(&candidate("counted", 256, &workload), &candidates, &plan()).unwrap());
            println!("{outcomes:#?}");
            assert_eq!([&outcomes[0], &outcomes[1], &outcomes[5]], ["timed"; 3]);
            let events = (n - 7).div_ceil(4096);
            let differs = |got: u64| {
                format!("1 of 1 elements of `events` differ from the baseline's: events[0] is {got}, not {events}")
            };
            assert_eq!(outcomes[2], differs(2 * events));
            assert!(
                outcomes[3].contains(" of 1024 elements of `sums` differ from the baseline's: sums["),
                "{}",
                outcomes[3]
            );
            assert_eq!(outcomes[4], differs(0));
        }
        // Code that writes what the baseline does not.
        let candidates = [candidate("counted", 256, &workload), candidate("scale", 512, &workload)];
        let outcomes = outcomes(&process.time(&candidate("scale", 256, &workload), &candidates, &plan()).unwrap());
        assert!(outcomes[0].starts_with("writes to `events` where the baseline leaves it alone"), "{}", outcomes[0]);
        assert_eq!(outcomes[1], "timed");
    }
}

fn structures_hold_addresses() {
    let mut planned = workload(N, Fill::Poison);
    let mut bytes = vec![0; 32];
    bytes[4..8].copy_from_slice(&(N as i32).to_le_bytes());
    bytes[8..12].copy_from_slice(&2f32.to_le_bytes());
    planned.arguments = vec![Argument::Struct { bytes, buffers: vec![(16, 0), (24, 1)] }];
    let mut short = planned.clone();
    short.arguments = vec![Argument::Struct { bytes: vec![0; 24], buffers: vec![] }];
    let (planned, short) = (Arc::new(planned), Arc::new(short));
    let candidates =
        [candidate("planned", 128, &planned), candidate("planned", 128, &short), candidate("planned", 512, &planned)];
    // Its results are those of the same kernel with arguments of its own.
    let baseline = candidate("scale", 256, &Arc::new(workload(N, Fill::Poison)));
    let mut process = start();
    let outcomes = outcomes(&process.time(&baseline, &candidates, &plan()).unwrap());
    println!("{outcomes:#?}");
    assert_eq!((outcomes[0].as_str(), outcomes[2].as_str()), ("timed", "timed"));
    if process.device().driver >= 12040 {
        assert_eq!(outcomes[1], "its launch failed: argument 0 has 24 bytes, the kernel takes 32");
    }
}

fn carve_outs_are_preferred_launch_by_launch() {
    let workload = Arc::new(workload(N, Fill::Poison));
    let with_carveout = |carveout: Option<u8>, shared: u32| {
        let mut candidate = candidate("shared", 256, &workload);
        candidate.launch.shared = shared;
        candidate.launch.carveout = carveout;
        candidate.label = format!("carveout={carveout:?} shared={shared}");
        candidate
    };
    let mut process = start();
    // A block of a third of the GPU's shared memory still runs where the preference is for less.
    let third = process.device().shared_per_block_optin / 3;
    let candidates = [
        with_carveout(Some(0), 1024),
        with_carveout(Some(50), 1024),
        with_carveout(Some(100), 1024),
        with_carveout(None, 1024),
        with_carveout(Some(0), third),
        with_carveout(Some(100), third),
    ];
    let timings = process.time(&candidate("scale", 256, &workload), &candidates, &plan()).unwrap();
    for (candidate, outcome) in candidates.iter().zip(&timings.candidates) {
        if let Outcome::Timed(timing) = outcome {
            println!("{}: {:.2} us, spread {:.4}", candidate.label, timing.median_us, timing.spread);
        }
    }
    assert_eq!(outcomes(&timings), ["timed"; 6]);
    // In turns, of one function: each launch has its own preference again.
    let samples = process.time_paired(&candidates[4..], 15, Caches::Cold).unwrap();
    // One that surely takes longer than the other drops out.
    assert!(samples.iter().all(|samples| samples.as_ref().is_some_and(|samples| samples.len() >= 11)));
    for (candidate, samples) in candidates[4..].iter().zip(samples.iter().flatten()) {
        println!("{}: {:.2} us in turns", candidate.label, samples.iter().sum::<f64>() / samples.len() as f64);
    }
}

fn timings_repeat() {
    let mut process = start();
    let medians = |timings: &Timings| -> Vec<f64> {
        let timed = timings.candidates.iter().filter_map(|outcome| match outcome {
            Outcome::Timed(timing) => Some(timing.median_us),
            _ => None,
        });
        std::iter::once(timings.baseline.median_us).chain(timed).collect()
    };
    let kernels = [("scale", 64), ("scale", 128), ("scale", 512), ("rounded", 256)];
    let first = medians(&against_scale(&mut process, &kernels));
    let second = medians(&against_scale(&mut process, &kernels));
    process.release_gpu();
    let fresh = medians(&against_scale(&mut start(), &kernels));
    println!("{first:.2?}\n{second:.2?}\n{fresh:.2?}");
    for other in [second, fresh] {
        for (a, b) in first.iter().zip(other) {
            assert!((a / b - 1.0).abs() < 0.05, "{a} and {b}");
        }
    }
}

fn duels_tell_apart() {
    let workload = Arc::new(workload(N, Fill::Poison));
    let contenders = [
        candidate("scale", 256, &workload),
        candidate("scale", 256, &workload),
        candidate("slow", 256, &workload),
        candidate("fault", 256, &workload),
    ];
    let begin = Instant::now();
    let rounds = start().time_paired(&contenders, 30, Caches::Cold).unwrap();
    println!("dueled after {:.2} s", begin.elapsed().as_secs_f64());
    let [Some(baseline), Some(same), Some(slow), None] = rounds.as_slice() else {
        panic!("{rounds:?}");
    };
    println!("{:?} {:?}", faster(baseline, same), faster(baseline, slow));
    assert!(!matches!(faster(baseline, same), Verdict::Faster { .. }));
    assert!(matches!(faster(baseline, slow), Verdict::NotFaster { .. }));
    assert!(matches!(faster(slow, baseline), Verdict::Faster { .. }));
}

/// A workload of a kernel of a few microseconds.
fn small() -> Arc<Workload> {
    Arc::new(workload(1 << 16, Fill::Poison))
}

fn median(samples: &Option<Vec<f64>>) -> Timing {
    Timing::new(samples.clone().expect("it runs")).expect("it was sampled")
}

fn warm_caches_hold_what_the_launch_before_left() {
    // The first takes so long that it is launched by itself, the second is timed in graphs.
    let mut process = start();
    for (kernel, elements) in [("chases", 1 << 21), ("scale", 1 << 20)] {
        let contenders = [candidate(kernel, 256, &Arc::new(workload(elements, Fill::Poison)))];
        let mut timed = |caches| {
            let first = median(&process.time_paired(&contenders, 31, caches).unwrap()[0]).median_us;
            let again = median(&process.time_paired(&contenders, 31, caches).unwrap()[0]).median_us;
            assert!((first / again - 1.0).abs() < 0.1, "{kernel}: {caches:?} repeats: {first} and {again} us");
            first
        };
        let (cold, warm) = (timed(Caches::Cold), timed(Caches::Warm));
        println!("{kernel}: {cold:.3} us cold, {warm:.3} us warm");
        assert!(warm < 0.9 * cold, "{kernel}");
    }
}

fn rounds_with_warm_caches_have_buffers_at_twelve_places() {
    let mut process = start();
    // Samples of launches in a graph, and of single ones; half of any L2 cache of 8 MiB holds both.
    for elements in [1 << 16, 1 << 19] {
        let workload = Arc::new(workload(elements, Fill::Poison));
        let contenders = [candidate("waits_by_address", 256, &workload), candidate("scale", 256, &workload)];
        for (caches, differ) in [(Caches::Cold, false), (Caches::Warm, true)] {
            let times = process.time_paired(&contenders, 30, caches).unwrap().remove(0).expect("it runs");
            println!("{elements} elements, {caches:?}: {times:.1?}");
            let fastest = times.iter().copied().fold(f64::INFINITY, f64::min);
            assert_eq!(times.iter().filter(|us| **us > 1.3 * fastest).count() > 3, differ, "{elements}, {caches:?}");
            let again: Vec<(f64, f64)> = times.iter().copied().zip(times.iter().skip(12).copied()).collect();
            // The least by which two addresses may differ, at 2 GHz.
            let step_us = elements as f64 / 16.0 / 2000.0;
            let same = again.iter().filter(|(us, later)| (us - later).abs() < step_us);
            assert!(same.count() + 3 > again.len(), "{elements}, {caches:?}: every twelfth is the same");
        }
    }
}

/// Needs compute-sanitizer on PATH.
fn the_sanitizer_sees_what_the_results_do_not_show() {
    let workload = Arc::new(workload(1 << 16, Fill::Poison));
    for (kernel, expected) in [("scale", None), ("peeks", Some("Invalid __global__ read of size 4 bytes"))] {
        let found = sanitize(&candidate(kernel, 256, &workload), &Options::default());
        println!("{kernel}: {found:?}");
        assert_eq!(found.expect("the tool runs").as_deref(), expected, "{kernel}");
    }
}

fn short_kernels_are_timed_in_graphs() {
    let workload = small();
    let contenders: Vec<Candidate> =
        [64, 128, 256, 512, 1024, 64].iter().map(|block| candidate("scale", *block, &workload)).collect();
    let mut process = start();
    let first = process.time_paired(&contenders, 41, Caches::Cold).unwrap();
    let second = process.time_paired(&contenders, 41, Caches::Cold).unwrap();
    for ((candidate, a), b) in contenders.iter().zip(&first).zip(&second) {
        let (a, b) = (median(a), median(b));
        println!(
            "{}: {:.3} us, spread {:.4}; again {:.3} us, spread {:.4}",
            candidate.label, a.median_us, a.spread, b.median_us, b.spread
        );
        assert!((0.5..20.0).contains(&a.median_us));
        assert!((a.median_us / b.median_us - 1.0).abs() < 0.03, "it repeats");
    }
    let (one, same) = (median(&first[0]), median(&first[5]));
    // Events tell steps of 32 ns, of which a launch of 4 us has some hundred.
    assert!((one.median_us / same.median_us - 1.0).abs() < 0.03, "the same twice");
}

fn graphs_keep_carve_outs_and_contents() {
    // Each launch of a graph must find the buffer as it was: it is read and written.
    let workload = Arc::new(workload(1 << 14, RANDOM));
    let mut process = start();
    let candidates = [64, 128, 1024].map(|block| candidate("saxpy", block, &workload));
    for _ in 0..2 {
        let timings = process.time(&candidate("saxpy", 256, &workload), &candidates, &plan()).unwrap();
        assert_eq!(outcomes(&timings), ["timed"; 3]);
        println!("{:.3} us", timings.baseline.median_us);
    }
    let small = small();
    let third = process.device().shared_per_block_optin / 3;
    let with_carveout = |carveout: Option<u8>, shared: u32| {
        let mut candidate = candidate("shared", 256, &small);
        candidate.launch.shared = shared;
        candidate.launch.carveout = carveout;
        candidate
    };
    let contenders = [(None, 1024), (Some(0), 1024), (Some(100), 1024), (Some(0), third), (Some(100), third)]
        .map(|(carveout, shared)| with_carveout(carveout, shared));
    let samples = process.time_paired(&contenders, 21, Caches::Cold).unwrap();
    for (contender, samples) in contenders.iter().zip(&samples) {
        let (carveout, shared) = (contender.launch.carveout, contender.launch.shared);
        println!("carveout {carveout:?} shared {shared}: {:.3} us", median(samples).median_us);
    }
}

fn kernels_that_wait_for_their_grid_are_launched_cooperatively() {
    let mut process = start();
    let sms = process.device().sms;
    let waits = |block: u32, blocks_per_sm: u32, workload: &Arc<Workload>| {
        let mut candidate = candidate("waits", block, workload);
        candidate.launch.grid = [sms * blocks_per_sm, 1, 1];
        candidate.cooperative = true;
        candidate.label += &format!(" blocks_per_sm={blocks_per_sm}");
        candidate
    };
    let large = Arc::new(workload(N, Fill::Poison));
    let with_carveout = |carveout: u8| {
        let mut candidate = waits(128, 1, &large);
        candidate.launch.carveout = Some(carveout);
        candidate
    };
    let candidates = [
        waits(128, 2, &large),
        waits(512, 1, &large),
        waits(256, 64, &large),
        with_carveout(100),
        with_carveout(0),
        waits(64, 4, &large),
    ];
    let timings = process.time(&waits(256, 2, &large), &candidates, &plan()).unwrap();
    let outcomes = outcomes(&timings);
    println!("baseline {:.2} us, {outcomes:#?}", timings.baseline.median_us);
    for right in [0, 1, 3, 4, 5] {
        assert_eq!(outcomes[right], "timed", "{}", candidates[right].label);
    }
    let blocks = 64 * sms;
    let crowded =
        format!("its blocks wait for each other, and {blocks} of 256 threads are more than the GPU holds at once");
    assert_eq!(outcomes[2], crowded);

    // Short ones are timed in graphs, with cold caches and with warm ones.
    let small = small();
    let contenders = [waits(256, 1, &small), waits(128, 2, &small)];
    for caches in [Caches::Cold, Caches::Warm] {
        let samples = process.time_paired(&contenders, 21, caches).unwrap();
        for (contender, samples) in contenders.iter().zip(&samples) {
            let timing = median(samples);
            println!("{caches:?}, {}: {:.3} us, spread {:.4}", contender.label, timing.median_us, timing.spread);
            assert!((0.5..100.0).contains(&timing.median_us));
        }
    }
}

fn clocks_are_watched() {
    let mut process = start();
    against_scale(&mut process, &[("scale", 64)]);
    let conditions = process.conditions();
    println!("{conditions:?}");
    assert!(conditions.sm_mhz.0 > 100 && conditions.temperature_c > 10, "NVML tells");
    assert!(conditions.rounds >= 9);
}

fn one_measures_at_a_time() {
    let mut first = start();
    if first.gpus() > 1 {
        return println!("there are {} GPUs: not looked at", first.gpus());
    }
    against_scale(&mut first, &[("scale", 64)]);
    let mut second = Process::start(Options { wait: Some(Duration::from_millis(300)), ..Options::default() }).unwrap();
    let workload = Arc::new(workload(N, Fill::Poison));
    let baseline = candidate("scale", 256, &workload);
    assert!(matches!(second.time(&baseline, &[], &plan()), Err(Error::Busy { .. })));
    let mut third = start();
    let waiting = std::thread::spawn(move || {
        against_scale(&mut third, &[("scale", 64)]);
        third.waited()
    });
    std::thread::sleep(Duration::from_millis(700));
    first.release_gpu();
    println!("waited {:?}", waiting.join().unwrap());
    // Killed in the middle of its work, it has nothing any more.
    drop(second);
    assert_eq!(outcomes(&against_scale(&mut first, &[("scale", 64)])), ["timed"]);
}

fn several_gpus_share_candidates() {
    let mut pool = ProcessPool::start(Options::default()).unwrap();
    let mut alone = start();
    let gpus = alone.gpus();
    if gpus < 2 {
        return println!("there is one GPU: not looked at");
    }
    let workload = Arc::new(workload(N, Fill::Poison));
    let baseline = candidate("scale", 256, &workload);
    let candidates: Vec<Candidate> = (0..1500).map(|n| candidate("scale", 32 * (1 + n % 32), &workload)).collect();
    let plan = Plan { rounds: 15, ..plan() };
    let begin = Instant::now();
    let one = alone.time(&baseline, &candidates, &plan).unwrap();
    let one_s = begin.elapsed().as_secs_f64();
    drop(alone);
    let begin = Instant::now();
    let shared = pool.time(&baseline, &candidates, &plan).unwrap();
    let shared_s = begin.elapsed().as_secs_f64();
    println!("{} candidates: one GPU {one_s:.2} s, {gpus} GPUs {shared_s:.2} s", candidates.len());
    let (mut worst, mut compared) = (0.0f64, 0);
    for (a, b) in one.candidates.iter().zip(&shared.candidates) {
        let (Outcome::Timed(a), Outcome::Timed(b)) = (a, b) else { panic!("{a:?} {b:?}") };
        // What is far slower than the best has few samples, and one of them may have been held up.
        if a.samples_us.len() > 2 && b.samples_us.len() > 2 {
            worst = worst.max((a.median_us / b.median_us - 1.0).abs());
            compared += 1;
        }
    }
    println!("largest difference {worst:.4}");
    assert!(worst < 0.1 && compared > 1000 && shared_s < one_s);
}

/// Between two requests others may have the GPU.
fn a_paused_gpu_is_free_for_others_and_keeps_what_it_has() {
    let mut first = start();
    if first.gpus() > 1 {
        return println!("there are {} GPUs: not looked at", first.gpus());
    }
    // Which waits for what a case before leaves.
    assert_eq!(outcomes(&against_scale(&mut first, &[("scale", 64)])), ["timed"]);
    let mut second = Process::start(Options { wait: Some(Duration::from_millis(300)), ..Options::default() }).unwrap();
    assert!(!second.claim_free().unwrap(), "it is not free yet");
    first.pause();
    assert_eq!(outcomes(&against_scale(&mut second, &[("scale", 64)])), ["timed"]);
    assert!(!first.claim_free().unwrap(), "the other has it");
    second.release_gpu();
    // Which takes it a moment.
    let is_free = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        first.claim_free().unwrap()
    });
    assert!(is_free);
    let said = outcomes(&against_scale(&mut first, &[("scale", 64), ("wrong_at_96", 96)]));
    assert!(said[0] == "timed" && said[1].contains("differ from the baseline's"), "{said:?}");
}

/// While variants would be compiled, the buffers get their contents, and the baseline its results.
fn a_baseline_sent_ahead_is_not_waited_for() {
    // Contents that come from the host, which takes a while.
    let mut tabled = workload(N, Fill::Poison);
    tabled.buffers[0].fill = Fill::Table(vec![0x3f80_0000; 8]);
    let tabled = Arc::new(tabled);
    let of = |kernel, block| candidate(kernel, block, &tabled);
    let time_of = |is_ahead: bool| {
        let mut process = start();
        if is_ahead {
            process.prepare_baseline(&of("scale", 256));
        }
        std::thread::sleep(Duration::from_millis(1500));
        let begin = Instant::now();
        let timings = process.time(&of("scale", 256), &[of("scale", 64), of("wrong_at_96", 96)], &plan()).unwrap();
        let taken = begin.elapsed();
        let said = outcomes(&timings);
        assert!(said[0] == "timed" && said[1].contains("differ from the baseline's"), "{said:?}");
        taken
    };
    // The rest of a request varies by as much as is saved: the shortest of three.
    let [after, before] = [false, true].map(|is_ahead| (0..3).map(|_| time_of(is_ahead)).min());
    println!("{after:?}; with the baseline ahead {before:?}");
    assert!(before < after);
}

fn a_second_request_runs_no_baseline_again() {
    let mut process = start();
    let begin = Instant::now();
    against_scale(&mut process, &[("scale", 64)]);
    let first = begin.elapsed();
    let begin = Instant::now();
    against_scale(&mut process, &[("scale", 128)]);
    let second = begin.elapsed();
    println!("{first:?}, then {second:?}");
    assert!(second < first / 2);
}
