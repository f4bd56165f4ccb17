//! The [`Measurer`] that uses a child process: `nvtune measure`, on this machine or behind a
//! runner.
//!
//! Invariants: a candidate that crashes, hangs or kills the child is refused, and the rest
//! continues in a new child. Every new child follows a refused candidate or ends the work, so the
//! work terminates.

use super::batch::{Batch, Catalog, encode_request};
use super::candidate::{Caches, Candidate, Plan};
use super::child_io::{ChildIo, Incoming};
use super::error::Error;
use super::measurer::{Measurer, ProgressCallback, Trial};
use super::options::Options;
use super::outcome::{Outcome, Reason, Timing, Timings};
use super::protocol::{Job, Reply, Request, Rounds};
use crate::diag::MessageCode;
use crate::gpu::{Conditions, Device};
use crate::process::tool_patience;
use std::time::{Duration, Instant};

/// A start that takes longer than this is printed.
const NOTICE_AFTER: Duration = Duration::from_secs(5);

/// Most messages in answer to one request: some for each sample, of which a whole space's
/// budget has some 100,000.
const MAX_REPLIES: u32 = 10_000_000;

/// Most samples of one candidate that are kept: a second of launches takes some 1,000.
const MAX_SAMPLES: usize = 100_000;

/// Maximum number of deaths of the process that are blamed on the running candidate.
const MAX_DEATHS: u32 = 3;

/// A launch that takes this many times the baseline's time counts as hung, if that is more than
/// the plan's patience.
const HUNG_FACTOR: f64 = 20.0;

/// A measuring process, started anew when a candidate takes it down. Ended when this is
/// dropped.
pub struct Process {
    options: Options,
    /// The command, for messages.
    name: String,
    device: Device,
    /// GPUs of its model where the process runs.
    gpus: usize,
    /// How long a launch may take; grows with the times of the baselines.
    patience: Duration,
    child_io: Option<ChildIo>,
    /// Whether the running process has claimed a GPU.
    claimed: bool,
    /// Whether what it was sent is on the GPU that it claimed before.
    paused: bool,
    /// Number of requests of [`Measurer::prepare_baseline`] that were not answered yet.
    preparing: usize,
    /// What the process knows by number.
    catalog: Catalog,
    conditions: Conditions,
    waited: Duration,
    deaths: u32,
}

impl Process {
    /// Starts the process and waits until it is ready. A machine without a driver or a GPU
    /// gives [`Error::NoDevice`], soon and without a word printed.
    pub fn start(options: Options) -> Result<Process, Error> {
        let command = options.command()?;
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        let mut process = Process {
            name: words.join(" "),
            options,
            device: Device::default(),
            gpus: 0,
            patience: Duration::ZERO,
            child_io: None,
            claimed: false,
            paused: false,
            preparing: 0,
            catalog: Catalog::default(),
            conditions: Conditions::default(),
            waited: Duration::ZERO,
            deaths: 0,
        };
        process.ensure_running()?;
        Ok(process)
    }

    /// How many GPUs of the device's model there are where the process runs.
    pub fn gpus(&self) -> usize {
        self.gpus
    }

    /// Starts the process if none runs.
    fn ensure_running(&mut self) -> Result<(), Error> {
        if self.child_io.is_some() {
            return Ok(());
        }
        self.claimed = false;
        self.paused = false;
        self.preparing = 0;
        self.catalog.forget_sent();
        let child_io = ChildIo::start(self.options.command()?)
            .map_err(|source| Error::Start { command: self.name.clone(), source })?;
        let limit = self.options.start_limit();
        let mut incoming = child_io.receive(limit.min(NOTICE_AFTER));
        if matches!(incoming, Incoming::Timeout) && limit > NOTICE_AFTER {
            self.options.say(
                MessageCode::Waiting,
                &format!("waiting for `{}` to start, at most {:.0} s", self.name, limit.as_secs_f64()),
            );
            incoming = child_io.receive(limit - NOTICE_AFTER);
        }
        match incoming {
            Incoming::Reply(Reply::Ready(device, gpus)) => {
                self.device = device;
                self.gpus = gpus;
                self.child_io = Some(child_io);
                Ok(())
            }
            Incoming::Reply(Reply::NoDevice(reason)) => Err(Error::NoDevice(reason)),
            other => Err(self.protocol_error(child_io, other, limit)),
        }
    }

