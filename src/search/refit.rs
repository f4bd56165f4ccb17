//! The default strategy: candidates in rounds, each chosen by a prediction that is re-fitted to
//! all timings so far.
//!
//! Points, times so far -> the next points to time; none when what is left is not expected to
//! win. The model's predicted time misses what it does not know of a kernel (how its gathers
//! meet the caches, what ptxas's schedule costs), and misses it alike for configurations that
//! are alike. So the logarithm of time is taken for a share of the logarithm of the prediction
//! plus a smooth function of the configuration, a Gaussian process over its coordinates
//! (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, algorithm 2.1 and
//! section 5.4.1); the next points are those whose time is expected to undercut the best most
//! (expected improvement: Jones, Schonlau and Welch, J. Global Optimization 13, 1998, equation
//! 15).
//!
//! Invariant: the same times give the same points; a point is given once.

use super::gaussian_process::{covariance_at, expected_improvement, factor_cholesky, solve_forward, squared_distance};
use super::point::{Point, sort_by_prediction};
use super::prior::{ErrorScale, PriorSamples};
use super::problem::Task;
use std::collections::BTreeSet;

/// Points of the first round besides the baseline: half that hedge the prediction, half far
/// from all others. They are natural ones, which can be timed while the others are compiled;
/// half as many that hedge the prediction over all points follow.
const FIRST: usize = 16;
/// How wrong the model is supposed to be where the first round is chosen. It has no timings to
/// correct it, so that great doubts would only scatter it.
const DOUBT: ErrorScale = ErrorScale { part: 0.2, drift: 0.06, corner: 0.0 };
/// Points of each further round.
const ROUND: usize = 8;
/// Points that are timed at most, the baseline among them.
const MOST: usize = 128;
/// An expected improvement below this share of the best time is none: paired rounds tell
/// differences of 1%.
const WORTHWHILE: f64 = 0.001;
/// When nothing promises more, this many nearest neighbours of the best have their turn.
const NEIGHBOURS: usize = 4;
/// Where launching each of the remaining points once takes less than this many microseconds, all
/// of them are timed: choosing among them takes as long, and may choose wrongly.
const CHEAP_US: f64 = 50_000.0;
/// Points that are looked at for a round; of larger spaces those of least predicted time, and
/// others evenly.
const LOOKED_AT: usize = 20_000;
/// Within a round a point makes others less worth timing within this share of the space's
/// extent.
const APART: f64 = 0.15;
/// What is tried, the likeliest counting: lengths over which times change, as shares of the
/// space's extent; the share of the prediction; the share of variance that is noise or has no
/// shape.
const LENGTHS: [f64; 4] = [0.2, 0.4, 0.8, 1.5];
const SHARES: [f64; 3] = [0.0, 0.5, 1.0];
const NOISES: [f64; 2] = [1e-4, 1e-2];

/// What the next round is chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// A spread over natural points, which can be timed while the others are compiled.
    CompiledFirst,
    /// What else hedges the prediction, now that all points are known.
    Hedge,
    Fit,
}

/// A search under way.
#[derive(Debug)]
pub struct Refit<'a> {
    task: Task<'a>,
    given: BTreeSet<usize>,
    turn: Turn,
    /// The first round, where it was chosen before.
    begun: Option<Vec<usize>>,
    /// The points whose neighbours have had their turn.
    settled: BTreeSet<usize>,
}

impl<'a> Refit<'a> {
    /// A search over `points` from the one with index `baseline`, of `most` of them at most.
    pub fn new(points: &'a [Point], baseline: usize, most: usize) -> Self {
        let task = Task::new(points, baseline, most.min(MOST));
        Self { task, given: BTreeSet::new(), turn: Turn::CompiledFirst, begun: None, settled: BTreeSet::new() }
    }

    /// Returns the indices of the points to time next; none ends the search. `times` are
    /// the times so far in microseconds, `None` for points that were not timed or were
    /// refused.
    pub fn next_points(&mut self, times: &[Option<f64>]) -> Vec<usize> {
        let next = match (self.turn, self.cheap_rest(times)) {
            (Turn::CompiledFirst, _) => self.begun.take().unwrap_or_else(|| self.compiled_first_points()),
            (_, Some(rest)) => rest,
            (Turn::Hedge, None) => {
                Some(self.hedging_points()).filter(|hedge| !hedge.is_empty()).unwrap_or_else(|| self.next_after(times))
            }
            (Turn::Fit, None) => self.next_after(times),
        };
        let is_all_natural = || self.task.points.iter().all(|point| point.compiled_first);
        self.turn = if self.turn == Turn::CompiledFirst && !is_all_natural() { Turn::Hedge } else { Turn::Fit };
        self.given.extend(&next);
        next
    }

    /// Sets the points of the first round.
    pub fn with_first(self, first: Vec<usize>) -> Self {
        Self { begun: Some(first), ..self }
    }

