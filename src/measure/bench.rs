//! The interface between the schedule of jobs and what runs them.

use super::candidate::Caches;
use super::outcome::Reason;
use super::protocol::Job;
use crate::gpu::Condition;
use crate::workload::Workload;

/// Runs jobs: the GPU, or recorded timings.
///
/// `heartbeat` is to be called at least every few seconds of work that is not a kernel's.
pub(crate) trait Bench {
    /// Appends machine code and workloads, which jobs refer to by number.
    fn load(&mut self, variants: Vec<Vec<u8>>, workloads: Vec<Workload>);

    /// Frees everything that it holds.
    fn clear(&mut self);

    /// Runs the baseline and keeps its results; returns microseconds of the launch.
    fn reference(&mut self, job: &Job, heartbeat: &mut dyn FnMut()) -> Result<f64, JobError>;

    /// Tells whether the results that it keeps are this baseline's.
    fn has_reference(&self, job: &Job) -> bool;

    /// Runs a candidate once and compares its results with the baseline's.
    fn check(&mut self, job: &Job, heartbeat: &mut dyn FnMut()) -> Result<CheckedRun, JobError>;

    /// Prepares a job for sampling that was checked by an earlier process.
    fn warm(&mut self, job: &Job, heartbeat: &mut dyn FnMut()) -> Result<(), JobError>;

    /// Returns the microseconds of one launch.
    fn sample(&mut self, job: &Job, sampling: Sampling) -> Result<f64, JobError>;

    /// Returns the present condition of the GPU.
    fn condition(&mut self) -> Condition;
}

/// A run whose results agree with the baseline's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CheckedRun {
    /// Microseconds of the launch.
    pub us: f64,
    /// See [`Timing`](super::outcome::Timing).
    pub tolerance_used: Option<f64>,
}

/// How a sample is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sampling {
    /// Whether the kernel is short: several launches are queued as one graph, so that the launch
    /// overhead of the host is not timed.
    pub short: bool,
    pub caches: Caches,
    /// Which buffers: 0 are those that results are checked in, and another number stands for the same
    /// contents at other addresses, where the bench has room for them.
    pub buffer_set: u32,
}

/// Why a job did not complete.
#[derive(Debug, PartialEq)]
pub(crate) enum JobError {
    /// The candidate is refused; the bench remains usable.
    Refused(Reason),
    /// The candidate is refused, and the bench is no longer usable.
    Faulted(Reason),
    /// A failure that is not the candidate's fault.
    Failed(String),
}
