//! The measuring process on a stand-in for the driver: buffers, their contents and comparison, scarce memory, writes out of bounds.

use crate::support::toolkit::kept_folder;
use nvtune::cuda::{Element, Scalar};
use nvtune::launch::Launch;
use nvtune::measure::{Candidate, Error, Measurer, Options, Outcome, Plan, Process};
use nvtune::workload::contents::fill_bytes;
use nvtune::workload::{Argument, Buffer, FileBytes, Fill, Symbol, VariableCheck, Workload, WrittenVariable};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock};

const STAND_IN: &str = concat!(
    include_str!("../stubs/driver.cpp"),
    include_str!("../stubs/device_code.h"),
    include_str!("../../src/measure/gpu/device.cu")
);

/// Returns a folder with libraries that programs take for the driver and for its management library.
///
/// It is made of `tests/stubs/driver.cpp` once, and kept for later runs of the same source.
pub fn stand_in() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| kept_folder("driver", STAND_IN, compile_stand_in));
    &FOLDER
}

fn compile_stand_in(folder: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stubs/driver.cpp");
    let compiler = which::which("c++").or_else(|_| which::which("g++")).expect("nvcc's own host compiler");
    let driver = folder.join("libcuda.so.1");
    let options = ["-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-o"];
    let made = Command::new(compiler).args(options).arg(&driver).arg(source).status().expect("it runs");
    assert!(made.success());
    // The names that are looked for first, lest the machine's own be found.
    for name in ["libcuda.so", "libnvidia-ml.so.1"] {
        std::fs::copy(&driver, folder.join(name)).expect("a copy");
    }
}

/// Elements of `y`: 8 MB.
const COUNT: u64 = 2 << 20;

/// Starts a measuring process on a GPU with this many bytes of memory.
pub fn start(memory: u64) -> Process {
    let library_path = format!("LD_LIBRARY_PATH={}", stand_in().display());
    let runner = ["/usr/bin/env".to_owned(), library_path, format!("MEMORY={memory}")];
    let program = Some(PathBuf::from(env!("CARGO_BIN_EXE_nvtune")));
    Process::start(Options { runner: runner.to_vec(), program, ..Options::default() }).expect("it starts")
}

pub fn buffer(name: &str, scalar: Scalar, count: u64, fill: Fill) -> Buffer {
    Buffer { name: name.to_owned(), element: Element { scalar, lanes: 1 }, count, fill, seed: 3 }
}

/// `(int n, float a, const unsigned *x, unsigned *y)`: a kernel that makes the words of `y` of those of `x`.
pub fn makes(kernel: &str, x: Buffer, y: Buffer) -> Candidate {
    let words = (x.bytes().min(y.bytes()) / 4) as i32;
    let scalars = [words.to_le_bytes(), 0f32.to_le_bytes()].map(|bytes| Argument::Scalar(bytes.to_vec()));
    let arguments = scalars.into_iter().chain([Argument::Buffer(0), Argument::Buffer(1)]).collect();
    Candidate {
        id: 0,
        label: kernel.to_owned(),
        cubin: Arc::from(&b".version"[..]),
        kernel: kernel.to_owned(),
        launch: Launch { grid: [1; 3], block: [128, 1, 1], shared: 0, carveout: None, coarsening: None },
        cooperative: false,
        needs_comparison: false,
        workload: Arc::new(Workload { arguments, buffers: vec![x, y], ..Workload::default() }),
    }
}

/// The same on random numbers, beside so many more of them.
fn beside(kernel: &str, more: u64, poisoned: bool) -> Candidate {
    let x = buffer("x", Scalar::F32, COUNT + more / 4, Fill::Random { lo: 1.0, hi: 2.0 });
    makes(kernel, x, buffer("y", Scalar::F32, COUNT, if poisoned { Fill::Poison } else { Fill::Zeros }))
}

fn of(kernel: &str) -> Candidate {
    beside(kernel, 0, true)
}

