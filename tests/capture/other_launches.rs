//! Launches besides the one that a kernel is tuned on: a winner must not make a program slower by them.

use super::{recorded_program, tuned_by_times};

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
