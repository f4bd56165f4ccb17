//! The [`Measurer`] that uses all GPUs of one model, with one measuring process for each.
//!
//! In: candidates. Out: their timings, as one GPU would give them. Invariants: the baseline is
//! timed on every GPU that candidates are timed on, and their times are scaled by it, since no
//! two GPUs are equally fast; paired rounds run on one GPU. It does not wait for further GPUs that
//! others measure on.

use super::candidate::{Caches, Candidate, Plan};
use super::error::Error;
use super::measurer::{Measurer, ProgressCallback, Trial};
use super::options::Options;
use super::outcome::{Outcome, Timing, Timings};
use super::process::Process;
use crate::gpu::{Conditions, Device};
use crate::process::spawn_or_run;
use std::time::{Duration, Instant};

/// Minimum time in seconds on one GPU for which further GPUs are used: their processes take a
/// while to start.
const MIN_SECONDS_FOR_MORE_GPUS: f64 = 3.0;

/// Number of candidates that are timed on one GPU first to find how long they take.
const PROBE_CANDIDATES: usize = 8;

/// Measuring processes on GPUs of one model.
pub struct ProcessPool {
    options: Options,
    first: Process,
    others: Vec<Process>,
    /// Seconds that one candidate took so far.
    seconds_per_candidate: Option<f64>,
    /// Whether other GPUs were asked for since the last rest.
    tried_others: bool,
}

impl ProcessPool {
    /// Starts the process of the first GPU. A machine without a driver or a GPU gives
    /// [`Error::NoDevice`], soon and without a word printed.
    pub fn start(options: Options) -> Result<ProcessPool, Error> {
        let first = Process::start(options.clone())?;
        Ok(ProcessPool { options, first, others: Vec::new(), seconds_per_candidate: None, tried_others: false })
    }

    /// Whether the processes run on this machine, and not behind a runner.
    pub fn runs_here(&self) -> bool {
        self.options.runner.is_empty()
    }

    /// Times candidates on the first GPU and learns how long one takes.
    fn time_on_first(&mut self, trial: Trial<'_>, on_progress: ProgressCallback<'_>) -> Result<Timings, Error> {
        let (begin, waited) = (Instant::now(), self.first.waited());
        let timings = self.first.time_with_progress(trial, on_progress)?;
        let spent = begin.elapsed() - (self.first.waited() - waited);
        self.seconds_per_candidate = Some(spent.as_secs_f64() / (trial.candidates.len() + 1) as f64);
        Ok(timings)
    }

    /// Claims the other free GPUs.
    fn claim_other_gpus(&mut self) {
        if self.tried_others {
            return;
        }
        self.tried_others = true;
        let free = Options { wait: Some(Duration::ZERO), notice: None, ..self.options.clone() };
        let wanted = self.first.gpus().saturating_sub(1);
        // The first must have its own, lest another takes it.
        if self.first.claim().is_err() {
            return;
        }
        self.others.retain_mut(|process| process.claim().is_ok());
        while self.others.len() < wanted {
            // What cannot be had is done without.
            let Ok(mut process) = Process::start(free.clone()) else { return };
            if process.claim().is_err() {
                return;
            }
            self.others.push(process);
        }
    }

    /// Times on all GPUs; `on_progress` receives the outcomes of the first.
    fn time_on_all(&mut self, trial: Trial<'_>, on_progress: ProgressCallback<'_>) -> Result<Timings, Error> {
        let Trial { baseline, candidates, plan } = trial;
        let share = candidates.len().div_ceil(self.others.len() + 1);
        let (own, rest) = candidates.split_at(share.min(candidates.len()));
        let (first, others) = (&mut self.first, &mut self.others);
        let (mine, theirs) = std::thread::scope(|scope| {
            let running: Vec<_> = others
                .iter_mut()
                .zip(rest.chunks(share))
                .map(|(process, share)| (share, spawn_or_run(scope, move || process.time(baseline, share, plan))))
                .collect();
            let mine = first.time_with_progress(Trial { candidates: own, ..trial }, on_progress);
            let theirs: Vec<_> = running.into_iter().map(|(share, timed)| (share.len(), timed.join())).collect();
            (mine, theirs)
        });
        let mut timings = mine?;
        for (count, theirs) in theirs {
            match theirs {
                Ok(theirs) => {
                    let scale = timings.baseline.median_us / theirs.baseline.median_us;
                    timings
                        .candidates
                        .extend(theirs.candidates.into_iter().map(|outcome| scale_outcome(outcome, scale)));
                }
                // What a GPU that failed was to time has not been timed.
                Err(_) => timings.candidates.extend((0..count).map(|_| Outcome::Skipped)),
            }
        }
        Ok(timings)
    }
}

