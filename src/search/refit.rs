//! The default strategy: candidates in rounds, each chosen by a prediction that is re-fitted to all timings so far.
//!
//! Points, times so far -> the next points to time; none when what is left is not expected to win. The model's predicted time
//! misses what it does not know of a kernel (how its gathers meet the caches, what ptxas's schedule costs), and misses it alike
//! for configurations that are alike. So the logarithm of time is taken for a share of the logarithm of the prediction plus a
//! smooth function of the configuration, a Gaussian process over its coordinates (Rasmussen and Williams, "Gaussian Processes
//! for Machine Learning", 2006, algorithm 2.1 and section 5.4.1); the next points are those whose time is expected to undercut
//! the best most (expected improvement: Jones, Schonlau and Welch, J. Global Optimization 13, 1998, equation 15).
//!
//! What always holds: the same times give the same points; a point is given once.

use super::hedge::hedged;
use super::strategy::{Point, sort_by_prediction};
use std::collections::BTreeSet;

/// Points of the first round besides the baseline: half that hedge the prediction, half far from all others.
const FIRST: usize = 16;
/// Points of each further round.
const ROUND: usize = 8;
/// Points that are timed at most, the baseline among them.
const MOST: usize = 128;
/// Where few may be timed, so many of least predicted time come first, besides the baseline, no two of them nearer than this share
/// of the space's extent.
const FEW_FIRST: usize = 4;
const FEW_APART: f64 = 0.1;
/// There, besides what is timed, so many timings' worth of belief in errors of the model by a tenth.
const FEW_WEIGHT: f64 = 2.0;
const FEW_VARIANCE: f64 = 0.01;
/// An expected improvement below this share of the best time is none: paired rounds tell differences of 1%.
const WORTHWHILE: f64 = 0.001;
/// When nothing promises more, so many nearest neighbours of the best have their turn.
const NEIGHBOURS: usize = 4;
/// Points that are looked at for a round; of larger spaces those of least predicted time, and others evenly.
const LOOKED_AT: usize = 20_000;
/// Within a round a point makes others less worth timing within this share of the space's extent.
const APART: f64 = 0.15;
/// What is tried, the likeliest counting: lengths over which times change, as shares of the space's extent; the share of the
/// prediction; the share of variance that is noise or has no shape.
const LENGTHS: [f64; 4] = [0.2, 0.4, 0.8, 1.5];
const SHARES: [f64; 3] = [0.0, 0.5, 1.0];
const NOISES: [f64; 2] = [1e-4, 1e-2];

/// A search under way.
#[derive(Debug)]
pub struct Refit<'a> {
    points: &'a [Point],
    baseline: usize,
    /// Points that are timed at most, the baseline among them.
    most: usize,
    /// Coordinates of each point as shares of the space's extent.
    places: Vec<Vec<f64>>,
    given: BTreeSet<usize>,
    /// The points whose neighbours have had their turn.
    settled: BTreeSet<usize>,
}

impl<'a> Refit<'a> {
    /// A search over `points` from the one with index `baseline`, of `most` of them at most.
    pub fn new(points: &'a [Point], baseline: usize, most: usize) -> Self {
        let most = most.min(MOST);
        Self { points, baseline, most, places: places(points), given: BTreeSet::new(), settled: BTreeSet::new() }
    }

    /// Points of the first round, and of each further one. Where few may be timed, the rounds are small, so that each knows more.
    fn sizes(&self) -> (usize, usize) {
        if self.is_brief() { (FEW_FIRST, 1) } else { (FIRST, ROUND) }
    }

    /// Whether so few points may be timed that a first round as usual would leave no others.
    fn is_brief(&self) -> bool {
        self.most < 2 * (FIRST + 1)
    }

    /// The points to time next, by their indices; `times` are those so far, in any unit, `None` for what is not timed or was
    /// refused. Empty: the search is over.
    pub fn next(&mut self, times: &[Option<f64>]) -> Vec<usize> {
        let next = if self.given.is_empty() { self.first() } else { self.further(times) };
        self.given.extend(&next);
        next
    }

