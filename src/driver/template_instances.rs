//! The comments of templates without a `template` clause -> those of the instances that are
//! recorded or in the lock file.

use super::build::Build;
use super::marked_source::MarkedSource;
use super::recordings::{reason_and_remedy, recordings_of};
use crate::comment::{Annotation, TemplateInstances, may_be_apart};
use crate::diag::{Diagnostic, MessageCode};
use crate::record::lock;
use crate::recording;
use crate::settings::Mode;
use std::path::{Path, PathBuf};

impl Build<'_> {
    /// Reads the comments of a source, and what is wrong with them. A template's comment without a
    /// `template` clause becomes those of its instances that are recorded, or in the lock file;
    /// where launches are to be recorded it stays, for the compiler knows all of them.
    pub(super) fn annotations(&self, source: &MarkedSource) -> (Vec<Annotation>, Vec<Diagnostic>) {
        let (annotations, mut problems) = source.annotations(self.settings.files.as_deref());
        if self.settings.mode == Mode::Capture || !annotations.iter().any(Annotation::is_for_all_instances) {
            return (annotations, problems);
        }
        let known = self.known_instances(&source.path);
        let own: Vec<Annotation> = annotations.iter().filter(|of| !of.is_for_all_instances()).cloned().collect();
        let mut found: Vec<Annotation> = Vec::new();
        for annotation in annotations {
            let (mut instances, misfits) = match annotation.is_for_all_instances() {
                true => known.comments_of(&annotation),
                false => (Vec::new(), Vec::new()),
            };
            problems.extend(misfits);
            // A specialization with a comment, or a kernel that is called so, is itself.
            let is_taken = |instance: &Annotation| {
                let mut others = own.iter().chain(&found);
                others.any(|other| other.name == instance.name && !may_be_apart(other, instance))
            };
            instances.retain(|instance| !is_taken(instance));
            match instances.is_empty() {
                true => found.push(annotation),
                false => found.extend(instances),
            }
        }
        (found, problems)
    }

    /// Leaves out the templates of which no instance is known.
    pub(super) fn leave_out_without_instance(
        &self,
        source: &MarkedSource,
        folder: &Path,
        annotations: &mut Vec<Annotation>,
    ) {
        annotations.retain(|annotation| {
            if annotation.is_for_all_instances() && self.warns_of(source, annotation) {
                let other = if source.is_selected(annotation) { "" } else { ", or write template(...)" };
                let reason = reason_and_remedy(&recordings_of(folder, std::slice::from_ref(annotation)));
                let message =
                    format!("{}: not tuned: no launch of an instance is recorded{reason}{other}", annotation.name);
                self.console.warning(MessageCode::NotRecorded, message);
            }
            !annotation.is_for_all_instances()
        });
    }

    /// Tells whether to warn of a template without an instance: of one that a pattern selects in an
    /// included file, other sources may have instances.
    pub(super) fn warns_of(&self, source: &MarkedSource, annotation: &Annotation) -> bool {
        let is_own = self.invocation.sources.contains(&PathBuf::from(&annotation.source.path));
        !source.is_selected(annotation) || is_own && !self.settings.kernels.is_all()
    }

    /// The instances of a source's templates that are recorded, or in the lock file.
    fn known_instances(&self, source: &Path) -> TemplateInstances {
        let stem = source.file_stem().unwrap_or_default().to_string_lossy();
        let mut instances = recording::instances(&self.capture_folder(&stem));
        if let Some(file) = self.results.lock(source, self.console) {
            for (key, entry) in &file.lock.entries {
                let parts =
                    lock::parts(key).filter(|(_, kernel, architecture)| file.key(source, kernel, architecture) == *key);
                if let Some(((_, kernel, _), instance)) = parts.zip(entry.basis.instance.as_ref()) {
                    instances.add(kernel, instance);
                }
            }
        }
        instances
    }
}
