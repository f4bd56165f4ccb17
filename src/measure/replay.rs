//! The [`Bench`] that answers from a file of recorded timings, for a machine without a GPU.
//!
//! ```json
//! {
//!   "device": {"name": "NVIDIA H200", "compute_capability": 90},
//!   "gpus": ["GPU-a", "GPU-b"],
//!   "start": "ready",
//!   "conditions": [{"sm_mhz": 1980, "throttled": ["power cap"]}, {"sm_mhz": 1980}],
//!   "entries": [
//!     {"kernel": "saxpy", "block": [64, 1, 1], "label": "cap=32", "time_us": 12.5},
//!     {"label": "block=96", "refused": {"faulted": {"error": "CUDA_ERROR_ILLEGAL_ADDRESS"}}},
//!     {"label": "block=128", "fault": "hang"},
//!     {"time_us": 20.0, "spread": 0.01}
//!   ]
//! }
//! ```
//!
//! The first entry whose conditions all hold answers a job: `kernel`, `grid`, `block`, `shared`
//! and `cooperative` are the launch's, and each word of `label` is a word of the candidate's
//! label. `time_us` is its time, with a deterministic noise of up to `spread` (a share of it)
//! up and down, `short_us`, where it is given, what is found for it as a short kernel's, and
//! `warm_us` with warm caches; `tolerance_used` is the share of the tolerance that its results
//! take; `refused` refuses it; `fault` breaks the process: `die`, `hang`,
//! `garbage`. `gpu` is the UUID of the one that runs the job: `gpus` are those of
//! all GPUs, where there is more than the one of `device`. `start` breaks the process before it
//! is ready: `die`, `hang`, `garbage`, `version`, `no-device`, or `banner`, which is harmless.
//! `conditions` are those at the ends of rounds; the last one stays. `uncompared`: the baseline
//! writes no buffer that is compared, for all jobs or for those of an entry. `pause_ms` is how long a launch keeps the process busy.
//! `log` is a file that says what ran, a line each: `baseline`, `check`, `warm` or `sample`,
//! and the candidate's label.

use super::bench::{Bench, CheckedRun, JobError, Sampling};
use super::candidate::Caches;
use super::outcome::Reason;
use super::protocol;
use super::protocol::{Job, Reply};
use crate::gpu::{Condition, Device};
use crate::launch::{Dim3, Launch};
use crate::say;
use crate::workload::Workload;
use serde::Deserialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// Recorded timings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recording {
    #[serde(default)]
    pub device: Device,
    #[serde(default)]
    pub start: Start,
    #[serde(default)]
    gpus: Vec<String>,
    #[serde(default)]
    conditions: Vec<Condition>,
    /// The baseline writes no buffer that is compared.
    #[serde(default)]
    uncompared: bool,
    log: Option<PathBuf>,
    entries: Vec<ReplayEntry>,
}

/// How the process starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Start {
    #[default]
    Ready,
    Die,
    Hang,
    Garbage,
    Version,
    NoDevice,
    Banner,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplayEntry {
    kernel: Option<String>,
    grid: Option<Dim3>,
    block: Option<Dim3>,
    shared: Option<u32>,
    cooperative: Option<bool>,
    label: Option<String>,
    gpu: Option<String>,
    time_us: Option<f64>,
    short_us: Option<f64>,
    warm_us: Option<f64>,
    #[serde(default)]
    spread: f64,
    #[serde(default)]
    pause_ms: u64,
    tolerance_used: Option<f64>,
    #[serde(default)]
    uncompared: bool,
    refused: Option<Reason>,
    fault: Option<Fault>,
}

/// How a process breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Fault {
    Die,
    Hang,
    Garbage,
    /// It says for ever that it is at work.
    Work,
    /// It sends samples of the baseline for ever.
    Samples,
}

impl Recording {
    /// Reads a recording; the error is a message with the file's name.
    pub fn read(path: &Path) -> Result<Recording, String> {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The GPUs, all alike but for their names.
    pub fn devices(&self) -> Vec<Device> {
        if self.gpus.is_empty() {
            return vec![self.device.clone()];
        }
        self.gpus.iter().map(|uuid| Device { uuid: uuid.clone(), ..self.device.clone() }).collect()
    }

    /// Whether it stands for a machine without a GPU.
    pub fn has_no_device(&self) -> bool {
        self.start == Start::NoDevice
    }
}

impl ReplayEntry {
    fn answers(&self, job: &Job, gpu: &String) -> bool {
        fn is<T: PartialEq>(wanted: &Option<T>, is: &T) -> bool {
            wanted.as_ref().is_none_or(|wanted| wanted == is)
        }
        is(&self.kernel, &job.kernel)
            && is(&self.gpu, gpu)
            && is(&self.grid, &job.launch.grid)
            && is(&self.block, &job.launch.block)
            && is(&self.shared, &job.launch.shared)
            && is(&self.cooperative, &job.cooperative)
            && self
                .label
                .iter()
                .all(|label| label.split_whitespace().all(|word| job.label.split_whitespace().any(|w| w == word)))
    }
}

/// The bench. `stdout` is the stream to the caller, for the fault that spoils it.
pub(super) struct Replay<W> {
    recording: Rc<Recording>,
    gpu: String,
    stdout: W,
    samples: u64,
    rounds: usize,
    /// The variant, workload and launch of the baseline that was run last.
    reference: Option<(usize, usize, Launch)>,
}

impl<W: Write> Replay<W> {
    pub fn new(recording: Rc<Recording>, gpu: String, stdout: W) -> Self {
        Replay { recording, gpu, stdout, samples: 0, rounds: 0, reference: None }
    }

