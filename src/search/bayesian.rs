//! Bayesian optimization, the default strategy: each round is chosen by all timings before it.
//!
//! Points, times so far -> the next points to time; none when no point is expected to win. The
//! prior is a set of samples of the times that all points might have, each with other errors of
//! the model (see [`prior`](super::prior)); timings tell which of them to believe, and where the
//! true times differ from all of them (see [`posterior`](super::posterior)). The next point is the
//! one with the largest expected improvement times the likelihood that the point runs at all. For
//! a further point of the same round each sample believes its own expectation of those before it
//! (Ginsbourger, Le Riche and Carraro, "Kriging is well-suited to parallelize optimization", 2010,
//! section 4.2).
//!
//! Invariant: the same times give the same points; a point is proposed once.

use super::point::Point;
use super::posterior::{Estimate, Posterior};
use super::prior::{ErrorScale, PriorSamples};
use super::problem::SearchProblem;
use std::collections::HashSet;

/// What depends on how many points may be timed.
#[derive(Debug)]
struct Pace {
    /// Points of the first round, besides the baseline if that is none of them (see
    /// [`PriorSamples::hedged_points`]).
    first_round_points: usize,
    /// Points of each further round.
    round_points: usize,
    /// The search ends where no expected improvement exceeds this share of the best time.
    min_expected_gain: f64,
    /// How wrong the model is assumed to be.
    error_scale: ErrorScale,
    /// Factors of the assumed deviation of the residual, of which the likeliest is used.
    residual_scales: &'static [f64],
}

/// The pace if fewer than [`MIN_FOR_ROUNDS`] points may be timed. With two points in the first
/// round in place of three a sixth of the searches of `stencil3d` ends 3.6% from the best (its
/// recorded space, 24 draws of samples), and the others end alike. Paired rounds tell differences
/// of 1%, and who allows few timings wants none that do not pay: with eight timings allowed 1.41%
/// of a space of the suite are timed with a gain of 0.01 and 1.39% with 0.011, where 1.4% are the
/// paper's (POSF, geometric mean); the shares below are of 0.01.
const FEW: Pace = Pace {
    first_round_points: 3,
    round_points: 1,
    min_expected_gain: 0.011,
    error_scale: ErrorScale { part: 0.3, drift: 0.075, corner: 0.7, is_damped: false },
    residual_scales: &[1.0],
};
/// The pace otherwise. Rounds of one point need 8% fewer timings than rounds of four, but the
/// baseline is timed with each round. Of searches of the suite's recorded spaces with 4 draws of
/// samples each 94% end within 0.1% of the best with a gain of 0.003, and 97% with 0.002 (both
/// without damping and with one residual scale). There are enough timings to notice that the model
/// misses what bounds a kernel: times then hardly depend on its prediction, and differ from all
/// samples by far more.
const MANY: Pace = Pace {
    first_round_points: 8,
    round_points: 4,
    min_expected_gain: 0.002,
    error_scale: ErrorScale { is_damped: true, ..FEW.error_scale },
    residual_scales: &[1.0, 2.0, 4.0],
};
/// Where fewer points may be timed, a round of many would leave none to learn from.
const MIN_FOR_ROUNDS: usize = 34;
/// Points that are timed at most, the baseline among them.
const MAX_TIMED: usize = 128;
/// The first point of a round is worth [`Pace::min_expected_gain`]; with it go others that are
/// worth this share of that.
const FOLLOWING_SHARE: f64 = 0.25;
/// The search does not end for lack of gain before this many timings, the baseline's among them:
/// with fewer the expected improvement is the model's own opinion. Of searches of the suite's
/// recorded spaces with 24 draws of samples each 94.9% end within 1% of the best with five,
/// 95.4% with six, and 99.1% and 99.6% within 3%.
const MIN_TIMINGS: usize = 6;

/// The state of such a search.
#[derive(Debug)]
pub struct BayesianSearch<'a> {
    problem: SearchProblem<'a>,
    pace: &'static Pace,
    samples: PriorSamples,
    proposed: Vec<usize>,
    /// The first round, if it was chosen before all points were known.
    preset_first_round: Option<Vec<usize>>,
}

