//! The default strategy: candidates in rounds, each chosen by a prediction that is re-fitted to
//! all timings so far.
//!
//! Points, times so far -> the next points to time; none when no remaining point is expected to
//! win. The model's predicted time is wrong about what it does not know of a kernel (how its
//! gathers use the caches, what ptxas's schedule costs), and equally wrong for similar
//! configurations. So the logarithm of time is modelled as a share of the logarithm of the
//! prediction plus a smooth function of the configuration, a Gaussian process over its coordinates
//! (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, algorithm 2.1 and
//! section 5.4.1); the next points are those with the largest expected improvement over the best
//! (Jones, Schonlau and Welch, J. Global Optimization 13, 1998, equation 15).
//!
//! Invariant: the same times give the same points; a point is proposed once.

use super::gaussian_process::{
    expected_improvement, factor_cholesky, solve_forward, squared_distance, squared_exponential_covariance,
};
use super::point::{Point, sort_by_prediction};
use super::prior::{ErrorScale, PriorSamples};
use super::problem::SearchProblem;
use std::collections::BTreeSet;

/// Points of the first round besides the baseline: half hedge the prediction, half are far from
/// all others. They are among those compiled first, which can be timed while the others are
/// compiled; a round of half as many that hedge the prediction over all points follows.
const FIRST_ROUND_POINTS: usize = 16;
/// How wrong the model is assumed to be when the first round is chosen. No timings correct it
/// yet, so that large errors would only scatter the points.
const ERROR_SCALE: ErrorScale = ErrorScale { part: 0.2, drift: 0.06, corner: 0.0 };
/// Points of each further round.
const ROUND_POINTS: usize = 8;
/// Points that are timed at most, the baseline among them.
const MAX_TIMED: usize = 128;
/// A smaller expected improvement than this share of the best time is not worth a round.
const MIN_EXPECTED_GAIN: f64 = 0.001;
/// When no point is worth a round, this many nearest neighbours of the best are timed.
const NEIGHBOURS: usize = 4;
/// Where launching each of the remaining points once takes less than this many microseconds, all
/// of them are timed: choosing among them takes as long, and may choose wrongly.
const CHEAP_US: f64 = 50_000.0;
/// Points that are considered for a round: of larger spaces those of least predicted time, and
/// an even selection of the others.
const MAX_POINTS: usize = 20_000;
/// A chosen point lowers the gain of others within this distance, as a share of the space's
/// extent, so that the points of a round are spread.
const SPACING: f64 = 0.15;
/// Hyperparameters, of which the likeliest combination is used: lengths over which times change,
/// as shares of the space's extent; the exponent of the prediction; the share of the variance
/// that is noise.
const LENGTHS: [f64; 4] = [0.2, 0.4, 0.8, 1.5];
const SHARES: [f64; 3] = [0.0, 0.5, 1.0];
const NOISES: [f64; 2] = [1e-4, 1e-2];

/// How the next round is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundKind {
    /// A spread over the points compiled first, which can be timed while the others are compiled.
    CompiledFirst,
    /// Further points that hedge the prediction, now that all points are known.
    Hedge,
    /// By expected improvement under a fit to all timings.
    Fit,
}

/// The state of such a search.
#[derive(Debug)]
pub struct RefitSearch<'a> {
    problem: SearchProblem<'a>,
    proposed: BTreeSet<usize>,
    round_kind: RoundKind,
    /// The first round, if it was chosen before all points were known.
    preset_first_round: Option<Vec<usize>>,
    /// The best points whose neighbours have been timed.
    neighbours_tried: BTreeSet<usize>,
}

impl<'a> RefitSearch<'a> {
    /// A search over `points`, of which the one with index `baseline` is the baseline; at most
    /// `most` of them are timed.
    pub fn new(points: &'a [Point], baseline: usize, most: usize) -> Self {
        let problem = SearchProblem::new(points, baseline, most.min(MAX_TIMED));
        Self {
            problem,
            proposed: BTreeSet::new(),
            round_kind: RoundKind::CompiledFirst,
            preset_first_round: None,
            neighbours_tried: BTreeSet::new(),
        }
    }