fn plan() -> Plan {
    Plan { rounds: 1, ..Plan::default() }
}

/// What came of each candidate: `timed`, or why it was refused.
pub fn outcomes(process: &mut Process, baseline: &Candidate, candidates: &[Candidate]) -> Vec<String> {
    let timings = process.time(baseline, candidates, &plan()).expect("the baseline serves");
    let short = |outcome: Outcome| match outcome {
        Outcome::Timed(_) => "timed".to_owned(),
        Outcome::Refused(reason) => reason.to_string(),
        Outcome::Skipped => "skipped".to_owned(),
    };
    timings.candidates.into_iter().map(short).collect()
}

/// The share of the tolerance that the results of a candidate take.
fn tolerance_used(process: &mut Process, baseline: &Candidate, candidate: Candidate) -> Option<f64> {
    let timings = process.time(baseline, &[candidate], &plan()).expect("the baseline serves");
    assert_eq!(timings.baseline.tolerance_used, None);
    let Some(Outcome::Timed(timing)) = timings.candidates.first() else { panic!("{:?}", timings.candidates) };
    timing.tolerance_used
}

const DIFFERS: &str = "1 of 2097152 elements of `y` differ from the baseline's: y[1048576] is ";
const STRAY: &str = "writes to `y` where the baseline leaves it alone (an index out of bounds?)";

#[test]
fn rounded_results_agree_and_wrong_ones_are_refused() {
    let mut process = start(1 << 30);
    assert_eq!(tolerance_used(&mut process, &of("copies"), of("copies")), Some(0.0));
    let used = tolerance_used(&mut process, &of("copies"), of("rounded"));
    assert!(used.is_some_and(|used| used > 0.0 && used <= 1.0), "{used:?}");
    let said = outcomes(&mut process, &of("copies"), &["rounded", "wrong", "overruns", "copies"].map(of));
    assert_eq!([&said[0], &said[2], &said[3]], ["timed", STRAY, "timed"]);
    assert!(said[1].starts_with(DIFFERS), "{}", said[1]);
}

#[test]
fn buffers_on_the_gpu_hold_what_the_host_computes_for_each_type_and_fill() {
    let mut process = start(1 << 30);
    let random = Fill::Random { lo: -3.0, hi: 100.0 };
    for scalar in
        [Scalar::U8, Scalar::I16, Scalar::U32, Scalar::I64, Scalar::F16, Scalar::Bf16, Scalar::F32, Scalar::F64]
    {
        for fill in
            [Fill::Zeros, Fill::Poison, Fill::Iota, Fill::Constant(42.4), random.clone(), Fill::Table(vec![1, 2])]
        {
            let contents = buffer("x", scalar, 1000, fill);
            let mut bytes = vec![0; contents.bytes() as usize];
            assert!(fill_bytes(&contents, 0..contents.count, &mut bytes));
            let onto = || buffer("y", Scalar::U32, contents.bytes() / 4, Fill::Constant(77.0));
            let file = buffer("x", scalar, 1000, Fill::File(FileBytes::new(Arc::new(bytes), 0)));
            let candidates = [makes("copies", contents.clone(), onto()), makes("wrong", contents.clone(), onto())];
            let said = outcomes(&mut process, &makes("copies", file, onto()), &candidates);
            assert!(said[0] == "timed" && said[1].contains("elements of `y` differ"), "{contents:?}: {said:?}");
        }
    }
}

/// Results lie on the GPU, in reach of what is compared with them.
#[test]
fn kernel_that_overwrites_the_baselines_results_is_refused_alone() {
    let said = outcomes(&mut start(1 << 30), &of("copies"), &["rounded", "sprays", "rounded", "wrong"].map(of));
    assert_eq!([&said[0], &said[1], &said[2]], ["timed", STRAY, "timed"]);
    assert!(said[3].starts_with(DIFFERS), "{}", said[3]);
}

