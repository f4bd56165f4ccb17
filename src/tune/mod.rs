//! One marked source: annotations -> winners, through every stage of the pipeline.

mod facts;
mod host;
mod kernel;
mod measured;
mod scored;
mod tuned;
mod variants;

pub use host::baseline_headers;
pub use kernel::architecture_number;
pub use tuned::Tuned;

use crate::comment::Annotation;
use crate::console::Console;
use crate::measure::{self, Measurer, Options, Process};
use crate::settings::{Mode, Settings, Timing};
use crate::variant::Toolchain;
use std::collections::BTreeMap;
use variants::FrontEnds;

/// Tunes the kernels of a compile; holds the measuring process for all of them.
pub struct Tuner<'a> {
    settings: &'a Settings,
    console: &'a Console,
    measurer: Option<Process>,
    timing: Timing,
}

impl<'a> Tuner<'a> {
    /// Starts the measuring process where the mode asks for it and there is a GPU.
    pub fn new(settings: &'a Settings, timing: Timing, console: &'a Console) -> Self {
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
        Self { settings, console, measurer, timing }
    }

    /// The compute capability of the GPU that candidates are timed on.
    pub fn device_architecture(&self) -> Option<u32> {
        self.measurer.as_ref().map(|measurer| measurer.device().compute_capability)
    }

    /// Decides for every annotation of a source, in order; a kernel that cannot be tuned is warned of and left out.
    pub fn tune(&mut self, toolchain: &Toolchain, annotations: &[Annotation]) -> Vec<Tuned> {
        let mut front_ends = FrontEnds::new(toolchain);
        // The macros of one kernel hold for the whole file: each kernel is tuned under the others' present values.
        let mut macros = BTreeMap::new();
        for annotation in annotations {
            if let Ok(baseline) = host::baseline(annotation, toolchain.architecture()) {
                macros.extend(baseline.macros);
            }
        }
        let mut tuned = Vec::new();
        for annotation in annotations {
            match kernel::tune(self, toolchain, &mut front_ends, annotation, &macros) {
                Ok(found) => {
                    macros.extend(found.winner().macros.clone());
                    tuned.push(found);
                }
                Err(problem) => problem.print(self.console, annotation),
            }
        }
        tuned
    }
}
