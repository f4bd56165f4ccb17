//! A few configurations that between them are near the best, whatever the model is wrong about.
//!
//! The parts of a prediction (latency, issue, bandwidths) are each off by some factor, and
//! times drift along the axes for reasons that the model does not know. Both are supposed, in
//! many combinations; the configurations are chosen one by one such that the best of the chosen
//! is, on average over the suppositions, as little slower as can be than the best of all. The
//! first is that of least predicted time, and each further one covers what the others would
//! lose most on.
//!
//! Invariant: the same points give the same choice, and a point is chosen once.

use super::point::sort_by_prediction;
use super::problem::Task;
use crate::model::{CORNER, Score, Terms};
use crate::workload::random::Random;

/// Points that are looked at: those of least predicted time, and the baseline.
const LOOKED_AT: usize = 2_000;
/// Combinations of what the model may be wrong about. A choice depends on which they happen to
/// be: over 24 draws of 256 of them the first 8 of the suite's recorded spaces were 0.64% off
/// on average and 7.3% at worst, of 1,024 of them 0.58% and 5.4%; these take half the time of
/// the latter.
const SUPPOSITIONS: usize = 512;
/// A loss beyond this share counts no more.
const MOST_LOSS: f64 = 0.3;

/// The power to which losses count: who loses much loses more than he gains who loses little.
const AVERSION: f64 = 1.5;

/// Device memory may take less time for few requests at once than for many: by a power of the
/// threads in flight, whose standard deviation this is. `scattered` takes a sixth less with a
/// quarter of an SM's threads than with all: a power of 0.13.
const CROWDING: f64 = 0.15;
/// What moves through the caches may take more of it or less, by such a power: those who share
/// a cache reuse or evict each other's lines.
const SHARING: f64 = 0.1;
/// With a smaller share of the threads in flight neither matters any more.
const FEWEST: f64 = 0.05;

/// Sizes of the model's possible errors, as standard deviations of logarithms.
#[derive(Clone, Copy, Debug)]
pub(super) struct ErrorScale {
    /// Of a part of a prediction: static models are 20 to 50 % off.
    pub part: f64,
    /// Of the time over the extent of one coordinate.
    pub drift: f64,
    /// Of the exponent of the power mean in which the parts meet: how far they overlap.
    pub corner: f64,
}

/// Samples of the times that a space's points might have.
#[derive(Debug)]
pub(super) struct PriorSamples {
    /// The points that are looked at, that of least predicted time first.
    pub looked_at: Vec<usize>,
    /// By supposition, logarithms of the times of these points. The first is the prediction as
    /// it is.
    pub times: Vec<Vec<f64>>,
}

impl PriorSamples {
    /// Those on the points of a task.
    pub fn new(task: &Task<'_>, ErrorScale { part, drift, corner }: ErrorScale) -> Self {
        let Task { points, places, baseline, .. } = task;
        let mut looked_at: Vec<usize> = (0..points.len()).collect();
        sort_by_prediction(points, &mut looked_at);
        let others = looked_at.split_off(LOOKED_AT.min(looked_at.len()));
        looked_at.extend(others.into_iter().filter(|index| index == baseline));
        let mut random = Random::new(1);
        let dimensions = places.first().map_or(0, Vec::len);
        let times = (0..SUPPOSITIONS)
            .map(|number| {
                let spread = if number == 0 { 0.0 } else { 1.0 };
                let factors: [f64; 8] = std::array::from_fn(|_| (spread * part * random.normal()).exp());
                let doubted = ErrorSample {
                    factors,
                    // What many gain by hiding latency, the other parts know of.
                    crowding: spread * CROWDING * random.normal().abs(),
                    sharing: spread * SHARING * random.normal(),
                    corner: (corner > 0.0).then(|| CORNER * (spread * corner * random.normal()).exp()),
                };
                let drifts: Vec<f64> = (0..dimensions).map(|_| spread * drift * random.normal()).collect();
                let time = |&index: &usize| {
                    let along: f64 = places[index].iter().zip(&drifts).map(|(place, drift)| place * drift).sum();
                    doubted.us(&points[index].score).max(f64::MIN_POSITIVE).ln() + along
                };
                looked_at.iter().map(time).collect()
            })
            .collect();
        Self { looked_at, times }
    }

