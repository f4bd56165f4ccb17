//! A candidate for timing, and the plan that limits the time it may take.

use crate::launch::Launch;
use crate::workload::Workload;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A configuration that is sent to the GPU.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The caller's number for it. Not looked at here.
    pub id: u32,
    /// The configuration as words (`block=128 regs=64 TILE=16`), for messages and as a key of
    /// recorded timings.
    pub label: String,
    /// The variant's machine code. Sent once, however many candidates share it.
    pub cubin: Arc<[u8]>,
    /// The kernel's symbol in the cubin.
    pub kernel: String,
    pub launch: Launch,
    /// Whether its blocks wait for each other, so that it must be launched cooperatively.
    pub cooperative: bool,
    /// Whether it is refused unless the baseline writes a buffer or a variable that is
    /// compared: nothing else proves that it works.
    pub needs_comparison: bool,
    /// Sent once, however many candidates share it.
    pub workload: Arc<Workload>,
}

/// What the caches hold when a sample is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Caches {
    /// None of the kernel's data: the L2 cache is overwritten before each launch.
    #[default]
    Cold,
    /// The data of a launch of the same candidate right before, as in a program that calls the
    /// kernel repeatedly.
    Warm,
}

/// How thoroughly to time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Seconds that the whole of it may take, restarts included. What could not be reached in
    /// time is [`Outcome::Skipped`](super::outcome::Outcome::Skipped).
    pub budget_s: f64,
    /// Samples of each candidate at most: fewer where more would not change the verdict. Kernels
    /// under 20 us get three times as many.
    pub rounds: u32,
    /// A candidate that is slower than this times the best so far after its first sample is not
    /// sampled again.
    pub keep: f64,
    /// Seconds of launches after which a candidate is not sampled again, however few samples it
    /// has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_s: Option<f64>,
    /// Seconds that a launch may take before it counts as hung, where 20 times the baseline's
    /// time is less.
    pub patience_s: f64,
    /// Seed of the order within rounds.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Plan { budget_s: 30.0, rounds: 9, keep: 2.0, patience_s: 10.0, sample_s: None, seed: 0x6e76_7475_6e65 }
    }
}
