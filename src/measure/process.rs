//! [`Measurer`] by a child process: `nvtune measure`, on this machine or behind a runner.
//!
//! Invariant: a candidate that crashes, hangs or kills the child is refused by name,
//! and the rest goes on in a new child; each new child is paid for by one refused candidate or
//! ends the work, so the work ends.

use super::batch::{Batch, Catalog};
use super::candidate::{Caches, Candidate, Plan};
use super::child_io::{ChildIo, Incoming};
use super::error::Error;
use super::measurer::{Measurer, Trial, Watch};
use super::options::Options;
use super::outcome::{Outcome, Reason, Timing, Timings};
use super::protocol;
use super::protocol::{Job, Reply, Request, Rounds};
use crate::diag::MessageCode;
use crate::gpu::{Conditions, Device};
use crate::process::tool_patience;
use std::time::{Duration, Instant};

/// A start that takes longer is worth a word to the user.
const LONG: Duration = Duration::from_secs(5);

/// Most messages in answer to one request: some for each sample, of which a whole space's
/// budget has some 100,000.
const MOST_REPLIES: u32 = 10_000_000;

/// Most samples of one candidate that are kept: a second of launches takes some 1,000.
const MOST_SAMPLES: usize = 100_000;

/// The most processes that may die with a candidate that is then refused; more deaths are no
/// candidate's fault.
const DEATHS: u32 = 3;

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
    /// How long a launch may take; grows with the baselines seen.
    patience: Duration,
    link: Option<ChildIo>,
    /// Whether the running process has claimed a GPU.
    claimed: bool,
    /// Whether what it was sent is on the GPU that it claimed before.
    paused: bool,
    /// Requests of [`Measurer::ahead`] of which nothing was heard yet.
    ahead: usize,
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
            link: None,
            claimed: false,
            paused: false,
            ahead: 0,
            catalog: Catalog::default(),
            conditions: Conditions::default(),
            waited: Duration::ZERO,
            deaths: 0,
        };
        process.ensure()?;
        Ok(process)
    }

    /// How many GPUs of the device's model there are where the process runs.
    pub fn gpus(&self) -> usize {
        self.gpus
    }

    /// Starts the process where none runs.
    fn ensure(&mut self) -> Result<(), Error> {
        if self.link.is_some() {
            return Ok(());
        }
        self.claimed = false;
        self.paused = false;
        self.ahead = 0;
        self.catalog.sent_nothing();
        let link = ChildIo::start(self.options.command()?)
            .map_err(|source| Error::Start { command: self.name.clone(), source })?;
        let limit = self.options.start_limit();
        let mut incoming = link.receive(limit.min(LONG));
        if matches!(incoming, Incoming::Silence) && limit > LONG {
            self.options.say(
                MessageCode::Waiting,
                &format!("waiting for `{}` to start, at most {:.0} s", self.name, limit.as_secs_f64()),
            );
            incoming = link.receive(limit - LONG);
        }
        match incoming {
            Incoming::Reply(Reply::Ready(device, gpus)) => {
                self.device = device;
                self.gpus = gpus;
                self.link = Some(link);
                Ok(())
            }
            Incoming::Reply(Reply::NoDevice(reason)) => Err(Error::NoDevice(reason)),
            other => Err(self.broken(link, other, limit)),
        }
    }

    /// Claims a GPU where none is; waits for it, which counts against no budget.
    pub(super) fn claim(&mut self) -> Result<(), Error> {
        self.claim_within(self.options.wait())
    }

    fn claim_within(&mut self, wait: Duration) -> Result<(), Error> {
        self.hear_of_ahead();
        self.ensure()?;
        if self.claimed {
            return Ok(());
        }
        // `ensure` has put one there.
        let Some(link) = self.link.take() else { return Ok(()) };
        let begin = Instant::now();
        let silence = self.options.silence();
        link.send(encode_request(&Request::Claim { wait_s: wait.as_secs_f64() }, &[])?);
        let mut waiting = false;
        let outcome = loop {
            match link.receive(silence) {
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
                        self.catalog.sent_nothing();
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
                other => return Err(self.broken(link, other, silence)),
            }
        };
        if waiting {
            self.waited += begin.elapsed();
        }
        self.link = Some(link);
        outcome
    }

    /// Waits until what was asked for ahead is done. A process that this takes down is started
    /// anew: a request that is about the baseline will find out what is wrong with it.
    fn hear_of_ahead(&mut self) {
        let patience = self.patience.max(seconds(Plan::default().patience_s));
        let (mut is_running, mut taken, begin) = (false, 0, Instant::now());
        while self.ahead > 0 {
            let Some(link) = &self.link else { return };
            if begin.elapsed() > patience.saturating_add(tool_patience()) {
                self.link = None;
                self.ahead = 0;
                return;
            }
            match link.receive(if is_running { patience } else { self.options.silence() }) {
                Incoming::Reply(Reply::Working) => {}
                Incoming::Reply(Reply::Running(_)) => is_running = true,
                Incoming::Reply(Reply::Checked(_, us)) => {
                    is_running = false;
                    self.bear_with(us);
                }
                Incoming::Reply(Reply::Refused(..)) => is_running = false,
                Incoming::Reply(Reply::Done) => self.ahead -= 1,
                Incoming::Silence if !is_running && link.taken() > taken => taken = link.taken(),
                _ => {
                    self.link = None;
                    self.ahead = 0;
                }
            }
        }
    }

    /// No launch of a kernel whose baseline takes this many microseconds is taken to hang before
    /// its time.
    fn bear_with(&mut self, baseline_us: f64) {
        self.patience = self.patience.max(seconds(HUNG_FACTOR * baseline_us / 1e6));
    }

    /// What a link that does not say what it should is an error of.
    fn broken(&self, link: ChildIo, incoming: Incoming, limit: Duration) -> Error {
        let command = self.name.clone();
        match incoming {
            Incoming::Silence => Error::Silent { command, seconds: limit.as_secs_f64() },
            Incoming::Version(theirs, said) => Error::Version { command, theirs, said },
            Incoming::Nonsense(said) => Error::Nonsense { command, said },
            Incoming::Reply(reply) => Error::Nonsense { command, said: format!("{reply:?}") },
            Incoming::End => Error::Died { command, how: link.end() },
        }
    }

    /// Sends a request with all that it refers to, and passes on what is said of its jobs until
    /// it is served or the process is lost. From the first message on it may take `time`, and as
    /// long as a tool may take.
    fn request(
        &mut self,
        request: &Request,
        time: Duration,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Served, Error> {
        self.claim()?;
        // `claim` has put one there.
        let Some(link) = self.link.take() else {
            return Err(Error::Failed("no process".to_owned()));
        };
        for frame in self.catalog.frames()? {
            link.send(frame);
        }
        link.send(encode_request(request, &[])?);
        let mut running: Option<u32> = None;
        let mut taken = 0;
        let (longest, mut begin) = (time.saturating_add(tool_patience()), None::<Instant>);
        for _ in 0..MOST_REPLIES {
            if begin.is_some_and(|begin| begin.elapsed() > longest) {
                let said = format!("messages without an end, for {:.0} s", longest.as_secs_f64());
                return Err(self.broken(link, Incoming::Nonsense(said), longest));
            }
            let limit = match running {
                Some(_) => self.patience,
                None => self.options.silence(),
            };
            let incoming = link.receive(limit);
            if matches!(incoming, Incoming::Reply(_)) {
                begin.get_or_insert_with(Instant::now);
            }
            // Behind a slow line machine code and files take their time.
            if matches!(incoming, Incoming::Silence) && running.is_none() && link.taken() > taken {
                taken = link.taken();
                continue;
            }
            let lost = match (incoming, running) {
                (Incoming::Reply(reply), _) => match reply {
                    Reply::Working => continue,
                    Reply::Running(slot) => {
                        running = Some(slot);
                        continue;
                    }
                    Reply::Checked(slot, us) => {
                        if slot == BASELINE {
                            self.bear_with(us);
                        }
                        progress(Progress::Checked(slot));
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
                        self.link = Some(link);
                        return Ok(Served::Whole);
                    }
                    Reply::Failed(message) => return Err(Error::Failed(message)),
                    Reply::Ready(..) | Reply::NoDevice(_) | Reply::Waiting | Reply::Claimed(_) | Reply::Busy => {
                        return Err(self.broken(link, Incoming::Reply(reply), limit));
                    }
                },
                (Incoming::Silence, Some(slot)) => {
                    let limit_s = limit.as_secs_f64();
                    (slot, Reason::Hung { limit_s })
                }
                (Incoming::End, Some(slot)) if self.deaths < DEATHS => {
                    self.deaths += 1;
                    let how = link.end();
                    progress(Progress::Refused(slot, Reason::Died { how }));
                    return Ok(Served::Lost);
                }
                (Incoming::Nonsense(said), Some(slot)) if self.deaths < DEATHS => {
                    self.deaths += 1;
                    let how = format!("it says {said}");
                    (slot, Reason::Died { how })
                }
                (incoming, _) => return Err(self.broken(link, incoming, limit)),
            };
            progress(Progress::Refused(lost.0, lost.1));
            return Ok(Served::Lost);
        }
        let said = format!("more than {MOST_REPLIES} messages without an end");
        Err(self.broken(link, Incoming::Nonsense(said), self.patience))
    }
}

