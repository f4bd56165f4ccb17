//! Prior over the true times: samples of the times that all points might have, given the
//! model's predictions and how wrong the model may be; and a few points that hedge against it.
//!
//! Points with predictions, an [`ErrorScale`] -> [`PriorSamples`]. In each sample each term of a
//! prediction (latency, issue, bandwidths) is off by a random factor, and times drift along the
//! coordinates for reasons that the model does not know. [`PriorSamples::hedged_points`] chooses
//! points greedily such that the best of the chosen is, averaged over the samples, as little
//! slower than the best of all as possible: the first is the one of least predicted time, and
//! each further one reduces the expected loss of the others most.
//!
//! Invariant: the same points give the same choice, and a point is chosen once.

use super::point::sort_by_prediction;
use super::problem::SearchProblem;
use crate::model::{CALIBRATION, Score, Terms};
use crate::workload::random::Random;

/// Points that are considered: those of least predicted time, and the baseline.
const MAX_POINTS: usize = 2_000;
/// Number of samples. The choice depends on the draw: over 24 draws of 256 samples the first 8
/// points of the suite's recorded spaces were 0.64% off on average and 7.3% at worst, of 1,024
/// samples 0.58% and 5.4%; 512 take half the time of the latter.
const SAMPLES: usize = 512;
/// A larger loss than this share counts as this one.
const MAX_LOSS: f64 = 0.3;

/// The power to which losses are raised: large losses weigh more than in proportion.
const LOSS_POWER: f64 = 1.5;

/// Device memory may be faster for few requests at once than for many: its time is multiplied
/// by a power of the share of threads in flight. This is the exponent's standard deviation.
/// `scattered` takes a sixth less with a quarter of an SM's threads than with all: a power of
/// 0.13.
const CROWDING_DEVIATION: f64 = 0.15;
/// The same exponent for the caches, in either direction: threads that share a cache reuse each
/// other's lines or evict them.
const SHARING_DEVIATION: f64 = 0.1;
/// A smaller share of threads in flight than this counts as this one.
const MIN_IN_FLIGHT: f64 = 0.05;

/// Sizes of the model's possible errors, as standard deviations of logarithms.
#[derive(Clone, Copy, Debug)]
pub(super) struct ErrorScale {
    /// Of one term of a prediction: static models are 20 to 50 % off.
    pub part: f64,
    /// Of the time over the extent of one coordinate.
    pub drift: f64,
    /// Of the exponent of the power mean that combines the terms: how far they overlap.
    pub corner: f64,
    /// Whether every fourth sample is damped: the differences that it predicts are multiplied by a
    /// random share, for kernels that are bound by what the model does not know.
    pub is_damped: bool,
}

/// With [`ErrorScale::is_damped`] one of this many samples is damped. If all predictions are
/// replaced by their inverses, searches of the suite's recorded spaces (2 draws of samples) end 1%
/// off on average, and 24% without damping; with the predictions as they are both end 0.01% off.
const DAMPED_PERIOD: usize = 4;

/// Samples of the times that a space's points might have.
#[derive(Debug)]
pub(super) struct PriorSamples {
    /// The indices of the points that are considered, least predicted time first.
    pub considered: Vec<usize>,
    /// By sample, logarithms of the times of these points. The first sample is the prediction
    /// itself.
    pub times: Vec<Vec<f64>>,
}

