//! Launches besides the one that a kernel is tuned on: a winner must not make a program slower by them.

use super::{recorded_program, tuned_by_times};
use crate::support::full::cases;

#[test]
fn winner_that_makes_the_recorded_launches_slower_is_refused() {
    let folder = recorded_program(include_str!("repeated.cu"));
    // A launch with step 1, of two, takes 9 us in place of 10; one with another step as given here.
    for (others, says) in [
        (10.5, "strided: block=64 (1.11x over the baseline, measured"),
        (12.0, "block=64: the recorded launches together take 1.050 times as long as by the baseline"),
    ] {
        let on = |number: u32| format!(r#"{{"label": "block=64 on recorded launch {number}", "time_us": {others}}}"#);
        let rest = r#"{"label": "block=64", "time_us": 9.0}, {"time_us": 10.0, "spread": 0.001}"#;
        let said = tuned_by_times(folder.path(), &format!("{}, {}, {rest}", on(2), on(3)));
        assert!(said.contains(says), "{says}: {said}");
    }
}

#[test]
fn winner_that_makes_smaller_launches_slower_runs_for_larger_ones() {
    let folder = recorded_program(include_str!("sizes.cu"));
    // 256 blocks take 9 us in place of 10; 64 and 16 blocks, recorded launches 2 and 3, as given here.
    let all = [
        (9.9, 12.0, "grown: block=64 (1.11x over the baseline, measured, for at least 64 blocks)"),
        (9.9, 9.9, "grown: block=64 (1.11x over the baseline, measured)"),
        (12.0, 12.0, "grown: block=64 (1.11x over the baseline, measured, for at least 256 blocks)"),
        // No limit separates these: they are judged together.
        (14.0, 9.9, "block=64: the recorded launches together take 1.070 times as long as by the baseline"),
    ];
    for &(medium, small, says) in cases(&all, 1) {
        let on =
            |number: u32, us: f64| format!(r#"{{"label": "block=64 on recorded launch {number}", "time_us": {us}}}"#);
        let rest = r#"{"label": "block=64", "time_us": 9.0}, {"time_us": 10.0, "spread": 0.001}"#;
        let said = tuned_by_times(folder.path(), &format!("{}, {}, {rest}", on(2, medium), on(3, small)));
        assert!(said.contains(says), "{says}: {said}");
    }
}