    /// Returns the indices of the points to time next; none ends the search. `times` are
    /// the times so far in microseconds, `None` for points that were not timed or were
    /// refused.
    pub fn next_points(&mut self, times: &[Option<f64>]) -> Vec<usize> {
        let next = match (self.round_kind, self.cheap_remaining(times)) {
            (RoundKind::CompiledFirst, _) => {
                self.preset_first_round.take().unwrap_or_else(|| self.compiled_first_points())
            }
            (_, Some(rest)) => rest,
            (RoundKind::Hedge, None) => {
                Some(self.hedging_points()).filter(|hedge| !hedge.is_empty()).unwrap_or_else(|| self.next_after(times))
            }
            (RoundKind::Fit, None) => self.next_after(times),
        };
        let are_all_compiled_first = || self.problem.points.iter().all(|point| point.compiled_first);
        self.round_kind = if self.round_kind == RoundKind::CompiledFirst && !are_all_compiled_first() {
            RoundKind::Hedge
        } else {
            RoundKind::Fit
        };
        self.proposed.extend(&next);
        next
    }

    /// Sets the points of the first round.
    pub fn with_first_round(self, first: Vec<usize>) -> Self {
        Self { preset_first_round: Some(first), ..self }
    }

    /// A spread over the points compiled first and the baseline.
    fn compiled_first_points(&self) -> Vec<usize> {
        let points = self.problem.points;
        let kept: Vec<usize> =
            (0..points.len()).filter(|&index| points[index].compiled_first || index == self.problem.baseline).collect();
        let compiled_first: Vec<Point> = kept.iter().map(|&index| points[index].clone()).collect();
        let baseline = kept.iter().position(|&index| index == self.problem.baseline).unwrap_or(compiled_first.len());
        let spread = RefitSearch::new(&compiled_first, baseline, self.problem.most).spread_points();
        spread.into_iter().map(|index| kept[index]).collect()
    }

    /// All remaining points that may run, if timing them all is cheap.
    fn cheap_remaining(&self, times: &[Option<f64>]) -> Option<Vec<usize>> {
        let left = self.problem.points.len().checked_sub(self.proposed.len())?;
        if left > self.problem.most.saturating_sub(self.proposed.len()) {
            return None;
        }
        let proposed: Vec<usize> = self.proposed.iter().copied().collect();
        let known: Vec<f64> = proposed.iter().filter_map(|&index| times.get(index).copied().flatten()).collect();
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        let feasibility = self.problem.feasibility(&proposed, times);
        let is_cheap = mean * left as f64 <= CHEAP_US;
        is_cheap.then(|| {
            let rest = self.remaining_points();
            rest.into_iter().filter(|&index| feasibility.likelihood_of(index) > 0.0).collect()
        })
    }

    /// Points that hedge the prediction and have not been proposed.
    fn hedging_points(&self) -> Vec<usize> {
        let mut hedged = self.hedged_points();
        hedged.retain(|index| !self.proposed.contains(index));
        hedged.truncate(self.problem.most.saturating_sub(self.proposed.len()));
        hedged
    }

    fn hedged_points(&self) -> Vec<usize> {
        self.problem.first_round(
            PriorSamples::new(&self.problem, ERROR_SCALE).hedged_points(FIRST_ROUND_POINTS / 2 + 1),
            FIRST_ROUND_POINTS / 2,
        )
    }

    /// Returns points that hedge the prediction, and points that are far from all others.
    pub fn spread_points(&self) -> Vec<usize> {
        let mut chosen = self.hedged_points();
        let distance = |index: usize, to: usize| {
            squared_distance(&self.problem.scaled_coordinates[index], &self.problem.scaled_coordinates[to])
        };
        let nearest = |index: usize| chosen.iter().map(|&to| distance(index, to)).fold(f64::INFINITY, f64::min);
        let mut distances: Vec<f64> = (0..self.problem.points.len()).map(nearest).collect();
        while chosen.len() <= FIRST_ROUND_POINTS {
            let farthest = (0..distances.len()).max_by(|&a, &b| distances[a].total_cmp(&distances[b]).then(b.cmp(&a)));
            let Some(farthest) = farthest.filter(|&index| distances[index] > 0.0) else { break };
            chosen.push(farthest);
            for (index, least) in distances.iter_mut().enumerate() {
                *least = least.min(distance(index, farthest));
            }
        }
        chosen
    }