    fn first(&self) -> Vec<usize> {
        let mut chosen = Vec::new();
        if self.baseline < self.points.len() {
            chosen.push(self.baseline);
        }
        let mut predicted: Vec<usize> = (0..self.points.len()).collect();
        sort_by_prediction(self.points, &mut predicted);
        let (size, _) = self.sizes();
        if size < FIRST {
            // Where few are timed, corners that are far from everything are not worth it.
            let mut apart: Vec<usize> = Vec::new();
            for index in predicted.into_iter().filter(|&index| index != self.baseline) {
                let is_apart =
                    |&other: &usize| squared(&self.places[index], &self.places[other]) > FEW_APART * FEW_APART;
                if apart.len() < size && apart.iter().all(is_apart) {
                    apart.push(index);
                }
            }
            chosen.extend(apart);
            chosen.truncate(self.most.max(1));
            return chosen;
        }
        let hedged = hedged(self.points, &predicted, &self.places, FIRST / 2 + 1);
        chosen.extend(hedged.into_iter().filter(|&index| index != self.baseline).take(FIRST / 2));
        let distance = |index: usize, to: usize| squared(&self.places[index], &self.places[to]);
        let nearest = |index: usize| chosen.iter().map(|&to| distance(index, to)).fold(f64::INFINITY, f64::min);
        let mut distances: Vec<f64> = (0..self.points.len()).map(nearest).collect();
        while chosen.len() <= FIRST {
            let farthest = (0..distances.len()).max_by(|&a, &b| distances[a].total_cmp(&distances[b]).then(b.cmp(&a)));
            let Some(farthest) = farthest.filter(|&index| distances[index] > 0.0) else { break };
            chosen.push(farthest);
            for (index, least) in distances.iter_mut().enumerate() {
                *least = least.min(distance(index, farthest));
            }
        }
        chosen
    }

    fn further(&mut self, times: &[Option<f64>]) -> Vec<usize> {
        let known: Vec<(usize, f64)> = self
            .given
            .iter()
            .filter_map(|&index| Some((index, times.get(index).copied().flatten().filter(|time| *time > 0.0)?.ln())))
            .collect();
        let Some(&(best, least)) = known.iter().min_by(|a, b| a.1.total_cmp(&b.1)) else { return Vec::new() };
        let room = self.most.saturating_sub(self.given.len());
        let rest = self.rest();
        if room == 0 || rest.is_empty() {
            return Vec::new();
        }
        let Some(fit) = self.fit(&known) else { return Vec::new() };
        let mut gains: Vec<f64> = rest.iter().map(|&index| fit.gain(self, index, least)).collect();
        let mut chosen = Vec::new();
        while chosen.len() < self.sizes().1.min(room) {
            let promising = (0..rest.len()).max_by(|&a, &b| gains[a].total_cmp(&gains[b]).then(b.cmp(&a)));
            // The first must be worth a round; with it go others that are worth their own time.
            let worth = if chosen.is_empty() { WORTHWHILE } else { WORTHWHILE / 4.0 };
            let Some(promising) = promising.filter(|&at| gains[at] > worth) else { break };
            chosen.push(rest[promising]);
            for (gain, &index) in gains.iter_mut().zip(&rest) {
                let near = squared(&self.places[index], &self.places[rest[promising]]) / (2.0 * APART * APART);
                *gain *= 1.0 - (-near).exp();
            }
        }
        if chosen.is_empty() && self.settled.insert(best) {
            let mut near = rest;
            near.sort_by(|&a, &b| {
                let distance = |index: usize| squared(&self.places[index], &self.places[best]);
                distance(a).total_cmp(&distance(b)).then(a.cmp(&b))
            });
            near.truncate(NEIGHBOURS.min(room));
            chosen = near;
        }
        chosen
    }

    /// The points that may be next.
    fn rest(&self) -> Vec<usize> {
        let mut rest: Vec<usize> = (0..self.points.len()).filter(|index| !self.given.contains(index)).collect();
        if rest.len() > LOOKED_AT {
            sort_by_prediction(self.points, &mut rest);
            let others = rest.split_off(LOOKED_AT / 2);
            rest.extend(others.iter().step_by(others.len().div_ceil(LOOKED_AT / 2)));
            rest.sort_unstable();
        }
        rest
    }

    /// The likeliest fit to these logarithms of times.
    fn fit(&self, known: &[(usize, f64)]) -> Option<Fit> {
        let mut best: Option<Fit> = None;
        for length in LENGTHS {
            let covariance = |a: usize, b: usize| covariance(squared(&self.places[a], &self.places[b]), length);
            for noise in NOISES {
                let matrix: Vec<Vec<f64>> = known
                    .iter()
                    .enumerate()
                    .map(|(row, &(a, _))| {
                        let entries = known.iter().take(row + 1).enumerate();
                        entries
                            .map(|(column, &(b, _))| covariance(a, b) + if row == column { noise } else { 0.0 })
                            .collect()
                    })
                    .collect();
                let Some(factor) = cholesky(matrix) else { continue };
                for share in SHARES {
                    let left: Vec<f64> = known.iter().map(|&(at, time)| time - share * self.prediction(at)).collect();
                    // Few timings tell little of how far the model is off: then a prior speaks too.
                    let (weight, mean) = match self.is_brief() {
                        false => (0.0, left.iter().sum::<f64>() / left.len() as f64),
                        true => (FEW_WEIGHT, mean(&factor, &left)),
                    };
                    let centred: Vec<f64> = left.iter().map(|left| left - mean).collect();
                    let half = forward(&factor, &centred);
                    let squares = half.iter().map(|x| x * x).sum::<f64>();
                    let variance = ((squares + weight * FEW_VARIANCE) / (left.len() as f64 + weight)).max(1e-6);
                    let determinant: f64 = factor.iter().enumerate().map(|(row, entries)| entries[row].ln()).sum();
                    let likelihood = -0.5 * (left.len() as f64 + weight) * variance.ln() - determinant;
                    if best.as_ref().is_none_or(|best| likelihood > best.likelihood) {
                        let at = known.iter().map(|&(at, _)| at).collect();
                        let factor = factor.clone();
                        best = Some(Fit { likelihood, length, share, mean, variance, at, factor, half });
                    }
                }
            }
        }
        best
    }

