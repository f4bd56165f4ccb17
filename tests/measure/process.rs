//! One measuring process: what it times, what takes it down, how it ends.

use super::recorded::{Recorded, candidate, plan, time};
use nvtune::measure::verdict::{Verdict, faster};
use nvtune::measure::{Caches, Error, Measurer, Outcome, Plan, Process, Trial};
use nvtune::workload::Fill;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A candidate that is faster than the baseline, one that is slower, and one that cannot be launched.
const REGISTER_CAPS: &str = r#"{
    "device": {"name": "NVIDIA H200", "compute_capability": 90},
    "entries": [
        {"label": "cap=32", "time_us": 90, "spread": 0.0001},
        {"label": "cap=16", "time_us": 250},
        {"label": "cap=24", "refused": {"too_many_resources": {"what": "too many registers"}}},
        {"block": [128, 1, 1], "kernel": "saxpy", "time_us": 100}
    ]
}"#;

/// Candidates that take the measuring process down in each way, or fault on the GPU.
const FAULTS: &str = r#"{"entries": [
    {"label": "dies", "fault": "die"},
    {"label": "hangs", "fault": "hang"},
    {"label": "babbles", "fault": "garbage"},
    {"label": "faults", "refused": {"faulted": {"error": "CUDA_ERROR_ILLEGAL_ADDRESS"}}},
    {"time_us": 100}
]}"#;

#[test]
fn slow_candidate_is_dropped_after_one_sample() {
    let recorded = Recorded::new(REGISTER_CAPS);
    let mut process = recorded.start();
    assert_eq!(process.device().name, "NVIDIA H200");
    assert_eq!(process.device().compute_capability, 90);
    let labels = ["cap=32 x=1", "cap=16", "cap=24", "cap=0"];
    assert_eq!(time(&mut process, &labels, &plan()), ["5 x 90.0", "1 x 250.0", "too many registers", "3 x 100.0"]);
}

#[test]
fn duel_leaves_out_a_refused_candidate() {
    let recorded = Recorded::new(REGISTER_CAPS);
    let contenders = ["default", "cap=24", "cap=32"].map(candidate);
    let rounds = recorded.start().time_paired(&contenders, 12, Caches::Cold).unwrap();
    let [Some(baseline), None, Some(challenger)] = rounds.as_slice() else {
        panic!("{rounds:?}");
    };
    // It is decided at the first look.
    assert_eq!((baseline.len(), challenger.len()), (12, 12));
    assert!(matches!(
        faster(baseline, challenger),
        Verdict::Faster { ratio } if (ratio - 100.0 / 90.0).abs() < 0.02
    ));
}

