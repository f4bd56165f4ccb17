//! The files that a build writes: one after another, and taken back together where it comes to nothing.

use super::{Replaced, write_if_changed};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a build has written so far. Copies are of one build: a signal's handler may hold one.
#[derive(Clone, Debug, Default)]
pub struct Written(Arc<Mutex<Vec<Replaced>>>);

impl Written {
    /// Writes a file, if it has other contents.
    ///
    /// # Errors
    /// Why it could not be written.
    pub fn write(&self, path: &Path, contents: &[u8]) -> Result<(), String> {
        self.locked().extend(write_if_changed(path, contents)?);
        Ok(())
    }

    /// Puts back what was there before: the first state of each file.
    pub fn restore(&self) {
        std::mem::take(&mut *self.locked()).iter().rev().for_each(Replaced::restore);
    }

    pub fn is_empty(&self) -> bool {
        self.locked().is_empty()
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Replaced>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
