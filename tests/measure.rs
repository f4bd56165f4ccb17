//! Measuring without a GPU: the child answers from recorded timings, everything else is what runs with one.

use nvtune::measure::compare::{Tolerance, compare};
use nvtune::measure::verdict::{MINIMUM_GAIN, Verdict, faster};
use nvtune::measure::{Candidate, Error, Measurer, Options, Outcome, Plan, Process, Reason, Timing, split};
use nvtune::space::Launch;
use nvtune::workload::{Argument, Buffer, Element, Fill, Scalar, Workload};
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A recording in a folder of its own, and the options that start a child on it.
struct Recorded {
    folder: tempfile::TempDir,
}

impl Recorded {
    fn new(recording: &str) -> Recorded {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("recording.json"), recording).unwrap();
        Recorded { folder }
    }

    fn options(&self) -> Options {
        Options {
            program: Some(PathBuf::from(env!("CARGO_BIN_EXE_nvtune"))),
            replay: Some(self.folder.path().join("recording.json")),
            ..Options::default()
        }
    }

    fn start(&self) -> Process {
        Process::start(self.options()).unwrap()
    }
}

fn workload() -> Arc<Workload> {
    Arc::new(Workload {
        arguments: vec![Argument::Scalar(vec![1, 0, 0, 0]), Argument::Buffer(0)],
        buffers: vec![Buffer {
            name: "y".to_owned(),
            element: Element { scalar: Scalar::F32, lanes: 1 },
            count: 1024,
            fill: Fill::Random { lo: 0.0, hi: 1.0 },
            seed: 1,
        }],
        symbols: vec![],
        checks: None,
    })
}

/// A candidate of 128 threads, told apart by its label.
fn candidate(label: &str) -> Candidate {
    Candidate {
        id: 0,
        label: label.to_owned(),
        cubin: Arc::from(&b"\x7fELF"[..]),
        kernel: "saxpy".to_owned(),
        launch: Launch { grid: [8, 1, 1], block: [128, 1, 1], shared: 0, carveout: None },
        workload: workload(),
    }
}

fn plan() -> Plan {
    Plan { rounds: 5, patience_s: 0.3, ..Plan::default() }
}

/// What came of each candidate, in short: the samples' number and median, or the reason.
fn time(process: &mut Process, labels: &[&str], plan: &Plan) -> Vec<String> {
    let candidates: Vec<_> = labels.iter().map(|label| candidate(label)).collect();
    let timings = process.time(&candidate("default"), &candidates, plan).unwrap();
    assert!(timings.baseline.samples_us.len() >= plan.rounds as usize);
    let short = |outcome: Outcome| match outcome {
        Outcome::Timed(timing) => {
            format!("{} x {:.1}", timing.samples_us.len(), timing.median_us)
        }
        Outcome::Refused(reason) => reason.to_string(),
        Outcome::Skipped => "skipped".to_owned(),
    };
    timings.candidates.into_iter().map(short).collect()
}

#[test]
fn candidates_are_timed_and_slow_ones_dropped_after_a_sample() {
    let recorded = Recorded::new(
        r#"{
          "device": {"name": "NVIDIA H200", "compute_capability": 90},
          "entries": [
            {"label": "cap=32", "time_us": 90, "spread": 0.0001},
            {"label": "cap=16", "time_us": 250},
            {"label": "cap=24", "refused": {"too_many_resources": {"what": "too many registers"}}},
            {"block": [128, 1, 1], "kernel": "saxpy", "time_us": 100}
          ]}"#,
    );
    let mut process = recorded.start();
    assert_eq!(process.device().name, "NVIDIA H200");
    assert_eq!(process.device().compute_capability, 90);
    let labels = ["cap=32 x=1", "cap=16", "cap=24", "cap=0"];
    assert_eq!(time(&mut process, &labels, &plan()), ["5 x 90.0", "1 x 250.0", "too many registers", "5 x 100.0"]);

    let rounds = process.duel(&[candidate("default"), candidate("cap=24"), candidate("cap=32")], 12).unwrap();
    let [Some(baseline), None, Some(challenger)] = rounds.as_slice() else {
        panic!("{rounds:?}");
    };
    assert_eq!((baseline.len(), challenger.len()), (12, 12));
    assert!(matches!(
        faster(baseline, challenger),
        Verdict::Faster { ratio } if (ratio - 100.0 / 90.0).abs() < 0.02
    ));
}

