//! The search of one kernel, kept in the cache as it goes on, and taken up again by the next
//! compile.
//!
//! In: what is timed and refused, point by point. Out: what an earlier compile found before it
//! was ended (Ctrl-C, a kill, a lost runner), in the units of now. Invariant: times of
//! before say only what is worth timing and who is a finalist, for the finalists
//! meet the baseline in rounds of this compile; a cache that cannot be written costs a warning.

use super::scoring_input::ScoringInput;
use crate::gpu::Device;
use crate::launch::Configuration;
use crate::measure::{Outcome, Reason, Timing};
use crate::process;
use crate::record::{Cache, Fingerprint, Journal, PointOutcome, RecordedTiming, Searched, Tried, digest};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// A search that takes less than this is not worth a file; one that takes longer loses at most
/// this much.
const EVERY: Duration = Duration::from_millis(250);

/// Writing takes no more than this part of the time.
const SELDOM: u32 = 20;

/// How far the baseline's time may be from what it was. Between two processes on one H200 it
/// changed by 0.12% in the median over 42 kernels and by 1.8% at most
/// (`kernels/results/h200/`), and times are scaled by that, as those of several GPUs are. What
/// is beyond 5% is no noise: other clocks, somebody else on the GPU. That does not change all
/// points alike, so nothing of it is used.
const SAME: f64 = 1.05;

/// The journal of one kernel's search: what was timed, for a build that continues it.
pub struct SearchJournal<'a> {
    /// The kernel's name and space.
    name: &'a str,
    laid: &'a ScoringInput,
    /// Where it is kept, if it is.
    place: Option<(Cache, String)>,
    /// What an earlier compile found.
    earlier: Option<Journal>,
    /// In units of this: the baseline's median in microseconds, of this many samples.
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
    /// The logbook of a kernel, at a place of a cache, if anywhere. With `is_trusted`, it goes
    /// on where an earlier one ended.
    pub fn open((name, laid): (&'a str, &'a ScoringInput), place: Option<(Cache, String)>, is_trusted: bool) -> Self {
        let earlier = place.as_ref().filter(|_| is_trusted).and_then(|(cache, place)| Journal::read(cache, place));
        Self {
            name,
            laid,
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

    /// Whether an earlier compile found anything: then the baseline is to be timed before all
    /// else.
    pub fn has_earlier(&self) -> bool {
        self.earlier.is_some()
    }

    /// What an earlier compile found of points that are what they were, by index; `baseline` is
    /// the baseline's time now.
    pub fn resume(&mut self, baseline: &Timing) -> HashMap<usize, PointOutcome> {
        let baseline_us = baseline.median_us;
        (self.baseline_us, self.samples) = (Some(baseline_us), baseline.samples_us.len());
        let Some(Journal { baseline_us: then, tried }) = self.earlier.take() else { return HashMap::new() };
        let scale = then.map(|then| baseline_us / then).filter(|scale| (1.0 / SAME..=SAME).contains(scale));
        let laid = self.laid;
        let numbers: HashMap<&Configuration, usize> = laid.configurations.iter().zip(0..).collect();
        for earlier in tried {
            let Some(&index) = numbers.get(&earlier.configuration) else { continue };
            // Which of several alike is timed may have changed.
            let index = laid.representative[index];
            let found = match (earlier.found, scale) {
                (PointOutcome::Timed(timing), Some(scale)) => {
                    PointOutcome::Timed(RecordedTiming { median_us: timing.median_us * scale, earlier: true, ..timing })
                }
                (PointOutcome::Timed(_), None) => continue,
                (refused, _) => refused,
            };
            if let Some(now) = tried_as(self.laid, index, found).filter(|now| now.identity == earlier.identity) {
                self.tried.insert(index, now);
            }
        }
        self.tried.iter().map(|(index, tried)| (*index, tried.found.clone())).collect()
    }

    /// Notes what came of the baseline (the first) and of the configurations with these
    /// indices, and writes it down from time to time.
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
                // These may be somebody else's doing: a signal that went to all processes, another one's memory.
                Outcome::Refused(Reason::Died { .. } | Reason::OutOfMemory { .. }) | Outcome::Skipped => continue,
                Outcome::Refused(reason) => PointOutcome::Refused(reason.to_string()),
            };
            match self.tried.get_mut(&index) {
                Some(tried) => tried.found = found,
                None => {
                    // What hangs takes its time, and the next compile is not to wait for it again.
                    is_urgent |= matches!(found, PointOutcome::Refused(_));
                    self.tried.extend(tried_as(self.laid, index, found).map(|tried| (index, tried)));
                }
            }
        }
        if is_urgent || self.written.elapsed() > EVERY.max(SELDOM * self.took) {
            self.write();
        }
    }

    /// Writes all down. A signal does not cut that in two.
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

    /// Ends it, and gives what kept it from being written.
    pub fn close(self) -> Option<String> {
        process::set_last_words(None);
        self.problem
    }
}

/// The place of a kernel's logbook; `None` where not all is known that it depends on.
pub fn place(
    (name, laid): (&str, &ScoringInput),
    basis: &Fingerprint,
    (architecture, present, images): (&str, &str, &str),
    device: &Device,
) -> Option<String> {
    let baseline = &identity(laid, laid.baseline)?;
    Searched { kernel: name, architecture, basis, baseline, present, device, images }.place().ok()
}

/// A point with what came of it; `None` where it has no code.
fn tried_as(laid: &ScoringInput, index: usize, found: PointOutcome) -> Option<Tried> {
    let configuration = laid.configurations[index].clone();
    Some(Tried { configuration, identity: identity(laid, index)?, found })
}

/// Digest of what is run for a configuration.
fn identity(laid: &ScoringInput, index: usize) -> Option<String> {
    let code = &laid.codes[*laid.variants[index].as_ref().ok()?].digest;
    let launch = serde_json::to_vec(&(laid.launches[index], laid.workloads[index].as_deref())).ok()?;
    Some(digest([code.as_bytes(), &launch]))
}
