//! Launches besides the one that a kernel is tuned on: a winner must not make a program slower by them.

use super::{Headers, command, link, source};
use std::process::Command;

#[test]
fn winner_that_makes_the_recorded_launches_slower_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(source("repeated.cu"), folder.path().join("launches.cu")).expect("copied");
    let built = |command: &mut Command| {
        let ran = command.output().expect("it starts");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stderr).into_owned()
    };
    built(&mut command(folder.path(), "capture", Headers::Cuda));
    link(folder.path(), &[]);
    built(Command::new(folder.path().join("program")).current_dir(folder.path()));
    // A launch with step 1, of two, takes 9 us in place of 10; one with another step as given here.
    for (others, says) in [
        (10.5, "strided: block=64 (1.11x over the baseline, measured"),
        (12.0, "block=64: the recorded launches together take 1.050 times as long as by the baseline"),
    ] {
        let on = |number: u32| format!(r#"{{"label": "block=64 on recorded launch {number}", "time_us": {others}}}"#);
        let entries = [on(2), on(3), r#"{"label": "block=64", "time_us": 9.0}"#.to_owned()].join(", ");
        let replay = format!(
            r#"{{"device": {{"name": "NVIDIA H200", "compute_capability": 90}},
                "entries": [{entries}, {{"time_us": 10.0, "spread": 0.001}}]}}"#
        );
        std::fs::write(folder.path().join("timings.json"), replay).expect("written");
        let mut tuning = command(folder.path(), "measure", Headers::Cuda);
        let said = built(tuning.env("NVTUNE_REPLAY", "timings.json").env("NVTUNE_CACHE_SIZE", "0"));
        assert!(said.contains(says), "{says}: {said}");
    }
}