#[test]
fn short_kernels_get_more_samples() {
    let recorded = Recorded::new(r#"{"entries": [{"time_us": 5}]}"#);
    assert_eq!(time(&mut recorded.start(), &["a"], &plan()), ["15 x 5.0"]);
}

#[test]
fn a_spent_budget_skips_what_is_left() {
    let recorded = Recorded::new(r#"{"entries": [{"time_us": 50}]}"#);
    let plan = Plan { budget_s: 0.0, rounds: 1, ..plan() };
    assert_eq!(time(&mut recorded.start(), &["a", "b"], &plan), ["skipped", "skipped"]);
}

#[test]
fn what_takes_the_child_down_is_refused_by_name_and_the_rest_goes_on() {
    let recorded = Recorded::new(
        r#"{"entries": [
            {"label": "dies", "fault": "die"},
            {"label": "hangs", "fault": "hang"},
            {"label": "babbles", "fault": "garbage"},
            {"label": "faults", "refused": {"faulted": {"error": "CUDA_ERROR_ILLEGAL_ADDRESS"}}},
            {"time_us": 100}
          ]}"#,
    );
    let mut process = recorded.start();
    let labels = ["a", "dies", "b", "hangs", "babbles", "c", "faults", "d"];
    let outcomes = time(&mut process, &labels, &plan());
    let samples = outcomes.iter().filter(|o| o.ends_with(" x 100.0")).count();
    assert_eq!(samples, 4, "{outcomes:?}");
    assert_eq!(outcomes[1], "the measuring process died while it ran: exit status: 9: recorded death");
    assert_eq!(outcomes[3], "did not end within 0.3 s");
    assert!(outcomes[4].starts_with(r#"the measuring process died while it ran: it says "Segmenta"#), "{outcomes:?}");
    assert_eq!(outcomes[6], "crashed on the GPU: CUDA_ERROR_ILLEGAL_ADDRESS");

    let rounds = process.duel(&["a", "dies", "b"].map(candidate), 3).unwrap();
    let lengths: Vec<_> = rounds.iter().map(|r| r.as_ref().map(Vec::len)).collect();
    assert_eq!(lengths, [Some(3), None, Some(3)]);
}

#[test]
fn a_baseline_that_cannot_run_is_an_error() {
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
        let recorded = Recorded::new(&format!(r#"{{"entries": [{entry}]}}"#));
        let error = recorded.start().time(&candidate("default"), &[], &plan()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_process_that_is_no_nvtune_is_told_apart() {
    fn run(recording: &str, change: impl FnOnce(&mut Options)) -> String {
        let recorded = Recorded::new(recording);
        let mut options = recorded.options();
        options.start_limit = Some(Duration::from_millis(300));
        change(&mut options);
        let begin = Instant::now();
        let error = Process::start(options).err().expect(recording).to_string();
        assert!(begin.elapsed() < Duration::from_secs(2), "{error}");
        let program = env!("CARGO_BIN_EXE_nvtune");
        let path = recorded.folder.path().to_str().unwrap();
        error.replace(program, "NVTUNE").replace(path, "DIR")
    }
    let command = "`NVTUNE measure --replay DIR/recording.json`";
    for (start, expected) in [
        ("no-device", "no GPU to measure on: as recorded".to_owned()),
        ("die", format!("the measuring process {command} died (exit status: 9: recorded death)")),
        ("hang", format!("the measuring process {command} said nothing for 0.3 s")),
        ("version", format!("{command} is another version of nvtune: it says nvtune-measure 0, not nvtune-measure 1")),
    ] {
        let recording = format!(r#"{{"start": "{start}", "entries": []}}"#);
        assert_eq!(run(&recording, |_| {}), expected);
    }
    assert_eq!(
        run("{", |_| {}),
        format!(
            "the measuring process {command} died (exit status: 2: nvtune measure: DIR/recording.json: EOF while parsing an object at line 1 column 1)"
        )
    );
    assert_eq!(
        run("", |options| {
            options.replay = None;
            options.program = Some(PathBuf::from("/bin/echo"));
        }),
        r#"`/bin/echo measure` is no nvtune, it says "measure""#
    );
    assert_eq!(
        run("", |options| options.program = Some("/nowhere/nvtune".into())),
        "cannot start the measuring process `/nowhere/nvtune measure --replay DIR/recording.json`: No such file or directory (os error 2)"
    );
}

#[test]
fn what_a_login_shell_says_first_is_passed_over() {
    let recorded = Recorded::new(r#"{"start": "banner", "entries": [{"time_us": 30}]}"#);
    assert_eq!(time(&mut recorded.start(), &["a"], &plan()), ["5 x 30.0"]);
}

#[test]
fn a_runner_is_put_before_the_command() {
    let recorded = Recorded::new(r#"{"entries": [{"time_us": 30}]}"#);
    let mut options = recorded.options();
    options.runner = split("/usr/bin/env 'NVTUNE_TEST_WORD=a b'").unwrap();
    let mut process = Process::start(options.clone()).unwrap();
    assert_eq!(time(&mut process, &["a"], &plan()), ["5 x 30.0"]);

    options.runner = split("/nowhere/ssh gpu01").unwrap();
    assert!(matches!(Process::start(options), Err(Error::Start { .. })));
}

#[test]
fn without_a_driver_there_is_no_device_and_it_takes_no_time() {
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
fn the_child_ends_with_its_standard_input_and_leaves_no_zombie() {
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

    // A caller that is killed has no time to end the child; the end of its pipe does, also while the child hangs.
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
fn a_workload_that_cannot_be_sent_is_an_error() {
    let recorded = Recorded::new(r#"{"entries": [{"time_us": 30}]}"#);
    let mut unsendable = candidate("default");
    Arc::make_mut(&mut unsendable.workload).buffers[0].fill = Fill::Constant(f64::INFINITY);
    let error = recorded.start().time(&unsendable, &[], &plan()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot be sent to the measuring process: a buffer's contents or tolerance is not a finite number"
    );
}

#[test]
fn median_and_spread() {
    for (samples, median, spread) in
        [(vec![4.0], 4.0, 0.0), (vec![3.0, 1.0], 2.0, 0.0), (vec![9.0, 10.0, 11.0, 10.0, 100.0], 10.0, 0.1)]
    {
        let timing = Timing::new(samples.clone()).unwrap();
        assert_eq!(timing.median_us, median, "{samples:?}");
        assert!((timing.spread - spread).abs() < 1e-9, "{samples:?}");
        assert_eq!(timing.samples_us, samples);
    }
    assert_eq!(Timing::new(vec![]), None);
}

/// Bytes of numbers.
trait Bytes {
    fn bytes(&self) -> Vec<u8>;
}

macro_rules! bytes {
    ($($type:ty),*) => {$(
        impl Bytes for [$type] {
            fn bytes(&self) -> Vec<u8> {
                self.iter().flat_map(|value| value.to_le_bytes()).collect()
            }
        }
    )*};
}
bytes!(i8, u16, i32, i64, u64, f32, f64);

/// Compares as without a `check` clause; what differs, in short.
fn differs(scalar: Scalar, lanes: u8, expected: Vec<u8>, got: Vec<u8>) -> String {
    let element = Element { scalar, lanes };
    let tolerance = Tolerance::default_for(scalar);
    match compare("y", &element, tolerance, &expected, &got) {
        None => "same".to_owned(),
        Some(d) => format!("{} of {}: [{}].{} {} {}", d.count, d.of, d.index, d.lane, d.expected, d.got),
    }
}

#[test]
fn results_agree_by_type() {
    use Scalar::*;
    let nan = f32::NAN;
    let inf = f32::INFINITY;
    type Row = (Scalar, u8, Vec<u8>, Vec<u8>, &'static str);
    #[rustfmt::skip]
    let table: &[Row] = &[
        (I32, 1, [1i32, -2].bytes(), [1i32, -2].bytes(), "same"),
        (I32, 1, [1i32, -2].bytes(), [1i32, -3].bytes(), "1 of 2: [1].0 -2 -3"),
        (U64, 1, [u64::MAX].bytes(), [u64::MAX - 1].bytes(), "1 of 1: [0].0 18446744073709551615 18446744073709551614"),
        (I64, 1, [i64::MIN].bytes(), [i64::MIN + 1].bytes(), "1 of 1: [0].0 -9223372036854775808 -9223372036854775807"),
        (I8, 4, [1i8, 2, 3, 4, 5, 6, 7, 8].bytes(), [1i8, 2, 3, 4, 5, 6, -7, 0].bytes(), "1 of 2: [1].2 7 -7"),
        (F32, 1, [1f32, 100.0].bytes(), [1.00009f32, 100.009].bytes(), "same"),
        (F32, 1, [1f32, 100.0].bytes(), [1.0003f32, 100.0].bytes(), "1 of 2: [0].0 1.0 1.0003"),
        // A sum that cancels may differ by rounding.
        (F32, 1, [1f32, 1e-7].bytes(), [1f32, 1e-6].bytes(), "same"),
        (F32, 1, [1f32, 1e-7].bytes(), [1f32, 2e-6].bytes(), "1 of 2: [1].0 1e-7 2e-6"),
        (F64, 1, [0f64].bytes(), [-1e-6f64].bytes(), "same"),
        (F32, 1, [0f32, 0.0].bytes(), [0f32, -0.0].bytes(), "same"),
        (F32, 1, [nan, 1.0].bytes(), [-nan, 1.0].bytes(), "same"),
        (F32, 1, [nan, 1.0].bytes(), [0f32, 1.0].bytes(), "1 of 2: [0].0 NaN 0.0"),
        (F32, 1, [1f32, 1.0].bytes(), [nan, 1.0].bytes(), "1 of 2: [0].0 1.0 NaN"),
        (F32, 1, [inf, -inf].bytes(), [inf, inf].bytes(), "1 of 2: [1].0 -inf inf"),
        (F32, 1, [inf, f32::MAX].bytes(), [inf, inf].bytes(), "1 of 2: [1].0 3.4028235e38 inf"),
        (F64, 1, [1f64].bytes(), [1.00009f64].bytes(), "same"),
        (F64, 2, [1f64, 2.0].bytes(), [1f64, 2.1].bytes(), "1 of 1: [0].1 2.0 2.1"),
        // 1 and its neighbour; 1 and 1.004; 1 and 1.01; the smallest subnormal and 0.
        (F16, 1, [0x3c00u16].bytes(), [0x3c01u16].bytes(), "same"),
        (F16, 1, [0x3c00u16].bytes(), [0x3c04u16].bytes(), "same"),
        (F16, 1, [0x3c00u16].bytes(), [0x3c0au16].bytes(), "1 of 1: [0].0 1.0 1.0097656"),
        (F16, 1, [0x3c00u16, 1].bytes(), [0x3c00u16, 0].bytes(), "same"),
        (F16, 1, [0x7c00u16, 0x7e00].bytes(), [0x7c00u16, 0x7c00].bytes(), "1 of 2: [1].0 NaN inf"),
        (Bf16, 1, [0x3f80u16].bytes(), [0x3f81u16].bytes(), "same"),
        (Bf16, 1, [0x3f80u16].bytes(), [0x3f90u16].bytes(), "1 of 1: [0].0 1.0 1.125"),
        (F32, 1, [1f32, 1.0].bytes(), [1f32].bytes(), "1 of 2: [1].0 present missing"),
        (F32, 1, vec![], vec![], "same"),
    ];
    for (scalar, lanes, expected, got, verdict) in table {
        let said = differs(*scalar, *lanes, expected.clone(), got.clone());
        assert_eq!(said, *verdict, "{scalar:?} {expected:?} {got:?}");
    }
}

#[test]
fn large_results_are_compared_whole_and_in_order() {
    let expected: Vec<i32> = (0..2_000_000).collect();
    let mut got = expected.clone();
    for index in [700_001, 1_999_999] {
        got[index] = -1;
    }
    assert_eq!(differs(Scalar::I32, 1, expected.bytes(), got.bytes()), "2 of 2000000: [700001].0 700001 -1");
}

#[test]
fn verdicts() {
    let steady = |us: f64, n: usize| vec![us; n];
    let noisy = |us: f64, n: usize| -> Vec<f64> {
        (0..n).map(|i| us * (1.0 + 0.05 * ((i * 7 % 11) as f64 / 5.0 - 1.0))).collect()
    };
    let mut drifting: (Vec<f64>, Vec<f64>) = (vec![], vec![]);
    for i in 0..20 {
        let clock = 1.0 + 0.1 * f64::from(i);
        drifting.0.push(100.0 * clock);
        drifting.1.push(95.0 * clock);
    }
    for (case, baseline, challenger, expected) in [
        ("clear gain", steady(100.0, 10), steady(80.0, 10), "faster 1.25"),
        ("clear loss", steady(100.0, 10), steady(120.0, 10), "slower 0.83"),
        ("the same", steady(100.0, 10), steady(100.0, 10), "slower 1.00"),
        ("gain below the minimum", steady(100.0, 10), steady(99.5, 10), "slower 1.01"),
        ("too few pairs", steady(100.0, 7), steady(80.0, 7), "ambiguous 1.25"),
        ("no pairs", vec![], vec![], "ambiguous 0.00"),
        ("drift that both see", drifting.0, drifting.1, "faster 1.05"),
        ("noise as large as the gain", noisy(100.0, 9), steady(98.5, 9), "ambiguous 1.02"),
        ("one wild sample", [steady(100.0, 15), vec![1e6]].concat(), steady(100.0, 16), "slower 1.00"),
        ("nonsense is left out", vec![0.0, f64::NAN, 1.0], vec![1.0; 3], "ambiguous 1.00"),
    ] {
        let said = match faster(&baseline, &challenger) {
            Verdict::Faster { ratio } => format!("faster {ratio:.2}"),
            Verdict::Slower { ratio } => format!("slower {ratio:.2}"),
            Verdict::Ambiguous { ratio } => format!("ambiguous {ratio:.2}"),
        };
        assert_eq!(said, expected, "{case}");
    }
}

proptest! {
    /// Whatever the samples: not both are faster than the other, the scale of time does not matter, and a gain that is claimed
    /// is one.
    #[test]
    fn verdicts_hold_together(pairs in prop::collection::vec((1.0f64..2.0, 1.0f64..2.0), 0..60), scale in 0.1f64..10.0) {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let scaled = |samples: &[f64]| -> Vec<f64> { samples.iter().map(|us| us * scale).collect() };
        let verdict = faster(&a, &b);
        let kind = std::mem::discriminant;
        prop_assert_eq!(kind(&verdict), kind(&faster(&scaled(&a), &scaled(&b))));
        if let Verdict::Faster { ratio } = verdict {
            prop_assert!(ratio >= MINIMUM_GAIN);
            let slower = matches!(faster(&b, &a), Verdict::Slower { .. });
            prop_assert!(slower);
        }
    }

    /// Two samplings of one distribution are hardly ever told apart.
    #[test]
    fn equals_are_not_faster(noise in prop::collection::vec((0.0f64..1.0, 0.0f64..1.0), 30)) {
        let (a, b): (Vec<f64>, Vec<f64>) =
            noise.into_iter().map(|(x, y)| (100.0 + 0.5 * x, 100.0 + 0.5 * y)).unzip();
        let claimed = matches!(faster(&a, &b), Verdict::Faster { .. });
        prop_assert!(!claimed);
    }
}

#[test]
fn reasons_read_as_sentences() {
    use nvtune::measure::Difference;
    let difference = Difference {
        buffer: "y".to_owned(),
        index: 7,
        lane: 2,
        expected: "1.5".to_owned(),
        got: "NaN".to_owned(),
        count: 3,
        of: 1024,
    };
    assert_eq!(
        Reason::Differs(difference).to_string(),
        "3 of 1024 elements of `y` differ from the baseline's: y[7], lane 2 is NaN, not 1.5"
    );
}
