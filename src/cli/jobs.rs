//! Compiles whose kernels are to be tuned -> their records, by several processes at once.
//!
//! Each job runs in a process of its own (`nvtune decide`), so that what takes one down leaves
//! the others alone; what a job decides is in the cache before it ends, so that a run that was
//! killed goes on where it was.

use crate::diag::MessageCode;
use crate::diag::console::warn;
use crate::diag::print::show_line;
use crate::measure;
use crate::process;
use crate::record::Record;
use crate::say;
use crate::settings::{Settings, Trust, unknown_variables};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// One call of nvcc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildJob {
    pub folder: PathBuf,
    /// For the progress.
    pub file: String,
    /// The compiler as the call names it, where it does by a path.
    pub nvcc: Option<OsString>,
    pub arguments: Vec<OsString>,
}

/// How jobs are run.
#[derive(Clone, Debug, Default)]
pub struct Workers {
    /// Processes at once; [`SHARING`] for each GPU where not given.
    pub jobs: Option<usize>,
    /// In place of `NVTUNE_RUNNER`.
    pub runner: Option<String>,
}

/// Runs all jobs; gives the records of those that ended well, and the exit code: 1 where one
/// did not.
pub fn run(jobs: Vec<BuildJob>, workers: &Workers, trust: Trust) -> (Vec<Record>, u8) {
    process::watch_signals();
    let kept = "interrupted; what was decided and timed is kept, the same command goes on from there";
    process::set_last_words(Some(kept.to_owned()).filter(|_| trust != Trust::Nothing));
    // What is wrong with the values of known variables is said by each job.
    let (settings, _) = Settings::new(|name| std::env::var_os(name));
    unknown_variables(std::env::vars_os()).iter().for_each(|problem| warn(MessageCode::UnknownVariable, problem));
    let has_runner = workers.runner.is_some() || settings.runner.is_some();
    let gpus = if has_runner || settings.replay.is_some() { Vec::new() } else { gpu_uuids() };
    let count = workers.jobs.unwrap_or_else(|| default_workers(has_runner, gpus.len())).clamp(1, jobs.len().max(1));
    let progress = Progress {
        all: jobs.len(),
        done: AtomicUsize::new(0),
        begin: Instant::now(),
        has_line: settings.progress && std::io::stderr().is_terminal(),
    };
    let (next, records, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for worker in 0..count {
            let (jobs, next, records, failed, progress, gpus) = (&jobs, &next, &records, &failed, &progress, &gpus);
            process::spawn_or_run(scope, move || {
                let gpu = gpus.get(worker % gpus.len().max(1)).map(String::as_str);
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    progress.begins(job);
                    match run_job(job, gpu, workers, trust) {
                        Ok((mut found, said)) => {
                            progress.ends(job, gpu, &said);
                            if let Ok(mut records) = records.lock() {
                                records.append(&mut found);
                            }
                        }
                        Err(problem) => {
                            failed.fetch_add(1, Ordering::Relaxed);
                            progress.ends(job, gpu, &problem);
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner();
    progress.sums_up(count, failed);
    process::set_last_words(None);
    (records.into_inner().unwrap_or_default(), u8::from(failed > 0))
}

/// Sources that share a GPU: it times those of one, while the others compile
/// (`kernels/results/h100-80gb-hbm3/tune.txt`: 116 s for the suite one by one, 72 with two at
/// once, 54 with four, with winners as good).
const SHARING: usize = 4;

/// How many jobs run at once where nobody has said: no more than there are cores, and one
/// behind a runner, for only who gave it knows how many GPUs it has.
fn default_workers(has_runner: bool, gpus: usize) -> usize {
    if has_runner {
        return 1;
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (SHARING * gpus.max(1)).min(cores).max(gpus)
}

/// The GPUs of this machine as CUDA_VISIBLE_DEVICES names them; behind a runner there are none,
/// which gives one itself.
fn gpu_uuids() -> Vec<String> {
    measure::visible(|name| std::env::var_os(name)).unwrap_or_else(|| {
        let entries = std::fs::read_dir(Path::new("/proc/driver/nvidia/gpus")).into_iter().flatten();
        (0..entries.count()).map(|number| number.to_string()).collect()
    })
}

/// Runs one job; gives its records and what it said, or what went wrong.
fn run_job(
    job: &BuildJob,
    gpu: Option<&str>,
    workers: &Workers,
    trust: Trust,
) -> Result<(Vec<Record>, String), String> {
    let own = std::env::current_exe().map_err(|error| format!("cannot find nvtune's own program: {error}"))?;
    let mut command = Command::new(own);
    std::os::unix::process::CommandExt::arg0(&mut command, "nvtune");
    command.arg("decide").args((trust == Trust::Nothing).then_some("--anew"));
    command.arg("--").arg(job.nvcc.as_deref().unwrap_or("nvcc".as_ref())).args(&job.arguments);
    command.current_dir(&job.folder).stdin(Stdio::null());
    if let Some(gpu) = gpu {
        command.env("CUDA_VISIBLE_DEVICES", gpu);
    }
    if let Some(runner) = &workers.runner {
        command.env("NVTUNE_RUNNER", runner);
    }
    let output = process::run_worker(&mut command)
        .map_err(|error| format!("cannot start nvtune in '{}': {error}", job.folder.display()))?;
    let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
    if !output.status.success() {
        return Err(MessageCode::JobFailed.tag(format!("{said}\nnot tuned: it ended with {}", output.status)));
    }
    let records = serde_json::from_slice(&output.stdout)
        .map_err(|error| MessageCode::JobFailed.tag(format!("{said}\nnot tuned: {error}")))?;
    Ok((records, said))
}

/// The one display of all jobs.
struct Progress {
    all: usize,
    done: AtomicUsize,
    begin: Instant,
    /// Whether a line stands on the terminal until the next thing happens.
    has_line: bool,
}

/// Characters of the bar.
const BAR: usize = 20;

impl Progress {
    /// On a terminal, the line that stands until the next thing happens.
    fn begins(&self, job: &BuildJob) {
        if self.has_line {
            let done = self.done.load(Ordering::Relaxed);
            let full = BAR * done / self.all.max(1);
            let file: String = job.file.chars().filter(|c| !c.is_control()).collect();
            show_line(&format!("[{:BAR$}] {done}/{} {file} ...", "#".repeat(full), self.all));
        }
    }

    fn ends(&self, job: &BuildJob, gpu: Option<&str>, said: &str) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let gpu = gpu.map(|gpu| format!(" on GPU {gpu}")).unwrap_or_default();
        say!("[{done}/{}] {}{gpu}\n{said}", self.all, job.file);
    }

    fn sums_up(&self, workers: usize, failed: usize) {
        let seconds = self.begin.elapsed().as_secs_f64();
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        say!("{} sources in {seconds:.1} s, up to {workers} at once{failed}", self.all);
    }
}