    fn next_after(&mut self, times: &[Option<f64>]) -> Vec<usize> {
        let known: Vec<(usize, f64)> = self
            .proposed
            .iter()
            .filter_map(|&index| Some((index, times.get(index).copied().flatten().filter(|time| *time > 0.0)?.ln())))
            .collect();
        let Some(&(best, least)) = known.iter().min_by(|a, b| a.1.total_cmp(&b.1)) else { return Vec::new() };
        let room = self.problem.most.saturating_sub(self.proposed.len());
        let rest = self.remaining_points();
        if room == 0 || rest.is_empty() {
            return Vec::new();
        }
        let Some(fit) = self.fit_times(&known) else { return Vec::new() };
        let proposed: Vec<usize> = self.proposed.iter().copied().collect();
        let feasibility = self.problem.feasibility(&proposed, times);
        let gain = |&index: &usize| feasibility.likelihood_of(index) * fit.expected_gain(self, index, least);
        let mut gains: Vec<f64> = rest.iter().map(gain).collect();
        let mut chosen = Vec::new();
        while chosen.len() < ROUND_POINTS.min(room) {
            let promising = (0..rest.len()).max_by(|&a, &b| gains[a].total_cmp(&gains[b]).then(b.cmp(&a)));
            // The first must be worth a round; with it go others that are worth their own time.
            let worth = if chosen.is_empty() { MIN_EXPECTED_GAIN } else { MIN_EXPECTED_GAIN / 4.0 };
            let Some(promising) = promising.filter(|&at| gains[at] > worth) else { break };
            chosen.push(rest[promising]);
            for (gain, &index) in gains.iter_mut().zip(&rest) {
                let near = squared_distance(
                    &self.problem.scaled_coordinates[index],
                    &self.problem.scaled_coordinates[rest[promising]],
                ) / (2.0 * SPACING * SPACING);
                *gain *= 1.0 - (-near).exp();
            }
        }
        if chosen.is_empty() && self.neighbours_tried.insert(best) {
            let mut near = rest;
            near.retain(|&index| feasibility.likelihood_of(index) > 0.0);
            near.sort_by(|&a, &b| {
                let distance = |index: usize| {
                    squared_distance(&self.problem.scaled_coordinates[index], &self.problem.scaled_coordinates[best])
                };
                distance(a).total_cmp(&distance(b)).then(a.cmp(&b))
            });
            near.truncate(NEIGHBOURS.min(room));
            chosen = near;
        }
        chosen
    }

    /// The points that may be proposed next, at most [`MAX_POINTS`].
    fn remaining_points(&self) -> Vec<usize> {
        let mut rest: Vec<usize> =
            (0..self.problem.points.len()).filter(|index| !self.proposed.contains(index)).collect();
        if rest.len() > MAX_POINTS {
            sort_by_prediction(self.problem.points, &mut rest);
            let others = rest.split_off(MAX_POINTS / 2);
            rest.extend(others.iter().step_by(others.len().div_ceil(MAX_POINTS / 2)));
            rest.sort_unstable();
        }
        rest
    }

