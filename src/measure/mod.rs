//! Candidates -> timings, in a process of their own.
//!
//! In: [`Candidate`]s (machine code, launch, workload) and a [`Plan`]. Out: an [`Outcome`] for each: its timing, or why it was
//! refused. What always holds: the caller's process never touches the driver, so no kernel can crash or hang it; a candidate is
//! timed only after its results were found to agree with the baseline's; a child that is slow, dead or talks nonsense is an
//! [`Error`] or a refused candidate, never a panic and never a wait without end.
//!
//! ```text
//! caller:  Pool -> Process (batch, link) -- requests over stdin ------> serve -> Gpus (claim) -> schedule -> Bench = Gpu | Replay
//!                                        <- replies over stdout (protocol) ----
//! ```

mod batch;
mod bench;
mod candidate;
mod child_io;
pub mod compare;
mod gpu;
mod gpus;
mod inventory;
mod memcheck;
mod options;
mod outcome;
mod pool;
mod process;
mod protocol;
mod replay;
mod runner;
mod schedule;
pub mod verdict;
mod worker;

pub use candidate::{Caches, Candidate, Plan};
pub use inventory::{Present, visible};
pub use memcheck::{Unsanitized, sanitize};
pub use options::Options;
pub use outcome::{Difference, Outcome, Reason, Timing, Timings};
pub use pool::Pool;
pub use process::{Error, Process};
pub use protocol::VERSION as PROTOCOL_VERSION;
pub use runner::{RunnerError, split};
pub use worker::serve;

use crate::gpu::Conditions;
use crate::gpu::Device;

use std::time::Duration;

/// What is timed together.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// What the candidates' results are compared with.
    pub baseline: &'a Candidate,
    pub candidates: &'a [Candidate],
    pub plan: &'a Plan,
}

/// Is shown what is known of a trial: see [`Measurer::time_watched`].
pub type Watch<'a> = &'a mut dyn FnMut(&[Outcome]);

/// Something that times candidates: a [`Process`], a [`Pool`] of them, or what a test puts in their place.
pub trait Measurer {
    /// The device that candidates are timed on.
    fn device(&self) -> &Device;

    /// Runs `baseline`, compares the results of each candidate with its results, and times those that agree.
    ///
    /// The outcomes are in the order of `candidates`. A candidate that crashes, hangs or gives other results is refused and the
    /// rest goes on; a baseline that does so is an error, for then there is nothing to compare with.
    fn time(&mut self, baseline: &Candidate, candidates: &[Candidate], plan: &Plan) -> Result<Timings, Error> {
        self.time_watched(Trial { baseline, candidates, plan }, &mut |_| {})
    }

    /// The same; whenever more is known for sure, `watch` is shown what: outcomes of the baseline and, behind it, of the first
    /// candidates or of all, of which those that are not settled yet are [`Outcome::Skipped`].
    fn time_watched(&mut self, trial: Trial<'_>, watch: Watch<'_>) -> Result<Timings, Error>;

    /// Times `contenders` (which have been through [`time`](Self::time)) in `rounds` rounds, each of them once a round in an
    /// order drawn anew, so that samples of one round are pairs under the same conditions, with such `caches` before each.
    ///
    /// Gives, for each contender, its time of each round in microseconds; `None` where it crashed or hung.
    fn duel(&mut self, contenders: &[Candidate], rounds: u32, caches: Caches) -> Result<Vec<Option<Vec<f64>>>, Error>;

    /// Says what the baseline of the next candidates will be, and does not wait: what can be done before they are known is done
    /// meanwhile, where a GPU is free.
    fn ahead(&mut self, _baseline: &Candidate) {}

    /// Claims a GPU for what follows, and says whether there was one that is free just now.
    fn claim_free(&mut self) -> Result<bool, Error> {
        Ok(true)
    }

    /// Lets others have the GPU for a moment. Unlike at a [`rest`](Self::rest), what was sent there stays: no more than others can spare.
    fn pause(&mut self) {}

    /// How long all this has waited for a GPU that others measured on: it counts against no budget.
    fn waited(&self) -> Duration {
        Duration::ZERO
    }

    /// How the GPU was in the rounds since this was asked last.
    fn conditions(&mut self) -> Conditions {
        Conditions::default()
    }

    /// Gives the GPU to others until something is to be timed again.
    fn rest(&mut self) {}
}
