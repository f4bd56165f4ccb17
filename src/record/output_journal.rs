//! The files that a build writes: one after another, and taken back where what they speak of is
//! not made.

use super::digest::digest;
use super::file::{Replaced, overwrite, read_regular, remove, write_if_changed};
use crate::process::{NamedLock, tool_patience};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a build has written so far. Copies are of one build: a signal's handler may hold one.
#[derive(Clone, Default)]
pub struct WrittenFiles(Arc<Mutex<Files>>);

/// The files of a source that is built without winners.
#[derive(Clone, Debug)]
pub struct Baseline {
    pub header: PathBuf,
    /// That of the header.
    pub text: Vec<u8>,
    pub record: PathBuf,
}

#[derive(Default)]
struct Files {
    /// With the source that they speak of.
    replaced: Vec<(PathBuf, Replaced)>,
    is_made: Option<IsMade>,
    turns: Vec<NamedLock>,
}

/// Whether what files about a source speak of is there, whole.
type IsMade = Box<dyn Fn(&Path) -> bool + Send>;

impl WrittenFiles {
    /// Waits until no other build writes or reads any of these headers, and keeps them to this
    /// one until it ends: one source that is compiled twice into a folder, with other
    /// macros, has one header for both, and each compile must read its own.
    pub fn take_turns(&self, headers: impl Iterator<Item = PathBuf>) {
        let name = |path: PathBuf| {
            let path = std::path::absolute(&path).unwrap_or(path);
            let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
            let whole = folder.zip(path.file_name()).map_or(path.clone(), |(folder, name)| folder.join(name));
            digest([whole.as_os_str().as_encoded_bytes()])
        };
        // In order, so that no two builds wait for each other.
        let names: BTreeSet<String> = headers.map(name).collect();
        // Where there is no turn to be had, a build goes on: few have such a sibling.
        let turns =
            names.iter().filter_map(|name| NamedLock::wait_for(&format!("header-{name}"), tool_patience())).collect();
        self.locked().turns = turns;
    }

    /// Writes a file about a source, if it has other contents.
    ///
    /// # Errors
    /// Why it could not be written: that there is a file of somebody else's, too.
    pub fn write(&self, path: &Path, contents: &[u8], source: &Path) -> Result<(), String> {
        let is_special = |data: std::fs::Metadata| !data.is_file() && !data.is_dir();
        if std::fs::metadata(path).is_ok_and(is_special) || read_regular(path).is_ok_and(|present| !is_own(&present)) {
            return Err(format!(
                "'{}' was not written by nvtune: give it another name, or set NVTUNE_HEADER_DIR",
                path.display()
            ));
        }
        let replaced = write_if_changed(path, contents)?;
        self.locked().replaced.extend(replaced.map(|replaced| (source.to_path_buf(), replaced)));
        Ok(())
    }

    /// [`Self::restore`] keeps the files whose source `is_made` accepts. With `None`, as at the
    /// start, it keeps none.
    pub fn stay_where(&self, is_made: Option<IsMade>) {
        self.locked().is_made = is_made;
    }

    /// Puts back what was there before: the first state of each file.
    pub fn restore(&self) {
        let Files { replaced, is_made, turns: _turns } = std::mem::take(&mut *self.locked());
        let stays = |source: &Path| is_made.as_ref().is_some_and(|is_made| is_made(source));
        replaced.iter().rev().filter(|(source, _)| !stays(source)).for_each(|(_, replaced)| replaced.restore());
    }

    /// Restores the former files, with baseline headers: a build without winners follows.
    pub fn reset(&self, files: &[Baseline]) {
        self.stay_where(None);
        self.restore();
        for Baseline { header, text, record } in files {
            let is_own = |path: &PathBuf| read_regular(path).is_ok_and(|present| is_own(&present));
            if is_own(header) {
                overwrite(header, text);
            }
            if is_own(record) {
                remove(record);
            }
        }
    }

    /// Whether nothing was written and nothing is kept from others.
    pub fn is_empty(&self) -> bool {
        let files = self.locked();
        files.replaced.is_empty() && files.turns.is_empty()
    }

    fn locked(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a header or a record is one that nvtune has made, or is empty, as what a build may
/// begin with.
fn is_own(contents: &[u8]) -> bool {
    let text = String::from_utf8_lossy(contents);
    let is_record = text.trim_start().starts_with('{') && text.contains("\"nvtune\"");
    text.trim().is_empty() || is_record || text.lines().next().is_some_and(|line| line.contains("made by nvtune "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_speaks_of_winners_after_a_reset() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let [winner, baseline] = ["winner", "baseline"].map(|text| format!("/* made by nvtune {text} */\n"));
        for (present, expected) in [
            (None, None),
            (Some(&winner), Some(&baseline)),
            (Some(&"#pragma once\n".to_owned()), Some(&"#pragma once\n".to_owned())),
        ] {
            let _ = std::fs::remove_file(path("a.tune.h"));
            if let Some(text) = present {
                std::fs::write(path("a.tune.h"), text).expect("written");
            }
            std::fs::write(path("a.tune.json"), "{\"nvtune\": 1}").expect("written");
            let written = WrittenFiles::default();
            // The same as an earlier build has left, and so not written again.
            let _ = written.write(&path("a.tune.h"), winner.as_bytes(), Path::new("a.cu"));
            let text = baseline.clone().into_bytes();
            written.reset(&[Baseline { header: path("a.tune.h"), text, record: path("a.tune.json") }]);
            assert_eq!(std::fs::read_to_string(path("a.tune.h")).ok().as_ref(), expected, "{present:?}");
            assert!(!path("a.tune.json").exists());
        }
    }

    #[test]
    fn a_file_of_somebody_else_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.tune.h");
        for (present, is_written) in [
            (None, true),
            (Some(""), true),
            (Some("\n"), true),
            (Some("/* made by nvtune 0.1.0 from a.cu: do not edit */\n#define A 1\n"), true),
            (Some("{\n  \"format\": 1,\n  \"nvtune\": \"0.1.0\",\n"), true),
            (Some("{\"kernels\":[],\"nvtune\":\"0.1.0\"}"), true),
            (Some("#pragma once\n"), false),
            (Some("{}"), false),
        ] {
            let _ = std::fs::remove_file(&path);
            if let Some(text) = present {
                std::fs::write(&path, text).expect("written");
            }
            let written = WrittenFiles::default();
            assert_eq!(written.write(&path, b"new", Path::new("a.cu")).is_ok(), is_written, "{present:?}");
            let expected = if is_written { "new" } else { present.unwrap_or_default() };
            assert_eq!(std::fs::read(&path).expect("it is there"), expected.as_bytes(), "{present:?}");
        }
    }
}
