//! The seam between the order in which candidates are timed and what times them.

use super::candidate::Caches;
use super::outcome::Reason;
use super::protocol::Job;
use crate::gpu::Condition;
use crate::workload::Workload;

/// Runs jobs: the GPU, or recorded timings.
///
/// `alive` is to be called at least every few seconds of work that is not a kernel's.
pub(crate) trait Bench {
    /// Takes what the jobs to come refer to by number, behind what it has.
    fn load(&mut self, variants: Vec<Vec<u8>>, workloads: Vec<Workload>);

    /// Lets go of all that it has.
    fn clear(&mut self);

    /// Runs the baseline and keeps its results; microseconds of the launch.
    fn reference(&mut self, job: &Job, alive: &mut dyn FnMut()) -> Result<f64, Halt>;

    /// Whether the results that it keeps are this baseline's.
    fn has_reference(&self, job: &Job) -> bool;

    /// Runs a candidate once and compares its results with the baseline's; microseconds of the
    /// launch.
    fn check(&mut self, job: &Job, alive: &mut dyn FnMut()) -> Result<f64, Halt>;

    /// Makes a job that was checked ready to be sampled, where the process was started anew
    /// since.
    fn warm(&mut self, job: &Job, alive: &mut dyn FnMut()) -> Result<(), Halt>;

    /// Microseconds of one launch, or what stands for it.
    fn sample(&mut self, job: &Job, sampling: Sampling) -> Result<f64, Halt>;

    /// How the GPU is now.
    fn condition(&mut self) -> Condition;
}

/// How a sample is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sampling {
    /// The kernel is so short that several launches are taken together, by which the launch
    /// itself counts for little.
    pub short: bool,
    pub caches: Caches,
}

/// Why a job did not run to its end.
#[derive(Debug, PartialEq)]
pub(crate) enum Halt {
    /// The candidate is refused; the bench goes on.
    Refused(Reason),
    /// The candidate is refused, and the bench is of no more use.
    Faulted(Reason),
    /// No candidate's fault.
    Failed(String),
}
