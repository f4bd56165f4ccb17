//! RO and PO, the metrics of Liang et al. (ASP-DAC 2013), section III.

use crate::gpu::{Architecture, MAX_REGISTERS};
use serde::{Deserialize, Serialize};

/// Computes occupancy x RegRatio, between 0 and 1; more is better.
pub fn register_occupancy(occupancy: f64, registers: u32) -> f64 {
    occupancy * f64::from(registers) / f64::from(MAX_REGISTERS)
}

/// The pair (T, C) of PO, "performance and occupancy"; less is better in both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Po {
    /// Threads that an SM could hold in addition: MaxThreads x (1 - occupancy).
    pub t: f64,
    /// Estimated cycles of a single thread (equation 1).
    pub c: f64,
}

/// Computes the pair (T, C).
pub fn parallelism_pair(architecture: &Architecture, occupancy: f64, cycles: f64) -> Po {
    Po { t: f64::from(architecture.max_threads) * (1.0 - occupancy), c: cycles }
}