    fn answer(&mut self, what: &str, job: &Job, sampling: Sampling) -> Result<f64, JobError> {
        if let Some(path) = &self.recording.log {
            let failed = |error: std::io::Error| JobError::Failed(format!("{}: {error}", path.display()));
            let mut log = std::fs::File::options().create(true).append(true).open(path).map_err(failed)?;
            writeln!(log, "{what} {}", job.label).map_err(failed)?;
        }
        let missing = || JobError::Failed(format!("nothing is recorded for {} with {}", job.kernel, job.label));
        let found = self.recording.entries.iter().find(|entry| entry.answers(job, &self.gpu));
        let entry = found.ok_or_else(missing)?;
        std::thread::sleep(Duration::from_millis(entry.pause_ms));
        if let Some(fault) = entry.fault {
            break_down(fault, &mut self.stdout);
        }
        match &entry.refused {
            Some(reason @ Reason::Faulted { .. }) => return Err(JobError::Faulted(reason.clone())),
            Some(reason) => return Err(JobError::Refused(reason.clone())),
            None => {}
        }
        let warm = entry.warm_us.filter(|_| sampling.caches == Caches::Warm);
        let short = entry.short_us.filter(|_| sampling.short);
        let time = warm.or(short).or(entry.time_us).ok_or_else(missing)?;
        // A low-discrepancy sequence: the same each time, and evenly spread over -1 to 1.
        self.samples += 1;
        let noise = (self.samples as f64 * 0.618_033_988_749_895).fract() * 2.0 - 1.0;
        Ok(time * (1.0 + entry.spread * noise))
    }
}

impl<W: Write> Bench for Replay<W> {
    fn load(&mut self, _: Vec<Vec<u8>>, _: Vec<Workload>) {}

    fn clear(&mut self) {
        self.reference = None;
    }

    fn reference(&mut self, job: &Job, _: &mut dyn FnMut()) -> Result<f64, JobError> {
        self.reference = Some((job.variant, job.workload, job.launch));
        self.answer("baseline", job, Sampling::default())
    }

    fn has_reference(&self, job: &Job) -> bool {
        self.reference == Some((job.variant, job.workload, job.launch))
    }

    fn check(&mut self, job: &Job, _: &mut dyn FnMut()) -> Result<CheckedRun, JobError> {
        let recording = Rc::clone(&self.recording);
        let found = recording.entries.iter().find(|entry| entry.answers(job, &self.gpu));
        if job.needs_comparison && (recording.uncompared || found.is_some_and(|entry| entry.uncompared)) {
            return Err(JobError::Refused(Reason::Uncompared));
        }
        let us = self.answer("check", job, Sampling::default())?;
        Ok(CheckedRun { us, tolerance_used: found.and_then(|entry| entry.tolerance_used) })
    }

    fn warm(&mut self, job: &Job, _: &mut dyn FnMut()) -> Result<(), JobError> {
        self.answer("warm", job, Sampling::default()).map(drop)
    }

    fn sample(&mut self, job: &Job, sampling: Sampling) -> Result<f64, JobError> {
        self.answer("sample", job, sampling)
    }

    fn condition(&mut self) -> Condition {
        let conditions = &self.recording.conditions;
        let condition = conditions.get(self.rounds).or(conditions.last());
        self.rounds += 1;
        condition.cloned().unwrap_or_default()
    }
}

/// Sends a message again and again until nobody reads it.
fn repeat(message: &Reply, stdout: &mut impl Write) -> ! {
    while protocol::write(stdout, message).is_ok() {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::process::exit(0)
}

/// Breaks this process as `fault` says. Returns only from [`Fault::Garbage`].
pub(super) fn break_down(fault: Fault, stdout: &mut impl Write) {
    match fault {
        Fault::Die => {
            say!("recorded death");
            std::process::exit(9)
        }
        Fault::Hang => loop {
            std::thread::park();
        },
        Fault::Work => repeat(&Reply::Working, stdout),
        Fault::Samples => repeat(&Reply::Sample(0, 100.0), stdout),
        Fault::Garbage => {
            // The caller may be gone already; there is nobody to tell.
            let _ = stdout.write_all(b"Segmentation fault (core dumped)\n");
            let _ = stdout.flush();
        }
    }
}
