//! A winner with its basis: the entry of a lock file, and what a record and the cache say of a decision for it.

use super::fingerprint::Basis;
use crate::launch::Configuration;
use crate::search::Provenance;
use serde::{Deserialize, Serialize};

/// The winner of one kernel for one architecture, and all that it takes to build it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pinned {
    #[serde(flatten)]
    pub basis: Basis,
    #[serde(flatten)]
    pub winner: Configuration,
    /// Digest of the winner's machine code; what is built from the entry is compared with it. Absent for a baseline, which is built
    /// as nvcc builds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Resident warps in percent of the most that an SM holds, for the header; absent where nothing is known of the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occupancy: Option<u32>,
    /// Whether the winner bears threads beyond the baseline's, as [`super::decision::Decision::surplus`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub surplus: bool,
    /// As `ptx` of the basis, under the winner's macros; absent where they are the baseline's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner_ptx: Option<String>,
    /// The GPU that it was timed on, and the CUDA version of its driver (major times 1000 plus minor times 10); absent for a
    /// prediction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<u32>,
    /// How it was chosen: `measured`, `predicted`, or `baseline` where nothing was surely faster.
    pub provenance: Provenance,
    /// Time of the baseline over time of the winner, to three digits behind the point.
    pub speedup: f64,
    /// Configurations of the space, and how many of them the search timed.
    #[serde(default)]
    pub points: usize,
    #[serde(default)]
    pub timed: usize,
    /// The version of nvtune that chose it.
    #[serde(default)]
    pub nvtune: String,
}

impl Pinned {
    /// Whether a GPU had its say: a prediction, and a baseline that was kept by the model alone, had none.
    pub fn is_measured(&self) -> bool {
        self.gpu.is_some()
    }
}
