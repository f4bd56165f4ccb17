//! Which configurations are sent to the GPU: the strategies of Liang et al. (ASP-DAC 2013) and
//! Ryoo et al. (CGO 2008).

use super::bayesian::BayesianSearch;
use super::pareto::pareto_front;
use super::point::{Point, sort_by_prediction};
use crate::model::{Bottleneck, Score};
use crate::settings::Strategy;
use std::collections::BTreeMap;

/// POSF keeps occupancies in this range. The paper's 0.3 to 0.5 was fitted to a GTX 480; the
/// bounds here are what the recorded exhaustive runs under `kernels/results/h200/` allow: no
/// kernel's best point lies outside them.
const POSF_OCCUPANCY_RANGE: std::ops::RangeInclusive<f64> = 0.2..=1.0;

/// POSF adds this many configurations of least predicted time of each cache policy: T and C do
/// not depend on how a block's shape uses the caches, so that their front can lack the best
/// shape altogether.
const BEST_PREDICTED: usize = 8;

/// Of shapes that tie in (T, C), POSF keeps this many of each variant and policy, those with the
/// least predicted time.
const MAX_TIES: usize = 3;

/// A search: rounds of points to time.
#[derive(Debug)]
pub enum Search<'a> {
    /// Everything in one round.
    Once(Vec<usize>),
    Bayesian(BayesianSearch<'a>),
}

impl<'a> Search<'a> {
    /// The search of a strategy over `points`, of which the one with index `baseline` is the
    /// baseline (none if that is past their end). At most `most` are timed, the baseline among
    /// them: of a strategy of one round those of least predicted time.
    pub fn new(strategy: Strategy, points: &'a [Point], baseline: usize, most: usize) -> Self {
        if strategy == Strategy::Refit {
            return Self::Bayesian(BayesianSearch::new(points, baseline, most));
        }
        let mut all = choose_candidates(strategy, points);
        if all.len() > most {
            all.retain(|&index| index != baseline);
            all.truncate(most.saturating_sub(1));
        }
        Self::Once(all)
    }

    /// Whether the first round of such a search is chosen from the points compiled first, before
    /// the others are known.
    pub fn has_early_first_round(strategy: Strategy, most: usize) -> bool {
        strategy == Strategy::Refit && BayesianSearch::is_in_rounds(most)
    }

    /// Sets the points of the first round, if the strategy has an early one (see
    /// [`Self::has_early_first_round`]).
    pub fn with_first_round(self, first: Vec<usize>) -> Self {
        match self {
            Self::Bayesian(search) => Self::Bayesian(search.with_first_round(first)),
            other => other,
        }
    }

    /// Returns the points to time next; none ends the search. `times` are the times so
    /// far, `None` for points that were not timed or were refused.
    pub fn next_points(&mut self, times: &[Option<f64>]) -> Vec<usize> {
        match self {
            Self::Once(all) => std::mem::take(all),
            Self::Bayesian(search) => search.next_points(times),
        }
    }
}

/// Returns the indices of the configurations that a strategy times, in the order of
/// predicted time. For a strategy with several rounds, these are the first.
pub fn choose_candidates(strategy: Strategy, points: &[Point]) -> Vec<usize> {
    let mut chosen = match strategy {
        Strategy::Es => (0..points.len()).collect(),
        // The safest first.
        Strategy::Refit => return BayesianSearch::new(points, points.len(), usize::MAX).hedging_points(),
        Strategy::Ros => highest_ro(points),
        Strategy::Pos => po_pareto(points, |_| true),
        Strategy::Posf => {
            let filtered = po_pareto(points, |score| POSF_OCCUPANCY_RANGE.contains(&score.occupancy));
            // A kernel whose every configuration has a low occupancy is still tuned.
            let kept = if filtered.is_empty() { po_pareto(points, |_| true) } else { filtered };
            let mut chosen = thin_out(points, kept, MAX_TIES);
            let mut predicted: Vec<usize> = (0..points.len()).collect();
            sort_by_prediction(points, &mut predicted);
            let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
            chosen.extend(predicted.into_iter().filter(|&index| {
                let count = taken.entry(points[index].policy).or_default();
                *count += 1;
                *count <= BEST_PREDICTED
            }));
            chosen.sort_unstable();
            chosen.dedup();
            chosen
        }
        Strategy::Ryoo => thin_out(points, ryoo_pareto(points), 1),
    };
    sort_by_prediction(points, &mut chosen);
    chosen
}