/// What such a baseline leaves is on the host.
#[test]
fn baseline_that_writes_out_of_bounds_is_compared_with() {
    let said = outcomes(&mut start(1 << 30), &of("sprays"), &["sprays", "copies"].map(of));
    assert!(said[0] == "timed" && said[1].contains("elements of `y` differ"), "{said:?}");
}

#[test]
#[ignore = "long: in the full run"]
fn baselines_results_make_room_for_larger_candidates() {
    // Of 256 MB the measuring process has 32 for itself; `x` takes 100, and `y`, a copy of it and its results take 8 each.
    let mut process = start(256 << 20);
    let baseline = beside("copies", 92 << 20, true);
    let with = |kernel, more: u64| beside(kernel, more << 20, false);
    let said = outcomes(
        &mut process,
        &baseline,
        &[
            // Fits where the baseline's buffers go.
            with("rounded", 120),
            // Leaves room for its `y`, and for a copy of that where the results go.
            with("rounded", 194),
            with("wrong", 194),
            with("rounded", 300),
            beside("rounded", 92 << 20, true),
        ],
    );
    assert_eq!([&said[0], &said[1], &said[4]], ["timed"; 3]);
    assert!(said[2].starts_with(DIFFERS), "{}", said[2]);
    assert!(said[3].contains("do not fit into the GPU's memory"), "{}", said[3]);
}

/// Such results are on the host from the start.
#[test]
#[ignore = "long: in the full run"]
fn candidates_are_compared_with_results_that_leave_too_little_memory() {
    let mut process = start(256 << 20);
    let crowded = beside("copies", 172 << 20, true);
    let said =
        outcomes(&mut process, &crowded, &[beside("rounded", 172 << 20, true), beside("wrong", 172 << 20, true)]);
    assert!(said[0] == "timed" && said[1].starts_with(DIFFERS), "{said:?}");
    let used = tolerance_used(&mut process, &crowded, beside("rounded", 172 << 20, true));
    // Another process gets the GPU once this one is gone.
    drop(process);
    assert_eq!(used, tolerance_used(&mut start(1 << 30), &of("copies"), of("rounded")), "as on the device");
}

#[test]
fn baseline_larger_than_the_memory_is_an_error() {
    let huge = start(256 << 20).time(&beside("copies", 300 << 20, true), &[], &plan());
    assert!(matches!(huge, Err(Error::Baseline(_))), "{huge:?}");
}

/// A kernel of code that has the variables `total` and `sums`, which it may write.
fn counting(kernel: &str, written: Vec<WrittenVariable>) -> Candidate {
    let x = buffer("x", Scalar::U32, 1000, Fill::Iota);
    let candidate = makes(kernel, x, buffer("y", Scalar::U32, 1000, Fill::Poison));
    let workload = Workload { written, ..(*candidate.workload).clone() };
    Candidate { cubin: Arc::from(&b".version .global total"[..]), workload: Arc::new(workload), ..candidate }
}

/// The variables, `sums` as a number of this type.
fn variables(sums: Scalar) -> Vec<WrittenVariable> {
    let variable = |name: &str, scalar: Scalar| WrittenVariable {
        symbol: name.to_owned(),
        name: format!("ns::{name}"),
        element: Element { scalar, lanes: 1 },
        check: Some(VariableCheck { relative: if scalar == Scalar::F32 { 1e-4 } else { 0.0 }, absolute: None }),
    };
    vec![variable("total", Scalar::U64), variable("sums", sums)]
}

#[test]
fn written_variables_are_compared_by_their_types() {
    for (sums, rounded) in
        [(Scalar::F32, "timed"), (Scalar::U8, "elements of `ns::sums` differ from the baseline's: ns::sums[4] is ")]
    {
        let of = |kernel: &str| counting(kernel, variables(sums));
        let candidates = ["counts", "counts_rounded", "counts_too_far", "copies", "counts"].map(of);
        let said = outcomes(&mut start(1 << 30), &of("counts"), &candidates);
        assert_eq!([&said[0], &said[4]], ["timed"; 2], "{said:?}");
        assert!(said[1].contains(rounded), "{}", said[1]);
        let total = "1 of 1 elements of `ns::total` differ from the baseline's: ns::total[0] is ";
        assert_eq!(said[2], format!("{total}1101, not 1100"));
        assert_eq!(said[3], format!("{total}100, not 1100"));
    }
}