impl PriorSamples {
    /// Draws the samples for the points of a search.
    pub fn new(problem: &SearchProblem<'_>, scale: ErrorScale) -> Self {
        let ErrorScale { part, drift, corner, is_damped } = scale;
        let SearchProblem { points, scaled_coordinates, baseline, .. } = problem;
        let mut considered: Vec<usize> = (0..points.len()).collect();
        sort_by_prediction(points, &mut considered);
        let others = considered.split_off(MAX_POINTS.min(considered.len()));
        considered.extend(others.into_iter().filter(|index| index == baseline));
        let mut random = Random::new(1);
        let least = considered.first().map_or(0.0, |&index| logarithm(points[index].score.predicted_us));
        let dimensions = scaled_coordinates.first().map_or(0, Vec::len);
        let times = (0..SAMPLES)
            .map(|number| {
                let spread = if number == 0 { 0.0 } else { 1.0 };
                let factors: [f64; 8] = std::array::from_fn(|_| (spread * part * random.normal()).exp());
                let sampled_errors = ErrorSample {
                    factors,
                    // Not below zero: that more threads hide latency is in the other terms.
                    crowding: spread * CROWDING_DEVIATION * random.normal().abs(),
                    sharing: spread * SHARING_DEVIATION * random.normal(),
                    corner: (corner > 0.0)
                        .then(|| CALIBRATION.corner_exponent * (spread * corner * random.normal()).exp()),
                };
                let drifts: Vec<f64> = (0..dimensions).map(|_| spread * drift * random.normal()).collect();
                let is_damped = is_damped && number % DAMPED_PERIOD == DAMPED_PERIOD - 1;
                let share = if is_damped { random.uniform() } else { 1.0 };
                let time = |&index: &usize| {
                    let along: f64 =
                        scaled_coordinates[index].iter().zip(&drifts).map(|(place, drift)| place * drift).sum();
                    let time = logarithm(sampled_errors.us(&points[index].score));
                    if is_damped { least + share * (time - least) + along } else { time + along }
                };
                considered.iter().map(time).collect()
            })
            .collect();
        Self { considered, times }
    }

    /// Returns the indices of at most `count` points that together hedge against the model's
    /// errors, in the order of choice: the first is the one of least predicted time.
    pub fn hedged_points(&self, count: usize) -> Vec<usize> {
        let considered = &self.considered;
        // By sample: how much slower each point is than the best.
        let losses: Vec<Vec<f64>> = self
            .times
            .iter()
            .map(|times| {
                let least = times.iter().copied().fold(f64::INFINITY, f64::min);
                // Where nothing can run all are as bad.
                times.iter().map(|time| (time - least).exp_m1().min(MAX_LOSS).powf(LOSS_POWER)).collect()
            })
            .collect();
        let mut best = vec![f64::INFINITY; losses.len()];
        let mut chosen: Vec<usize> = Vec::new();
        let mut is_left = vec![true; considered.len()];
        while chosen.len() < count.min(considered.len()) {
            let total = |at: usize| losses.iter().zip(&best).map(|(losses, best)| losses[at].min(*best)).sum::<f64>();
            // The prediction as it is comes first.
            let candidates = if chosen.is_empty() { 0..1 } else { 0..considered.len() };
            let left = candidates.filter(|&at| is_left[at]);
            let Some((at, _)) = left.map(|at| (at, total(at))).min_by(|a, b| a.1.total_cmp(&b.1)) else { break };
            chosen.push(considered[at]);
            is_left[at] = false;
            for (best, losses) in best.iter_mut().zip(&losses) {
                *best = best.min(losses[at]);
            }
        }
        chosen
    }
}

fn logarithm(us: f64) -> f64 {
    us.max(f64::MIN_POSITIVE).ln()
}

/// One sample of the model's errors, without the drifts.
struct ErrorSample {
    /// By which the terms of a prediction are multiplied.
    factors: [f64; 8],
    /// The exponents of the share of threads in flight (see [`CROWDING_DEVIATION`] and
    /// [`SHARING_DEVIATION`]).
    crowding: f64,
    sharing: f64,
    /// The exponent of the power mean that combines the terms; `None` for the model's own.
    corner: Option<f64>,
}

impl ErrorSample {
    /// The predicted time with these errors, in microseconds.
    fn us(&self, Score { terms, in_flight, .. }: &Score) -> f64 {
        let [latency, issue, pipe, memory_pipe, cache, device, constant, launch] = self.factors;
        let in_flight = in_flight.max(MIN_IN_FLIGHT);
        let perturbed = Terms {
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
            overhead: terms.overhead,
        };
        self.corner.map_or_else(|| perturbed.time_us(), |exponent| perturbed.time_us_with(exponent))
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
            &SearchProblem::new(&points, points.len(), usize::MAX),
            ErrorScale { part: 0.35, drift: 0.1, corner: 0.0, is_damped: false },
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
