//! What each thing that takes time would take of a launch alone -> the launch's time.

use super::calibration::LAUNCH_US;
use serde::{Deserialize, Serialize};

/// What a launch would take if nothing but one thing took time, in microseconds: the parts of a
/// prediction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// A warp after the other on each of its places, alone.
    pub latency: f64,
    pub issue: f64,
    /// The busiest execution unit besides the memory pipe.
    pub pipe: f64,
    /// Look-ups and passes of the memory pipe: shared memory and the level-1 cache.
    pub memory_pipe: f64,
    /// Sectors between the level-2 cache and the SMs.
    pub cache: f64,
    /// No time, but the share of `cache` that stores take, for which no warp waits.
    pub stored: f64,
    /// Bytes to and from device memory.
    pub device: f64,
    /// Atomic updates of the level-2 cache's lines, each of which takes one at a time.
    pub atomics: f64,
    /// Lines of constants that miss the constant cache.
    pub constant: f64,
    /// Starting blocks.
    pub launch: f64,
    /// No time, but the share of what memory takes that comes on top of the latency: see
    /// `queue` in `time.rs`.
    pub queue: f64,
}

impl Terms {
    /// Returns the predicted time in microseconds.
    pub fn time_us(&self) -> f64 {
        LAUNCH_US + self.time_without_launch()
    }

    /// The same, did its parts meet in corners that are power means with another `exponent`
    /// than [`CORNER_EXPONENT`](super::CORNER): the greater, the less do two parts that are near each other
    /// add to the time.
    pub fn time_us_with(&self, exponent: f64) -> f64 {
        LAUNCH_US + self.with_corner(|a, b| power_mean(a, b, exponent))
    }

    /// What the launch's instructions take to be issued and executed where nothing ever waits:
    /// a bound of its time that depends on counts and widths alone. No point of the suite's
    /// recorded spaces took less than 0.99 of it.
    pub fn throughput_bound_us(&self) -> f64 {
        self.issue.max(self.pipe)
    }

    /// That beyond what any launch takes.
    pub(super) fn time_without_launch(&self) -> f64 {
        self.with_corner(smooth_max)
    }

    /// An SM's own units overlap with each other; with a warp's latency the busiest of them
    /// meets in a corner, and both with device memory. No warp waits for a store, so that
    /// the share that stores have of what moves to the level-2 cache bounds a launch but
    /// lengthens no wait. The start of blocks waits for nothing, and nothing waits for it
    /// as long as it is not the slowest.
    fn with_corner(&self, corner: impl Fn(f64, f64) -> f64) -> f64 {
        let read = self.cache * (1.0 - self.stored);
        let busiest = [self.issue, self.pipe, self.memory_pipe, read, self.constant].into_iter().fold(0.0, f64::max);
        let memory = self.memory_pipe.max(self.cache).max(self.device);
        let latency = self.latency + self.queue * memory;
        let moved = corner(corner(latency, busiest).max(self.cache), self.device);
        corner(moved, self.atomics).max(self.launch)
    }
}

/// A smooth maximum: the power mean with [`CORNER_EXPONENT`](super::CORNER), which has a quicker form.
fn smooth_max(a: f64, b: f64) -> f64 {
    a.hypot(b)
}

/// The power mean of two numbers that are not negative, but for its factor: their sum with an
/// exponent of 1, the greater with an infinite one.
fn power_mean(a: f64, b: f64, exponent: f64) -> f64 {
    let greater = a.max(b);
    // Nothing or infinity: nothing adds to it.
    if !(greater > 0.0 && greater.is_finite()) {
        return greater;
    }
    greater * (1.0 + (a.min(b) / greater).powf(exponent)).powf(exponent.recip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CORNER_EXPONENT;

    #[test]
    fn with_the_models_exponent_another_mean_is_the_corner_and_a_greater_one_is_less() {
        let terms = Terms { latency: 30.0, issue: 40.0, device: 120.0, ..Terms::default() };
        assert!(
            (terms.time_us_with(CORNER_EXPONENT) - terms.time_us()).abs() < 1e-9
                && (terms.time_us() - 132.0).abs() < 1e-9
        );
        assert!((terms.time_us_with(1.0) - 192.0).abs() < 1e-9);
        assert!(terms.time_us_with(4.0) < terms.time_us() && terms.time_us_with(4.0) > 122.0);
        for (latency, us) in [(0.0, LAUNCH_US), (f64::INFINITY, f64::INFINITY)] {
            assert_eq!(Terms { latency, ..Terms::default() }.time_us_with(3.0), us);
        }
    }
}