#[test]
fn write_to_a_variable_that_the_baseline_leaves_alone_is_refused() {
    let of = |kernel: &str| counting(kernel, variables(Scalar::F32));
    let said = outcomes(&mut start(1 << 30), &of("copies"), &["copies", "counts", "copies"].map(of));
    let stray = "writes to `ns::total` where the baseline leaves it alone (an index out of bounds?)";
    assert_eq!(said, ["timed", stray, "timed"]);
}

/// `only_counts` adds to what it finds: a count that is left from the launch before would show.
#[test]
fn written_variables_have_their_contents_before_each_launch() {
    let given = |kernel: &str| {
        let candidate = counting(kernel, variables(Scalar::F32));
        let symbol =
            Symbol { symbol: "total".to_owned(), contents: buffer("total", Scalar::U64, 1, Fill::Constant(7.0)) };
        let workload = Workload { symbols: vec![symbol], ..(*candidate.workload).clone() };
        Candidate { workload: Arc::new(workload), ..candidate }
    };
    let mut process = start(1 << 30);
    // Launches of one module on other contents, and on those that its code has.
    for _ in 0..2 {
        let said = outcomes(&mut process, &given("counts"), &["counts", "counts_too_far"].map(given));
        assert!(said[0] == "timed" && said[1].ends_with("is 1008, not 1007"), "{said:?}");
        let of = |kernel: &str| counting(kernel, variables(Scalar::F32));
        let said = outcomes(&mut process, &of("counts"), &["counts", "counts_too_far"].map(of));
        assert!(said[0] == "timed" && said[1].ends_with("is 1101, not 1100"), "{said:?}");
    }
}

/// What ran before has changed them: the code is loaded anew.
#[test]
fn variables_that_a_later_workload_names_have_their_initial_contents() {
    let mut process = start(1 << 30);
    assert_eq!(outcomes(&mut process, &counting("counts", vec![]), &[counting("counts", vec![])]), ["timed"]);
    let of = |kernel: &str| counting(kernel, variables(Scalar::F32));
    let said = outcomes(&mut process, &of("counts"), &["counts_too_far"].map(of));
    assert!(said[0].ends_with("is 1101, not 1100"), "{said:?}");
}

#[test]
fn compared_variables_prove_results() {
    let proved = |written: Vec<WrittenVariable>| {
        let candidate = Candidate { needs_comparison: true, ..counting("only_counts", written.clone()) };
        outcomes(&mut start(1 << 30), &counting("only_counts", written), &[candidate]).remove(0)
    };
    let uncompared = variables(Scalar::F32).into_iter().map(|variable| WrittenVariable { check: None, ..variable });
    assert_eq!(proved(variables(Scalar::F32)), "timed");
    for written in [vec![], uncompared.collect()] {
        assert!(proved(written).contains("writes no compared buffer or variable"));
    }
}

#[test]
fn code_without_a_variable_is_launched_without_it() {
    let without =
        |kernel: &str| Candidate { cubin: Arc::from(&b".version"[..]), ..counting(kernel, variables(Scalar::F32)) };
    let said = outcomes(&mut start(1 << 30), &counting("copies", variables(Scalar::F32)), &[without("copies")]);
    assert_eq!(said, ["timed"]);
    let said = outcomes(&mut start(1 << 30), &counting("counts", variables(Scalar::F32)), &[without("copies")]);
    assert!(said[0].contains("`ns::total` has another size or type than the baseline's"), "{said:?}");
}
