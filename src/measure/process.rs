//! [`Measurer`] by a child process: `nvtune measure`, on this machine or behind a runner.
//!
//! What always holds: a candidate that crashes, hangs or kills the child is refused by name, and the rest goes on in a new child;
//! each new child is paid for by one refused candidate or ends the work, so the work ends.

use super::link::{Incoming, Link};
use super::protocol::{self, Job, Reply, Request};
use super::{Candidate, Device, Measurer, Outcome, Plan, Reason, Timing, Timings};
use super::{RunnerError, split};
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// How long the child may say nothing while no kernel runs.
const SILENCE: Duration = Duration::from_secs(60);

/// A launch that takes this many times the baseline's time counts as hung, if that is more than the plan's patience.
const HUNG_FACTOR: f64 = 20.0;

/// Why nothing could be measured.
#[derive(Debug, Error)]
pub enum Error {
    /// The ordinary case of a machine without a GPU.
    #[error("no GPU to measure on: {0}")]
    NoDevice(String),
    #[error("NVTUNE_RUNNER: {0}")]
    Runner(#[from] RunnerError),
    #[error("cannot start the measuring process `{command}`: {source}")]
    Start { command: String, source: io::Error },
    #[error("the measuring process `{command}` said nothing for {seconds} s")]
    Silent { command: String, seconds: f64 },
    #[error("`{command}` is no nvtune, it says {said}")]
    Nonsense { command: String, said: String },
    #[error("`{command}` is another version of nvtune: it says {said}, not {}", protocol::HELLO)]
    Version { command: String, said: String },
    #[error("the measuring process `{command}` died ({how})")]
    Died { command: String, how: String },
    #[error("the baseline cannot be measured: {0}")]
    Baseline(Reason),
    #[error("the measuring process failed: {0}")]
    Failed(String),
    #[error("cannot be sent to the measuring process: {0}")]
    Unsendable(String),
}

/// How the child is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Words put before the command (`ssh gpu01`). With a runner the command is `nvtune`, found by it; else this executable.
    pub runner: Vec<String>,
    /// In place of that command.
    pub program: Option<PathBuf>,
    /// A file of recorded timings to answer from, instead of a GPU.
    pub replay: Option<PathBuf>,
    /// How long it may take to be ready: by default 30 s, and 10 minutes behind a runner, which may queue for a GPU.
    pub start_limit: Option<Duration>,
}

impl Options {
    /// From `NVTUNE_RUNNER`, and `NVTUNE_REPLAY` (a file of recorded timings).
    pub fn from_environment() -> Result<Options, Error> {
        let runner = match std::env::var_os("NVTUNE_RUNNER") {
            Some(text) => split(text.to_str().ok_or(RunnerError::NotText)?)?,
            None => Vec::new(),
        };
        Ok(Options { runner, replay: std::env::var_os("NVTUNE_REPLAY").map(PathBuf::from), ..Options::default() })
    }

    fn command(&self) -> Result<Command, Error> {
        let program = match (&self.program, self.runner.is_empty()) {
            (Some(program), _) => program.clone(),
            (None, false) => PathBuf::from("nvtune"),
            (None, true) => std::env::current_exe()
                .map_err(|source| Error::Start { command: "nvtune measure".to_owned(), source })?,
        };
        let mut command = match self.runner.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
            None => {
                let mut command = Command::new(program);
                // This executable may be called `nvcc`, and would be one.
                #[cfg(unix)]
                std::os::unix::process::CommandExt::arg0(&mut command, "nvtune");
                command
            }
        };
        command.arg("measure");
        if let Some(path) = &self.replay {
            command.arg("--replay").arg(path);
        }
        Ok(command)
    }

    fn limit(&self) -> Duration {
        let usual = if self.runner.is_empty() { 30 } else { 600 };
        self.start_limit.unwrap_or(Duration::from_secs(usual))
    }
}

/// A measuring process, started anew when a candidate takes it down. Ended when this is dropped.
pub struct Process {
    options: Options,
    /// The command, for messages.
    name: String,
    device: Device,
    /// How long a launch may take; grows with the baselines seen.
    patience: Duration,
    link: Option<Link>,
}

impl Process {
    /// Starts the process and waits until it is ready. A machine without a driver or a GPU gives [`Error::NoDevice`], soon and
    /// without a word printed.
    pub fn start(options: Options) -> Result<Process, Error> {
        let command = options.command()?;
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        let mut process = Process {
            name: words.join(" "),
            options,
            device: Device::default(),
            patience: seconds(Plan::default().patience_s),
            link: None,
        };
        process.ensure()?;
        Ok(process)
    }

    /// Starts the process where none runs.
    fn ensure(&mut self) -> Result<(), Error> {
        if self.link.is_some() {
            return Ok(());
        }
        let link = Link::start(self.options.command()?)
            .map_err(|source| Error::Start { command: self.name.clone(), source })?;
        let limit = self.options.limit();
        match link.receive(limit) {
            Incoming::Reply(Reply::Ready(device)) => {
                self.device = device;
                self.link = Some(link);
                Ok(())
            }
            Incoming::Reply(Reply::NoDevice(reason)) => Err(Error::NoDevice(reason)),
            other => Err(self.broken(link, other, limit)),
        }
    }