    /// A spread over the natural points and the baseline.
    fn compiled_first_points(&self) -> Vec<usize> {
        let points = self.task.points;
        let kept: Vec<usize> =
            (0..points.len()).filter(|&index| points[index].compiled_first || index == self.task.baseline).collect();
        let compiled_first: Vec<Point> = kept.iter().map(|&index| points[index].clone()).collect();
        let baseline = kept.iter().position(|&index| index == self.task.baseline).unwrap_or(compiled_first.len());
        let spread = Refit::new(&compiled_first, baseline, self.task.most).spread_points();
        spread.into_iter().map(|index| kept[index]).collect()
    }

    /// All remaining points that may run, where timing them is cheap.
    fn cheap_rest(&self, times: &[Option<f64>]) -> Option<Vec<usize>> {
        let left = self.task.points.len().checked_sub(self.given.len())?;
        if left > self.task.most.saturating_sub(self.given.len()) {
            return None;
        }
        let given: Vec<usize> = self.given.iter().copied().collect();
        let known: Vec<f64> = given.iter().filter_map(|&index| times.get(index).copied().flatten()).collect();
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        let feasible = self.task.known_borne(&given, times);
        let is_cheap = mean * left as f64 <= CHEAP_US;
        is_cheap.then(|| {
            let rest = self.remaining_points();
            rest.into_iter().filter(|&index| feasible.likelihood_of(index) > 0.0).collect()
        })
    }

    /// What hedges the prediction, but for what was given.
    fn hedging_points(&self) -> Vec<usize> {
        let mut hedged = self.hedged_points();
        hedged.retain(|index| !self.given.contains(index));
        hedged.truncate(self.task.most.saturating_sub(self.given.len()));
        hedged
    }

    fn hedged_points(&self) -> Vec<usize> {
        self.task.first_round(PriorSamples::new(&self.task, DOUBT).hedged_points(FIRST / 2 + 1), FIRST / 2)
    }

