//! Which GPU is measured on, and how it is meanwhile.

use super::recorded::{Recorded, candidate, plan, time};
use nvtune::gpu::Conditions;
use nvtune::measure::{Caches, Error, Measurer, Options, Outcome, Plan, Process, ProcessPool};
use std::time::Duration;

#[test]
fn candidates_are_timed_by_several_launches_where_the_baseline_is_short() {
    // By the baseline: all candidates are timed alike.
    for (baseline, expected) in [(19.0, "5 x 4.0"), (21.0, "5 x 5.0")] {
        let recorded = Recorded::new(&format!(
            r#"{{"entries": [{{"label": "a", "time_us": 5, "short_us": 4}}, {{"time_us": {baseline}, "short_us": 18}}]}}"#
        ));
        let mut process = recorded.start();
        assert_eq!(time(&mut process, &["a"], &plan()), [expected]);
        let rounds = process.time_paired(&["default", "a"].map(candidate), 3, Caches::Cold).unwrap();
        let expected = if baseline < 20.0 { 4.0 } else { 5.0 };
        assert_eq!(rounds[1], Some(vec![expected; 3]));
    }
}

#[test]
fn round_on_a_throttled_gpu_is_repeated() {
    let recorded = Recorded::new(
        r#"{"conditions": [
            {"sm_mhz": 1980, "temperature_c": 50},
            {"sm_mhz": 1200, "temperature_c": 90, "throttled": ["hardware thermal slowdown"]},
            {"sm_mhz": 1950, "memory_mhz": 2600, "temperature_c": 70}
          ], "entries": [{"time_us": 30}]}"#,
    );
    let mut process = recorded.start();
    assert_eq!(time(&mut process, &["a"], &plan()), ["5 x 30.0"]);
    let conditions = process.conditions();
    assert_eq!((conditions.rounds, conditions.repeated, conditions.doubtful), (5, 1, 0));
    assert_eq!((conditions.sm_mhz, conditions.memory_mhz, conditions.temperature_c), ((1200, 1980), (2600, 2600), 90));
    assert_eq!(conditions.throttled, ["hardware thermal slowdown"]);
    assert_eq!(process.conditions(), Conditions::default(), "they are told once");
}

#[test]
fn rounds_on_an_always_throttled_gpu_are_doubtful() {
    let always = r#"{"conditions": [{"throttled": ["power cap"]}], "entries": [{"time_us": 30}]}"#;
    let mut process = Recorded::new(always).start();
    assert_eq!(time(&mut process, &["a"], &plan()), ["5 x 30.0"]);
    let conditions = process.conditions();
    assert_eq!((conditions.rounds, conditions.repeated, conditions.doubtful), (5, 1, 5));
}

/// UUIDs that no other test uses, and no other run of this test.
fn uuids<const N: usize>() -> [String; N] {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    std::array::from_fn(|n| format!("GPU-test-{}-{now}-{n}", std::process::id()))
}

