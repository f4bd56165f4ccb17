//! Why candidates cannot be timed.

use super::outcome::Reason;

use super::protocol;
use super::runner::RunnerError;
use crate::diag::MessageCode;
use std::io;
use thiserror::Error;

/// Why nothing could be measured.
#[derive(Debug, Error)]
pub enum Error {
    /// The ordinary case of a machine without a GPU.
    #[error("no GPU to measure on: {0}")]
    NoDevice(String),
    #[error("NVTUNE_RUNNER: {0}")]
    Runner(#[from] RunnerError),
    #[error("cannot start the measuring process `{command}`: {source}")]
    Start { command: String, source: io::Error },
    #[error("the measuring process `{command}` said nothing for {seconds} s")]
    Silent { command: String, seconds: f64 },
    #[error("`{command}` is no nvtune, it says {said}")]
    Nonsense { command: String, said: String },
    #[error(
        "`{command}` speaks version {theirs} of the measuring protocol (\"{said}\"), this is nvtune {} with version {}: install the same nvtune at both ends",
        env!("CARGO_PKG_VERSION"),
        protocol::VERSION
    )]
    Version { command: String, theirs: u32, said: String },
    #[error("others have measured on {gpus} for {seconds:.0} s (NVTUNE_WAIT says how long to wait for it)")]
    Busy { gpus: String, seconds: f64 },
    #[error("the measuring process `{command}` died ({how})")]
    Died { command: String, how: String },
    #[error("the baseline cannot be measured: {0}")]
    Baseline(Reason),
    #[error("the measuring process failed: {0}")]
    Failed(String),
    #[error("cannot be sent to the measuring process: {0}")]
    Unsendable(String),
}

impl Error {
    /// Returns the code of the message that says so.
    pub fn code(&self) -> MessageCode {
        match self {
            Self::NoDevice(_) => MessageCode::NoGpu,
            Self::Runner(_) => MessageCode::RunnerNotRead,
            Self::Start { .. } => MessageCode::MeasuringNotStarted,
            Self::Silent { .. } => MessageCode::MeasuringSilent,
            Self::Nonsense { .. } | Self::Version { .. } => MessageCode::MeasuringOther,
            Self::Busy { .. } => MessageCode::GpuBusy,
            Self::Died { .. } => MessageCode::MeasuringDied,
            Self::Baseline(_) => MessageCode::BaselineFails,
            Self::Failed(_) | Self::Unsendable(_) => MessageCode::MeasuringFailed,
        }
    }
}
