//! Times candidates in a process of their own.
//!
//! In: [`Candidate`]s (machine code, launch, workload) and a [`Plan`]. Out: an [`Outcome`] for
//! each: its timing, or why it was refused. Invariant: the caller's process never
//! touches the driver, so no kernel can crash or hang it; a candidate is timed only after its
//! results were found to agree with the baseline's; a child that is slow, dead or talks
//! nonsense is an [`Error`] or a refused candidate, never a panic and never a wait without end.
//!
//! ```text
//! caller:  ProcessPool -> Process (batch, child_io)
//!             |  requests over stdin     ^  replies over stdout (protocol)
//!             v                          |
//! worker:  serve -> Gpus (claim) -> schedule -> Bench = Gpu | Replay
//! ```

mod batch;
mod bench;
mod candidate;
mod child_io;
pub mod compare;
mod error;
mod gpu;
mod gpus;
mod inventory;
mod measurer;
mod memcheck;
mod options;
mod outcome;
mod pool;
mod process;
mod protocol;
mod race;
mod replay;
mod runner;
mod sampled;
mod schedule;
mod throttling;
mod variables;
pub mod verdict;
mod worker;

/// What the fuzz targets (tests/fuzz) reach of the private readers.
#[doc(hidden)]
pub mod fuzzed {
    use super::protocol::{Reply, Request, read};

    /// Reads messages of a measuring process, and requests to one.
    pub fn protocol(bytes: &[u8]) {
        let mut from = bytes;
        while let Ok(Some((_, payload))) = read::<Reply>(&mut from) {
            assert!(payload.len() <= bytes.len());
        }
        let mut from = bytes;
        while let Ok(Some((_, payload))) = read::<Request>(&mut from) {
            assert!(payload.len() <= bytes.len());
        }
    }
}

pub use candidate::{Caches, Candidate, Plan};
pub use error::Error;
pub use inventory::{GpuInventory, visible};
pub use measurer::{Measurer, ProgressCallback, Trial};
pub use memcheck::{MemcheckError, sanitize};
pub use options::Options;
pub use outcome::{Difference, Outcome, Reason, Timing, Timings};
pub use pool::ProcessPool;
pub use process::Process;
pub use protocol::VERSION as PROTOCOL_VERSION;
pub use race::{LAST_VERDICT, medians_by_set};
pub use runner::{RunnerError, split};
pub use worker::serve;
