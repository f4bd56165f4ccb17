//! Results of earlier builds: the cache, the lock files, and what this machine could time on.
//!
//! Opened once for a call. Nothing here opens a GPU or starts a process.

use super::cache::Cache;
use super::lock;
use super::lock::Lock;
use crate::diag::MessageCode;
use crate::diag::console::Console;
use crate::measure::GpuInventory;
use crate::process;
use crate::settings::{Mode, Settings};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What NVIDIA's kernel module shows of itself.
const DRIVER: &str = "/proc/driver/nvidia";

/// What is known before anything is compiled.
pub struct Results {
    pub cache: Option<Cache>,
    pub present: GpuInventory,
    named: Option<PathBuf>,
    /// A file that is not there is worth a word only where nothing else is to be asked.
    missing_matters: bool,
    locks: RefCell<HashMap<PathBuf, Rc<LockFile>>>,
    /// A cache that cannot be written is reported once.
    unwritable: std::cell::Cell<bool>,
}

/// A lock file that is there.
pub struct LockFile {
    pub path: PathBuf,
    pub lock: Lock,
}

impl LockFile {
    /// The key of a kernel of a source.
    pub fn key(&self, source: &Path, kernel: &str, architecture: &str) -> String {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        lock::key(&lock::relative(source, folder), kernel, architecture)
    }

    /// The name to speak of it by.
    pub fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

impl Results {
    /// Opens what the settings name.
    pub fn new(settings: &Settings) -> Self {
        Self {
            cache: settings.cache.as_deref().map(|folder| Cache::new(folder, settings.cache_bytes)),
            present: match settings.mode {
                Mode::Measure => GpuInventory::detect(settings, |name| std::env::var_os(name), Path::new(DRIVER)),
                Mode::Off | Mode::Locked | Mode::Static | Mode::Capture => GpuInventory::default(),
            },
            named: settings.lock.clone(),
            missing_matters: settings.mode == Mode::Locked,
            locks: RefCell::default(),
            unwritable: false.into(),
        }
    }

    /// The lock file for a source. One that cannot be used is warned of and ignored.
    pub fn lock(&self, source: &Path, console: &Console) -> Option<Rc<LockFile>> {
        let path = lock::of_source(self.named.as_deref(), source)?;
        if let Some(known) = self.locks.borrow().get(&path) {
            return Some(Rc::clone(known));
        }
        let is_trusted = self.named.is_some() || lock::is_trusted(&path, source);
        let lock = match Lock::read(&path) {
            Ok(_) if !is_trusted => {
                console.warning(
                    MessageCode::LockForeign,
                    format!(
                        "'{}' belongs to another user and is not used: to use it, name it by NVTUNE_LOCK",
                        path.display()
                    ),
                );
                Lock::default()
            }
            Ok(lock) => {
                for (key, why) in &lock.problems {
                    console.warning(
                        MessageCode::LockEntry,
                        format!("'{}': entry `{key}` is not used: {why}", path.display()),
                    );
                }
                lock
            }
            Err(lock::LockError::Io(error))
                if error.kind() == std::io::ErrorKind::NotFound && !self.missing_matters =>
            {
                Lock::default()
            }
            Err(error) => {
                console.warning(MessageCode::LockNotRead, format!("'{}' {error}; it is not used", path.display()));
                Lock::default()
            }
        };
        let found = Rc::new(LockFile { path: path.clone(), lock });
        self.locks.borrow_mut().insert(path, Rc::clone(&found));
        Some(found)
    }

    /// Does something with the cache, if there is one; what goes wrong is a warning, once.
    pub fn write(&self, console: &Console, write: impl FnOnce(&Cache) -> Result<(), String>) {
        let Some(cache) = &self.cache else { return };
        if let Err(problem) = write(cache) {
            // Nothing may be kept that repeats the warning.
            process::note_fault();
            if !self.unwritable.replace(true) {
                console.warning(MessageCode::CacheNotWritten, problem);
            }
        }
    }
}