    /// Returns indices of at most `count` points, the least predicted time first.
    pub fn hedged_points(&self, count: usize) -> Vec<usize> {
        let looked_at = &self.looked_at;
        // By supposition: how much slower each point is than the best.
        let losses: Vec<Vec<f64>> = self
            .times
            .iter()
            .map(|times| {
                let least = times.iter().copied().fold(f64::INFINITY, f64::min);
                // Where nothing can run all are as bad.
                times.iter().map(|time| (time - least).exp_m1().min(MOST_LOSS).powf(AVERSION)).collect()
            })
            .collect();
        let mut best = vec![f64::INFINITY; losses.len()];
        let mut chosen: Vec<usize> = Vec::new();
        let mut is_left = vec![true; looked_at.len()];
        while chosen.len() < count.min(looked_at.len()) {
            let total = |at: usize| losses.iter().zip(&best).map(|(losses, best)| losses[at].min(*best)).sum::<f64>();
            // The prediction as it is comes first.
            let candidates = if chosen.is_empty() { 0..1 } else { 0..looked_at.len() };
            let left = candidates.filter(|&at| is_left[at]);
            let Some((at, _)) = left.map(|at| (at, total(at))).min_by(|a, b| a.1.total_cmp(&b.1)) else { break };
            chosen.push(looked_at[at]);
            is_left[at] = false;
            for (best, losses) in best.iter_mut().zip(&losses) {
                *best = best.min(losses[at]);
            }
        }
        chosen
    }
}

/// One combination of possible errors of the model, without drifts.
struct ErrorSample {
    /// Of the parts of a prediction.
    factors: [f64; 8],
    /// The powers of the threads in flight by which device memory and the caches take longer.
    crowding: f64,
    sharing: f64,
    /// The exponent of the mean in which the parts meet, where that is not the model's own.
    corner: Option<f64>,
}

impl ErrorSample {
    /// What it makes of a prediction, in microseconds.
    fn us(&self, Score { terms, in_flight, .. }: &Score) -> f64 {
        let [latency, issue, pipe, memory_pipe, cache, device, constant, launch] = self.factors;
        let in_flight = in_flight.max(FEWEST);
        let supposed = Terms {
            latency: terms.latency * latency,
            issue: terms.issue * issue,
            pipe: terms.pipe * pipe,
            memory_pipe: terms.memory_pipe * memory_pipe,
            cache: terms.cache * cache * in_flight.powf(self.sharing),
            stored: terms.stored,
            device: terms.device * device * in_flight.powf(self.crowding),
            atomics: terms.atomics * device,
            constant: terms.constant * constant,
            launch: terms.launch * launch,
            queue: terms.queue,
        };
        self.corner.map_or_else(|| supposed.time_us(), |exponent| supposed.us_with(exponent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::point::Point;
    use crate::search::strategies::tests::bound;

    /// What is chosen first of points with these parts of their prediction.
    fn hedged(terms: &[Terms], count: usize) -> Vec<usize> {
        let points: Vec<Point> = terms.iter().copied().map(bound).collect();
        PriorSamples::new(
            &Task::new(&points, points.len(), usize::MAX),
            ErrorScale { part: 0.35, drift: 0.1, corner: 0.0 },
        )
        .hedged_points(count)
    }

    #[test]
    fn the_second_choice_covers_another_bottleneck() {
        // Many are bound by latency and nearly as fast as the best; one, slower, is bound by the
        // caches instead.
        let latency = |us: f64| Terms { latency: us, ..Terms::default() };
        let mut terms: Vec<Terms> = (0..20).map(|k| latency(100.0 + 0.1 * f64::from(k))).collect();
        terms.push(Terms { cache: 104.0, ..Terms::default() });
        assert_eq!(hedged(&terms, 2), [0, 20]);
    }

    #[test]
    fn none_is_chosen_twice_and_what_cannot_run_comes_last() {
        let mut terms = vec![Terms { issue: 5.0, ..Terms::default() }; 3];
        terms.push(Terms { issue: f64::INFINITY, ..Terms::default() });
        let mut chosen = hedged(&terms, 8);
        assert_eq!(chosen.pop(), Some(3));
        chosen.sort_unstable();
        assert_eq!(chosen, [0, 1, 2]);
        assert!(hedged(&[], 8).is_empty());
    }
}
