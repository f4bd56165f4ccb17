//! Launches of one kind: its first is recorded, and its fourth, which stands for all after it.

use super::{kernel, recorded_program, tuned_by_times};
use std::process::Command;

/// Runs the program of `iterated.cu` with so many launches; returns how many launches each recording
/// stands for, and the number that it begins with, which is that of the launch.
fn recorded(folder: &std::path::Path, launches: &str, environment: &[(&str, &str)]) -> Vec<(u64, f32)> {
    let captures = folder.join("launches.capture");
    let _ = std::fs::remove_dir_all(&captures);
    let mut program = Command::new(folder.join("program"));
    let ran = program.arg(launches).current_dir(folder).envs(environment.iter().copied()).status().expect("it starts");
    assert!(ran.success());
    let recorded = kernel(folder, "advanced");
    assert!(recorded.left_out.is_empty(), "{:?}", recorded.left_out);
    let mut found: Vec<(u64, f32)> = recorded
        .launches
        .iter()
        .map(|counted| {
            let place = usize::try_from(counted.launch.buffers[0].start).expect("small");
            let bytes = std::fs::read(&counted.path).expect("read");
            (counted.count, f32::from_le_bytes(bytes[place..place + 4].try_into().expect("4 bytes")))
        })
        .collect();
    found.sort_by_key(|(_, number)| number.to_bits());
    let counted: u64 = found.iter().map(|(count, _)| count).sum();
    assert_eq!((recorded.others + counted).to_string(), launches);
    found
}

#[test]
fn fourth_launch_of_a_kind_stands_for_those_after_it() {
    let folder = recorded_program(include_str!("iterated.cu"));
    let folder = folder.path();
    for (launches, expected) in
        [("1", &[(1, 0.0)][..]), ("3", &[(3, 0.0)]), ("4", &[(3, 0.0), (1, 3.0)]), ("9", &[(3, 0.0), (6, 3.0)])]
    {
        assert_eq!(recorded(folder, launches, &[]), expected, "{launches} launches");
    }
    let recorded_kernel = kernel(folder, "advanced");
    let main = recorded_kernel.main_launch().expect("it is recorded");
    assert_eq!(main.count, 3, "both take as long: the first is tuned on");
    assert_eq!(recorded_kernel.sibling(main).map(|later| later.count), Some(6));
    assert_eq!(kernel(folder, "advanced").gpu_time_us, Some(9.0 * 1024.0), "both are timed");
    // Of 9000 bytes the first launch takes half, and what is left is for other kinds: it stands for all then.
    assert_eq!(recorded(folder, "9", &[("NVTUNE_CAPTURE_BYTES", "9000")]), [(9, 0.0)]);
}

#[test]
fn winner_that_the_first_launch_proves_is_timed_on_later_ones_whose_results_are_there_already() {
    let folder = recorded_program(include_str!("repeated_results.cu"));
    let on_later =
        |us: f64| format!(r#"{{"label": "block=64 on recorded launch 2", "time_us": {us}, "uncompared": true}}"#);
    let rest = r#"{"label": "block=64", "time_us": 9.0}, {"time_us": 10.0, "spread": 0.001}"#;
    for (entries, says) in [
        (format!("{}, {rest}", on_later(9.0)), "reversed: block=64 (1.11x over the baseline, measured"),
        (format!("{}, {rest}", on_later(12.0)), "block=64: the recorded launches together take 1.100 times"),
        // Nothing shows that it works if no launch does.
        (
            r#"{"label": "block=64", "time_us": 9.0, "uncompared": true}, {"time_us": 10.0}"#.to_owned(),
            "block=64: nothing proves that it works",
        ),
    ] {
        let said = tuned_by_times(folder.path(), &entries);
        assert!(said.contains(says), "{says}: {said}");
    }
}

#[test]
fn winner_must_not_make_the_launches_after_the_first_slower() {
    let folder = recorded_program(include_str!("iterated.cu"));
    // The first launch, which stands for three, takes 9 us in place of 10; the fourth, for six, as given here.
    for (later_us, says) in [
        (10.4, "advanced: block=64 (1.11x over the baseline, measured"),
        (12.0, "block=64: the recorded launches together take 1.100 times as long as by the baseline"),
    ] {
        let later = format!(r#"{{"label": "block=64 on recorded launch 2", "time_us": {later_us}}}"#);
        let rest = r#"{"label": "block=64", "time_us": 9.0}, {"time_us": 10.0, "spread": 0.001}"#;
        let said = tuned_by_times(folder.path(), &format!("{later}, {rest}"));
        assert!(said.contains(says), "{says}: {said}");
    }
}
