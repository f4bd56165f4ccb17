//! Builds that record launches, and what programs recorded for the builds after them.

use super::build::Build;
use super::marked_source::MarkedSource;
use super::tuning::Tuning;
use crate::comment::{Annotation, Inferred, are_conditional, give_inferred};
use crate::cuda::{HostProgram, StructureMember};
use crate::diag::{MessageCode, in_units};
use crate::emit::{Capture, StubChange, StubText, has_stream_per_thread};
use crate::nvcc::{Dryrun, Programs};
use crate::recording;
use crate::recording::{LeftOut, RecordedKernel};
use crate::settings::bytes_setting;
use crate::tune;
use crate::tune::{KernelStub, Preprocessing, Problem};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// `NVTUNE_KERNELS=all` marks a kernel if this many times its work is at least the work of all
/// kernels: 1%.
const LEAST_SHARE: u64 = 100;

impl Build<'_> {
    /// Where the program records the launches of a source's kernels.
    pub(super) fn capture_folder(&self, stem: &str) -> PathBuf {
        let parent = self.settings.captures.as_ref().or(self.settings.header_folder.as_ref());
        let parent = parent.cloned().unwrap_or_else(|| self.invocation.object_folder());
        recording::folder(&std::path::absolute(&parent).unwrap_or(parent), OsStr::new(stem))
    }

    /// Gives the comments of a source what the program recorded. A kernel whose launch is then
    /// still unknown is left out with a warning.
    pub(super) fn apply_recordings(&self, source: &MarkedSource, annotations: &mut Vec<Annotation>) {
        let folder = self.capture_folder(&source.stem);
        if self.settings.kernels.is_all() {
            self.leave_out_minor(source, &folder, annotations);
        }
        self.leave_out_without_instance(source, &folder, annotations);
        if annotations.iter().all(|annotation| annotation.clauses.args.is_some()) {
            return;
        }
        let program = OnceCell::new();
        let members = |kind: &str, bytes: usize| {
            let program: &HostProgram = program.get_or_init(|| source.host_program());
            program.structure_members(kind, bytes)
        };
        annotations.retain_mut(|annotation| {
            annotation.clauses.args.is_some() || self.apply_recording(source, &folder, annotation, &members)
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
            let is_given =
                || matches!(recording::apply(&mut annotation.clone(), &recorded, &|_, _| Vec::new()), Ok(true));
            !is_minor && !is_given() && self.locked_launch(source, annotation).is_none()
        };
        let mut kernels = annotations.iter().zip(are_conditional(annotations));
        kernels.any(|(annotation, is_conditional)| is_conditional && is_open(annotation) && lacks(annotation))
    }

    /// Leaves out the kernels that `NVTUNE_KERNELS=all` marks and that have less than 1% of the
    /// recorded work, and names those that could not be recorded. Without a recording those count that
    /// the lock file has.
    fn leave_out_minor(&self, source: &MarkedSource, folder: &Path, annotations: &mut Vec<Annotation>) {
        let all = annotations.clone();
        let total = recording::total_work(folder.parent().unwrap_or(folder));
        annotations.retain(|annotation| {
            if !source.is_selected(annotation) {
                return true;
            }
            match RecordedKernel::read(folder, &annotation.name).work() {
                0 => self.apply_locked(source, &mut annotation.clone()),
                work => work.saturating_mul(LEAST_SHARE) >= total,
            }
        });
        if annotations.is_empty() && !all.is_empty() && total == 0 {
            let names: Vec<String> = all.iter().map(|annotation| annotation.name.clone()).collect();
            self.note_nothing_recorded(source.name(), &names, &reason_and_remedy(&recordings_of(folder, &all)));
            return;
        }
        self.note_left_out(source.name(), folder, annotations);
    }

    /// Names the kernels of a source that the program launched and did not record, each reason once.
    fn note_left_out(&self, source: impl Display, folder: &Path, tuned: &[Annotation]) {
        let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, kernel) in recording::kernels(folder) {
            let is_tuned = tuned.iter().any(|annotation| annotation.name == name);
            if !is_tuned && kernel.launches.is_empty() && !kernel.left_out.is_empty() {
                by_reason.entry(reason_and_remedy([&kernel])).or_default().push(name);
            }
        }
        for (reason, names) in by_reason {
            self.note_nothing_recorded(&source, &names, &reason);
        }
    }

    /// Says that no launch of these kernels of a source is recorded.
    fn note_nothing_recorded(&self, source: impl Display, names: &[String], reason_and_remedy: &str) {
        let names = listed(names);
        let message = format!("{source}: not tuned: no launch of {names} is recorded{reason_and_remedy}");
        self.console.summary(&MessageCode::NotRecorded.tag(message));
    }

    /// Gives one comment what the program recorded or, without a recording, what the lock file
    /// has of one; false with a warning where the kernel cannot be tuned.
    fn apply_recording(
        &self,
        source: &MarkedSource,
        folder: &Path,
        annotation: &mut Annotation,
        members: &dyn Fn(&str, usize) -> Vec<StructureMember>,
    ) -> bool {
        let name = annotation.name.clone();
        let recorded = RecordedKernel::read(folder, &name);
        for problem in &recorded.unusable {
            self.console.warning(MessageCode::RecordingNotUsed, format!("{name}: {problem}"));
        }
        match recording::apply(annotation, &recorded, members) {
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
            let remedy = reason_and_remedy([&recorded]);
            let message = format!("{name}: not tuned: no grid is given and no launch recorded{remedy}");
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
        tunings.iter_mut().for_each(|tuning| tuning.annotations.retain(|of| !of.is_for_all_instances()));
        Ok(Programs::new(&dryrun, self.nvcc))
    }

    fn capture_source(&self, dryrun: &Dryrun, tuning: &mut Tuning) {
        let source = tuning.source.name();
        self.console.compiling(&source);
        let toolchain = match tuning.preprocess(dryrun, None, |_, _| vec![Preprocessing::of_source()]) {
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
        tuning.cicc_outputs.push(toolchain.cicc_outputs());
        let has_stream_per_thread = has_stream_per_thread(&toolchain.device_source().unwrap_or_default());
        for (annotation, found) in found {
            match found {
                Ok(KernelStub { mangled, symbol, toolkit, probe, handles, loads_addresses }) => {
                    let (kernel, name) = (annotation.name.clone(), folder.display());
                    self.console.summary(&format!("{kernel}: launches are recorded below '{name}'"));
                    let instance = annotation.instance_name().unwrap_or_default();
                    let folder = folder.as_os_str().as_bytes().to_vec();
                    let capture = Capture {
                        folder,
                        kernel,
                        instance,
                        toolkit,
                        has_stream_per_thread,
                        probe,
                        handles,
                        loads_addresses,
                    };
                    let change = StubChange::Capture(capture);
                    tuning.captures.push(StubText { source: source.clone(), stub: mangled, symbol, change });
                }
                Err(Problem::NoInstance) if !self.warns_of(&tuning.source, &annotation) => {}
                Err(problem) => problem.print_not_recorded(self.console, &annotation),
            }
            if annotation.instance.as_ref().is_some_and(|instance| instance.is_recorded) {
                tuning.annotations.push(annotation);
            }
        }
    }
}

/// Returns what a folder has of the kernels of these comments.
pub(super) fn recordings_of(folder: &Path, annotations: &[Annotation]) -> Vec<RecordedKernel> {
    let is_of_any = |name: &str| annotations.iter().any(|annotation| annotation.may_be_named(name));
    recording::kernels(folder).into_iter().filter(|(name, _)| is_of_any(name)).map(|(_, kernel)| kernel).collect()
}

/// Why launches of these kernels were not recorded, as far as that is known, and what to do.
pub(super) fn reason_and_remedy<'a>(kernels: impl IntoIterator<Item = &'a RecordedKernel>) -> String {
    let reasons: Vec<&LeftOut> = kernels.into_iter().flat_map(|kernel| &kernel.left_out).collect();
    let sizes = reasons.iter().filter_map(|reason| match reason {
        LeftOut::TooLarge { needed, most } => Some((*needed, *most)),
        LeftOut::Other(_) => None,
    });
    let remedy = "build with NVTUNE=capture and run it";
    match (sizes.max(), reasons.first()) {
        (Some((needed, most)), _) => format!(
            ": its buffers take at least {}, more than NVTUNE_CAPTURE_BYTES ({}): {remedy} with NVTUNE_CAPTURE_BYTES={}",
            in_units(needed),
            in_units(most),
            bytes_setting(needed)
        ),
        (None, Some(LeftOut::Other(reason))) => format!(" ({reason}): {remedy}"),
        (None, _) => format!(": {remedy}"),
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
