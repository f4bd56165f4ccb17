//! The ticket: what the `ptxas` shim of the overlay toolkit is to do, and what it answers.

use crate::ptx::Edits;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Written by nvtune before the final build, read by the shim that nvcc calls in place of ptxas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// Folder for the shim's answers, a file for each call.
    pub answers: PathBuf,
    pub kernels: Vec<TicketKernel>,
}

/// One kernel for one architecture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketKernel {
    /// `sm_90`, as given to ptxas.
    pub architecture: String,
    /// The entry's name in the PTX.
    pub symbol: String,
    /// What to write into the PTX.
    pub edits: Edits,
    /// The digest of the machine code that was scored and timed.
    pub digest: String,
}

/// What became of one kernel of the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketOutcome {
    pub architecture: String,
    pub symbol: String,
    /// `None`: the code is the one that was timed; else what is wrong.
    pub problem: Option<String>,
}

impl Ticket {
    /// The environment variable that names the ticket's file.
    pub const VARIABLE: &'static str = "NVTUNE_TICKET";

    /// The outcomes that the shim has written so far.
    pub fn outcomes(answers: &Path) -> std::io::Result<Vec<TicketOutcome>> {
        let mut outcomes = Vec::new();
        for entry in std::fs::read_dir(answers)? {
            let text = std::fs::read(entry?.path())?;
            outcomes.extend(serde_json::from_slice::<Vec<TicketOutcome>>(&text)?);
        }
        Ok(outcomes)
    }
}