    /// Claims a GPU if none is claimed; waiting for it counts against no budget.
    pub(super) fn claim(&mut self) -> Result<(), Error> {
        self.claim_within(self.options.wait())
    }

    fn claim_within(&mut self, wait: Duration) -> Result<(), Error> {
        self.finish_preparation();
        self.ensure_running()?;
        if self.claimed {
            return Ok(());
        }
        // `ensure_running` has put one there.
        let Some(child_io) = self.child_io.take() else { return Ok(()) };
        let begin = Instant::now();
        let silence = self.options.silence();
        child_io.send(encode_request(&Request::Claim { wait_s: wait.as_secs_f64() })?);
        let mut waiting = false;
        let outcome = loop {
            match child_io.receive(silence) {
                Incoming::Reply(Reply::Waiting) if begin.elapsed() < wait + silence => {
                    if !waiting {
                        let (name, most) = (&self.device.name, wait.as_secs_f64());
                        self.options.say(
                            MessageCode::Waiting,
                            &format!("waiting for the {name}, which another nvtune measures on, at most {most:.0} s"),
                        );
                    }
                    waiting = true;
                }
                Incoming::Reply(Reply::Working) => {}
                Incoming::Reply(Reply::Claimed(device)) => {
                    if std::mem::take(&mut self.paused) && device.uuid != self.device.uuid {
                        self.catalog.forget_loaded();
                    }
                    self.device = device;
                    self.claimed = true;
                    break Ok(());
                }
                Incoming::Reply(Reply::Busy | Reply::Waiting) => {
                    let gpus = match self.gpus {
                        0 | 1 => format!("the {}", self.device.name),
                        n => format!("all {n} {}", self.device.name),
                    };
                    break Err(Error::Busy { gpus, seconds: begin.elapsed().as_secs_f64() });
                }
                Incoming::Reply(Reply::Failed(message)) => return Err(Error::Failed(message)),
                other => return Err(self.protocol_error(child_io, other, silence)),
            }
        };
        if waiting {
            self.waited += begin.elapsed();
        }
        self.child_io = Some(child_io);
        outcome
    }

    /// Waits until the requests of [`Measurer::prepare_baseline`] are answered. If the process dies
    /// of one, a new one is started: the next request finds out what is wrong with the baseline.
    fn finish_preparation(&mut self) {
        let patience = self.patience.max(seconds(Plan::default().patience_s));
        let (mut is_running, mut bytes_taken, begin) = (false, 0, Instant::now());
        while self.preparing > 0 {
            let Some(child_io) = &self.child_io else { return };
            if begin.elapsed() > patience.saturating_add(tool_patience()) {
                self.child_io = None;
                self.preparing = 0;
                return;
            }
            match child_io.receive(if is_running { patience } else { self.options.silence() }) {
                Incoming::Reply(Reply::Working) => {}
                Incoming::Reply(Reply::Running(_)) => is_running = true,
                Incoming::Reply(Reply::Checked(_, us, _)) => {
                    is_running = false;
                    self.extend_patience(us);
                }
                Incoming::Reply(Reply::Refused(..)) => is_running = false,
                Incoming::Reply(Reply::Done) => self.preparing -= 1,
                Incoming::Timeout if !is_running && child_io.bytes_taken() > bytes_taken => {
                    bytes_taken = child_io.bytes_taken()
                }
                _ => {
                    self.child_io = None;
                    self.preparing = 0;
                }
            }
        }
    }

    /// Extends the time that a launch may take, for a kernel whose baseline takes `baseline_us`.
    fn extend_patience(&mut self, baseline_us: f64) {
        self.patience = self.patience.max(seconds(HUNG_FACTOR * baseline_us / 1e6));
    }

    /// Returns the error of a process that did not answer as the protocol says.
    fn protocol_error(&self, child_io: ChildIo, incoming: Incoming, limit: Duration) -> Error {
        let command = self.name.clone();
        match incoming {
            Incoming::Timeout => Error::Silent { command, seconds: limit.as_secs_f64() },
            Incoming::Version(theirs, said) => Error::Version { command, theirs, said },
            Incoming::NotProtocol(said) => Error::Nonsense { command, said },
            Incoming::Reply(reply) => Error::Nonsense { command, said: format!("{reply:?}") },
            Incoming::Closed => Error::Died { command, how: child_io.end() },
        }
    }

