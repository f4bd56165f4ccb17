//! A kernel's reads of constant memory -> the lines that an SM's first constant cache misses and
//! that nothing hides.

use super::calibration::Calibration;
use crate::ptx::{AccessKind, MemorySpace};
use crate::sim::Profile;

/// Lines that the first constant cache of an SM holds: 2 KiB of 64 bytes each (Jia et al.,
/// "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, table 3.1).
const CAPACITY_LINES: f64 = 32.0;
/// Lines whose numbers of executions differ by no more than this ratio are taken to be in one
/// loop.
const SAME_LOOP_RATIO: f64 = 1.01;

/// Lines of constants that a loop, or the code outside of loops, reads in an iteration.
struct LoopLoads {
    iterations: f64,
    lines: f64,
}

/// Returns the lines of constant memory, of 64 bytes, that a warp reads beyond the capacity of the
/// first constant cache in loops that read a line or less in each iteration and hardly load from
/// memory, so that nothing hides the misses. Other misses cost little
/// (`kernels/results/h200/constants.txt`). Loads are those of the PTX, because many of them are
/// operands of other machine instructions.
pub(super) fn exposed_lines(profile: &Profile, calibration: &Calibration) -> f64 {
    let count = |line: &u32| profile.counts.get(line).copied().unwrap_or(0.0);
    let mut loops: Vec<LoopLoads> = Vec::new();
    for (line, access) in profile.accesses.iter().filter(|(_, access)| access.space == MemorySpace::Constant) {
        let (iterations, lines) = (count(line), access.lines * (1.0 - access.reuse.clamp(0.0, 1.0)));
        let is_alike =
            |of: &&mut LoopLoads| of.iterations.max(iterations) <= of.iterations.min(iterations) * SAME_LOOP_RATIO;
        match loops.iter_mut().find(is_alike) {
            Some(known) => known.lines += lines,
            None => loops.push(LoopLoads { iterations, lines }),
        }
    }
    let loads = profile.accesses.iter().filter(|(_, access)| {
        access.kind == AccessKind::Load
            && matches!(access.space, MemorySpace::Global | MemorySpace::Texture | MemorySpace::Local)
    });
    let most_loads = loads.map(|(line, _)| count(line)).fold(0.0, f64::max);
    let is_exposed = |of: &&LoopLoads| of.lines <= 1.0 && most_loads < of.iterations * calibration.min_load_share;
    let lines: f64 = loops.iter().filter(is_exposed).map(|of| of.iterations * of.lines).sum();
    (lines - CAPACITY_LINES).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::calibration::CALIBRATION;
    use super::*;
    use crate::sim::profile::Access;

    #[test]
    fn lines_are_exposed_by_what_else_a_loop_waits_for() {
        // Loads of constants as (iterations, lines that one reads for the first time), iterations
        // of loads from global memory.
        for (what, loads, global, exposed) in [
            ("many lines in the code", vec![(1.0, 1.0); 40], 1.0, 0.0),
            ("a loop of two lines an iteration", vec![(80.0, 1.0), (80.0, 1.0)], 0.0, 0.0),
            ("a loop that reads constants alone", vec![(400.0, 0.125), (400.0, 0.125)], 1.0, 68.0),
            ("a loop that loads besides", vec![(400.0, 0.25)], 400.0, 0.0),
            ("a loop that reads one address", vec![(400.0, 0.0025)], 0.0, 0.0),
        ] {
            let mut profile = Profile::default();
            let mut add = |line: u32, space, count: f64, lines: f64| {
                profile.counts.insert(line, count);
                profile.accesses.insert(line, Access { space, lines: 1.0, reuse: 1.0 - lines, ..Access::default() });
            };
            add(1, MemorySpace::Global, global, 1.0);
            for (line, &(count, lines)) in (2..).zip(&loads) {
                add(line, MemorySpace::Constant, count, lines);
            }
            let found = exposed_lines(&profile, &CALIBRATION);
            assert!((found - exposed).abs() < 1e-9, "{what}: {found}");
        }
    }
}
