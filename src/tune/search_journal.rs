//! The journal of one kernel's search in the cache, from which the next compile continues.
//!
//! In: times and refusals, point by point. Out: what an earlier compile found before it was
//! interrupted (Ctrl-C, a kill, a lost runner), with its times scaled to the baseline's time now.
//! Invariants: earlier times decide only what is timed next and which points are finalists; the
//! final rounds are timed anew. A cache that cannot be written costs a warning.

use super::scoring_input::ScoringInput;
use crate::gpu::Device;
use crate::launch::Configuration;
use crate::measure::{Outcome, Reason, Timing};
use crate::process;
use crate::record::{Cache, Fingerprint, Journal, PointOutcome, RecordedTiming, Searched, Tried, digest};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Minimum time between two writes. A shorter search writes no file; a longer one loses at most
/// this much.
const WRITE_INTERVAL: Duration = Duration::from_millis(250);

/// Minimum time between two writes as a multiple of the time that a write takes.
const WRITE_INTERVAL_FACTOR: u32 = 20;

/// Maximum factor by which the baseline's time may have changed. Between two processes on one
/// H200 it changed by 0.12% in the median over 42 kernels and by 1.8% at most
/// (`kernels/results/h200/`), and times are scaled by that, as those of several GPUs are. A
/// change beyond 5% is not noise but other clocks or another process on the GPU. That does not
/// change all points alike, so the earlier times are not used.
const MAX_BASELINE_DRIFT: f64 = 1.05;

/// The journal of one kernel's search: what was timed, for a build that continues it.
pub struct SearchJournal<'a> {
    /// The kernel's name and space.
    name: &'a str,
    input: &'a ScoringInput,
    /// The cache and the key of the journal; `None` if it is not kept.
    place: Option<(Cache, String)>,
    /// What an earlier compile found.
    earlier: Option<Journal>,
    /// The baseline's median in microseconds, which times are relative to, and its number of
    /// samples.
    baseline_us: Option<f64>,
    samples: usize,
    /// By index of the configuration.
    tried: BTreeMap<usize, Tried>,
    /// When it was written last, or begun, and how long that took.
    written: Instant,
    took: Duration,
    problem: Option<String>,
}

impl<'a> SearchJournal<'a> {
    /// Opens the journal of a kernel at a key of a cache. If `is_trusted`, it continues an
    /// earlier one.
    pub fn open((name, input): (&'a str, &'a ScoringInput), place: Option<(Cache, String)>, is_trusted: bool) -> Self {
        let earlier = place.as_ref().filter(|_| is_trusted).and_then(|(cache, place)| Journal::read(cache, place));
        Self {
            name,
            input,
            place,
            earlier,
            baseline_us: None,
            samples: 0,
            tried: BTreeMap::new(),
            written: Instant::now(),
            took: Duration::ZERO,
            problem: None,
        }
    }

    /// Tells whether an earlier compile left a journal. The baseline must then be timed first.
    pub fn has_earlier(&self) -> bool {
        self.earlier.is_some()
    }

    /// Returns the outcomes of an earlier compile for the points that are unchanged, by index.
    /// `baseline` is the baseline's timing now.
    pub fn resume(&mut self, baseline: &Timing) -> HashMap<usize, PointOutcome> {
        let baseline_us = baseline.median_us;
        (self.baseline_us, self.samples) = (Some(baseline_us), baseline.samples_us.len());
        let Some(Journal { baseline_us: then, tried }) = self.earlier.take() else { return HashMap::new() };
        let scale = then
            .map(|then| baseline_us / then)
            .filter(|scale| (1.0 / MAX_BASELINE_DRIFT..=MAX_BASELINE_DRIFT).contains(scale));
        let input = self.input;
        let numbers: HashMap<&Configuration, usize> = input.configurations.iter().zip(0..).collect();
        for earlier in tried {
            let Some(&index) = numbers.get(&earlier.configuration) else { continue };
            // Which of several alike is timed may have changed.
            let index = input.representative[index];
            let found = match (earlier.found, scale) {
                (PointOutcome::Timed(timing), Some(scale)) => {
                    PointOutcome::Timed(RecordedTiming { median_us: timing.median_us * scale, earlier: true, ..timing })
                }
                (PointOutcome::Timed(_), None) => continue,
                (refused, _) => refused,
            };
            if let Some(now) = tried_as(self.input, index, found).filter(|now| now.identity == earlier.identity) {
                self.tried.insert(index, now);
            }
        }
        self.tried.iter().map(|(index, tried)| (*index, tried.found.clone())).collect()
    }

