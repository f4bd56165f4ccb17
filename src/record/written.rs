//! The files that a build writes: one after another, and taken back where what they speak of is not made.

use super::{Replaced, write_if_changed};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a build has written so far. Copies are of one build: a signal's handler may hold one.
#[derive(Clone, Default)]
pub struct Written(Arc<Mutex<Files>>);

#[derive(Default)]
struct Files {
    /// With the source that they speak of.
    replaced: Vec<(PathBuf, Replaced)>,
    is_made: Option<IsMade>,
}

/// Whether what files about a source speak of is there, whole.
type IsMade = Box<dyn Fn(&Path) -> bool + Send>;

impl Written {
    /// Writes a file about a source, if it has other contents.
    ///
    /// # Errors
    /// Why it could not be written.
    pub fn write(&self, path: &Path, contents: &[u8], source: &Path) -> Result<(), String> {
        let replaced = write_if_changed(path, contents)?;
        self.locked().replaced.extend(replaced.map(|replaced| (source.to_path_buf(), replaced)));
        Ok(())
    }

    /// From now on files stay for which `is_made` says so of their source; before, and with `None`, none does.
    pub fn stay_where(&self, is_made: Option<IsMade>) {
        self.locked().is_made = is_made;
    }

    /// Puts back what was there before: the first state of each file.
    pub fn restore(&self) {
        let Files { replaced, is_made } = std::mem::take(&mut *self.locked());
        let stays = |source: &Path| is_made.as_ref().is_some_and(|is_made| is_made(source));
        replaced.iter().rev().filter(|(source, _)| !stays(source)).for_each(|(_, replaced)| replaced.restore());
    }

    pub fn is_empty(&self) -> bool {
        self.locked().replaced.is_empty()
    }

    fn locked(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