impl<'a> BayesianSearch<'a> {
    /// A search over `points`, of which the one with index `baseline` is the baseline; at most
    /// `most` of them are timed.
    pub fn new(points: &'a [Point], baseline: usize, most: usize) -> Self {
        let problem = SearchProblem::new(points, baseline, most.min(MAX_TIMED));
        let pace = if Self::is_in_rounds(most) { &MANY } else { &FEW };
        let samples = PriorSamples::new(&problem, pace.error_scale);
        Self { problem, pace, samples, proposed: Vec::new(), preset_first_round: None }
    }

    /// Whether rounds of several points are proposed, if at most `most` points are timed. The first
    /// one is then of points compiled first, which can be timed while the others are compiled.
    pub fn is_in_rounds(most: usize) -> bool {
        most >= MIN_FOR_ROUNDS
    }

    /// Sets the points of the first round.
    pub fn with_first_round(self, first: Vec<usize>) -> Self {
        Self { preset_first_round: Some(first), ..self }
    }

    /// Returns the indices of the points to time next; none ends the search. `times` are
    /// the times so far in any unit, `None` for points that were not timed or were
    /// refused.
    pub fn next_points(&mut self, times: &[Option<f64>]) -> Vec<usize> {
        let mut next = match (self.proposed.is_empty(), self.preset_first_round.take()) {
            (true, Some(preset)) => preset,
            (true, None) => self.first_round(),
            (false, _) => self.next_after(times).unwrap_or_default(),
        };
        next.truncate(self.remaining_count(times));
        self.proposed.extend(&next);
        next
    }

    /// The baseline, and points that hedge the prediction.
    pub fn hedging_points(&self) -> Vec<usize> {
        let count = self.pace.first_round_points;
        self.problem.first_round(self.samples.hedged_points(count), count)
    }

    /// The same among the points compiled first, if there are rounds of several points.
    fn first_round(&self) -> Vec<usize> {
        let SearchProblem { points, baseline, most, .. } = self.problem;
        let may_be_first = |&index: &usize| points[index].compiled_first || index == baseline;
        let kept: Vec<usize> = (0..points.len()).filter(may_be_first).collect();
        if !Self::is_in_rounds(most) || kept.len() == points.len() {
            return self.hedging_points();
        }
        let compiled_first: Vec<Point> = kept.iter().map(|&index| points[index].clone()).collect();
        let baseline = kept.iter().position(|&index| index == baseline).unwrap_or(kept.len());
        let first = BayesianSearch::new(&compiled_first, baseline, most).hedging_points();
        first.into_iter().map(|index| kept[index]).collect()
    }

    /// How many more points may be proposed. Refused points were not timed and do not count, but
    /// at most as many of them as may be timed are forgiven.
    fn remaining_count(&self, times: &[Option<f64>]) -> usize {
        let most = self.problem.most.max(1);
        let refused = self.proposed.iter().filter(|&&index| times.get(index).copied().flatten().is_none()).count();
        (most + refused.min(most)).saturating_sub(self.proposed.len())
    }

