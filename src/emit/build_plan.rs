//! The build plan: what the shims of ptxas and cicc do in the final build, and what they report.

use super::stub_file::StubText;
use crate::ptx::Transplant;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The plan of one final build. nvtune writes it to a file; the shims that nvcc calls in place
/// of ptxas and cicc read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildPlan {
    /// The sources of the call as nvcc names them, where it has several.
    pub sources: Vec<String>,
    pub kernels: Vec<PlannedKernel>,
    /// Launch stubs that select entries.
    pub stubs: Vec<StubText>,
    /// What cicc made while the sources were tuned.
    pub cicc_outputs: Vec<CiccOutput>,
}

/// The output of one run of cicc.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CiccOutput {
    /// Its options, without the names of files that each run makes anew.
    pub options: Vec<String>,
    /// The digest of the preprocessed source, without the lines of nvtune's headers.
    pub source: String,
    /// The module id in its files.
    pub module_id: String,
    /// The name by which the stub includes the machine code.
    pub fatbin: String,
    pub ptx: PathBuf,
    pub stub: PathBuf,
    /// Its messages.
    pub messages: String,
}

/// The winner of one kernel on one architecture, for the ptxas shim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedKernel {
    /// Its source, if the call has several: kernels of two sources may have the same name.
    pub source: Option<String>,
    /// `sm_90`, as given to ptxas.
    pub architecture: String,
    /// The name in the PTX of the kernel that nvcc makes.
    pub symbol: String,
    /// The winner's entry.
    pub entry: Transplant,
    /// The digest of the machine code that was scored and timed.
    pub digest: String,
    /// The digest of nvcc's own kernel, if that is kept and its code is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_digest: Option<String>,
}

/// What a shim worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// The machine code of a kernel.
    Code,
    /// A launch stub.
    Stub,
}

/// What a shim reports of one kernel or stub of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimOutcome {
    pub part: Part,
    /// As the plan gives it.
    pub source: Option<String>,
    /// Of the code; empty for a stub.
    pub architecture: String,
    pub symbol: String,
    /// `None`: the code is the one that was timed, the stub is rewritten; else what is wrong.
    pub problem: Option<String>,
}
