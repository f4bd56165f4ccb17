//! Builds that record launches, and what programs recorded for the builds after them.

use super::build::Build;
use super::marked_source::{MarkedSource, MarkedSources};
use super::tuning::Tuning;
use crate::comment::{Annotation, Inferred, TemplateInstances, are_conditional, give_inferred};
use crate::diag::MessageCode;
use crate::emit::{Capture, StubChange, StubText};
use crate::nvcc::{Dryrun, Programs, Toolchain};
use crate::record::lock;
use crate::recording;
use crate::recording::RecordedKernel;
use crate::settings::Mode;
use crate::tune;
use crate::tune::KernelStub;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// `NVTUNE_KERNELS=all` marks a kernel if this many times its work is at least the work of all
/// kernels: 1%.
const LEAST_SHARE: u64 = 100;

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

    /// Where the program records the launches of a source's kernels.
    fn capture_folder(&self, stem: &str) -> PathBuf {
        let parent = self.settings.captures.as_ref().or(self.settings.header_folder.as_ref());
        let parent = parent.cloned().unwrap_or_else(|| self.invocation.object_folder());
        recording::folder(&std::path::absolute(&parent).unwrap_or(parent), OsStr::new(stem))
    }

    /// Gives the comments of a source what the program recorded. A kernel whose launch is then
    /// still unknown is left out with a warning.
    pub(super) fn apply_recordings(&self, source: &MarkedSource, annotations: &mut Vec<Annotation>) {
        if annotations.iter().all(|annotation| annotation.clauses.args.is_some()) {
            return;
        }
        let folder = self.capture_folder(&source.stem);
        if self.settings.kernels.is_all() {
            self.leave_out_minor(source, &folder, annotations);
        }
        annotations.retain_mut(|annotation| {
            annotation.clauses.args.is_some() || self.apply_recording(source, &folder, annotation)
        });
    }

    /// Whether a kernel that an `#if` may leave out has no recording that fits it: only what is
    /// compiled tells whether it needs one.
    pub(super) fn may_lack_recordings(&self, source: &MarkedSource, annotations: &[Annotation]) -> bool {
        let is_open = |annotation: &Annotation| annotation.clauses.args.is_none() && !annotation.has_grid();
        if !annotations.iter().any(is_open) {
            return false;
        }
        let folder = self.capture_folder(&source.stem);
        let is_all = self.settings.kernels.is_all();
        let has_recorded = is_all && recording::total_work(folder.parent().unwrap_or(&folder)) > 0;
        let lacks = |annotation: &Annotation| {
            let recorded = RecordedKernel::read(&folder, &annotation.name);
            // Left out without a word.
            let is_minor = has_recorded && source.is_selected(annotation) && recorded.work() == 0;
            let is_given = || matches!(recording::apply(&mut annotation.clone(), &recorded), Ok(true));
            !is_minor && !is_given() && self.locked_launch(source, annotation).is_none()
        };
        let mut kernels = annotations.iter().zip(are_conditional(annotations));
        kernels.any(|(annotation, is_conditional)| is_conditional && is_open(annotation) && lacks(annotation))
    }

    /// Leaves out the kernels that `NVTUNE_KERNELS=all` marks and that have less than 1% of the
    /// recorded work. Without a recording those count that the lock file has.
    fn leave_out_minor(&self, source: &MarkedSource, folder: &Path, annotations: &mut Vec<Annotation>) {
        let names: Vec<String> = annotations.iter().map(|annotation| annotation.name.clone()).collect();
        let total = recording::total_work(folder.parent().unwrap_or(folder));
        annotations.retain(|annotation| {
            if !source.is_selected(annotation) {
                return true;
            }
            let work = RecordedKernel::read(folder, &annotation.name).work();
            match work {
                0 => self.apply_locked(source, &mut annotation.clone()),
                work => work.saturating_mul(LEAST_SHARE) >= total,
            }
        });
        if annotations.is_empty() && !names.is_empty() && total == 0 {
            let (source, names) = (source.name(), listed(&names));
            self.console.summary(&MessageCode::NotRecorded.tag(format!(
                "{source}: not tuned: no launch of {names} is recorded: build with NVTUNE=capture and run it"
            )));
        }
    }

    /// Gives one comment what the program recorded or, without a recording, what the lock file
    /// has of one; false with a warning where the kernel cannot be tuned.
    fn apply_recording(&self, source: &MarkedSource, folder: &Path, annotation: &mut Annotation) -> bool {
        let name = annotation.name.clone();
        let recorded = RecordedKernel::read(folder, &name);
        for problem in &recorded.unusable {
            self.console.warning(MessageCode::RecordingNotUsed, format!("{name}: {problem}"));
        }
        match recording::apply(annotation, &recorded) {
            Ok(true) => return true,
            Ok(false) => {}
            Err(problem) => {
                let message = format!("{name}: not tuned: its recording cannot be used: {problem}");
                self.console.warning(MessageCode::RecordingNotUsed, message);
                return false;
            }
        }
        if self.apply_locked(source, annotation) {
            return true;
        }
        if !annotation.has_grid() {
            let reason = recorded.left_out.first().map(|reason| format!(" ({reason})")).unwrap_or_default();
            let message = format!(
                "{name}: not tuned: no grid is given and no launch recorded{reason}: build with NVTUNE=capture and run it"
            );
            self.console.warning(MessageCode::NotRecorded, message);
        }
        // What is wrong with the files is said, and is no fault of the comment's.
        annotation.has_grid() && recorded.unusable.is_empty()
    }

    /// Gives a comment what a recording on another machine gave it, by the lock file; false where
    /// that has nothing for it.
    fn apply_locked(&self, source: &MarkedSource, annotation: &mut Annotation) -> bool {
        let Some((place, inferred)) = self.locked_launch(source, annotation) else { return false };
        let is_given = give_inferred(annotation, inferred);
        if !is_given {
            let message = format!("{place} is not used: its `inferred` is no clause");
            self.console.warning(MessageCode::LockEntry, message);
        }
        is_given
    }

    /// What the lock file says that a recording gave a comment, and where it says so.
    fn locked_launch(&self, source: &MarkedSource, annotation: &Annotation) -> Option<(String, Inferred)> {
        let file = self.results.lock(&source.path, self.console)?;
        let prefix = file.key(&source.path, &annotation.name, "");
        let mut entries = file.lock.entries.iter().filter(|(key, _)| key.starts_with(&prefix));
        entries.find_map(|(key, entry)| {
            let inferred = Inferred { text: entry.basis.inferred.clone()?, data: entry.basis.data.clone() };
            Some((format!("'{}': entry `{key}`", file.path.display()), inferred))
        })
    }

    /// Finds the launch stubs that are to record; returns where the final build finds its
    /// programs.
    ///
    /// # Errors
    /// The exit code, where the call ends here.
    pub(super) fn capture(&self, tunings: &mut [Tuning]) -> Result<Programs, u8> {
        let dryrun = self.ask_steps(tunings)?;
        if !self.warn_untunable(tunings, &dryrun) {
            tunings.iter_mut().for_each(|tuning| self.capture_source(&dryrun, tuning));
        }
        Ok(Programs::new(&dryrun, self.nvcc))
    }

    fn capture_source(&self, dryrun: &Dryrun, tuning: &mut Tuning) {
        let source = tuning.source.name();
        self.console.compiling(&source);
        let toolchain = match tuning.preprocess(dryrun, None) {
            Ok(toolchain) => toolchain,
            Err(problem) => {
                let message = format!("{source}: its launches are not recorded: {problem}");
                return self.console.warning(MessageCode::ToolFailed, message);
            }
        };
        let annotations = tuning.compiled(&toolchain).into_owned();
        let folder = self.capture_folder(&tuning.source.stem);
        recording::clear(&folder);
        let found = match tune::kernel_stubs(&toolchain, &annotations) {
            Ok(found) => found,
            Err(problem) => {
                return annotations.iter().for_each(|annotation| problem.print_not_recorded(self.console, annotation));
            }
        };
        for (annotation, found) in annotations.iter().zip(found) {
            match found {
                Ok(KernelStub { mangled, symbol, toolkit }) => {
                    let (kernel, name) = (annotation.name.clone(), folder.display());
                    self.console.summary(&format!("{kernel}: launches are recorded below '{name}'"));
                    let instance = annotation.instance_name().unwrap_or_default();
                    let capture = Capture { folder: folder.as_os_str().as_bytes().to_vec(), kernel, instance, toolkit };
                    let change = StubChange::Capture(capture);
                    tuning.captures.push(StubText { source: source.clone(), stub: mangled, symbol, change });
                }
                Err(problem) => problem.print_not_recorded(self.console, annotation),
            }
        }
    }
}

/// Most kernels that a line names.
const MOST_NAMES: usize = 3;

/// Names kernels in a sentence.
fn listed(names: &[String]) -> String {
    let first = names.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_NAMES) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