    /// The points of the next round, `None` if nothing is known.
    fn next_after(&self, times: &[Option<f64>]) -> Option<Vec<usize>> {
        let considered = &self.samples.considered;
        let timed = self.proposed.iter().filter_map(|&index| {
            let time = times.get(index).copied().flatten().filter(|time| *time > 0.0)?;
            Some((index, time.ln()))
        });
        let least = timed.clone().map(|(_, time)| time).min_by(f64::total_cmp)?;
        // Each point that was timed: its position in `considered`, and the logarithm of its time.
        let position = |index: usize| considered.iter().position(|&other| other == index);
        let known: Vec<(usize, f64)> = timed.filter_map(|(index, time)| Some((position(index)?, time))).collect();
        let scales = self.pace.residual_scales;
        let mut posterior = Posterior::new(&self.problem, &self.samples, &known, least, scales)?;
        let feasibility = self.problem.feasibility(&self.proposed, times);
        let is_proposed: HashSet<usize> = self.proposed.iter().copied().collect();
        // Each point that may win, and how likely it runs.
        let mut remaining: Vec<(Estimate, f64)> = (0..considered.len())
            .filter(|&at| !is_proposed.contains(&considered[at]))
            .map(|at| (at, feasibility.likelihood_of(considered[at])))
            .filter(|&(at, feasibility)| feasibility > 0.0 && posterior.lower_bound(at) < least)
            .map(|(at, feasibility)| (posterior.estimate(at), feasibility))
            .collect();
        let mut chosen = Vec::new();
        while chosen.len() < self.pace.round_points {
            let gain = |(estimate, feasibility): &(Estimate, f64)| feasibility * posterior.expected_gain(estimate);
            let gains = remaining.iter().map(gain).enumerate();
            // Of equal gains that of the least predicted time.
            let best = gains.max_by(|a, b| a.1.total_cmp(&b.1).then(remaining[b.0].0.at.cmp(&remaining[a.0].0.at)));
            let worth = self.pace.min_expected_gain * if chosen.is_empty() { 1.0 } else { FOLLOWING_SHARE };
            let is_worth = |gain: f64| gain > worth || known.len() + chosen.len() < MIN_TIMINGS;
            let Some((place, _)) = best.filter(|&(_, gain)| is_worth(gain)) else { break };
            let (believed, _) = remaining.swap_remove(place);
            chosen.push(considered[believed.at]);
            posterior.believe(&believed, remaining.iter_mut().map(|(estimate, _)| estimate));
        }
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::super::strategies::tests::bound;
    use super::*;
    use crate::model::Terms;
    use proptest::prelude::*;

    /// A line of points with these parts of their prediction.
    fn line(count: u32, terms: impl Fn(f64) -> Terms) -> Vec<Point> {
        let make = |at: u32| {
            let mut point = bound(terms(f64::from(at)));
            point.coordinates = vec![f64::from(at)];
            point
        };
        (0..count).map(make).collect()
    }

    /// Runs a search to its end: the points given, in order.
    fn searched(points: &[Point], most: usize, time: impl Fn(usize) -> Option<f64>) -> Vec<usize> {
        run_to_end(&mut BayesianSearch::new(points, 0, most), points.len(), time)
    }

    fn run_to_end(search: &mut BayesianSearch<'_>, count: usize, time: impl Fn(usize) -> Option<f64>) -> Vec<usize> {
        let mut times = vec![None; count];
        let mut proposed = Vec::new();
        loop {
            let round = search.next_points(&times);
            if round.is_empty() {
                return proposed;
            }
            round.iter().for_each(|&index| times[index] = time(index));
            proposed.extend(round);
        }
    }

    #[test]
    fn a_bound_that_the_model_misjudges_is_found_by_few_timings() {
        // Along the line latency falls and the caches' share rises; the caches take 2.5 times as
        // long as the model believes.
        let terms = |off: f64| {
            move |at: f64| Terms { latency: 400.0 / (1.0 + at), cache: off * (5.0 + at), ..Terms::default() }
        };
        let (points, truth) = (line(60, terms(1.0)), line(60, terms(2.5)));
        let time = |index: usize| truth[index].score.predicted_us;
        let best = (0..60).min_by(|&a, &b| time(a).total_cmp(&time(b))).unwrap();
        let foretold = (0..60).min_by(|&a, &b| points[a].score.predicted_us.total_cmp(&points[b].score.predicted_us));
        assert!(time(foretold.unwrap()) > time(best) * 1.1);
        let proposed = searched(&points, 8, |index| Some(time(index)));
        let found = proposed.iter().map(|&index| time(index)).fold(f64::INFINITY, f64::min);
        assert!(proposed.len() <= 8 && found < time(best) * 1.01, "{proposed:?}: {found} instead of {}", time(best));
    }

    #[test]
    fn what_is_refused_is_not_tried_again_nearby() {
        // Time falls along the line, and what lies beyond two thirds of it does not run.
        let points = line(60, |at| Terms { latency: 100.0 - at, ..Terms::default() });
        let time = |index: usize| (index < 40).then(|| points[index].score.predicted_us);
        let proposed = searched(&points, 8, time);
        let found = proposed.iter().filter_map(|&index| time(index)).fold(f64::INFINITY, f64::min);
        assert!(found < points[39].score.predicted_us * 1.05, "{proposed:?}: {found}");
    }

    #[test]
    fn what_is_refused_was_not_timed_and_does_not_count() {
        // Whatever is far along the line is predicted to be fast, and does not run.
        let points = line(60, |at| Terms { latency: 100.0 - at, ..Terms::default() });
        let proposed = searched(&points, 8, |index| (index < 20).then(|| points[index].score.predicted_us));
        let timed = proposed.iter().filter(|&&index| index < 20).count();
        assert!((2..=8).contains(&timed) && proposed.len() > 8 && proposed.len() <= 16, "{proposed:?}");
        // Where nothing runs it ends all the same.
        assert_eq!(searched(&points, 8, |_| None).len(), 1 + FEW.first_round_points);
    }

    #[test]
    fn no_more_than_allowed_are_timed_and_the_baseline_first() {
        let points = line(60, |at| Terms { issue: 10.0 + at, ..Terms::default() });
        for most in 1..12 {
            let proposed = searched(&points, most, |_| Some(1.0));
            assert!(proposed.len() <= most && proposed[0] == 0, "{most}: {proposed:?}");
        }
        assert!(searched(&[], 8, |_| None).is_empty());
    }

    #[test]
    fn where_nothing_can_win_any_more_a_search_ends() {
        let falling = |at: f64| Terms { issue: 60.0, latency: 100.0 - at, ..Terms::default() };
        let points = line(60, falling);
        let predicted = |index: usize| Some(points[index].score.predicted_us);
        // All take what their instructions do, to 1%; all take the same, far from that; they take
        // what is predicted.
        assert_eq!(searched(&points, 12, |index| Some(60.0 + 0.01 * index as f64)).len(), MIN_TIMINGS);
        assert!(searched(&points, 12, |_| Some(400.0)).len() < 12);
        let without_bound: Vec<Point> = line(60, |at| Terms { latency: 160.0 - at, ..Terms::default() });
        assert!(searched(&without_bound, 12, |index| Some(60.0 + 0.01 * index as f64)).len() >= MIN_TIMINGS);
        assert!(searched(&points, 12, predicted).len() >= MIN_TIMINGS);
    }

    /// Two axes of eleven values, with these predictions.
    fn plane(predicted: impl Fn(f64, f64) -> f64) -> Vec<Point> {
        let mut points =
            line(121, |at| Terms { latency: predicted((at / 11.0).floor(), at % 11.0), ..Terms::default() });
        points.iter_mut().enumerate().for_each(|(at, point)| {
            point.coordinates = vec![(at / 11) as f64, (at % 11) as f64];
        });
        points
    }

    /// A time with a valley at (7, 3).
    fn valley(index: usize) -> Option<f64> {
        let (x, y) = ((index / 11) as f64, (index % 11) as f64);
        Some(100.0 + (x - 7.0) * (x - 7.0) + 2.0 * (y - 3.0) * (y - 3.0))
    }

    #[test]
    fn a_valley_that_the_model_does_not_know_of_is_found_with_a_part_of_the_points() {
        // The model sees the first axis alone, and that from the wrong end.
        for predicted in
            [|x: f64, _: f64| 100.0 + 5.0 * x, |_: f64, _: f64| 100.0, |x: f64, y: f64| 200.0 / (1.0 + x + y)]
        {
            let proposed = searched(&plane(predicted), usize::MAX, valley);
            assert!(proposed.contains(&(7 * 11 + 3)) && proposed.len() < 60, "{}: {proposed:?}", proposed.len());
        }
    }

    #[test]
    fn of_twins_one_is_timed_in_a_round() {
        // Each point is there twice, and a twin is as promising as its twin.
        let twice = |points: Vec<Point>| -> Vec<Point> { points.into_iter().flat_map(|a| [a.clone(), a]).collect() };
        let points = twice(plane(|x, y| 100.0 + x + y));
        let mut search = BayesianSearch::new(&points, 120, usize::MAX);
        let first = search.next_points(&vec![None; points.len()]);
        let times: Vec<Option<f64>> =
            (0..points.len()).map(|index| first.contains(&index).then_some(100.0 + (index % 7) as f64)).collect();
        let mut round: Vec<usize> = search.next_points(&times).into_iter().map(|index| index / 2).collect();
        assert_eq!(round.len(), MANY.round_points);
        round.sort_unstable();
        round.dedup();
        assert_eq!(round.len(), MANY.round_points, "{round:?}");
    }

    #[test]
    fn the_first_round_is_of_points_compiled_first_and_what_is_predicted_to_be_faster_follows() {
        let mut points = plane(|x, y| 100.0 + x + y);
        points.iter_mut().enumerate().for_each(|(index, point)| point.compiled_first = index >= 55 || index == 1);
        let mut search = BayesianSearch::new(&points, 1, usize::MAX);
        let first = search.next_points(&vec![None; points.len()]);
        assert_eq!((first[0], first.len()), (1, MANY.first_round_points));
        assert!(first.iter().all(|&index| points[index].compiled_first), "{first:?}");
        // It is that of a search which knows of nothing else.
        let compiled_first: Vec<usize> = (0..points.len()).filter(|&index| points[index].compiled_first).collect();
        let known: Vec<Point> = compiled_first.iter().map(|&index| points[index].clone()).collect();
        let alone = BayesianSearch::new(&known, 0, usize::MAX).next_points(&vec![None; known.len()]);
        assert_eq!(alone.into_iter().map(|index| compiled_first[index]).collect::<Vec<_>>(), first);
        let times: Vec<Option<f64>> =
            (0..points.len()).map(|index| first.contains(&index).then(|| points[index].score.predicted_us)).collect();
        let second = search.next_points(&times);
        assert!(second.contains(&0) && second.len() <= MANY.round_points, "{second:?}");
        // A first round that was chosen before is taken as it is.
        let mut preset = BayesianSearch::new(&points, 1, usize::MAX).with_first_round(first.clone());
        assert_eq!((preset.next_points(&[]), preset.next_points(&times)), (first, second));
        // Who may time few points chooses among all.
        assert!(BayesianSearch::new(&points, 1, MIN_FOR_ROUNDS - 1).next_points(&[]).contains(&0));
    }

    #[test]
    fn a_value_that_no_point_bears_is_soon_left() {
        // Five values of a third axis, of which one alone runs; what runs with it is fastest at the
        // far corner.
        let mut points =
            line(605, |at| Terms { latency: 100.0 + (at % 11.0) + (at / 121.0).floor(), ..Terms::default() });
        points.iter_mut().enumerate().for_each(|(at, point)| {
            point.coordinates = [at % 11, at / 11 % 11, at / 121].map(|place| place as f64).to_vec();
        });
        let time = |index: usize| (index / 121 == 3).then_some(300.0 - (index % 121) as f64);
        let mut search = BayesianSearch::new(&points, 3 * 121, usize::MAX);
        let proposed = run_to_end(&mut search, points.len(), time);
        let refused = proposed.iter().filter(|&&index| time(index).is_none()).count();
        assert!(proposed.contains(&(4 * 121 - 1)), "{proposed:?}");
        assert!(refused < 30, "{refused} of {} were refused", proposed.len());
    }

    #[test]
    fn spaces_without_extent_or_prediction_are_searched() {
        let mut points = line(2, |_| Terms { latency: f64::NAN, ..Terms::default() });
        points.iter_mut().for_each(|point| point.coordinates.clear());
        for most in [8, usize::MAX] {
            assert_eq!(searched(&points[..1], most, |_| Some(1.0)), [0]);
            assert!(searched(&points, most, |_| Some(0.0)).len() <= 2);
        }
    }

    proptest! {
        // `make test-full` sets PROPTEST_CASES, which overrides this.
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_point_is_given_twice_for_any_times(
            terms in proptest::collection::vec(proptest::array::uniform3(0.0_f64..100.0), 1..100),
            times in proptest::collection::vec(proptest::option::of(0.0_f64..1e6), 100),
            most in proptest::sample::select(vec![12, 40])
        ) {
            let terms = |at: f64| {
                let [latency, issue, cache] = terms[at as usize % terms.len()];
                Terms { latency, issue, cache, ..Terms::default() }
            };
            let points = line(times.len() as u32, terms);
            let mut proposed = searched(&points, most, |index| times[index]);
            let (count, timed) = (proposed.len(), proposed.iter().filter(|&&index| times[index].is_some()).count());
            proposed.sort_unstable();
            proposed.dedup();
            prop_assert!(timed <= most && count <= 2 * most && proposed.len() == count);
        }
    }
}