#[test]
fn times_are_shown_only_with_one_of_the_baseline() {
    let recorded = Recorded::new(r#"{"entries": [{"label": "slow", "time_us": 250}, {"time_us": 100}]}"#);
    let candidates = [candidate("slow"), candidate("as fast")];
    let mut shown = Vec::new();
    let on_progress = &mut |outcomes: &[Outcome]| {
        let samples = |outcome: &Outcome| match outcome {
            Outcome::Timed(timing) => timing.samples_us.len(),
            _ => 0,
        };
        shown.push(outcomes.iter().map(samples).collect::<Vec<_>>());
    };
    let trial = Trial { baseline: &candidate("default"), candidates: &candidates, plan: &plan() };
    recorded.start().time_with_progress(trial, on_progress).unwrap();
    // Nobody need wait for a third sample of what is too slow by the first, and its time is worth nothing without the unit.
    assert_eq!(shown, [[1, 1, 0], [2, 1, 0], [3, 1, 3], [4, 1, 4], [5, 1, 5]]);
}

#[test]
fn spent_budget_skips_the_remaining_candidates() {
    let recorded = Recorded::new(r#"{"entries": [{"time_us": 50}]}"#);
    let plan = Plan { budget_s: 0.0, rounds: 1, ..plan() };
    assert_eq!(time(&mut recorded.start(), &["a", "b"], &plan), ["skipped", "skipped"]);
}

#[test]
fn candidate_that_takes_the_process_down_is_refused_alone() {
    let recorded = Recorded::new(FAULTS);
    let mut process = recorded.start();
    let labels = ["a", "dies", "b", "hangs", "babbles", "c", "faults", "d"];
    let outcomes = time(&mut process, &labels, &plan());
    let samples = outcomes.iter().filter(|o| o.ends_with(" x 100.0")).count();
    assert_eq!(samples, 4, "{outcomes:?}");
    assert_eq!(outcomes[1], "the measuring process died while it ran: exit status: 9: recorded death");
    assert_eq!(outcomes[3], "did not end within 0.3 s");
    assert!(outcomes[4].starts_with(r#"the measuring process died while it ran: it says "Segmenta"#), "{outcomes:?}");
    assert_eq!(outcomes[6], "crashed on the GPU: CUDA_ERROR_ILLEGAL_ADDRESS");
}

#[test]
fn duel_goes_on_without_a_candidate_that_takes_the_process_down() {
    let recorded = Recorded::new(FAULTS);
    let rounds = recorded.start().time_paired(&["a", "dies", "b"].map(candidate), 3, Caches::Cold).unwrap();
    let lengths: Vec<_> = rounds.iter().map(|r| r.as_ref().map(Vec::len)).collect();
    assert_eq!(lengths, [Some(3), None, Some(3)]);
}

#[test]
fn baseline_that_cannot_run_is_an_error() {
    for (entry, expected) in [
        (
            r#"{"fault": "die"}"#,
            "the baseline cannot be measured: the measuring process died while it ran: exit status: 9: recorded death",
        ),
        (
            r#"{"refused": {"out_of_memory": {"bytes": 5}}}"#,
            "the baseline cannot be measured: its buffers (5 bytes) do not fit into the GPU's memory",
        ),
        (
            r#"{"label": "other", "time_us": 1}"#,
            "the measuring process failed: nothing is recorded for saxpy with default",
        ),
    ] {
        for is_ahead in [false, true] {
            let recorded = Recorded::new(&format!(r#"{{"entries": [{entry}]}}"#));
            let mut process = recorded.start();
            if is_ahead {
                process.prepare_baseline(&candidate("default"));
            }
            let error = process.time(&candidate("default"), &[], &plan()).unwrap_err();
            assert_eq!(error.to_string(), expected, "ahead: {is_ahead}");
        }
    }
}

#[test]
fn missing_driver_is_found_within_half_a_second() {
    let mut options = Recorded::new("{}").options();
    options.replay = None;
    let begin = Instant::now();
    match Process::start(options) {
        Err(Error::NoDevice(reason)) => {
            assert!(!reason.is_empty());
            assert!(begin.elapsed() < Duration::from_millis(500));
        }
        Ok(process) => assert!(process.device().compute_capability >= 50),
        Err(other) => panic!("{other}"),
    }
}

#[cfg(target_os = "linux")]
#[test]
fn process_that_is_dropped_while_it_hangs_leaves_no_zombie() {
    let recorded = Recorded::new(r#"{"entries": [{"label": "hangs", "fault": "hang"}, {"time_us": 100}]}"#);
    let own = std::process::id();
    let path = recorded.folder.path().to_str().unwrap().to_owned();
    let children = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter(|entry| {
                let read = |file: &str| {
                    let bytes = std::fs::read(entry.path().join(file)).unwrap_or_default();
                    String::from_utf8_lossy(&bytes).into_owned()
                };
                let parent = read("stat");
                let parent = parent.rsplit(')').next().and_then(|s| s.split_whitespace().nth(1));
                parent == Some(&own.to_string()) && read("cmdline").contains(&path)
            })
            .count()
    };
    let mut process = recorded.start();
    assert_eq!(children(), 1);
    assert_eq!(time(&mut process, &["hangs"], &plan()), ["did not end within 0.3 s"]);
    drop(process);
    assert_eq!(children(), 0);
}

/// A caller that is killed has no time to end the child: the end of its pipe does.
#[test]
fn hanging_process_ends_with_its_standard_input() {
    let recorded = Recorded::new(r#"{"start": "hang", "entries": []}"#);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_nvtune"))
        .args(["measure", "--replay"])
        .arg(recorded.folder.path().join("recording.json"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert!(child.try_wait().unwrap().is_none());
    drop(child.stdin.take());
    let begin = Instant::now();
    assert!(child.wait().unwrap().success());
    assert!(begin.elapsed() < Duration::from_secs(1));
}

#[test]
fn workload_with_an_infinite_fill_cannot_be_sent() {
    let recorded = Recorded::new(r#"{"entries": [{"time_us": 30}]}"#);
    let mut unsendable = candidate("default");
    Arc::make_mut(&mut unsendable.workload).buffers[0].fill = Fill::Constant(f64::INFINITY);
    let error = recorded.start().time(&unsendable, &[], &plan()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot be sent to the measuring process: a buffer's contents or tolerance is not a finite number"
    );
}