/// The Pareto set of POS: the indices that are optimal in (T, C) within their number of
/// threads, ascending.
pub fn po_pareto_set(points: &[Point]) -> Vec<usize> {
    let mut set = po_pareto(points, |_| true);
    set.sort_unstable();
    set
}

fn highest_ro(points: &[Point]) -> Vec<usize> {
    let highest = points.iter().map(|point| point.score.ro).fold(f64::NEG_INFINITY, f64::max);
    (0..points.len()).filter(|&index| points[index].score.ro == highest).collect()
}

/// Algorithm 1 of Liang et al., except for ties. Numbers of threads are treated separately: with
/// each a thread does different work, so that their T and C do not compare.
fn po_pareto(points: &[Point], keep: impl Fn(&Score) -> bool) -> Vec<usize> {
    let mut by_threads: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (index, point) in points.iter().enumerate().filter(|(_, point)| keep(&point.score)) {
        by_threads.entry(point.threads).or_default().push(index);
    }
    let mut chosen = Vec::new();
    for group in by_threads.into_values() {
        let metrics: Vec<ParetoMetrics> =
            group.iter().map(|&index| ParetoMetrics::of_score(&points[index].score)).collect();
        chosen.extend(front_within_tolerance(&metrics).into_iter().map(|member| group[member]));
    }
    chosen
}

/// Accuracy of T and C: an eighth of an SM's threads, which is what one block more or less makes,
/// and a tenth of the cycles. Smaller differences are ties.
const T_TOLERANCE: f64 = 256.0;
const C_TOLERANCE: f64 = 0.1;

/// T and C of a point, and its predicted time.
#[derive(Clone, Copy)]
struct ParetoMetrics {
    t: f64,
    c: f64,
    us: f64,
}

impl ParetoMetrics {
    fn of_score(score: &Score) -> Self {
        Self { t: score.t, c: score.c, us: score.predicted_us }
    }

    fn is_number(&self) -> bool {
        !self.t.is_nan() && !self.c.is_nan() && !self.us.is_nan()
    }

    /// Whether it is worse than the other in nothing.
    fn is_no_worse(&self, other: &Self) -> bool {
        self.t <= other.t && self.c <= other.c && self.us <= other.us
    }

    /// Whether it dominates the other by more than the tolerances. T and C do not depend on
    /// bandwidths (which is why Ryoo et al. remove the bandwidth-bound points before they draw
    /// their curve); where the predicted time, which does, contradicts them, neither dominates.
    fn beats_clearly(&self, other: &Self) -> bool {
        let is_clear = self.t < other.t - T_TOLERANCE || self.c * (1.0 + C_TOLERANCE) < other.c;
        self.is_no_worse(other) && is_clear
    }
}

/// The points that no other one clearly dominates (see [`ParetoMetrics::beats_clearly`]), in the
/// order of the input.
fn front_within_tolerance(points: &[ParetoMetrics]) -> Vec<usize> {
    let mut order: Vec<&ParetoMetrics> = points.iter().filter(|point| point.is_number()).collect();
    order.sort_by(|a, b| a.t.total_cmp(&b.t).then(a.c.total_cmp(&b.c)).then(a.us.total_cmp(&b.us)));
    // The exact front: whichever point beats another is in it, or is beaten by one in it.
    let mut front: Vec<&ParetoMetrics> = Vec::new();
    for point in order {
        if !front.iter().any(|other| other.is_no_worse(point)) {
            front.push(point);
        }
    }
    let is_kept = |point: &ParetoMetrics| point.is_number() && !front.iter().any(|other| other.beats_clearly(point));
    (0..points.len()).filter(|&index| is_kept(&points[index])).collect()
}