fn scale_outcome(outcome: Outcome, scale: f64) -> Outcome {
    match outcome {
        Outcome::Timed(timing) => {
            let tolerance_used = timing.tolerance_used;
            let samples = timing.samples_us.iter().map(|us| us * scale).collect();
            let scaled = Timing::new(samples).map(|scaled| Timing { tolerance_used, ..scaled });
            scaled.map_or(Outcome::Skipped, Outcome::Timed)
        }
        other => other,
    }
}

impl Measurer for ProcessPool {
    fn device(&self) -> &Device {
        self.first.device()
    }

    fn time_with_progress(&mut self, trial: Trial<'_>, on_progress: ProgressCallback<'_>) -> Result<Timings, Error> {
        let Trial { candidates, plan, .. } = trial;
        let (begin, waited) = (Instant::now(), self.waited());
        let alone = self.first.gpus() < 2 || !self.options.runner.is_empty();
        let probe =
            if alone || self.seconds_per_candidate.is_some() { 0 } else { PROBE_CANDIDATES.min(candidates.len()) };
        let mut before = None;
        let mut rest = candidates;
        if probe > 0 {
            let (probed, left) = candidates.split_at(probe);
            let timings = self.time_on_first(Trial { candidates: probed, ..trial }, on_progress)?;
            if left.is_empty() {
                return Ok(timings);
            }
            before = Some(timings);
            rest = left;
        }
        let spent = begin.elapsed() - (self.waited() - waited);
        let plan = &Plan { budget_s: (plan.budget_s - spent.as_secs_f64()).max(0.0), ..*plan };
        let trial = Trial { candidates: rest, plan, ..trial };
        let expected = self.seconds_per_candidate.unwrap_or(0.0) * rest.len() as f64;
        if !alone && expected > MIN_SECONDS_FOR_MORE_GPUS {
            self.claim_other_gpus();
        }
        let probed: Vec<Outcome> = before.iter().flat_map(|timings| timings.candidates.clone()).collect();
        let mut behind = |outcomes: &[Outcome]| {
            let (baseline, rest) = outcomes.split_at(1.min(outcomes.len()));
            on_progress(&[baseline, &probed, rest].concat());
        };
        let timings = match alone || self.others.is_empty() || expected <= MIN_SECONDS_FOR_MORE_GPUS {
            true => self.time_on_first(trial, &mut behind)?,
            false => self.time_on_all(trial, &mut behind)?,
        };
        let Some(mut before) = before else { return Ok(timings) };
        before.candidates.extend(timings.candidates);
        Ok(before)
    }

    fn time_paired(
        &mut self,
        contenders: &[Candidate],
        rounds: u32,
        caches: Caches,
    ) -> Result<Vec<Option<Vec<f64>>>, Error> {
        self.first.time_paired(contenders, rounds, caches)
    }

    fn prepare_baseline(&mut self, baseline: &Candidate) {
        self.first.prepare_baseline(baseline);
    }

    fn claim_free(&mut self) -> Result<bool, Error> {
        self.first.claim_free()
    }

    fn pause(&mut self) {
        self.first.pause();
        self.others.iter_mut().for_each(Process::release_gpu);
        self.tried_others = false;
    }

    fn waited(&self) -> Duration {
        self.first.waited()
    }

    fn conditions(&mut self) -> Conditions {
        let all = self.others.iter_mut().map(Measurer::conditions).collect::<Vec<_>>();
        all.into_iter().fold(self.first.conditions(), Conditions::joined_with)
    }

    fn release_gpu(&mut self) {
        self.first.release_gpu();
        self.others.iter_mut().for_each(Process::release_gpu);
        self.tried_others = false;
    }
}
