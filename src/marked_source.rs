//! A source of a call that carries tuning comments -> its annotations, and the compiler's steps for it.

use crate::comment::{self, Annotation, Diagnostic, Source};
use crate::emit::Header;
use crate::nvcc::{Dryrun, Invocation, MarkedFile, Phase, Pipeline, marked_files};
use crate::tune;
use crate::variant::Toolchain;
use std::path::{Path, PathBuf};

/// A source of the call that is marked, itself or in what it includes.
pub struct MarkedSource {
    pub path: PathBuf,
    /// The source's name without folder and extension.
    pub stem: String,
    pub files: Vec<MarkedFile>,
    pub includes_header: bool,
}

impl MarkedSource {
    /// The marked sources of a call; none where it makes no machine code.
    pub fn of(invocation: &Invocation) -> Vec<Self> {
        if invocation.phase == Phase::NoCode || invocation.dry {
            return Vec::new();
        }
        let sources = invocation.sources.iter().filter_map(|path| {
            let stem = path.file_stem()?.to_string_lossy().into_owned();
            let (files, includes_header) = marked_files(path, &invocation.include_paths, &Header::file_name(&stem));
            (!files.is_empty()).then(|| Self { path: path.clone(), stem, files, includes_header })
        });
        sources.collect()
    }

    /// The name without the folder.
    pub fn file_name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Reads the tuning comments of every marked file, and the files of data that they name below the source's own folder or
    /// `data`. What is wrong with a file's comments comes beside the annotations of the others.
    pub fn annotations(&self, data: Option<&Path>) -> (Vec<Annotation>, Vec<Diagnostic>) {
        let (mut annotations, mut problems) = (Vec::new(), Vec::new());
        for file in &self.files {
            match comment::annotations(&Source::new(file.path.to_string_lossy(), &file.text)) {
                Ok(found) => annotations.extend(found),
                Err(diagnostics) => problems.extend(diagnostics),
            }
        }
        tune::load_files(&mut annotations, data);
        (annotations, problems)
    }

    /// The compiler's steps for the source on `device`'s architecture, with the baselines' header in its place; `Err` is why
    /// it cannot be tuned.
    pub fn toolchain(
        &self,
        dryrun: &Dryrun,
        annotations: &[Annotation],
        device: Option<u32>,
    ) -> Result<Toolchain, String> {
        let pipeline = chosen_pipeline(dryrun, &self.path.to_string_lossy(), device).ok_or_else(|| {
            "nvcc makes no linked machine code of it in this call (-rdc, -dlto or a virtual architecture)".to_owned()
        })?;
        let mut toolchain = Toolchain::new(dryrun, pipeline).map_err(|error| error.to_string())?;
        if self.includes_header {
            let kernels = tune::baseline_headers(annotations, toolchain.architecture());
            let text = Header { source: self.file_name(), kernels }.text();
            toolchain.provide_header(&Header::file_name(&self.stem), &text).map_err(|error| error.to_string())?;
        }
        Ok(toolchain)
    }
}

/// The pipeline to tune for: that of the device's architecture, else of the newest one; never of a relocatable or
/// link-time-optimised compile, whose machine code is made later.
fn chosen_pipeline(dryrun: &Dryrun, source: &str, device: Option<u32>) -> Option<Pipeline> {
    let pipelines: Vec<Pipeline> = dryrun
        .pipelines()
        .into_iter()
        .filter(|pipeline| pipeline.source == source)
        .filter(|pipeline| !["-c", "--compile-only"].iter().any(|option| pipeline.ptxas.has(option)))
        .collect();
    let exact = pipelines.iter().find(|pipeline| tune::architecture_number(&pipeline.architecture) == device);
    exact.or(pipelines.iter().max_by_key(|pipeline| tune::architecture_number(&pipeline.architecture))).cloned()
}