    /// Sends a request with everything that it refers to, and reports the progress of its jobs
    /// until it is served or the process is lost. From the first message on it may take `time`
    /// plus the time limit of tools.
    fn request(
        &mut self,
        request: &Request,
        time: Duration,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<RequestEnd, Error> {
        self.claim()?;
        // `claim` has put one there.
        let Some(child_io) = self.child_io.take() else {
            return Err(Error::Failed("no process".to_owned()));
        };
        for frame in self.catalog.frames()? {
            child_io.send(frame);
        }
        child_io.send(encode_request(request)?);
        let mut running: Option<u32> = None;
        let mut bytes_taken = 0;
        let (longest, mut begin) = (time.saturating_add(tool_patience()), None::<Instant>);
        for _ in 0..MAX_REPLIES {
            if begin.is_some_and(|begin| begin.elapsed() > longest) {
                let said = format!("messages without an end, for {:.0} s", longest.as_secs_f64());
                return Err(self.protocol_error(child_io, Incoming::NotProtocol(said), longest));
            }
            let limit = match running {
                Some(_) => self.patience,
                None => self.options.silence(),
            };
            let incoming = child_io.receive(limit);
            if matches!(incoming, Incoming::Reply(_)) {
                begin.get_or_insert_with(Instant::now);
            }
            // Behind a slow line machine code and files take their time.
            if matches!(incoming, Incoming::Timeout) && running.is_none() && child_io.bytes_taken() > bytes_taken {
                bytes_taken = child_io.bytes_taken();
                continue;
            }
            let lost = match (incoming, running) {
                (Incoming::Reply(reply), _) => match reply {
                    Reply::Working => continue,
                    Reply::Running(slot) => {
                        running = Some(slot);
                        continue;
                    }
                    Reply::Checked(slot, us, tolerance_used) => {
                        if slot == BASELINE {
                            self.extend_patience(us);
                        }
                        progress(Progress::Checked(slot, tolerance_used));
                        running = None;
                        continue;
                    }
                    Reply::Sample(slot, us) => {
                        progress(Progress::Sample(slot, us));
                        running = None;
                        continue;
                    }
                    Reply::Refused(slot, reason) => {
                        progress(Progress::Refused(slot, reason));
                        running = None;
                        continue;
                    }
                    Reply::Round(condition, counts) => {
                        self.conditions.add_round(&condition, counts);
                        progress(Progress::Round(counts));
                        continue;
                    }
                    Reply::Faulted(slot, reason) => (slot, reason),
                    Reply::Done => {
                        self.child_io = Some(child_io);
                        return Ok(RequestEnd::Complete);
                    }
                    Reply::Failed(message) => return Err(Error::Failed(message)),
                    Reply::Ready(..) | Reply::NoDevice(_) | Reply::Waiting | Reply::Claimed(_) | Reply::Busy => {
                        return Err(self.protocol_error(child_io, Incoming::Reply(reply), limit));
                    }
                },
                (Incoming::Timeout, Some(slot)) => {
                    let limit_s = limit.as_secs_f64();
                    (slot, Reason::Hung { limit_s })
                }
                (Incoming::Closed, Some(slot)) if self.deaths < MAX_DEATHS => {
                    self.deaths += 1;
                    let how = child_io.end();
                    progress(Progress::Refused(slot, Reason::Died { how }));
                    return Ok(RequestEnd::ProcessLost);
                }
                (Incoming::NotProtocol(said), Some(slot)) if self.deaths < MAX_DEATHS => {
                    self.deaths += 1;
                    let how = format!("it says {said}");
                    (slot, Reason::Died { how })
                }
                (incoming, _) => return Err(self.protocol_error(child_io, incoming, limit)),
            };
            progress(Progress::Refused(lost.0, lost.1));
            return Ok(RequestEnd::ProcessLost);
        }
        let said = format!("more than {MAX_REPLIES} messages without an end");
        Err(self.protocol_error(child_io, Incoming::NotProtocol(said), self.patience))
    }
}

/// The slot of the baseline.
const BASELINE: u32 = 0;

/// What the measuring process reports of a job.
enum Progress {
    /// With the share of the tolerance that its results take.
    Checked(u32, Option<f64>),
    Sample(u32, f64),
    Refused(u32, Reason),
    /// The end of a round: whether the samples since the one before count.
    Round(bool),
}

/// How a request ended.
enum RequestEnd {
    Complete,
    /// One more job was refused, and the process has ended.
    ProcessLost,
}

impl Measurer for Process {
    fn device(&self) -> &Device {
        &self.device
    }