/// The Pareto-optimal points in efficiency and utilization, without the points bound by memory
/// bandwidth: the metrics do not depend on it, so that such points would draw the curve away
/// from the best (Ryoo et al., section 5). If all are bound by it, all are kept.
fn ryoo_pareto(points: &[Point]) -> Vec<usize> {
    let is_bound = |point: &Point| point.score.bottleneck == Bottleneck::GlobalBandwidth;
    let mut kept: Vec<usize> = (0..points.len()).filter(|&index| !is_bound(&points[index])).collect();
    if kept.is_empty() {
        kept = (0..points.len()).collect();
    }
    let metrics: Vec<(f64, f64)> =
        kept.iter().map(|&index| (-points[index].score.efficiency, -points[index].score.utilization)).collect();
    pareto_front(&metrics).into_iter().map(|member| kept[member]).collect()
}

/// At most `most` of the points that share their variant, policy and, within the tolerance, (T,
/// C): those with the least predicted time.
fn thin_out(points: &[Point], mut chosen: Vec<usize>, most: usize) -> Vec<usize> {
    sort_by_prediction(points, &mut chosen);
    let mut seen: BTreeMap<(usize, usize, i64, i64), usize> = BTreeMap::new();
    chosen.retain(|&index| {
        let point = &points[index];
        let t = (point.score.t / T_TOLERANCE).round() as i64;
        let c = (point.score.c.ln() / C_TOLERANCE.ln_1p()).round() as i64;
        let count = seen.entry((point.variant, point.policy, t, c)).or_default();
        *count += 1;
        *count <= most
    });
    chosen
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model::{Limiter, Terms};

    /// A point with these total threads, variant, T, C and predicted time; RO and occupancy
    /// follow from T.
    pub fn point(threads: u64, variant: usize, t: f64, c: f64, predicted_us: f64) -> Point {
        let occupancy = 1.0 - t / 2048.0;
        let score = Score {
            occupancy,
            blocks_per_sm: 1,
            limiter: Limiter::Registers,
            registers: 32,
            ro: occupancy * c,
            t,
            c,
            efficiency: 1.0 / c,
            utilization: 2048.0 - t,
            predicted_us,
            terms: Terms { latency: predicted_us, ..Terms::default() },
            in_flight: 1.0,
            bottleneck: Bottleneck::Issue,
            feasible: true,
            exact: true,
        };
        Point {
            threads,
            variant,
            policy: 0,
            compiled_first: true,
            score,
            coordinates: vec![f64::from(threads as u32), c],
        }
    }

    /// A point with these parts of its prediction.
    pub fn bound(terms: Terms) -> Point {
        let mut point = point(1000, 0, 0.0, 1.0, terms.time_us());
        point.score.terms = terms;
        point
    }

    /// Two numbers of threads; the fourth and the last are dominated within theirs, the third
    /// and fifth tie in shape.
    fn space() -> Vec<Point> {
        vec![
            point(1000, 0, 0.0, 500.0, 9.0),
            point(1000, 1, 1024.0, 300.0, 5.0),
            point(1000, 2, 1792.0, 200.0, 7.0),
            point(1000, 3, 1024.0, 400.0, 6.0),
            point(1000, 2, 1792.0, 200.0, 4.0),
            point(2000, 0, 0.0, 900.0, 3.0),
            point(2000, 1, 512.0, 900.0, 8.0),
        ]
    }

    #[test]
    fn every_strategy_sends_what_its_paper_says() {
        // By hand: of 1000 threads (0, 500), (1024, 300) and both (1792, 200) are optimal, of 2000
        // threads (0, 900).
        assert_eq!(po_pareto_set(&space()), [0, 1, 2, 4, 5]);
        assert_eq!(choose_candidates(Strategy::Pos, &space()), [5, 4, 1, 2, 0]);
        assert_eq!(choose_candidates(Strategy::Es, &space()), [5, 4, 1, 3, 2, 6, 0]);
        // RO = occupancy x C here: 500, 150, 25, 200, 25, 900, 675.
        assert_eq!(choose_candidates(Strategy::Ros, &space()), [5]);
        // Efficiency 1/C against utilization 2048 - T: (1/500, 2048), (1/300, 1024) and one of the
        // two at (1/200, 256).
        assert_eq!(choose_candidates(Strategy::Ryoo, &space()), [4, 1, 0]);
    }

    #[test]
    fn ryoo_draws_its_curve_without_what_memory_bandwidth_bounds() {
        let bound = |indices: &[usize]| {
            let mut points = space();
            indices.iter().for_each(|&index| points[index].score.bottleneck = Bottleneck::GlobalBandwidth);
            choose_candidates(Strategy::Ryoo, &points)
        };
        assert_eq!(bound(&[]), [4, 1, 0]);
        // Without the second the fourth, (1/400, 1024), is on the curve; without both of the last
        // (1/200, 256) nobody is there.
        assert_eq!(bound(&[1]), [4, 3, 0]);
        assert_eq!(bound(&[2, 4]), [1, 0]);
        assert_eq!(bound(&[0, 1, 2, 3, 4, 5, 6]), [4, 1, 0], "where it bounds all, it tells none apart");
    }

    #[test]
    fn differences_that_the_model_cannot_tell_are_ties() {
        // Against (512, 1000): fewer than a block's threads, or less than a tenth of the cycles, is
        // no difference.
        for (t, c, is_kept) in
            [(768.0, 1000.0, true), (769.0, 1000.0, false), (512.0, 1099.0, true), (512.0, 1101.0, false)]
        {
            let points = [point(1000, 0, 512.0, 1000.0, 1.0), point(1000, 1, t, c, 2.0)];
            assert_eq!(po_pareto_set(&points).contains(&1), is_kept, "{t} {c}");
        }
    }

    #[test]
    fn what_is_predicted_to_be_faster_is_not_beaten_by_threads_and_cycles() {
        // The first has more threads and fewer cycles.
        for (us, is_kept) in [(0.9, true), (1.0, false), (1.1, false)] {
            let points = [point(1000, 0, 0.0, 500.0, 1.0), point(1000, 1, 1024.0, 1000.0, us)];
            assert_eq!(po_pareto_set(&points).contains(&1), is_kept, "{us}");
        }
        // Of three, who is fastest beats whom the second does not.
        let points =
            [point(1000, 0, 0.0, 500.0, 1.0), point(1000, 1, 0.0, 600.0, 0.8), point(1000, 2, 1024.0, 1000.0, 0.9)];
        assert_eq!(po_pareto_set(&points), [0, 1]);
    }

    #[test]
    fn posf_filters_occupancy_thins_ties_and_adds_the_best_predictions() {
        // Ten shapes of one variant tie; the two of 12.5% occupancy are out but for their predicted
        // time.
        let mut points: Vec<Point> = (0..10).map(|shape| point(1000, 0, 0.0, 500.0, 20.0 + f64::from(shape))).collect();
        points.push(point(1000, 1, 1792.0, 100.0, 50.0));
        let chosen = choose_candidates(Strategy::Posf, &points);
        assert_eq!(
            chosen,
            (0..BEST_PREDICTED).collect::<Vec<_>>(),
            "three of the ties, and the eight best predictions"
        );
        points.push(point(1000, 1, 1792.0, 100.0, 1.0));
        assert_eq!(choose_candidates(Strategy::Posf, &points)[0], 11);
        // Hints to the caches are chosen as if alone: as many again.
        let with_hint = points.iter().map(|point| Point { policy: 1, ..point.clone() });
        let both: Vec<Point> = points.iter().cloned().chain(with_hint).collect();
        let of = |policy: usize| {
            let chosen =
                choose_candidates(Strategy::Posf, &both).into_iter().filter(|&index| both[index].policy == policy);
            chosen.map(|index| index % 12).collect::<Vec<_>>()
        };
        assert_eq!(
            (of(0), of(1)),
            (choose_candidates(Strategy::Posf, &points), choose_candidates(Strategy::Posf, &points))
        );
        let only_low: Vec<Point> = points.split_off(10);
        assert_eq!(choose_candidates(Strategy::Posf, &only_low), [1, 0]);
    }

    #[test]
    fn strategies_are_read_by_name() {
        for (name, strategy) in Strategy::ALL {
            assert_eq!((name.parse(), strategy.to_string()), (Ok(strategy), name.to_owned()));
        }
        assert_eq!("best".parse::<Strategy>(), Err(()));
        assert_eq!(Strategy::ALL.map(|(name, _)| name).join(", "), Strategy::NAMES);
    }
}