    /// What a link that does not say what it should is an error of.
    fn broken(&self, link: Link, incoming: Incoming, limit: Duration) -> Error {
        let command = self.name.clone();
        match incoming {
            Incoming::Silence => Error::Silent { command, seconds: limit.as_secs_f64() },
            Incoming::Version(said) => Error::Version { command, said },
            Incoming::Nonsense(said) => Error::Nonsense { command, said },
            Incoming::Reply(reply) => Error::Nonsense { command, said: format!("{reply:?}") },
            Incoming::End => Error::Died { command, how: link.end() },
        }
    }

    /// Sends a request with all that it refers to, and passes on what is said of its jobs until it is served or the process is
    /// lost.
    fn request(&mut self, batch: &Batch, request: &Request, told: &mut dyn FnMut(Told)) -> Result<Served, Error> {
        self.ensure()?;
        // `ensure` has put one there.
        let Some(link) = self.link.take() else {
            return Err(Error::Failed("no process".to_owned()));
        };
        for frame in batch.frames(request)? {
            link.send(frame);
        }
        let mut running: Option<u32> = None;
        loop {
            let limit = match running {
                Some(_) => self.patience,
                None => SILENCE,
            };
            let incoming = link.receive(limit);
            let lost = match (incoming, running) {
                (Incoming::Reply(reply), _) => match reply {
                    Reply::Working => continue,
                    Reply::Running(slot) => {
                        running = Some(slot);
                        continue;
                    }
                    Reply::Checked(slot, us) => {
                        if slot == BASELINE {
                            let baseline = seconds(HUNG_FACTOR * us / 1e6);
                            self.patience = self.patience.max(baseline);
                        }
                        told(Told::Checked(slot));
                        running = None;
                        continue;
                    }
                    Reply::Sample(slot, us) => {
                        told(Told::Sample(slot, us));
                        running = None;
                        continue;
                    }
                    Reply::Refused(slot, reason) => {
                        told(Told::Refused(slot, reason));
                        running = None;
                        continue;
                    }
                    Reply::Faulted(slot, reason) => (slot, reason),
                    Reply::Done => {
                        self.link = Some(link);
                        return Ok(Served::Whole);
                    }
                    Reply::Failed(message) => return Err(Error::Failed(message)),
                    Reply::Ready(_) | Reply::NoDevice(_) => {
                        return Err(self.broken(link, Incoming::Reply(reply), limit));
                    }
                },
                (Incoming::Silence, Some(slot)) => {
                    let limit_s = limit.as_secs_f64();
                    (slot, Reason::Hung { limit_s })
                }
                (Incoming::End, Some(slot)) => {
                    let how = link.end();
                    told(Told::Refused(slot, Reason::Died { how }));
                    return Ok(Served::Lost);
                }
                (Incoming::Nonsense(said), Some(slot)) => {
                    let how = format!("it says {said}");
                    (slot, Reason::Died { how })
                }
                (incoming, _) => return Err(self.broken(link, incoming, limit)),
            };
            told(Told::Refused(lost.0, lost.1));
            return Ok(Served::Lost);
        }
    }
}

/// The slot of the baseline.
const BASELINE: u32 = 0;

/// What is said of a job.
enum Told {
    Checked(u32),
    Sample(u32, f64),
    Refused(u32, Reason),
}

/// How a request ended.
enum Served {
    Whole,
    /// One more job was refused and the process is gone.
    Lost,
}

impl Measurer for Process {
    fn device(&self) -> &Device {
        &self.device
    }

    fn time(&mut self, baseline: &Candidate, candidates: &[Candidate], plan: &Plan) -> Result<Timings, Error> {
        let begin = Instant::now();
        self.patience = seconds(plan.patience_s);
        let mut batch = Batch::default();
        for candidate in std::iter::once(baseline).chain(candidates) {
            batch.add(candidate);
        }
        let mut states = vec![State::default(); batch.jobs.len()];
        loop {
            let jobs = remaining(&batch.jobs, &states);
            let left = plan.budget_s - begin.elapsed().as_secs_f64();
            let request = Request::Time {
                jobs,
                plan: Plan {
                    budget_s: if left > 0.0 { left.min(1e9) } else { 0.0 },
                    keep: if plan.keep > 1.0 { plan.keep.min(1e9) } else { 1.0 },
                    patience_s: self.patience.as_secs_f64(),
                    ..*plan
                },
            };
            let served = self.request(&batch, &request, &mut |told| {
                note(&mut states, told);
            })?;
            if let Some(reason) = states.first().and_then(|state| state.refused.clone()) {
                return Err(Error::Baseline(reason));
            }
            let timed = states.first().is_some_and(|state| !state.samples.is_empty());
            match served {
                Served::Whole => break,
                Served::Lost if timed && begin.elapsed().as_secs_f64() > plan.budget_s => break,
                Served::Lost => {}
            }
        }
        let mut outcomes = states.into_iter().map(State::outcome);
        match outcomes.next() {
            Some(Outcome::Timed(baseline)) => Ok(Timings { baseline, candidates: outcomes.collect() }),
            _ => Err(Error::Failed("the baseline was not timed".to_owned())),
        }
    }