    /// The likeliest fit to these points' logarithms of times.
    fn fit_times(&self, known: &[(usize, f64)]) -> Option<Fit> {
        let mut best: Option<Fit> = None;
        for length in LENGTHS {
            let covariance = |a: usize, b: usize| {
                squared_exponential_covariance(
                    squared_distance(&self.problem.scaled_coordinates[a], &self.problem.scaled_coordinates[b]),
                    length,
                )
            };
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
                let Some(factor) = factor_cholesky(matrix) else { continue };
                for share in SHARES {
                    let left: Vec<f64> =
                        known.iter().map(|&(at, time)| time - share * self.predicted_time(at)).collect();
                    let mean = left.iter().sum::<f64>() / left.len() as f64;
                    let centred: Vec<f64> = left.iter().map(|left| left - mean).collect();
                    let half = solve_forward(&factor, &centred);
                    let squares = half.iter().map(|x| x * x).sum::<f64>();
                    let variance = (squares / left.len() as f64).max(1e-6);
                    let determinant: f64 = factor.iter().enumerate().map(|(row, entries)| entries[row].ln()).sum();
                    let likelihood = -0.5 * left.len() as f64 * variance.ln() - determinant;
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

    fn predicted_time(&self, index: usize) -> f64 {
        self.problem.points[index].score.predicted_us.max(f64::MIN_POSITIVE).ln()
    }
}

/// A Gaussian process fitted to the times so far.
struct Fit {
    likelihood: f64,
    length: f64,
    share: f64,
    mean: f64,
    variance: f64,
    /// The points that were timed.
    at: Vec<usize>,
    /// The Cholesky factor of their covariance, and their centred values divided by it.
    factor: Vec<Vec<f64>>,
    half: Vec<f64>,
}

impl Fit {
    /// The expected improvement of a point over the best time, whose logarithm is `least`, as a
    /// share of that time.
    fn expected_gain(&self, search: &RefitSearch<'_>, index: usize, least: f64) -> f64 {
        let place = &search.problem.scaled_coordinates[index];
        let column: Vec<f64> = self
            .at
            .iter()
            .map(|&at| {
                squared_exponential_covariance(
                    squared_distance(place, &search.problem.scaled_coordinates[at]),
                    self.length,
                )
            })
            .collect();
        let half = solve_forward(&self.factor, &column);
        let centred: f64 = half.iter().zip(&self.half).map(|(a, b)| a * b).sum();
        let expected = self.mean + centred + self.share * search.predicted_time(index);
        let left = (1.0 - half.iter().map(|x| x * x).sum::<f64>()).max(1e-9);
        let deviation = (left * self.variance).sqrt();
        expected_improvement(least, expected, deviation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Bottleneck, Limiter, Score, Terms};
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
            in_flight: 1.0,
            bottleneck: Bottleneck::Issue,
            feasible: true,
            exact: true,
        };
        Point { threads: 1, variant: 0, policy: 0, compiled_first: true, score, coordinates: coordinates.to_vec() }
    }

    /// Two axes of eleven values.
    fn plane(predicted: impl Fn(f64, f64) -> f64) -> Vec<Point> {
        let axis = || (0..11).map(f64::from);
        axis().flat_map(|x| axis().map(move |y| (x, y))).map(|(x, y)| point(&[x, y], predicted(x, y))).collect()
    }

    /// Runs a search to its end: the points given, in order. The times are in seconds: choosing
    /// is worth it.
    fn searched(points: &[Point], baseline: usize, time: impl Fn(usize) -> Option<f64>) -> Vec<usize> {
        let mut search = RefitSearch::new(points, baseline, MAX_TIMED);
        let mut times = vec![None; points.len()];
        let mut proposed = Vec::new();
        loop {
            let round = search.next_points(&times);
            if round.is_empty() {
                return proposed;
            }
            for &index in &round {
                times[index] = time(index).map(|seconds| seconds * 1e6);
            }
            proposed.extend(round);
        }
    }

    #[test]
    fn the_first_round_has_the_baseline_the_best_predictions_and_the_corners() {
        let points = plane(|x, y| 10.0 + x + y);
        let first = RefitSearch::new(&points, 60, MAX_TIMED).next_points(&[]);
        assert_eq!(first.len(), FIRST_ROUND_POINTS + 1);
        assert_eq!(first[..4], [60, 0, 1, 11]);
        for corner in [10, 110, 120] {
            assert!(first.contains(&corner), "{corner} of {first:?}");
        }
    }

    #[test]
    fn the_first_round_is_natural_and_what_hedges_the_prediction_over_all_points_comes_next() {
        // What is not compiled first is predicted to be faster.
        let mut points = plane(|x, y| 10.0 + x + y);
        points.iter_mut().enumerate().for_each(|(index, point)| point.compiled_first = index >= 55 || index == 0);
        let times = vec![Some(1e7); points.len()];
        let mut search = RefitSearch::new(&points, 0, MAX_TIMED);
        let first = search.next_points(&[]);
        assert_eq!(first.len(), FIRST_ROUND_POINTS + 1);
        assert!(first.iter().all(|&index| points[index].compiled_first), "{first:?}");
        // It is that of a search which knows of nothing else.
        let compiled_first: Vec<usize> = (0..points.len()).filter(|&index| points[index].compiled_first).collect();
        let known: Vec<Point> = compiled_first.iter().map(|&index| points[index].clone()).collect();
        let alone = RefitSearch::new(&known, 0, MAX_TIMED).next_points(&[]);
        assert_eq!(alone.into_iter().map(|index| compiled_first[index]).collect::<Vec<_>>(), first);
        let second = search.next_points(&times);
        assert!(second.contains(&1) && second.len() <= FIRST_ROUND_POINTS / 2, "{second:?}");
        assert!(second.iter().all(|index| !first.contains(index)));
        // A first round that was chosen before is taken as it is.
        let mut preset_first_round = RefitSearch::new(&points, 0, MAX_TIMED).with_first_round(first.clone());
        assert_eq!((preset_first_round.next_points(&[]), preset_first_round.next_points(&times)), (first, second));
    }

    #[test]
    fn a_valley_that_the_model_does_not_know_of_is_found_with_a_part_of_the_points() {
        // The model sees the first axis alone, and the valley lies elsewhere.
        let points = plane(|x, _| 10.0 + x);
        let time = |index: usize| {
            let (x, y) = ((index / 11) as f64, (index % 11) as f64);
            Some(10.0 + (x - 7.0) * (x - 7.0) / 4.0 + (y - 3.0) * (y - 3.0) / 2.0)
        };
        let proposed = searched(&points, 0, time);
        assert!(proposed.contains(&(7 * 11 + 3)) && proposed.len() < 60, "{proposed:?}");
    }

    #[test]
    fn where_nothing_varies_in_time_it_soon_ends() {
        let points = plane(|_, _| 10.0);
        let proposed = searched(&points, 0, |_| Some(10.0));
        assert!(proposed.len() <= FIRST_ROUND_POINTS + 1 + NEIGHBOURS, "{}", proposed.len());
    }

    #[test]
    fn all_that_is_left_is_timed_where_that_is_cheap() {
        let points = plane(|x, _| 10.0 + x);
        for (us, size, all) in [(100.0, 121, true), (1000.0, 121, false), (1000.0, 30, true)] {
            let proposed = searched(&points[..size], 0, |_| Some(us * 1e-6));
            assert_eq!(proposed.len() == size, all, "{} of {size} points of {us} us", proposed.len());
        }
        // More than a search may time are chosen among.
        let many: Vec<Point> = (0..MAX_TIMED + 1).map(|x| point(&[x as f64], 10.0)).collect();
        assert!(searched(&many, 0, |_| Some(1e-6)).len() < MAX_TIMED);
    }

    #[test]
    fn a_value_that_no_point_bears_is_soon_left() {
        // Five values of a third axis, of which one alone runs; what runs with it is fastest at the
        // far corner.
        let points: Vec<Point> = (0..605_u32)
            .map(|index| {
                let [x, y, z] = [index % 11, index / 11 % 11, index / 121].map(f64::from);
                point(&[x, y, z], 10.0 + x + z)
            })
            .collect();
        let time = |index: usize| (index / 121 == 3).then_some(100.0 - (index % 121) as f64);
        let proposed = searched(&points, 3 * 121, time);
        let refused = proposed.iter().filter(|&&index| time(index).is_none()).count();
        assert!(proposed.contains(&(4 * 121 - 1)), "{proposed:?}");
        assert!(refused < 30, "{refused} of {} were refused", proposed.len());
    }

    #[test]
    fn spaces_of_one_point_or_none_are_searched() {
        assert_eq!(searched(&[], 0, |_| None), Vec::<usize>::new());
        assert_eq!(searched(&[point(&[1.0], 1.0)], 0, |_| Some(1.0)), [0]);
        assert_eq!(searched(&[point(&[], f64::NAN), point(&[], 0.0)], 7, |_| Some(0.0)), [1, 0]);
    }

    proptest! {
        // `make test-full` sets PROPTEST_CASES, which overrides this.
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn few_points_are_given_and_none_twice_for_any_times(
            scaled_coordinates in proptest::collection::vec((0_u8..8, 0_u8..4, 0.1_f64..100.0), 1..300),
            times in proptest::collection::vec(proptest::option::of(0.0_f64..1e6), 300)
        ) {
            let points: Vec<Point> =
                scaled_coordinates.iter().map(|&(x, y, predicted)| point(&[x.into(), y.into()], predicted)).collect();
            let mut proposed = searched(&points, 0, |index| times[index]);
            prop_assert!(proposed.len() <= MAX_TIMED);
            let count = proposed.len();
            proposed.sort_unstable();
            proposed.dedup();
            prop_assert_eq!(proposed.len(), count);
        }
    }
}
