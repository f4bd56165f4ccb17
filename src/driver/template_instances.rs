//! The comments of templates without a `template` clause -> those of the instances that are
//! recorded or in the lock file.

use super::build::Build;
use super::marked_source::MarkedSource;
use super::recordings::{reason_and_remedy, recorded_of};
use crate::comment::{Annotation, TemplateInstances};
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
        if self.settings.mode == Mode::Capture || !annotations.iter().any(Annotation::is_open) {
            return (annotations, problems);
        }
        let known = self.known_instances(&source.path);
        let mut found = Vec::new();
        for annotation in annotations {
            match annotation.is_open().then(|| known.of(&annotation)) {
                Some(Ok(instances)) if !instances.is_empty() => found.extend(instances),
                Some(Err(others)) => problems.extend(others),
                _ => found.push(annotation),
            }
        }
        (found, problems)
    }

    /// Leaves out the templates of which no instance is known.
    pub(super) fn leave_out_open(&self, source: &MarkedSource, folder: &Path, annotations: &mut Vec<Annotation>) {
        annotations.retain(|annotation| {
            if annotation.is_open() && self.concerns(source, annotation) {
                let other = if source.is_selected(annotation) { "" } else { ", or write template(...)" };
                let reason = reason_and_remedy(&recorded_of(folder, std::slice::from_ref(annotation)));
                let message =
                    format!("{}: not tuned: no launch of an instance is recorded{reason}{other}", annotation.name);
                self.console.warning(MessageCode::NotRecorded, message);
            }
            !annotation.is_open()
        });
    }

    /// Whether to warn of a template without an instance: of one that a pattern selects in an
    /// included file, other sources may have instances.
    pub(super) fn concerns(&self, source: &MarkedSource, annotation: &Annotation) -> bool {
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
