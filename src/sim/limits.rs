//! What the interpreter may spend.

/// What the interpreter may spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions interpreted in all.
    pub instructions: u64,
    /// Executions of each memory instruction that are recorded for a thread.
    pub window: u32,
    /// Warps of a block whose accesses are looked at (as far as the instructions suffice). With
    /// sixteen in place of four the predicted time orders the recorded spaces of an H200 better
    /// (Kendall's tau, on average, 0.646 in place of 0.632), with more no more.
    pub warps: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { instructions: 3_000_000, window: 32, warps: 16 }
    }
}

/// Instructions that a lane of a further warp may take: enough to fill the record of its
/// accesses.
pub(crate) const LANE_INSTRUCTIONS: u64 = 1 << 14;