    /// Notes the outcomes of the baseline (the first) and of the configurations with these
    /// indices, and writes the journal from time to time.
    pub fn note(&mut self, indices: &[usize], outcomes: &[Outcome]) {
        let Some((baseline, candidates)) = outcomes.split_first() else { return };
        if let Outcome::Timed(timing) = baseline
            && timing.samples_us.len() > self.samples
        {
            (self.baseline_us, self.samples) = (Some(timing.median_us), timing.samples_us.len());
        }
        let mut is_urgent = false;
        for (&index, outcome) in indices.iter().zip(candidates) {
            let found = match outcome {
                Outcome::Timed(timing) => PointOutcome::Timed(RecordedTiming::from(timing)),
                // These may be somebody else's doing: a signal that went to all processes, another
                // one's memory.
                Outcome::Refused(Reason::Died { .. } | Reason::OutOfMemory { .. }) | Outcome::Skipped => continue,
                Outcome::Refused(reason) => PointOutcome::Refused(reason.to_string()),
            };
            match self.tried.get_mut(&index) {
                Some(tried) => tried.found = found,
                None => {
                    // What hangs takes its time, and the next compile is not to wait for it again.
                    is_urgent |= matches!(found, PointOutcome::Refused(_));
                    self.tried.extend(tried_as(self.input, index, found).map(|tried| (index, tried)));
                }
            }
        }
        if is_urgent || self.written.elapsed() > WRITE_INTERVAL.max(WRITE_INTERVAL_FACTOR * self.took) {
            self.write();
        }
    }

    /// Writes the journal. A signal does not interrupt it.
    fn write(&mut self) {
        let Some((cache, place)) = &self.place else { return };
        let begin = Instant::now();
        let journal = Journal { baseline_us: self.baseline_us, tried: self.tried.values().cloned().collect() };
        let (name, count) = (self.name, journal.tried.len());
        let words = format!(
            "{name}: interrupted; what is known of {count} points is kept, the next compile goes on from there"
        );
        // Whoever finds it on the disk may count on its being reported.
        let write = || journal.write(cache, place).inspect(|()| process::set_last_words(Some(words)));
        match process::uninterrupted(write) {
            Ok(()) => (self.written, self.took) = (Instant::now(), begin.elapsed()),
            Err(problem) => {
                self.problem = Some(problem);
                self.place = None;
            }
        }
    }

    /// Closes the journal and returns why it could not be written, if so.
    pub fn close(self) -> Option<String> {
        process::set_last_words(None);
        self.problem
    }
}

/// Returns the cache key of a kernel's journal; `None` if the baseline has no code.
pub fn place(
    (name, input): (&str, &ScoringInput),
    basis: &Fingerprint,
    (architecture, present, images): (&str, &str, &str),
    device: &Device,
) -> Option<String> {
    let baseline = &identity(input, input.baseline)?;
    Searched { kernel: name, architecture, basis, baseline, present, device, images }.place().ok()
}

/// Returns a point with its outcome; `None` if it has no code.
fn tried_as(input: &ScoringInput, index: usize, found: PointOutcome) -> Option<Tried> {
    let configuration = input.configurations[index].clone();
    Some(Tried { configuration, identity: identity(input, index)?, found })
}

/// Returns the digest of a configuration's machine code, launch and workload.
fn identity(input: &ScoringInput, index: usize) -> Option<String> {
    let code = &input.codes[*input.variants[index].as_ref().ok()?].digest;
    let launch = serde_json::to_vec(&(input.launches[index], input.workloads[index].as_deref())).ok()?;
    Some(digest([code.as_bytes(), &launch]))
}