    fn time_with_progress(&mut self, trial: Trial<'_>, on_progress: ProgressCallback<'_>) -> Result<Timings, Error> {
        let Trial { baseline, candidates, plan } = trial;
        let (begin, waited) = (Instant::now(), self.waited);
        self.patience = self.patience.max(seconds(plan.patience_s));
        let batch = Batch::new(&mut self.catalog, std::iter::once(baseline).chain(candidates));
        let mut states = vec![JobState::default(); batch.jobs.len()];
        loop {
            self.claim()?;
            let jobs = remaining_jobs(&batch.jobs, &states);
            let left = plan.budget_s - (begin.elapsed() - (self.waited - waited)).as_secs_f64();
            let request = Request::Time {
                jobs,
                plan: Plan {
                    budget_s: if left > 0.0 { left.min(1e9) } else { 0.0 },
                    keep: if plan.keep > 1.0 { plan.keep.min(1e9) } else { 1.0 },
                    patience_s: self.patience.as_secs_f64(),
                    ..*plan
                },
            };
            let served = self.request(&request, seconds(left), &mut |progress| {
                let is_more = matches!(progress, Progress::Round(true) | Progress::Refused(..));
                record_progress(&mut states, progress);
                if is_more {
                    on_progress(&settled_outcomes(&states, plan));
                }
            })?;
            if let Some(reason) = states.first().and_then(|state| state.refused.clone()) {
                return Err(Error::Baseline(reason));
            }
            let timed = states.first().is_some_and(|state| !state.samples.is_empty());
            match served {
                RequestEnd::Complete => break,
                RequestEnd::ProcessLost if timed && left <= 0.0 => break,
                RequestEnd::ProcessLost => {}
            }
        }
        let mut outcomes = states.into_iter().map(JobState::outcome);
        match outcomes.next() {
            Some(Outcome::Timed(baseline)) => Ok(Timings { baseline, candidates: outcomes.collect() }),
            _ => Err(Error::Failed("the baseline was not timed".to_owned())),
        }
    }

    fn time_paired(
        &mut self,
        contenders: &[Candidate],
        rounds: u32,
        caches: Caches,
    ) -> Result<Vec<Option<Vec<f64>>>, Error> {
        if self.patience.is_zero() {
            self.patience = seconds(Plan::default().patience_s);
        }
        let batch = Batch::new(&mut self.catalog, contenders);
        let mut states = vec![JobState::default(); batch.jobs.len()];
        let rounds = Rounds { count: rounds, caches, seed: Plan::default().seed };
        loop {
            for state in &mut states {
                state.samples.clear();
            }
            let jobs = remaining_jobs(&batch.jobs, &states);
            let launches = rounds.count.saturating_mul(u32::try_from(jobs.len()).unwrap_or(u32::MAX));
            let request = Request::Duel { jobs, rounds };
            let served = self.request(&request, self.patience.saturating_mul(launches), &mut |progress| {
                record_progress(&mut states, progress);
            })?;
            if matches!(served, RequestEnd::Complete) {
                break;
            }
        }
        Ok(states.into_iter().map(|state| state.refused.is_none().then_some(state.samples)).collect())
    }

    fn prepare_baseline(&mut self, baseline: &Candidate) {
        let (Some(child_io), false) = (&self.child_io, self.claimed || self.paused) else { return };
        let batch = Batch::new(&mut self.catalog, [baseline]);
        // What cannot be sent cannot be timed either, which is said then.
        let frames = batch.jobs.into_iter().next().and_then(|baseline| {
            let mut frames = self.catalog.frames().ok()?;
            frames.push(encode_request(&Request::Ahead { baseline }).ok()?);
            Some(frames)
        });
        if let Some(frames) = frames {
            frames.into_iter().for_each(|frame| child_io.send(frame));
            self.preparing += 1;
        }
    }

