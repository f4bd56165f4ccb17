//! The seam between the order in which candidates are timed and what times them.

use super::Reason;
use super::protocol::Job;
use crate::workload::Workload;

/// Runs jobs: the GPU, or recorded timings.
///
/// `alive` is to be called at least every few seconds of work that is not a kernel's.
pub(super) trait Bench {
    /// Takes what the jobs to come refer to by number, in place of what it had.
    fn load(&mut self, variants: Vec<Vec<u8>>, workloads: Vec<Workload>);

    /// Runs the baseline and keeps its results; microseconds of the launch.
    fn reference(&mut self, job: &Job, alive: &mut dyn FnMut()) -> Result<f64, Halt>;

    /// Runs a candidate once and compares its results with the baseline's; microseconds of the launch.
    fn check(&mut self, job: &Job, alive: &mut dyn FnMut()) -> Result<f64, Halt>;

    /// Makes a job that was checked ready to be sampled, where the process was started anew since.
    fn warm(&mut self, job: &Job, alive: &mut dyn FnMut()) -> Result<(), Halt>;

    /// Microseconds of one launch with cold caches.
    fn sample(&mut self, job: &Job) -> Result<f64, Halt>;
}

/// Why a job did not run to its end.
#[derive(Debug, PartialEq)]
pub(super) enum Halt {
    /// The candidate is refused; the bench goes on.
    Refused(Reason),
    /// The candidate is refused, and the bench is of no more use.
    Faulted(Reason),
    /// No candidate's fault.
    Failed(String),
}
