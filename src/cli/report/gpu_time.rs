//! Recordings next to records -> the share of the project's GPU time that each kernel takes.

use super::reading::ReadRecord;
use crate::recording::{RecordedKernel, folder, total_gpu_time_us};
use crate::settings::Settings;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What the recordings of a project say of times.
#[derive(Debug, Default)]
pub struct GpuTimes {
    /// The folder that all recordings are in; absent if each is next to its record.
    captures: Option<PathBuf>,
    /// The time of all recorded kernels.
    total_us: f64,
}

impl GpuTimes {
    /// Reads the recordings that belong to these records.
    pub fn read(records: &[ReadRecord]) -> Self {
        let (settings, _) = Settings::new(|name| std::env::var_os(name));
        let mut times = Self { captures: settings.captures, total_us: 0.0 };
        let folders: BTreeSet<PathBuf> = records.iter().map(|read| times.parent(&read.path).to_path_buf()).collect();
        times.total_us = folders.iter().map(|folder| total_gpu_time_us(folder)).sum();
        times
    }

    /// Returns the time of all recorded launches of a kernel; `None` if none was timed.
    pub fn of_kernel(&self, record: &Path, kernel: &str) -> Option<f64> {
        let name = record.file_name()?.to_str()?;
        let recordings = folder(self.parent(record), OsStr::new(name.strip_suffix(".tune.json")?));
        RecordedKernel::read(&recordings, kernel).gpu_time_us
    }

    /// Returns a time as a share of the project's.
    pub fn share(&self, time_us: f64) -> Option<f64> {
        (self.total_us > 0.0).then(|| time_us / self.total_us)
    }

    fn parent<'a>(&'a self, record: &'a Path) -> &'a Path {
        let folder = self.captures.as_deref().or(record.parent());
        folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}