    fn duel(&mut self, contenders: &[Candidate], rounds: u32) -> Result<Vec<Option<Vec<f64>>>, Error> {
        let mut batch = Batch::default();
        for candidate in contenders {
            batch.add(candidate);
        }
        let mut states = vec![State::default(); batch.jobs.len()];
        loop {
            for state in &mut states {
                state.samples.clear();
            }
            let request = Request::Duel { jobs: remaining(&batch.jobs, &states), rounds, seed: Plan::default().seed };
            let served = self.request(&batch, &request, &mut |told| {
                note(&mut states, told);
            })?;
            if matches!(served, Served::Whole) {
                break;
            }
        }
        Ok(states.into_iter().map(|state| state.refused.is_none().then_some(state.samples)).collect())
    }
}

/// What is known of a job.
#[derive(Clone, Debug, Default)]
struct State {
    checked: bool,
    samples: Vec<f64>,
    refused: Option<Reason>,
}

impl State {
    fn outcome(self) -> Outcome {
        match self.refused {
            Some(reason) => Outcome::Refused(reason),
            None => Timing::new(self.samples).map_or(Outcome::Skipped, Outcome::Timed),
        }
    }
}

/// Notes what was said of a job; what is said of one that does not exist is not believed.
fn note(states: &mut [State], told: Told) {
    let (Told::Checked(slot) | Told::Sample(slot, _) | Told::Refused(slot, _)) = told;
    let Some(state) = states.get_mut(slot as usize) else {
        return;
    };
    match told {
        Told::Checked(_) => state.checked = true,
        Told::Sample(_, us) if us.is_finite() && us > 0.0 => state.samples.push(us),
        Told::Sample(..) => {}
        Told::Refused(_, reason) => state.refused = Some(reason),
    }
}

/// The jobs that are not refused.
fn remaining(jobs: &[Job], states: &[State]) -> Vec<Job> {
    jobs.iter()
        .zip(states)
        .filter(|(_, state)| state.refused.is_none())
        .map(|(job, state)| Job { checked: state.checked, ..job.clone() })
        .collect()
}

/// Jobs with the variants and workloads that they share.
#[derive(Default)]
struct Batch {
    jobs: Vec<Job>,
    variants: Vec<Arc<[u8]>>,
    workloads: Vec<Arc<crate::workload::Workload>>,
    variant_numbers: HashMap<Arc<[u8]>, usize>,
}

impl Batch {
    /// Adds a candidate; its slot is its place in the order of adding.
    fn add(&mut self, candidate: &Candidate) {
        let variants = &mut self.variants;
        let variant = *self.variant_numbers.entry(Arc::clone(&candidate.cubin)).or_insert_with(|| {
            variants.push(Arc::clone(&candidate.cubin));
            variants.len() - 1
        });
        let known = self
            .workloads
            .iter()
            .position(|workload| Arc::ptr_eq(workload, &candidate.workload) || **workload == *candidate.workload);
        let workload = known.unwrap_or_else(|| {
            self.workloads.push(Arc::clone(&candidate.workload));
            self.workloads.len() - 1
        });
        self.jobs.push(Job {
            slot: self.jobs.len() as u32,
            label: candidate.label.clone(),
            kernel: candidate.kernel.clone(),
            launch: candidate.launch,
            variant,
            workload,
            checked: false,
        });
    }

    /// The frames of a request and of all that it may refer to.
    fn frames(&self, request: &Request) -> Result<Vec<Vec<u8>>, Error> {
        let frame = |message: &Request, payload: &[u8]| {
            protocol::frame(message, payload).map_err(|e| Error::Unsendable(e.to_string()))
        };
        let mut frames = Vec::new();
        for variant in &self.variants {
            frames.push(frame(&Request::Variant, variant)?);
        }
        for workload in &self.workloads {
            // JSON has no infinity: it would arrive as nothing, and be taken for nonsense there.
            let text = frame(&Request::Workload((**workload).clone()), &workload.detached())?;
            if protocol::read::<Request>(&mut text.as_slice()).is_err() {
                let message = "a buffer's contents or tolerance is not a finite number";
                return Err(Error::Unsendable(message.to_owned()));
            }
            frames.push(text);
        }
        frames.push(frame(request, &[])?);
        Ok(frames)
    }
}

/// A duration of so many seconds: at least a millisecond, at most some days, whatever the number.
fn seconds(seconds: f64) -> Duration {
    let longest = Duration::from_secs(1_000_000);
    let positive = if seconds > 0.0 { seconds } else { 0.0 };
    Duration::try_from_secs_f64(positive).unwrap_or(longest).clamp(Duration::from_millis(1), longest)
}