    fn claim_free(&mut self) -> Result<bool, Error> {
        match self.claim_within(Duration::ZERO) {
            Ok(()) => Ok(true),
            Err(Error::Busy { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn pause(&mut self) {
        if let (Some(child_io), true, Ok(frame)) = (&self.child_io, self.claimed, encode_request(&Request::Pause)) {
            child_io.send(frame);
            self.claimed = false;
            self.paused = true;
        }
    }

    fn waited(&self) -> Duration {
        self.waited
    }

    fn conditions(&mut self) -> Conditions {
        std::mem::take(&mut self.conditions)
    }

    fn release_gpu(&mut self) {
        self.catalog = Catalog::default();
        self.claimed = false;
        self.paused = false;
        self.patience = Duration::ZERO;
        if let (Some(child_io), Ok(frame)) = (&self.child_io, encode_request(&Request::Rest)) {
            child_io.send(frame);
        }
    }
}

/// The state of a job.
#[derive(Clone, Debug, Default)]
struct JobState {
    checked: bool,
    /// See [`Timing`].
    tolerance_used: Option<f64>,
    samples: Vec<f64>,
    /// How many of the samples are of rounds that count.
    counted: usize,
    refused: Option<Reason>,
}

impl JobState {
    /// What samples say of it.
    fn timing(&self, samples: Vec<f64>) -> Option<Timing> {
        Timing::new(samples).map(|timing| Timing { tolerance_used: self.tolerance_used, ..timing })
    }

    fn outcome(self) -> Outcome {
        match self.refused {
            Some(reason) => Outcome::Refused(reason),
            None => self.timing(self.samples.clone()).map_or(Outcome::Skipped, Outcome::Timed),
        }
    }
}

/// Minimum number of counted samples: a median of fewer depends on a single disturbed one.
const MIN_COUNTED_SAMPLES: usize = 3;

/// Returns the outcomes that are settled while a request is being served: refused jobs, those with
/// enough counted samples, those too slow to be sampled again, and the baseline, which all other
/// times are relative to.
fn settled_outcomes(states: &[JobState], plan: &Plan) -> Vec<Outcome> {
    let sure = |state: &JobState| state.samples.iter().take(state.counted).copied().fold(f64::INFINITY, f64::min);
    let best = states.iter().filter(|state| state.refused.is_none()).map(sure).fold(f64::INFINITY, f64::min);
    let outcome = |(slot, state): (u32, &JobState)| {
        let is_enough = state.counted >= MIN_COUNTED_SAMPLES.min(plan.rounds as usize) || slot == BASELINE;
        let enough = is_enough || sure(state) > plan.keep.max(1.0) * best;
        match &state.refused {
            Some(reason) => Outcome::Refused(reason.clone()),
            None if enough => {
                state.timing(state.samples[..state.counted].to_vec()).map_or(Outcome::Skipped, Outcome::Timed)
            }
            None => Outcome::Skipped,
        }
    };
    (0..).zip(states).map(outcome).collect()
}

/// Records the progress of a job; reports of unknown jobs are ignored.
fn record_progress(states: &mut [JobState], progress: Progress) {
    let (Progress::Checked(slot, _) | Progress::Sample(slot, _) | Progress::Refused(slot, _)) = progress else {
        let counts = matches!(progress, Progress::Round(true));
        for state in states {
            state.samples.truncate(if counts { usize::MAX } else { state.counted });
            state.counted = state.samples.len();
        }
        return;
    };
    let Some(state) = states.get_mut(slot as usize) else {
        return;
    };
    match progress {
        Progress::Checked(_, tolerance_used) => {
            state.checked = true;
            state.tolerance_used = tolerance_used.filter(|used| (0.0..=1.0).contains(used));
        }
        Progress::Sample(_, us) if us.is_finite() && us > 0.0 && state.samples.len() < MAX_SAMPLES => {
            state.samples.push(us)
        }
        Progress::Sample(..) | Progress::Round(_) => {}
        Progress::Refused(_, reason) => state.refused = Some(reason),
    }
}

/// The jobs that are not refused.
fn remaining_jobs(jobs: &[Job], states: &[JobState]) -> Vec<Job> {
    jobs.iter()
        .zip(states)
        .filter(|(_, state)| state.refused.is_none())
        .map(|(job, state)| Job { checked: state.checked, ..job.clone() })
        .collect()
}

/// A duration of this many seconds: at least a millisecond, at most some days, whatever the
/// number.
fn seconds(seconds: f64) -> Duration {
    let longest = Duration::from_secs(1_000_000);
    let positive = if seconds > 0.0 { seconds } else { 0.0 };
    Duration::try_from_secs_f64(positive).unwrap_or(longest).clamp(Duration::from_millis(1), longest)
}