    fn prediction(&self, index: usize) -> f64 {
        self.points[index].score.predicted_us.max(f64::MIN_POSITIVE).ln()
    }
}

/// A fit to the times so far.
struct Fit {
    likelihood: f64,
    length: f64,
    share: f64,
    mean: f64,
    variance: f64,
    /// The points that are known.
    at: Vec<usize>,
    /// The lower triangle whose square is their covariance, and it divided into their centred values.
    factor: Vec<Vec<f64>>,
    half: Vec<f64>,
}

impl Fit {
    /// The expected improvement of a point over the `least` logarithm of time, as a share of time.
    fn gain(&self, search: &Refit<'_>, index: usize, least: f64) -> f64 {
        let place = &search.places[index];
        let column: Vec<f64> =
            self.at.iter().map(|&at| covariance(squared(place, &search.places[at]), self.length)).collect();
        let half = forward(&self.factor, &column);
        let centred: f64 = half.iter().zip(&self.half).map(|(a, b)| a * b).sum();
        let expected = self.mean + centred + self.share * search.prediction(index);
        let left = (1.0 - half.iter().map(|x| x * x).sum::<f64>()).max(1e-9);
        let deviation = (left * self.variance).sqrt();
        let z = (least - expected) / deviation;
        (least - expected) * normal_below(z) + deviation * (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()
    }
}

/// The coordinates of the points as shares of their extent; what does not vary is left out.
fn places(points: &[Point]) -> Vec<Vec<f64>> {
    let dimensions = points.first().map_or(0, |point| point.coordinates.len());
    let extent = |dimension: usize| {
        let values = || points.iter().filter_map(move |point| point.coordinates.get(dimension).copied());
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
    };
    let extents: Vec<(usize, f64, f64)> = (0..dimensions)
        .map(|dimension| (dimension, extent(dimension)))
        .filter(|(_, (low, high))| high > low)
        .map(|(dimension, (low, high))| (dimension, low, high))
        .collect();
    let place = |point: &Point| {
        let share = |&(dimension, low, high): &(usize, f64, f64)| {
            (point.coordinates.get(dimension).copied().unwrap_or(low) - low) / (high - low)
        };
        extents.iter().map(share).collect()
    };
    points.iter().map(place).collect()
}

/// The mean of values whose covariance has this lower triangle (the generalized least squares estimate).
fn mean(factor: &[Vec<f64>], values: &[f64]) -> f64 {
    let ones = forward(factor, &vec![1.0; values.len()]);
    let halves = forward(factor, values);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(&ones, &halves) / dot(&ones, &ones)
}

fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

fn covariance(squared: f64, length: f64) -> f64 {
    (-0.5 * squared / (length * length)).exp()
}

/// The lower triangle whose product with its transpose is `matrix`, of which the lower triangle is given; `None` where it is
/// not positive.
fn cholesky(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    for row in 0..matrix.len() {
        for column in 0..=row {
            let dot: f64 = (0..column).map(|k| matrix[row][k] * matrix[column][k]).sum();
            let left = matrix[row][column] - dot;
            matrix[row][column] = if row == column {
                if left.is_nan() || left <= 0.0 {
                    return None;
                }
                left.sqrt()
            } else {
                left / matrix[column][column]
            };
        }
    }
    Some(matrix)
}

/// The x with `factor` x = `right`, for a lower triangle.
fn forward(factor: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let mut x: Vec<f64> = Vec::with_capacity(right.len());
    for (entries, right) in factor.iter().zip(right) {
        let dot: f64 = entries.iter().zip(&x).map(|(a, b)| a * b).sum();
        x.push((right - dot) / entries[x.len()]);
    }
    x
}

/// The normal distribution's share below z (Abramowitz and Stegun, 26.2.17; error below 1e-7).
fn normal_below(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let series = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum = series.iter().rev().fold(0.0, |sum, coefficient| (sum + coefficient) * t);
    let tail = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum;
    if z > 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Bottleneck, Score, Terms, occupancy::Limiter};
    use proptest::prelude::*;