/// The slot of the baseline.
const BASELINE: u32 = 0;

/// What the measuring process reports of a job.
enum Progress {
    Checked(u32),
    Sample(u32, f64),
    Refused(u32, Reason),
    /// The end of a round: whether the samples since the one before count.
    Round(bool),
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

    fn time_watched(&mut self, trial: Trial<'_>, watch: Watch<'_>) -> Result<Timings, Error> {
        let Trial { baseline, candidates, plan } = trial;
        let (begin, waited) = (Instant::now(), self.waited);
        self.patience = self.patience.max(seconds(plan.patience_s));
        let batch = Batch::new(&mut self.catalog, std::iter::once(baseline).chain(candidates));
        let mut states = vec![State::default(); batch.jobs.len()];
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
                note(&mut states, progress);
                if is_more {
                    watch(&settled_outcomes(&states, plan));
                }
            })?;
            if let Some(reason) = states.first().and_then(|state| state.refused.clone()) {
                return Err(Error::Baseline(reason));
            }
            let timed = states.first().is_some_and(|state| !state.samples.is_empty());
            match served {
                Served::Whole => break,
                Served::Lost if timed && left <= 0.0 => break,
                Served::Lost => {}
            }
        }
        let mut outcomes = states.into_iter().map(State::outcome);
        match outcomes.next() {
            Some(Outcome::Timed(baseline)) => Ok(Timings { baseline, candidates: outcomes.collect() }),
            _ => Err(Error::Failed("the baseline was not timed".to_owned())),
        }
    }

    fn duel(&mut self, contenders: &[Candidate], rounds: u32, caches: Caches) -> Result<Vec<Option<Vec<f64>>>, Error> {
        if self.patience.is_zero() {
            self.patience = seconds(Plan::default().patience_s);
        }
        let batch = Batch::new(&mut self.catalog, contenders);
        let mut states = vec![State::default(); batch.jobs.len()];
        let rounds = Rounds { count: rounds, caches, seed: Plan::default().seed };
        loop {
            for state in &mut states {
                state.samples.clear();
            }
            let jobs = remaining_jobs(&batch.jobs, &states);
            let launches = rounds.count.saturating_mul(u32::try_from(jobs.len()).unwrap_or(u32::MAX));
            let request = Request::Duel { jobs, rounds };
            let served = self.request(&request, self.patience.saturating_mul(launches), &mut |progress| {
                note(&mut states, progress);
            })?;
            if matches!(served, Served::Whole) {
                break;
            }
        }
        Ok(states.into_iter().map(|state| state.refused.is_none().then_some(state.samples)).collect())
    }

    fn ahead(&mut self, baseline: &Candidate) {
        let (Some(link), false) = (&self.link, self.claimed || self.paused) else { return };
        let batch = Batch::new(&mut self.catalog, [baseline]);
        // What cannot be sent cannot be timed either, which is said then.
        let frames = batch.jobs.into_iter().next().and_then(|baseline| {
            let mut frames = self.catalog.frames().ok()?;
            frames.push(encode_request(&Request::Ahead { baseline }, &[]).ok()?);
            Some(frames)
        });
        if let Some(frames) = frames {
            frames.into_iter().for_each(|frame| link.send(frame));
            self.ahead += 1;
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
        if let (Some(link), true, Ok(frame)) = (&self.link, self.claimed, encode_request(&Request::Pause, &[])) {
            link.send(frame);
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

    fn rest(&mut self) {
        self.catalog = Catalog::default();
        self.claimed = false;
        self.paused = false;
        self.patience = Duration::ZERO;
        if let (Some(link), Ok(frame)) = (&self.link, encode_request(&Request::Rest, &[])) {
            link.send(frame);
        }
    }
}

/// The bytes of one frame.
fn encode_request(request: &Request, payload: &[u8]) -> Result<Vec<u8>, Error> {
    protocol::frame(request, payload).map_err(|error| Error::Unsendable(error.to_string()))
}

/// What is known of a job.
#[derive(Clone, Debug, Default)]
struct State {
    checked: bool,
    samples: Vec<f64>,
    /// How many of them are of rounds that count.
    sure: usize,
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

/// A median of fewer samples depends on one that something was in the way of.
const SETTLED: usize = 3;

/// What is known for sure while a request is under way: what was refused, what has enough
/// samples of rounds that count, what is too slow to be sampled again, and, however few its
/// samples, the baseline, which all other times are in units of.
fn settled_outcomes(states: &[State], plan: &Plan) -> Vec<Outcome> {
    let sure = |state: &State| state.samples.iter().take(state.sure).copied().fold(f64::INFINITY, f64::min);
    let best = states.iter().filter(|state| state.refused.is_none()).map(sure).fold(f64::INFINITY, f64::min);
    let outcome = |(slot, state): (u32, &State)| {
        let is_enough = state.sure >= SETTLED.min(plan.rounds as usize) || slot == BASELINE;
        let enough = is_enough || sure(state) > plan.keep.max(1.0) * best;
        match &state.refused {
            Some(reason) => Outcome::Refused(reason.clone()),
            None if enough => {
                Timing::new(state.samples[..state.sure].to_vec()).map_or(Outcome::Skipped, Outcome::Timed)
            }
            None => Outcome::Skipped,
        }
    };
    (0..).zip(states).map(outcome).collect()
}

/// Notes what was said of a job; what is said of one that does not exist is not believed.
fn note(states: &mut [State], progress: Progress) {
    let (Progress::Checked(slot) | Progress::Sample(slot, _) | Progress::Refused(slot, _)) = progress else {
        let counts = matches!(progress, Progress::Round(true));
        for state in states {
            state.samples.truncate(if counts { usize::MAX } else { state.sure });
            state.sure = state.samples.len();
        }
        return;
    };
    let Some(state) = states.get_mut(slot as usize) else {
        return;
    };
    match progress {
        Progress::Checked(_) => state.checked = true,
        Progress::Sample(_, us) if us.is_finite() && us > 0.0 && state.samples.len() < MOST_SAMPLES => {
            state.samples.push(us)
        }
        Progress::Sample(..) | Progress::Round(_) => {}
        Progress::Refused(_, reason) => state.refused = Some(reason),
    }
}

/// The jobs that are not refused.
fn remaining_jobs(jobs: &[Job], states: &[State]) -> Vec<Job> {
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
