//! One marked source: annotations -> winners, through every stage of the pipeline.

mod axes;
mod caps;
mod explored;
mod facts;
mod files;
mod host;
mod kernel;
mod laid;
mod measured;
mod scored;
mod screen;
mod tuned;
mod variants;

pub use files::load as load_files;
pub use host::baseline_headers;
pub use kernel::{Prepared, Problem, architecture_number, recorded_variant};
pub use laid::{Code, Laid, Source, representatives};
pub use measured::{ROUNDS, baseline, candidates, finalists, settled};
pub use scored::{NoBaseline, Scored, score};
pub use tuned::Tuned;

use crate::comment::Annotation;
use crate::console::Console;
use crate::measure::{self, Device, Measurer, Options, Process};
use crate::settings::{Mode, Settings};
use crate::variant::Toolchain;
pub use variants::Macros;
use variants::{FrontEnds, InForce};

/// Tunes the kernels of a compile; holds the measuring process for all of them.
pub struct Tuner<'a> {
    settings: &'a Settings,
    console: &'a Console,
    measurer: Option<Process>,
}

impl<'a> Tuner<'a> {
    /// Starts the measuring process where the mode asks for it and there is a GPU.
    pub fn new(settings: &'a Settings, console: &'a Console) -> Self {
        let measurer = match settings.mode {
            Mode::Measure => match Options::from_environment().and_then(Process::start) {
                Ok(process) => Some(process),
                // A farm without GPUs is nothing to warn of: the provenance says `predicted`.
                Err(measure::Error::NoDevice(_)) => None,
                Err(error) => {
                    console.warning(&format!("nothing is timed: {error}"));
                    None
                }
            },
            Mode::Off | Mode::Locked | Mode::Static => None,
        };
        Self { settings, console, measurer }
    }

    /// The GPU that candidates are timed on.
    pub fn device(&self) -> Option<&Device> {
        self.measurer.as_ref().map(|measurer| measurer.device())
    }

    /// The measuring process.
    pub fn measurer(&mut self) -> Option<&mut Process> {
        self.measurer.as_mut()
    }

    /// The compute capability of the GPU that candidates are timed on.
    pub fn device_architecture(&self) -> Option<u32> {
        self.device().map(|device| device.compute_capability)
    }

    /// Decides for every annotation of a source, in order; a kernel that cannot be tuned is warned of and left out.
    pub fn tune(&mut self, toolchain: &Toolchain, annotations: &[Annotation]) -> Vec<Tuned> {
        let mut tuned = Vec::new();
        self.each(toolchain, annotations, |tuner, prepared| {
            let found = kernel::decide(tuner, toolchain.architecture(), prepared)?;
            let macros = found.winner().macros.clone();
            tuned.push(found);
            Ok(macros)
        });
        tuned
    }

    /// Compiles and scores the spaces of a source's kernels, one after the other, and gives each to `decide`, whose answer, the
    /// kernel's macros, holds for the kernels after it. A kernel that cannot be tuned is warned of and left out.
    pub fn each<'b>(
        &mut self,
        toolchain: &Toolchain,
        annotations: &'b [Annotation],
        mut decide: impl FnMut(&mut Self, &Prepared<'b>) -> Result<Macros, Problem>,
    ) {
        let mut front_ends = FrontEnds::new(toolchain);
        // The macros of one kernel hold for the whole file: each kernel is tuned under the others' present values.
        let baseline = |annotation| host::baseline(annotation, toolchain.architecture());
        let mut each: Vec<Macros> = annotations
            .iter()
            .map(|annotation| baseline(annotation).map(|found| found.macros).unwrap_or_default())
            .collect();
        let elsewhere = axes::defined_elsewhere(toolchain, &joined(&each));
        let problems: Vec<_> = each.iter().map(|own| axes::problem(own, &each, &elsewhere)).collect();
        for (own, _) in each.iter_mut().zip(&problems).filter(|(_, problem)| problem.is_some()) {
            own.clear();
        }
        let baselines = joined(&each);
        for (index, (annotation, problem)) in annotations.iter().zip(problems).enumerate() {
            let in_force = InForce { baselines: &baselines, now: &joined(&each) };
            let prepared = match problem {
                Some(problem) => Err(problem),
                None => kernel::prepare(self, toolchain, &mut front_ends, annotation, &in_force),
            };
            match prepared.and_then(|prepared| decide(self, &prepared)) {
                Ok(macros) => each[index] = macros,
                Err(problem) => {
                    each[index].clear();
                    problem.print(self.console, annotation);
                }
            }
        }
    }
}

/// The macros of all kernels of a file together.
fn joined(each: &[Macros]) -> Macros {
    each.iter().flatten().map(|(name, value)| (name.clone(), *value)).collect()
}
