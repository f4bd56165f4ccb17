//! The headers and records of a compile, next to what it makes: where they go, when they stay,
//! and what is taken back.

use super::build::Build;
use super::call_cache::CallLookup;
use super::tuning::Tuning;
use crate::diag::{FATAL, MessageCode};
use crate::nvcc::{Made, Phase};
use crate::process;
use crate::record::{checksum, read_regular};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long before nvtune's own start a header is dated; a build system's start of the call is
/// a little earlier.
const HEADER_AGE: Duration = Duration::from_millis(250);

/// The largest record, in bytes: readers load it whole.
const MOST_RECORD: usize = 16 << 20;

/// Points that every kernel keeps in its record.
const LEAST_ROWS: usize = 16;

impl Build<'_> {
    /// Returns the folder for headers and records, which must be there before anything is
    /// written.
    ///
    /// # Errors
    /// The exit code, once it is said that there is none.
    pub(super) fn header_folder(&self) -> Result<PathBuf, u8> {
        self.find_header_folder().map_err(|problem| match self.settings.header_folder {
            // Plain nvcc has no need of it.
            Some(_) => self.hand_to_nvcc(&problem),
            None => {
                self.console.fatal(MessageCode::OutputFolderMissing, problem);
                FATAL
            }
        })
    }

    fn find_header_folder(&self) -> Result<PathBuf, String> {
        if let Some(folder) = &self.settings.header_folder {
            std::fs::create_dir_all(folder)
                .map_err(|error| format!("cannot make NVTUNE_HEADER_DIR '{}': {error}", folder.display()))?;
            return Ok(folder.clone());
        }
        let folder = self.invocation.object_folder();
        if folder.is_dir() {
            return Ok(folder);
        }
        Err(format!("output folder '{}' does not exist; make it first", folder.display()))
    }

    /// Where nvcc fails or is stopped from now on, header and record of each source whose
    /// object is whole stay.
    pub(super) fn keep_for_whole_objects(&self, tunings: &[Tuning]) {
        let sources = tunings.iter().map(|tuning| tuning.source.path.clone());
        let made = sources.filter_map(|source| Some((Made::of(self.invocation, &source)?, source)));
        let made: BTreeMap<PathBuf, Made> = made.map(|(made, source)| (source, made)).collect();
        self.written.stay_where(Some(Box::new(move |source| made.get(source).is_some_and(Made::is_whole))));
    }

    /// Decides whose header and record stay: those of the first object of a folder, for as long
    /// as it is there. Builds of two objects that write over each other's header would each
    /// have the other done again, without end.
    pub(super) fn choose_lasting(&self, folder: &Path, tunings: &mut [Tuning]) {
        for tuning in tunings.iter_mut().filter(|tuning| tuning.has_results()) {
            if matches!(self.invocation.phase, Phase::Assembly(_)) {
                tuning.keeps_results = false;
                continue;
            }
            let (header, record) = tuning.results_in(folder);
            let shares_folder = self.settings.header_folder.is_some();
            let Some((other, own)) = tuning.object_of_others(&record, self.invocation, shares_folder) else { continue };
            tuning.keeps_results = false;
            if read_regular(&header).is_ok_and(|present| present != tuning.header_text().as_bytes()) {
                self.console.warn_if_the_build_passes(
                    MessageCode::HeaderOfOther,
                    format!(
                        "'{}' belongs to '{other}', not to '{own}': give each compile its own NVTUNE_HEADER_DIR",
                        header.display(),
                    ),
                );
            }
        }
    }

    pub(super) fn write_results(
        &self,
        folder: &Path,
        tuning: &Tuning,
        warm: Option<&CallLookup<'_>>,
    ) -> Result<(), String> {
        if !tuning.keeps_results || !tuning.has_results() {
            return Ok(());
        }
        let text = tuning.header_text();
        let (header, path) = tuning.results_in(folder);
        let source = &tuning.source.path;
        self.written.write(&header, text.as_bytes(), source)?;
        self.date_back(&header);
        if tuning.tuned.is_empty() {
            return Ok(());
        }
        if let Some(sum) = tuning.record.as_deref().filter(|_| warm.is_some()) {
            if read_regular(&path).is_ok_and(|present| checksum(&present) == sum) {
                return Ok(());
            }
            if let Some(text) = warm.and_then(|warm| warm.record(sum)) {
                return self.written.write(&path, &text, source);
            }
        }
        let text = self.record(tuning).ok_or("cannot write the record")?;
        self.written.write(&path, &text, source)
    }

    /// Ends a call whose objects are there, but are not what was timed.
    pub(super) fn take_back_all(&self, code: u8) -> u8 {
        self.written.stay_where(None);
        self.restore_files();
        code
    }

    /// A compile that fails leaves no object of its source; what is next to that must not speak
    /// of one.
    pub(super) fn restore_files(&self) {
        process::uninterrupted(|| self.written.restore());
    }

    /// The text of a source's record, with as many points as there is room for.
    pub(super) fn record(&self, tuning: &Tuning) -> Option<Vec<u8>> {
        let mut record = tuning.record(&self.invocation.arguments);
        loop {
            let text = serde_json::to_vec_pretty(&record).ok()?;
            let rows = record.kernels.iter().map(|decision| decision.configurations.len()).max().unwrap_or(0);
            if text.len() <= MOST_RECORD || rows <= LEAST_ROWS {
                return Some(text);
            }
            record.kernels.iter_mut().for_each(|decision| decision.thin_to(rows / 2));
        }
    }

    /// The compile that makes a header also depends on it. Ninja takes what is newer than the
    /// start of a command for changed since, and would run it once more.
    pub(super) fn date_back(&self, header: &Path) {
        let is_new = std::fs::metadata(header).and_then(|data| data.modified()).is_ok_and(|time| time > self.started);
        if is_new && let Ok(file) = std::fs::File::options().append(true).open(header) {
            // A date that cannot be set costs a build at most.
            let _ = file.set_modified(self.started - HEADER_AGE);
        }
    }
}
