//! The templates that `NVTUNE_KERNELS` selects -> the instances of them that a build records or
//! tunes.

use super::build::Build;
use super::marked_source::{MarkedSource, MarkedSources};
use crate::comment::TemplateInstances;
use crate::diag::MessageCode;
use crate::nvcc::{Dryrun, Toolchain};
use crate::record::lock;
use crate::recording;
use crate::settings::Mode;
use crate::tune;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

impl Build<'_> {
    /// Finds the marked sources, with the instances of templates that `NVTUNE_KERNELS` selects:
    /// those that the compiler makes where launches are to be recorded, else those that are
    /// recorded or in the lock file.
    pub(super) fn find_with_instances(&self) -> MarkedSources {
        let selection = &self.settings.kernels;
        if self.settings.mode != Mode::Capture {
            return MarkedSource::find(self.invocation, selection, &|source| self.known_instances(source));
        }
        let dryrun = Dryrun::ask(&self.nvcc.path, &self.invocation.arguments);
        MarkedSource::find(self.invocation, selection, &|source| {
            let name = source.to_string_lossy();
            let dryrun = dryrun.as_ref().ok();
            let pipeline = dryrun.and_then(|steps| steps.pipelines().into_iter().find(|found| found.source == name));
            let toolchain = dryrun.zip(pipeline).and_then(|(steps, pipeline)| Toolchain::new(steps, pipeline).ok());
            // What the compiler does not take, it says itself in the end.
            toolchain.and_then(|toolchain| tune::template_instances(&toolchain).ok()).unwrap_or_default()
        })
    }

    /// Warns of the templates of the call's own sources that a pattern names and that stay as they
    /// are. Those of included files are other sources' too.
    pub(super) fn warn_of_templates(&self, templates: &BTreeSet<(PathBuf, String)>) {
        for (_, name) in templates.iter().filter(|(file, _)| self.invocation.sources.contains(file)) {
            let message = match self.settings.mode {
                Mode::Capture => format!("{name}: not recorded: the source makes no instance of it"),
                _ => format!(
                    "{name}: not tuned: no launch of an instance is recorded: build with NVTUNE=capture and run it"
                ),
            };
            self.console.warning(MessageCode::NotRecorded, message);
        }
    }

    /// The instances of a source's templates that are recorded, or in the lock file.
    fn known_instances(&self, source: &Path) -> TemplateInstances {
        let stem = source.file_stem().unwrap_or_default().to_string_lossy();
        let mut instances = recording::instances(&self.capture_folder(&stem));
        if let Some(file) = self.results.lock(source, self.console) {
            for (key, entry) in &file.lock.entries {
                let is_of = |(_, kernel, architecture)| file.key(source, kernel, architecture) == *key;
                if let Some(instance) = entry.basis.instance.as_ref().filter(|_| lock::parts(key).is_some_and(is_of)) {
                    instances.add(instance);
                }
            }
        }
        instances
    }
}
