//! How the baselines of kernels are launched, and on what: for who looks at them without tuning.

use super::Tuner;
use super::failure::Problem;
use super::kernel_info::{Ahead, learn};
use super::variants::FrontEnds;
use crate::comment::Annotation;
use crate::diag::console::Console;
use crate::gpu::Machine;
use crate::launch::{Configuration, FrontEndOptions, Launch};
use crate::nvcc::Toolchain;
use crate::process;
use crate::settings::Settings;
use crate::workload::Workload;
use rayon::prelude::*;

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
    /// Asks the compiler for what the launches of a source's kernels depend on, in order. A
    /// kernel that could not be tuned either is warned of and left out.
    pub fn of_all(
        settings: &Settings,
        console: &Console,
        toolchain: &Toolchain,
        annotations: &[Annotation],
    ) -> Vec<Self> {
        process::start_pool();
        let mut front_ends = FrontEnds::new(toolchain);
        if !annotations.is_empty() {
            front_ends.get(&[FrontEndOptions::default()]);
        }
        let looked = annotations.par_iter().map(|annotation| {
            let held = Console::new(false);
            held.hold(true);
            let run = Self::new(&Tuner::new(settings, &held), toolchain, &mut front_ends.clone(), annotation);
            (run, held.release())
        });
        let mut runs = Vec::new();
        for (annotation, (run, said)) in annotations.iter().zip(looked.collect::<Vec<_>>()) {
            console.say(said);
            match run {
                Ok(run) => runs.push(run),
                Err(problem) => problem.print(console, annotation),
            }
        }
        runs
    }

    fn new(
        tuner: &Tuner<'_>,
        toolchain: &Toolchain,
        front_ends: &mut FrontEnds<'_>,
        annotation: &Annotation,
    ) -> Result<Self, Problem> {
        let subject = learn(tuner, toolchain, front_ends, annotation, Ahead::Baseline)?;
        let configuration = subject.baseline();
        let (launch, workload) = subject.launch(&configuration)?;
        let trips = subject.space.trip_counts(&configuration)?;
        Ok(Self { symbol: subject.entry.symbol, machine: subject.machine, configuration, launch, workload, trips })
    }
}
