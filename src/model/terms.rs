//! What each thing that takes time would take of a launch alone -> the launch's time.

use serde::{Deserialize, Serialize};

/// Assumed: microseconds of a launch.
const LAUNCH_US: f64 = 2.0;

/// What a launch would take if nothing but one thing took time, in microseconds: the parts of a prediction.
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
    /// No time, but the share of what memory takes that comes on top of the latency: see `queue` in `time.rs`.
    pub queue: f64,
}

impl Terms {
    /// The predicted time in microseconds.
    pub fn us(&self) -> f64 {
        LAUNCH_US + self.beyond_launch()
    }

    /// That beyond what any launch takes. An SM's own units overlap with each other; with a warp's latency the busiest of them meets in a corner, and
    /// both with device memory. No warp waits for a store, so that the share that stores have of what moves to the level-2 cache bounds
    /// a launch but lengthens no wait. The start of blocks waits for nothing, and nothing waits for it as long as it is not the slowest.
    pub(super) fn beyond_launch(&self) -> f64 {
        let read = self.cache * (1.0 - self.stored);
        let busiest = [self.issue, self.pipe, self.memory_pipe, read, self.constant].into_iter().fold(0.0, f64::max);
        let memory = self.memory_pipe.max(self.cache).max(self.device);
        let latency = self.latency + self.queue * memory;
        let moved = corner(corner(latency, busiest).max(self.cache), self.device);
        corner(moved, self.atomics).max(self.launch)
    }
}

/// A smooth maximum: loads wait in queues long before a bound is reached, so that the corner is a wide one. Of power means with exponents
/// of 1 to 8, that of 2 orders the recorded spaces best as a whole.
fn corner(a: f64, b: f64) -> f64 {
    a.hypot(b)
}
