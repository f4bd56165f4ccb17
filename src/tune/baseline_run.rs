//! How the baseline of a kernel is launched, and on what: for who looks at it without tuning.

use super::Tuner;
use super::failure::Problem;
use super::kernel_info::{Ahead, learn};
use super::variants::FrontEnds;
use crate::comment::Annotation;
use crate::gpu::Machine;
use crate::launch::{Configuration, Launch};
use crate::nvcc::Toolchain;
use crate::workload::Workload;

/// The baseline of a kernel.
pub struct BaselineRun {
    /// The kernel's symbol.
    pub symbol: String,
    pub machine: Machine,
    pub configuration: Configuration,
    pub launch: Launch,
    /// Absent if the comment has no `args`.
    pub workload: Option<Workload>,
    /// Iterations of loops by the comment, from the outermost depth inwards.
    pub trips: Vec<f64>,
}

impl BaselineRun {
    /// Asks the compiler for what the launch depends on.
    ///
    /// # Errors
    /// Why the kernel could not be tuned either.
    pub fn new(tuner: &Tuner<'_>, toolchain: &Toolchain, annotation: &Annotation) -> Result<Self, Problem> {
        let subject = learn(tuner, toolchain, &mut FrontEnds::new(toolchain), annotation, Ahead::Baseline)?;
        let configuration = subject.baseline();
        let (launch, workload) = subject.launch(&configuration)?;
        let trips = subject.space.trip_counts(&configuration)?;
        Ok(Self { symbol: subject.entry.symbol, machine: subject.machine, configuration, launch, workload, trips })
    }
}
