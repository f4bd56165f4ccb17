//! The terms of a prediction (time of each resource, if nothing else took time) -> the launch's
//! time.

use super::calibration::CALIBRATION;
use serde::{Deserialize, Serialize};

/// The terms of a prediction, in microseconds: how long the launch would take if only that one
/// resource took time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// Latency: the time of a warp alone, for all waves of blocks one after another.
    pub latency: f64,
    /// Issue slots of the schedulers.
    pub issue: f64,
    /// The busiest execution unit besides the memory pipe.
    pub pipe: f64,
    /// The memory pipe: shared memory and the level-1 cache.
    pub memory_pipe: f64,
    /// Sectors between the level-2 cache and the SMs.
    pub cache: f64,
    /// Not a time: the share of `cache` that stores take, for which no warp waits.
    pub stored: f64,
    /// Bytes to and from device memory.
    pub device: f64,
    /// Atomic updates in the level-2 cache; updates of one line are serialized.
    pub atomics: f64,
    /// Lines of constants that miss the constant cache.
    pub constant: f64,
    /// Starting blocks.
    pub launch: f64,
    /// Not a time: the share of the memory terms that is added to the latency; see
    /// `queue_share` in `time.rs`.
    pub queue: f64,
    /// Constant overhead of a launch, the same for all.
    #[serde(skip)]
    pub overhead: f64,
}

impl Terms {
    /// Returns the predicted time in microseconds.
    pub fn time_us(&self) -> f64 {
        self.overhead + self.time_without_launch()
    }

    /// The same with this `exponent` of the power means that combine the terms: the greater it
    /// is, the better the terms overlap.
    pub fn time_us_with(&self, exponent: f64) -> f64 {
        if exponent == CALIBRATION.corner_exponent {
            return self.time_us();
        }
        self.overhead + self.with_corner(|a, b| power_mean(a, b, exponent))
    }

    /// Lower bound of the time, from the throughput of issue and execution units: it depends on
    /// instruction counts and widths alone. No point of the suite's recorded spaces took less
    /// than 0.99 of it.
    pub fn throughput_bound_us(&self) -> f64 {
        self.issue.max(self.pipe)
    }

    /// The predicted time without the constant overhead of a launch.
    pub(super) fn time_without_launch(&self) -> f64 {
        self.with_corner(smooth_max)
    }

    /// Combines the terms; `corner` is a smooth maximum of two. The units of an SM overlap fully,
    /// so that only the busiest counts. It is combined by `corner` with a warp's latency, and
    /// the result with device memory and atomics. No warp waits for a store, so that the traffic
    /// of stores to the level-2 cache bounds the time but lengthens no wait. The start of blocks
    /// overlaps fully with all else.
    fn with_corner(&self, corner: impl Fn(f64, f64) -> f64) -> f64 {
        let read = self.cache * (1.0 - self.stored);
        let busiest = [self.issue, self.pipe, self.memory_pipe, read, self.constant].into_iter().fold(0.0, f64::max);
        let memory = self.memory_pipe.max(self.cache).max(self.device);
        let latency = self.latency + self.queue * memory;
        let moved = corner(corner(latency, busiest).max(self.cache), self.device);
        corner(moved, self.atomics).max(self.launch)
    }
}

/// A smooth maximum: [`power_mean`] with the exponent of [`CALIBRATION`], computed faster.
fn smooth_max(a: f64, b: f64) -> f64 {
    a.hypot(b)
}

/// A smooth maximum of two numbers that are not negative, (a^n + b^n)^(1/n): their sum with an
/// exponent of 1, the greater with an infinite one.
fn power_mean(a: f64, b: f64, exponent: f64) -> f64 {
    let greater = a.max(b);
    // Zero and infinity would not be numbers below.
    if !(greater > 0.0 && greater.is_finite()) {
        return greater;
    }
    greater * (1.0 + (a.min(b) / greater).powf(exponent)).powf(exponent.recip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_the_models_exponent_another_mean_is_the_corner_and_a_greater_one_is_less() {
        let terms = Terms { latency: 30.0, issue: 40.0, device: 120.0, overhead: 2.0, ..Terms::default() };
        assert!(
            (power_mean(50.0, 120.0, CALIBRATION.corner_exponent) + 2.0 - terms.time_us()).abs() < 1e-9
                && (terms.time_us() - 132.0).abs() < 1e-9
        );
        assert!((terms.time_us_with(1.0) - 192.0).abs() < 1e-9);
        assert!(terms.time_us_with(4.0) < terms.time_us() && terms.time_us_with(4.0) > 122.0);
        for (latency, us) in [(0.0, 0.0), (f64::INFINITY, f64::INFINITY)] {
            assert_eq!(Terms { latency, ..Terms::default() }.time_us_with(3.0), us);
        }
    }
}