fn on_gpus(uuids: &[String], entries: &str) -> Recorded {
    let list = serde_json::to_string(uuids).unwrap();
    Recorded::new(&format!(r#"{{"device": {{"name": "NVIDIA H200"}}, "gpus": {list}, "entries": [{entries}]}}"#))
}

/// A process that waits this long for a GPU.
fn waiting(recorded: &Recorded, milliseconds: u64) -> Process {
    Process::start(Options { wait: Some(Duration::from_millis(milliseconds)), ..recorded.options() }).unwrap()
}

/// Recordings that say in one file what was run.
struct Logged(tempfile::TempDir);

impl Logged {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn log(&self) -> std::path::PathBuf {
        self.0.path().join("log")
    }

    fn on(&self, uuids: &[String]) -> Recorded {
        let (list, log) = (serde_json::to_string(uuids).unwrap(), self.log().display().to_string());
        Recorded::new(&format!(
            r#"{{"device": {{"name": "NVIDIA H200"}}, "gpus": {list}, "log": "{log}", "entries": [{{"time_us": 30}}]}}"#
        ))
    }

    /// Sends the baseline ahead until it has been run `count` times. Who has just let go of the GPU, or looked at it, may still have
    /// it: then it is not waited for, and is asked for again.
    fn run_ahead(&self, process: &mut Process, count: usize) {
        let begin = std::time::Instant::now();
        while self.runs() < count && begin.elapsed() < Duration::from_secs(20) {
            process.prepare_baseline(&candidate("default"));
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(self.runs(), count);
    }

    /// Returns how often the baseline was run for its results.
    fn runs(&self) -> usize {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        text.lines().filter(|line| *line == "baseline default").count()
    }
}

#[test]
fn process_has_a_gpu_alone_until_it_rests() {
    let recorded = on_gpus(&uuids::<1>(), r#"{"time_us": 30}"#);
    let mut first = recorded.start();
    time(&mut first, &["a"], &plan());
    let mut second = waiting(&recorded, 100);
    let error = second.time(&candidate("default"), &[], &plan()).unwrap_err();
    let expected = "others have measured on the NVIDIA H200 for 0 s (NVTUNE_WAIT says how long to wait for it)";
    assert_eq!(error.to_string(), expected);
    first.release_gpu();
    assert_eq!(time(&mut second, &["a"], &plan()), ["5 x 30.0"]);
}

#[test]
fn waiting_for_a_gpu_counts_against_no_budget() {
    let recorded = on_gpus(&uuids::<1>(), r#"{"time_us": 30}"#);
    let mut first = recorded.start();
    time(&mut first, &["a"], &plan());
    let mut second = waiting(&recorded, 20_000);
    let measuring = std::thread::spawn(move || {
        let plan = Plan { budget_s: 0.2, rounds: 2, ..plan() };
        (time(&mut second, &["a", "b"], &plan), second.waited())
    });
    std::thread::sleep(Duration::from_millis(500));
    // The death of a process frees its GPU.
    drop(first);
    let (outcomes, waited) = measuring.join().unwrap();
    assert_eq!(outcomes, ["2 x 30.0", "2 x 30.0"]);
    assert!((0.3..10.0).contains(&waited.as_secs_f64()), "{waited:?}");
}

#[test]
fn second_process_takes_the_second_gpu() {
    let uuids = uuids::<2>();
    let recorded = on_gpus(&uuids, r#"{"time_us": 30}"#);
    let (mut a, mut b) = (recorded.start(), recorded.start());
    time(&mut a, &["a"], &plan());
    time(&mut b, &["a"], &plan());
    assert_eq!(a.gpus(), 2);
    let mut used = [a.device().uuid.clone(), b.device().uuid.clone()];
    used.sort();
    assert_eq!(used, uuids);
}

#[test]
fn baseline_that_is_sent_ahead_is_run_once() {
    let logged = Logged::new();
    let mut process = waiting(&logged.on(&uuids::<1>()), 1000);
    logged.run_ahead(&mut process, 1);
    assert_eq!(time(&mut process, &["a"], &plan()), ["5 x 30.0"]);
    assert_eq!(logged.runs(), 1, "its results are there");
}

#[test]
fn baseline_is_not_run_ahead_on_the_gpu_of_another_process() {
    let logged = Logged::new();
    let recorded = logged.on(&uuids::<1>());
    let (mut process, mut other) = (waiting(&recorded, 1000), waiting(&recorded, 1000));
    logged.run_ahead(&mut process, 1);
    assert_eq!(time(&mut process, &["a"], &plan()), ["5 x 30.0"]);
    // Nothing is run, and nobody waits.
    other.prepare_baseline(&candidate("default"));
    let busy = other.time(&candidate("default"), &[], &plan()).unwrap_err();
    assert!(matches!(busy, Error::Busy { .. }), "{busy}");
    process.release_gpu();
    assert_eq!(time(&mut other, &["a"], &plan()), ["5 x 30.0"]);
    assert_eq!(logged.runs(), 2);
}

#[test]
fn results_of_a_baseline_are_let_go_of_with_a_rest() {
    let logged = Logged::new();
    let mut process = waiting(&logged.on(&uuids::<1>()), 1000);
    logged.run_ahead(&mut process, 1);
    process.release_gpu();
    assert_eq!(time(&mut process, &["a"], &plan()), ["5 x 30.0"]);
    assert_eq!(logged.runs(), 2);
}

#[test]
fn gpu_of_a_baseline_that_was_sent_ahead_is_not_kept_from_others() {
    let logged = Logged::new();
    let [first, second] = uuids();
    let (one, both) = (logged.on(std::slice::from_ref(&first)), logged.on(&[first, second]));
    let (mut process, mut other) = (waiting(&both, 1000), waiting(&one, 1000));
    logged.run_ahead(&mut process, 1);
    assert_eq!(time(&mut other, &["a"], &plan()), ["5 x 30.0"]);
    // Who has to take another GPU begins there.
    assert_eq!(time(&mut process, &["a"], &plan()), ["5 x 30.0"]);
    assert_eq!(logged.runs(), 3);
}

/// Claims a GPU that is free; who has just looked at it, or let go of it, may still have it.
fn claim(process: &mut Process) {
    let begin = std::time::Instant::now();
    while !process.claim_free().unwrap() {
        assert!(begin.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn paused_gpu_is_for_others_and_keeps_the_baselines_results() {
    let logged = Logged::new();
    let recorded = logged.on(&uuids::<1>());
    let (mut process, mut other) = (recorded.start(), recorded.start());
    claim(&mut process);
    assert_eq!(time(&mut process, &["a"], &plan()), ["5 x 30.0"]);
    assert!(!other.claim_free().unwrap(), "it is the first one's");
    process.pause();
    claim(&mut other);
    assert!(!process.claim_free().unwrap());
    assert_eq!(time(&mut other, &["a"], &plan()), ["5 x 30.0"]);
    assert_eq!(logged.runs(), 2);
    other.release_gpu();
    assert_eq!(time(&mut process, &["a", "b"], &plan()), ["5 x 30.0"; 2]);
    assert_eq!(logged.runs(), 2, "its results are there");
}

#[test]
fn process_that_goes_on_with_another_gpu_is_given_all_there() {
    let logged = Logged::new();
    let mut process = logged.on(&uuids::<2>()).start();
    claim(&mut process);
    let before = process.device().uuid.clone();
    assert_eq!(time(&mut process, &["a"], &plan()), ["5 x 30.0"]);
    process.pause();
    let taken = logged.on(std::slice::from_ref(&before));
    let mut other = taken.start();
    claim(&mut other);
    assert_eq!(time(&mut process, &["a", "b"], &plan()), ["5 x 30.0"; 2]);
    assert_ne!(process.device().uuid, before);
    assert_eq!(logged.runs(), 2);
}

#[test]
fn pool_takes_all_free_gpus_and_scales_their_times_by_the_baseline() {
    let uuids = uuids::<3>();
    // The second GPU is 10% slower; a launch takes a while, so that others are worth calling.
    let entries = format!(
        r#"{{"gpu": "{0}", "label": "a", "time_us": 40, "pause_ms": 20}}, {{"gpu": "{0}", "time_us": 50, "pause_ms": 20}},
           {{"gpu": "{1}", "label": "a", "time_us": 44, "pause_ms": 20}}, {{"gpu": "{1}", "time_us": 55, "pause_ms": 20}}"#,
        uuids[0], uuids[1]
    );
    let recorded = on_gpus(&uuids[..2], &entries);
    let labels: Vec<String> = (0..60).map(|n| format!("a n={n}")).collect();
    let candidates: Vec<_> = labels.iter().map(|label| candidate(label)).collect();
    let plan = Plan { rounds: 3, patience_s: 5.0, ..Plan::default() };
    let mut pool = ProcessPool::start(recorded.options()).unwrap();
    let timings = pool.time(&candidate("default"), &candidates, &plan).unwrap();
    assert_eq!(timings.candidates.len(), 60);
    assert_eq!(timings.baseline.median_us, 50.0);
    for outcome in &timings.candidates {
        let Outcome::Timed(timing) = outcome else { panic!("{outcome:?}") };
        assert!((timing.median_us - 40.0).abs() < 1e-9, "{timing:?}");
    }
    // Both are in use now, and free when the pool rests.
    let mut late = Process::start(Options { wait: Some(Duration::ZERO), ..recorded.options() }).unwrap();
    assert!(matches!(late.time(&candidate("default"), &[], &plan), Err(Error::Busy { .. })));
    pool.release_gpu();
    let mut late = recorded.start();
    assert!(late.time(&candidate("default"), &[], &plan).is_ok());
    // One that others have is done without.
    assert_eq!(pool.time(&candidate("default"), &candidates[..2], &plan).unwrap().candidates.len(), 2);
}
