//! The ticket: what the shims of the overlay toolkit are to do, and what they answer.

use super::stub_file::StubText;
use crate::ptx::Transplant;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Written by nvtune before the final build, read by the shims that nvcc calls in place of
/// ptxas and cicc.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// Folder for the shim's answers, a file for each call.
    pub answers: PathBuf,
    /// The sources of the call as nvcc names them, where it has several.
    pub sources: Vec<String>,
    pub kernels: Vec<TicketKernel>,
    /// Launch stubs that select entries.
    pub stubs: Vec<StubText>,
    /// What cicc made while the sources were tuned.
    pub cicc_outputs: Vec<CiccOutput>,
}

/// What one run of cicc made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CiccOutput {
    /// Its options, without the names of files that each run makes anew.
    pub options: Vec<String>,
    /// The digest of the preprocessed source, without the lines of nvtune's headers.
    pub source: String,
    /// The name by which the stub includes the machine code.
    pub fatbin: String,
    pub ptx: PathBuf,
    pub stub: PathBuf,
}

/// One kernel for one architecture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketKernel {
    /// Its source, where the call has several: kernels of two may have one name.
    pub source: Option<String>,
    /// `sm_90`, as given to ptxas.
    pub architecture: String,
    /// The name in the PTX of the kernel that nvcc makes.
    pub symbol: String,
    /// The winner's entry.
    pub entry: Transplant,
    /// The digest of the machine code that was scored and timed.
    pub digest: String,
    /// That of the kernel that nvcc makes, where it stays and its code is known.
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

/// What became of one kernel or stub of the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketOutcome {
    pub part: Part,
    /// As the ticket gives it.
    pub source: Option<String>,
    /// Of the code; empty for a stub.
    pub architecture: String,
    pub symbol: String,
    /// `None`: the code is the one that was timed, the stub is rewritten; else what is wrong.
    pub problem: Option<String>,
}

impl Ticket {
    /// The environment variable that names the ticket's file.
    pub const VARIABLE: &'static str = "NVTUNE_TICKET";

    /// The ticket that nvtune left for this process.
    pub fn of_environment() -> Option<Self> {
        let text = std::fs::read(std::env::var_os(Self::VARIABLE)?).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// The outcomes that the shims have written so far.
    pub fn outcomes(answers: &Path) -> std::io::Result<Vec<TicketOutcome>> {
        let mut outcomes = Vec::new();
        for entry in std::fs::read_dir(answers)? {
            let text = std::fs::read(entry?.path())?;
            outcomes.extend(serde_json::from_slice::<Vec<TicketOutcome>>(&text)?);
        }
        Ok(outcomes)
    }
}
