//! [`Measurer`] by all GPUs of one model: one process for each.
//!
//! In: candidates. Out: their timings, as one GPU would give them. Invariant: the
//! baseline is timed on every GPU that candidates are timed on, and their times are scaled by
//! it, for no two GPUs are equally fast; duels are fought on one. A GPU that others measure on
//! is not waited for as long as this has one.

use super::candidate::{Caches, Candidate, Plan};
use super::error::Error;
use super::measurer::{Measurer, Trial, Watch};
use super::options::Options;
use super::outcome::{Outcome, Timing, Timings};
use super::process::Process;
use crate::gpu::{Conditions, Device};
use crate::process::spawn_or_run;
use std::time::{Duration, Instant};

/// Further GPUs are called in where the candidates would take longer than this on one: their
/// processes take a while to start.
const WORTH_S: f64 = 3.0;

/// Candidates that are timed on one GPU to find how long they take.
const PROBE: usize = 8;

/// Measuring processes on GPUs of one model.
pub struct Pool {
    options: Options,
    first: Process,
    others: Vec<Process>,
    /// Seconds that one candidate took so far.
    pace_s: Option<f64>,
    /// Whether other GPUs were asked for since the last rest.
    asked: bool,
}

impl Pool {
    /// Starts the process of the first GPU. A machine without a driver or a GPU gives
    /// [`Error::NoDevice`], soon and without a word printed.
    pub fn start(options: Options) -> Result<Pool, Error> {
        let first = Process::start(options.clone())?;
        Ok(Pool { options, first, others: Vec::new(), pace_s: None, asked: false })
    }

    /// Whether the processes run on this machine, and not behind a runner.
    pub fn runs_here(&self) -> bool {
        self.options.runner.is_empty()
    }

    /// Times candidates on the first GPU and learns how long one takes.
    fn time_alone(&mut self, trial: Trial<'_>, watch: Watch<'_>) -> Result<Timings, Error> {
        let (begin, waited) = (Instant::now(), self.first.waited());
        let timings = self.first.time_watched(trial, watch)?;
        let spent = begin.elapsed() - (self.first.waited() - waited);
        self.pace_s = Some(spent.as_secs_f64() / (trial.candidates.len() + 1) as f64);
        Ok(timings)
    }

    /// Claims the GPUs that nobody measures on, besides the first.
    fn call_others(&mut self) {
        if self.asked {
            return;
        }
        self.asked = true;
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

    /// Times on all; while that is under way, what the first GPU knows is shown.
    fn time_together(&mut self, trial: Trial<'_>, watch: Watch<'_>) -> Result<Timings, Error> {
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
            let mine = first.time_watched(Trial { candidates: own, ..trial }, watch);
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
            let samples = timing.samples_us.iter().map(|us| us * scale).collect();
            Timing::new(samples).map_or(Outcome::Skipped, Outcome::Timed)
        }
        other => other,
    }
}

impl Measurer for Pool {
    fn device(&self) -> &Device {
        self.first.device()
    }

    fn time_watched(&mut self, trial: Trial<'_>, watch: Watch<'_>) -> Result<Timings, Error> {
        let Trial { candidates, plan, .. } = trial;
        let (begin, waited) = (Instant::now(), self.waited());
        let alone = self.first.gpus() < 2 || !self.options.runner.is_empty();
        let probe = if alone || self.pace_s.is_some() { 0 } else { PROBE.min(candidates.len()) };
        let mut before = None;
        let mut rest = candidates;
        if probe > 0 {
            let (probed, left) = candidates.split_at(probe);
            let timings = self.time_alone(Trial { candidates: probed, ..trial }, watch)?;
            if left.is_empty() {
                return Ok(timings);
            }
            before = Some(timings);
            rest = left;
        }
        let spent = begin.elapsed() - (self.waited() - waited);
        let plan = &Plan { budget_s: (plan.budget_s - spent.as_secs_f64()).max(0.0), ..*plan };
        let trial = Trial { candidates: rest, plan, ..trial };
        let expected = self.pace_s.unwrap_or(0.0) * rest.len() as f64;
        if !alone && expected > WORTH_S {
            self.call_others();
        }
        let probed: Vec<Outcome> = before.iter().flat_map(|timings| timings.candidates.clone()).collect();
        let mut behind = |outcomes: &[Outcome]| {
            let (baseline, rest) = outcomes.split_at(1.min(outcomes.len()));
            watch(&[baseline, &probed, rest].concat());
        };
        let timings = match alone || self.others.is_empty() || expected <= WORTH_S {
            true => self.time_alone(trial, &mut behind)?,
            false => self.time_together(trial, &mut behind)?,
        };
        let Some(mut before) = before else { return Ok(timings) };
        before.candidates.extend(timings.candidates);
        Ok(before)
    }

    fn duel(&mut self, contenders: &[Candidate], rounds: u32, caches: Caches) -> Result<Vec<Option<Vec<f64>>>, Error> {
        self.first.duel(contenders, rounds, caches)
    }

    fn ahead(&mut self, baseline: &Candidate) {
        self.first.ahead(baseline);
    }

    fn claim_free(&mut self) -> Result<bool, Error> {
        self.first.claim_free()
    }

    fn pause(&mut self) {
        self.first.pause();
        self.others.iter_mut().for_each(Process::rest);
        self.asked = false;
    }

    fn waited(&self) -> Duration {
        self.first.waited()
    }

    fn conditions(&mut self) -> Conditions {
        let all = self.others.iter_mut().map(Measurer::conditions).collect::<Vec<_>>();
        all.into_iter().fold(self.first.conditions(), Conditions::joined_with)
    }

    fn rest(&mut self) {
        self.first.rest();
        self.others.iter_mut().for_each(Process::rest);
        self.asked = false;
    }
}