    /// Returns points that hedge the prediction, and points that are far from all others.
    pub fn spread_points(&self) -> Vec<usize> {
        let mut chosen = self.hedged_points();
        let distance = |index: usize, to: usize| squared_distance(&self.task.places[index], &self.task.places[to]);
        let nearest = |index: usize| chosen.iter().map(|&to| distance(index, to)).fold(f64::INFINITY, f64::min);
        let mut distances: Vec<f64> = (0..self.task.points.len()).map(nearest).collect();
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

    fn next_after(&mut self, times: &[Option<f64>]) -> Vec<usize> {
        let known: Vec<(usize, f64)> = self
            .given
            .iter()
            .filter_map(|&index| Some((index, times.get(index).copied().flatten().filter(|time| *time > 0.0)?.ln())))
            .collect();
        let Some(&(best, least)) = known.iter().min_by(|a, b| a.1.total_cmp(&b.1)) else { return Vec::new() };
        let room = self.task.most.saturating_sub(self.given.len());
        let rest = self.remaining_points();
        if room == 0 || rest.is_empty() {
            return Vec::new();
        }
        let Some(fit) = self.fit_times(&known) else { return Vec::new() };
        let given: Vec<usize> = self.given.iter().copied().collect();
        let borne = self.task.known_borne(&given, times);
        let gain = |&index: &usize| borne.likelihood_of(index) * fit.expected_gain(self, index, least);
        let mut gains: Vec<f64> = rest.iter().map(gain).collect();
        let mut chosen = Vec::new();
        while chosen.len() < ROUND.min(room) {
            let promising = (0..rest.len()).max_by(|&a, &b| gains[a].total_cmp(&gains[b]).then(b.cmp(&a)));
            // The first must be worth a round; with it go others that are worth their own time.
            let worth = if chosen.is_empty() { WORTHWHILE } else { WORTHWHILE / 4.0 };
            let Some(promising) = promising.filter(|&at| gains[at] > worth) else { break };
            chosen.push(rest[promising]);
            for (gain, &index) in gains.iter_mut().zip(&rest) {
                let near = squared_distance(&self.task.places[index], &self.task.places[rest[promising]])
                    / (2.0 * APART * APART);
                *gain *= 1.0 - (-near).exp();
            }
        }
        if chosen.is_empty() && self.settled.insert(best) {
            let mut near = rest;
            near.retain(|&index| borne.likelihood_of(index) > 0.0);
            near.sort_by(|&a, &b| {
                let distance = |index: usize| squared_distance(&self.task.places[index], &self.task.places[best]);
                distance(a).total_cmp(&distance(b)).then(a.cmp(&b))
            });
            near.truncate(NEIGHBOURS.min(room));
            chosen = near;
        }
        chosen
    }

    /// The points that may be next.
    fn remaining_points(&self) -> Vec<usize> {
        let mut rest: Vec<usize> = (0..self.task.points.len()).filter(|index| !self.given.contains(index)).collect();
        if rest.len() > LOOKED_AT {
            sort_by_prediction(self.task.points, &mut rest);
            let others = rest.split_off(LOOKED_AT / 2);
            rest.extend(others.iter().step_by(others.len().div_ceil(LOOKED_AT / 2)));
            rest.sort_unstable();
        }
        rest
    }

    /// The likeliest fit to these logarithms of times.
    fn fit_times(&self, known: &[(usize, f64)]) -> Option<Fit> {
        let mut best: Option<Fit> = None;
        for length in LENGTHS {
            let covariance = |a: usize, b: usize| {
                covariance_at(squared_distance(&self.task.places[a], &self.task.places[b]), length)
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
        self.task.points[index].score.predicted_us.max(f64::MIN_POSITIVE).ln()
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
    /// The lower triangle whose square is their covariance, and it divided into their centred
    /// values.
    factor: Vec<Vec<f64>>,
    half: Vec<f64>,
}

impl Fit {
    /// The expected improvement of a point over the `least` logarithm of time, as a share of
    /// time.
    fn expected_gain(&self, search: &Refit<'_>, index: usize, least: f64) -> f64 {
        let place = &search.task.places[index];
        let column: Vec<f64> = self
            .at
            .iter()
            .map(|&at| covariance_at(squared_distance(place, &search.task.places[at]), self.length))
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
        let mut search = Refit::new(points, baseline, MOST);
        let mut times = vec![None; points.len()];
        let mut given = Vec::new();
        loop {
            let round = search.next_points(&times);
            if round.is_empty() {
                return given;
            }
            for &index in &round {
                times[index] = time(index).map(|seconds| seconds * 1e6);
            }
            given.extend(round);
        }
    }

    #[test]
    fn the_first_round_has_the_baseline_the_best_predictions_and_the_corners() {
        let points = plane(|x, y| 10.0 + x + y);
        let first = Refit::new(&points, 60, MOST).next_points(&[]);
        assert_eq!(first.len(), FIRST + 1);
        assert_eq!(first[..4], [60, 0, 1, 11]);
        for corner in [10, 110, 120] {
            assert!(first.contains(&corner), "{corner} of {first:?}");
        }
    }

    #[test]
    fn the_first_round_is_natural_and_what_hedges_the_prediction_over_all_points_comes_next() {
        // What is not natural is predicted to be faster.
        let mut points = plane(|x, y| 10.0 + x + y);
        points.iter_mut().enumerate().for_each(|(index, point)| point.compiled_first = index >= 55 || index == 0);
        let times = vec![Some(1e7); points.len()];
        let mut search = Refit::new(&points, 0, MOST);
        let first = search.next_points(&[]);
        assert_eq!(first.len(), FIRST + 1);
        assert!(first.iter().all(|&index| points[index].compiled_first), "{first:?}");
        // It is that of a search which knows of nothing else.
        let compiled_first: Vec<usize> = (0..points.len()).filter(|&index| points[index].compiled_first).collect();
        let known: Vec<Point> = compiled_first.iter().map(|&index| points[index].clone()).collect();
        let alone = Refit::new(&known, 0, MOST).next_points(&[]);
        assert_eq!(alone.into_iter().map(|index| compiled_first[index]).collect::<Vec<_>>(), first);
        let second = search.next_points(&times);
        assert!(second.contains(&1) && second.len() <= FIRST / 2, "{second:?}");
        assert!(second.iter().all(|index| !first.contains(index)));
        // A first round that was chosen before is taken as it is.
        let mut begun = Refit::new(&points, 0, MOST).with_first(first.clone());
        assert_eq!((begun.next_points(&[]), begun.next_points(&times)), (first, second));
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
    fn where_nothing_varies_in_time_it_soon_ends() {
        let points = plane(|_, _| 10.0);
        let given = searched(&points, 0, |_| Some(10.0));
        assert!(given.len() <= FIRST + 1 + NEIGHBOURS, "{}", given.len());
    }

    #[test]
    fn all_that_is_left_is_timed_where_that_is_cheap() {
        let points = plane(|x, _| 10.0 + x);
        for (us, size, all) in [(100.0, 121, true), (1000.0, 121, false), (1000.0, 30, true)] {
            let given = searched(&points[..size], 0, |_| Some(us * 1e-6));
            assert_eq!(given.len() == size, all, "{} of {size} points of {us} us", given.len());
        }
        // More than a search may time are chosen among.
        let many: Vec<Point> = (0..MOST + 1).map(|x| point(&[x as f64], 10.0)).collect();
        assert!(searched(&many, 0, |_| Some(1e-6)).len() < MOST);
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
        let given = searched(&points, 3 * 121, time);
        let refused = given.iter().filter(|&&index| time(index).is_none()).count();
        assert!(given.contains(&(4 * 121 - 1)), "{given:?}");
        assert!(refused < 30, "{refused} of {} were refused", given.len());
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