    /// A point at these coordinates that the model predicts this time for.
    fn point(coordinates: &[f64], predicted_us: f64) -> Point {
        let score = Score {
            occupancy: 1.0,
            blocks_per_sm: 1,
            limiter: Limiter::Registers,
            registers: 32,
            ro: 1.0,
            t: 0.0,
            c: 1.0,
            efficiency: 1.0,
            utilization: 1.0,
            predicted_us,
            terms: Terms { latency: predicted_us, ..Terms::default() },
            bottleneck: Bottleneck::Issue,
            feasible: true,
            exact: true,
        };
        Point { threads: 1, variant: 0, policy: 0, score, coordinates: coordinates.to_vec() }
    }

    /// Two axes of eleven values.
    fn plane(predicted: impl Fn(f64, f64) -> f64) -> Vec<Point> {
        let axis = || (0..11).map(f64::from);
        axis().flat_map(|x| axis().map(move |y| (x, y))).map(|(x, y)| point(&[x, y], predicted(x, y))).collect()
    }

    /// Runs a search to its end: the points given, in order.
    fn searched(points: &[Point], baseline: usize, time: impl Fn(usize) -> Option<f64>) -> Vec<usize> {
        let mut search = Refit::new(points, baseline, MOST);
        let mut times = vec![None; points.len()];
        let mut given = Vec::new();
        loop {
            let round = search.next(&times);
            if round.is_empty() {
                return given;
            }
            for &index in &round {
                times[index] = time(index);
            }
            given.extend(round);
        }
    }

    #[test]
    fn the_first_round_has_the_baseline_the_best_predictions_and_the_corners() {
        let points = plane(|x, y| 10.0 + x + y);
        let first = Refit::new(&points, 60, MOST).next(&[]);
        assert_eq!(first.len(), FIRST + 1);
        assert_eq!(first[..4], [60, 0, 1, 11]);
        for corner in [10, 110, 120] {
            assert!(first.contains(&corner), "{corner} of {first:?}");
        }
    }

    #[test]
    fn a_valley_that_the_model_does_not_know_of_is_found_with_a_part_of_the_points() {
        // The model sees the first axis alone, and the valley lies elsewhere.
        let points = plane(|x, _| 10.0 + x);
        let time = |index: usize| {
            let (x, y) = ((index / 11) as f64, (index % 11) as f64);
            Some(10.0 + (x - 7.0) * (x - 7.0) / 4.0 + (y - 3.0) * (y - 3.0) / 2.0)
        };
        let given = searched(&points, 0, time);
        assert!(given.contains(&(7 * 11 + 3)) && given.len() < 60, "{given:?}");
    }

    #[test]
    fn of_few_points_each_is_chosen_by_all_before_it() {
        let points = plane(|x, y| 10.0 + x + y);
        let mut search = Refit::new(&points, 60, 8);
        let mut times = vec![None; points.len()];
        let mut rounds = Vec::new();
        while let [first, rest @ ..] = search.next(&times).as_slice() {
            rounds.push(1 + rest.len());
            for index in std::iter::once(first).chain(rest) {
                times[*index] = Some(points[*index].score.predicted_us);
            }
        }
        assert_eq!(rounds[0], 1 + FEW_FIRST);
        assert!(rounds.iter().sum::<usize>() <= 8, "{rounds:?}");
        assert!(times[0].is_some(), "the best, which the model knows");
    }

    #[test]
    fn where_nothing_varies_in_time_it_soon_ends() {
        let points = plane(|_, _| 10.0);
        let given = searched(&points, 0, |_| Some(10.0));
        assert!(given.len() <= FIRST + 1 + NEIGHBOURS, "{}", given.len());
    }

    #[test]
    fn spaces_of_one_point_or_none_are_searched() {
        assert_eq!(searched(&[], 0, |_| None), Vec::<usize>::new());
        assert_eq!(searched(&[point(&[1.0], 1.0)], 0, |_| Some(1.0)), [0]);
        assert_eq!(searched(&[point(&[], f64::NAN), point(&[], 0.0)], 7, |_| Some(0.0)), [1, 0]);
    }

    proptest! {
        #[test]
        fn whatever_the_times_no_point_is_given_twice_and_few_are(
            places in proptest::collection::vec((0_u8..8, 0_u8..4, 0.1_f64..100.0), 1..300),
            times in proptest::collection::vec(proptest::option::of(0.0_f64..1e6), 300)
        ) {
            let points: Vec<Point> =
                places.iter().map(|&(x, y, predicted)| point(&[x.into(), y.into()], predicted)).collect();
            let mut given = searched(&points, 0, |index| times[index]);
            prop_assert!(given.len() <= MOST);
            let count = given.len();
            given.sort_unstable();
            given.dedup();
            prop_assert_eq!(given.len(), count);
        }
    }
}
