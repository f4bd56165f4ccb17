//! The launch and the workload of each kernel's baseline, for commands that do not tune
//! (`nvtune explain`).

use super::Tuner;
use super::failure::Problem;
use super::kernel_info::{InitialCompile, inspect_kernel};
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
    /// Compiles the baselines of a source's kernels and returns their runs, in order. Warns of a
    /// kernel that cannot be tuned and leaves it out.
    pub fn for_kernels(
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
        let info = inspect_kernel(tuner, toolchain, front_ends, annotation, InitialCompile::Baseline)?;
        let configuration = info.baseline();
        let (launch, workload) = info.launch(&configuration)?;
        let trips = info.space.trip_counts(&configuration)?;
        Ok(Self { symbol: info.entry.symbol, machine: info.machine, configuration, launch, workload, trips })
    }
}
