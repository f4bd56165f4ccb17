//! How fast the model is: configurations scored in a second, and a variant's machine code read, laid out and replayed.
//!
//! In: the spaces recorded in `kernels/results/` (or the records named). Out: a table and two lines. All of it runs on one core; best of
//! several runs, for other programs can only slow it down. No GPU, no toolkit.

use nvtune::model::{Analysis, Inputs, score_configuration};
use nvtune::ptx::Module;
use nvtune::record::{RecordedSpace, SPACE_EXTENSION};
use nvtune::sass::Cubin;
use nvtune::sim;
use nvtune::tune::recorded_scoring_input;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const RUNS: u32 = 20;
/// Configurations scored between two looks at the clock.
const SCORED: usize = 2000;

fn records() -> Vec<PathBuf> {
    let named: Vec<PathBuf> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).map(PathBuf::from).collect();
    if !named.is_empty() {
        return named;
    }
    // What was timed on another GPU is the same code.
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/results/h200");
    let entries = std::fs::read_dir(results).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| path.to_string_lossy().ends_with(SPACE_EXTENSION));
    found.sort();
    found
}

/// The shortest of some runs.
fn best<T>(mut work: impl FnMut() -> T) -> Duration {
    let time = |_| {
        let begin = Instant::now();
        black_box(work());
        begin.elapsed()
    };
    (0..RUNS).map(time).min().unwrap_or_default()
}

fn main() {
    println!("kernel               instructions  read+replay, ms  for 1,000, ms  configurations/s");
    let (mut instructions, mut reading, mut scored, mut scoring, mut slowest) =
        (0, Duration::ZERO, 0, Duration::ZERO, 0.0_f64);
    for path in records() {
        let space = RecordedSpace::read(&path).unwrap_or_else(|error| panic!("{} {error}", path.display()));
        let input = recorded_scoring_input(&space).unwrap_or_else(|error| panic!("{} {error}", path.display()));
        let baseline = input.baseline;
        let code = &input.codes[*input.variants[baseline].as_ref().expect("a baseline with code")];
        let source = &input.sources[input.source_of[baseline]];
        let module = Arc::new(Module::parse(source.ptx.as_deref().expect("its PTX")).expect("PTX of the front end"));
        let workload = input.workloads[baseline].as_ref().expect("a workload");
        let limits = sim::Limits::default();
        let profile = sim::profile_entry(&module, &source.symbol, &input.launches[baseline], workload, &limits).ok();
        let analyse = || {
            let cubin = Cubin::parse(&code.cubin).expect("a cubin that was timed");
            Analysis::new(cubin.kernel(&code.symbol).expect("its kernel"), profile.as_ref())
        };
        let analysis = analyse();
        let read = best(analyse);
        let buffers: Vec<u64> =
            workload.buffers.iter().map(|buffer| buffer.count * buffer.element.size() as u64).collect();
        let launches = input.launches.iter().cycle().take(SCORED);
        let all = best(|| {
            let one = |launch| {
                score_configuration(&Inputs {
                    machine: &input.machine,
                    kernel: &analysis,
                    launch,
                    buffers: Some(&buffers),
                })
            };
            launches.clone().map(|launch| one(launch).predicted_us).sum::<f64>()
        });
        let count = analysis.code().len();
        let milliseconds = read.as_secs_f64() * 1e3;
        let per_second = SCORED as f64 / all.as_secs_f64();
        let each = milliseconds * 1e3 / count as f64;
        println!("{:20} {count:12} {milliseconds:16.3} {each:14.3} {per_second:17.0}", space.kernel);
        (instructions, reading) = (instructions + count, reading + read);
        (scored, scoring) = (scored + SCORED, scoring + all);
        slowest = slowest.max(each);
    }
    let each = reading.as_secs_f64() * 1e6 / instructions as f64;
    println!("a variant of 1,000 instructions is read and replayed in {each:.3} ms, {slowest:.3} ms at most");
    println!("{:.0} configurations are scored in a second", scored as f64 / scoring.as_secs_f64());
}
