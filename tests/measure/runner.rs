//! The measuring process behind a command that carries its streams.

use super::recorded::{Recorded, candidate, plan, time};
use nvtune::measure::{Error, Measurer, Options, Outcome, PROTOCOL_VERSION, Plan, Process, Reason, split};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The measuring process behind a pipe that breaks after so many bytes of what it says.
fn behind_a_pipe(recorded: &Recorded, bytes: usize) -> Options {
    let script = recorded.folder.path().join("pipe.sh");
    std::fs::write(&script, format!("#!/bin/sh\n\"$@\" | {{ dd bs=1 count={bytes} 2>/dev/null; kill -9 $$; }}\n"))
        .unwrap();
    Options {
        runner: vec!["/bin/sh".to_owned(), script.to_str().unwrap().to_owned()],
        start_limit: Some(Duration::from_millis(700)),
        silence: Some(Duration::from_millis(700)),
        ..recorded.options()
    }
}

#[test]
fn runner_that_breaks_at_any_byte_is_an_error_or_a_refused_candidate() {
    let recorded = Recorded::new(r#"{"entries": [{"time_us": 30}]}"#);
    let plan = Plan { rounds: 2, ..plan() };
    let (mut whole, mut ready) = (0, false);
    for bytes in (0..12_000).step_by(487) {
        let begin = Instant::now();
        let Ok(mut process) = Process::start(behind_a_pipe(&recorded, bytes)) else {
            assert!(!ready, "{bytes} bytes are enough to say that it is ready");
            continue;
        };
        ready = true;
        match process.time(&candidate("default"), &["a", "b"].map(candidate), &plan) {
            Ok(timings) => {
                let died =
                    |outcome: &Outcome| matches!(outcome, Outcome::Refused(Reason::Died { .. } | Reason::Hung { .. }));
                let timed = |outcome: &Outcome| matches!(outcome, Outcome::Timed(_));
                assert!(timings.candidates.iter().all(|outcome| died(outcome) || timed(outcome)), "{timings:?}");
                whole += usize::from(timings.candidates.iter().all(timed));
            }
            Err(
                Error::Died { .. } | Error::Silent { .. } | Error::Baseline(Reason::Died { .. } | Reason::Hung { .. }),
            ) => {}
            Err(other) => panic!("after {bytes} bytes: {other}"),
        }
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
    assert!(whole > 0, "the last ones are long enough for all");
}

#[test]
fn failed_start_is_told_with_its_cause() {
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
        (
            "version",
            format!(
                "{command} speaks version 1 of the measuring protocol (\"nvtune-measure 1\"), this is nvtune {} with version {PROTOCOL_VERSION}: install the same nvtune at both ends",
                env!("CARGO_PKG_VERSION")
            ),
        ),
    ] {
        let recording = format!(r#"{{"start": "{start}", "entries": []}}"#);
        assert_eq!(run(&recording, |_| {}), expected);
    }
    assert_eq!(
        run("{", |_| {}),
        format!(
            "the measuring process {command} died (exit status: 2: nvtune measure: DIR/recording.json: EOF while parsing an object at line 1 column 1 [N0093])"
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
fn output_of_a_login_shell_before_the_protocol_is_ignored() {
    let recorded = Recorded::new(r#"{"start": "banner", "entries": [{"time_us": 30}]}"#);
    assert_eq!(time(&mut recorded.start(), &["a"], &plan()), ["5 x 30.0"]);
}

#[test]
fn runner_with_a_quoted_word_is_put_before_the_command() {
    let recorded = Recorded::new(r#"{"entries": [{"time_us": 30}]}"#);
    let mut options = recorded.options();
    options.runner = split("/usr/bin/env 'NVTUNE_TEST_WORD=a b'").unwrap();
    let mut process = Process::start(options).unwrap();
    assert_eq!(time(&mut process, &["a"], &plan()), ["5 x 30.0"]);
}

#[test]
fn runner_that_passes_on_whole_lines_only_carries_the_protocol() {
    let recorded = Recorded::new(r#"{"entries": [{"time_us": 30}]}"#);
    let mut options = recorded.options();
    options.runner = split("sh -c 'LC_ALL=C sed -u \"\" | \"$0\" \"$@\" | LC_ALL=C sed -u \"\"'").unwrap();
    options.start_limit = Some(Duration::from_secs(20));
    let mut process = Process::start(options).unwrap();
    assert_eq!(time(&mut process, &["a"], &plan()), ["5 x 30.0"]);
}

#[test]
fn runner_that_is_not_there_is_an_error() {
    let recorded = Recorded::new("{}");
    let options = Options { runner: split("/nowhere/ssh gpu01").unwrap(), ..recorded.options() };
    assert!(matches!(Process::start(options), Err(Error::Start { .. })));
}

/// Whether a process has not ended, collected or not.
fn is_running(process: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    state.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[test]
fn process_that_a_runner_leaves_running_ends_with_it() {
    for start in ["sleep 1000 &", "( trap '' HUP TERM INT; sleep 1000; sleep 1000 ) &", "sh -c 'sleep 1000 & wait' &"] {
        let recorded = Recorded::new(r#"{"entries": [{"time_us": 30}]}"#);
        let path = recorded.folder.path().to_str().unwrap();
        let script = format!("#!/bin/sh\n{start}\necho $! > {path}/left\n\"$@\"\nwait\n");
        std::fs::write(recorded.folder.path().join("stays.sh"), script).unwrap();
        let options = Options {
            runner: vec!["/bin/sh".to_owned(), format!("{path}/stays.sh")],
            start_limit: Some(Duration::from_secs(20)),
            ..recorded.options()
        };
        let mut process = Process::start(options).unwrap();
        assert_eq!(time(&mut process, &["a"], &plan()), ["5 x 30.0"]);
        let left = std::fs::read_to_string(recorded.folder.path().join("left")).unwrap();
        let left: u32 = left.trim().parse().expect("a process");
        assert!(is_running(left), "{start}");
        drop(process);
        let deadline = Instant::now() + Duration::from_secs(10);
        while is_running(left) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!is_running(left), "{start}");
    }
}
