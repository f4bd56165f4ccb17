//! What the searches over several rounds have in common: the points with their coordinates, the
//! first round, and an estimate of which points run at all.

use super::gaussian_process::{squared_distance, squared_exponential_covariance};
use super::point::Point;

/// The likelihood that a point runs is estimated from the points near it. The distance over
/// which their weight falls, as a share of the space's extent; and how many points that ran are
/// added to all of them, for where nothing is known.
const SIMILARITY_LENGTH: f64 = 0.2;
const PRIOR_SUCCESSES: f64 = 0.3;
/// If this many points with one value of a coordinate were refused and none of them ran, all
/// points with it are excluded.
const MIN_REFUSALS: usize = 3;

/// The points of a search, its baseline, and how many points may be timed.
#[derive(Debug)]
pub(super) struct SearchProblem<'a> {
    pub points: &'a [Point],
    /// The index of the baseline; there is none if it is past the end of the points.
    pub baseline: usize,
    /// Points that are timed at most, the baseline among them.
    pub most: usize,
    /// Coordinates of each point, scaled to 0..=1 over their extent in the space.
    pub scaled_coordinates: Vec<Vec<f64>>,
}

impl<'a> SearchProblem<'a> {
    pub fn new(points: &'a [Point], baseline: usize, most: usize) -> Self {
        Self { points, baseline, most, scaled_coordinates: scale_coordinates(points) }
    }

    /// Returns a first round: the baseline and at most `count` of `others`.
    pub fn first_round(&self, others: impl IntoIterator<Item = usize>, count: usize) -> Vec<usize> {
        let baseline = Some(self.baseline).filter(|&index| index < self.points.len());
        let others = others.into_iter().filter(|&index| index != self.baseline);
        baseline.into_iter().chain(others.take(count)).collect()
    }

    /// Returns an estimate of which points run with correct results, from the times of the
    /// `proposed` ones: a proposed point without a time was refused.
    pub fn feasibility<'t>(&'t self, proposed: &'t [usize], times: &'t [Option<f64>]) -> Feasibility<'t> {
        let ran = |&index: &usize| times.get(index).copied().flatten().is_some();
        let (good, mut bad): (Vec<usize>, Vec<usize>) = proposed.iter().partition(|index| ran(index));
        let mut failing_values = Vec::new();
        // Each refusal is explained by one value only, so that other values of the same points are
        // not blamed for it as well.
        while let Some((value, count)) = self.most_refused_value(&good, &bad)
            && count >= MIN_REFUSALS
        {
            bad.retain(|&index| !self.has_value(index, value));
            failing_values.push(value);
        }
        Feasibility { problem: self, proposed, times, failing_values }
    }

    /// The value of a coordinate that occurs in most of the refused points (`bad`) and in none
    /// that ran (`good`), and in how many refused ones.
    fn most_refused_value(&self, good: &[usize], bad: &[usize]) -> Option<(CoordinateValue, usize)> {
        let values = bad.iter().flat_map(|&index| self.scaled_coordinates[index].iter().copied().enumerate());
        let innocent = |value: CoordinateValue| good.iter().any(|&index| self.has_value(index, value));
        let count = |value: CoordinateValue| bad.iter().filter(|&&index| self.has_value(index, value)).count();
        let suspects = values.filter(|&value| !innocent(value)).map(|value| (value, count(value)));
        // Of equal counts the last coordinate: what the user's directive names comes after what
        // follows from it.
        suspects.max_by(|a, b| a.1.cmp(&b.1).then(a.0.0.cmp(&b.0.0)).then(a.0.1.total_cmp(&b.0.1)))
    }

    fn has_value(&self, index: usize, (dimension, value): CoordinateValue) -> bool {
        self.scaled_coordinates[index].get(dimension) == Some(&value)
    }
}

/// The index of a coordinate, and a value of it.
type CoordinateValue = (usize, f64);

/// Estimate of which points run and give the right results.
pub(super) struct Feasibility<'t> {
    problem: &'t SearchProblem<'t>,
    proposed: &'t [usize],
    times: &'t [Option<f64>],
    failing_values: Vec<CoordinateValue>,
}

impl Feasibility<'_> {
    /// Estimates how likely a point runs with correct results: the share of points near
    /// it that do. A block or macro that fails with one register cap fails with all of
    /// them.
    pub fn likelihood_of(&self, index: usize) -> f64 {
        if self.failing_values.iter().any(|&value| self.problem.has_value(index, value)) {
            return 0.0;
        }
        let (mut ran, mut all) = (PRIOR_SUCCESSES, PRIOR_SUCCESSES);
        for &other in self.proposed {
            let similarity = squared_exponential_covariance(
                squared_distance(&self.problem.scaled_coordinates[index], &self.problem.scaled_coordinates[other]),
                SIMILARITY_LENGTH,
            );
            all += similarity;
            ran += if self.times.get(other).copied().flatten().is_some() { similarity } else { 0.0 };
        }
        ran / all
    }
}

/// The coordinates of the points scaled to 0..=1 over their extents; those that do not vary are
/// left out.
fn scale_coordinates(points: &[Point]) -> Vec<Vec<f64>> {
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

#[cfg(test)]
mod tests {
    use super::super::strategies::tests::point;
    use super::*;

    #[test]
    fn the_value_that_explains_most_refusals_is_convicted_and_what_was_refused_along_with_it_is_not() {
        // Two coordinates, of 4 and 3 values.
        let mut points: Vec<Point> = (0..12).map(|index| point(1, index, 0.0, 1.0, 1.0)).collect();
        points
            .iter_mut()
            .enumerate()
            .for_each(|(at, point)| point.coordinates = vec![(at % 4) as f64, (at / 4) as f64]);
        let problem = SearchProblem::new(&points, 0, usize::MAX);
        // Of three rows of four the first alone runs.
        let times: Vec<Option<f64>> = (0..12).map(|at| (at < 4).then_some(1.0)).collect();
        for (proposed, out) in [
            (vec![2, 8, 9], vec![]),
            (vec![2, 8, 9, 10], vec![8, 9, 10, 11]),
            (vec![0, 1, 2, 3, 4, 5, 6, 7], vec![4, 5, 6, 7]),
            (vec![2, 4, 5, 6, 7, 8, 9, 10, 11], vec![4, 5, 6, 7, 8, 9, 10, 11]),
        ] {
            let feasibility = problem.feasibility(&proposed, &times);
            let found: Vec<usize> = (0..12).filter(|&index| feasibility.likelihood_of(index) == 0.0).collect();
            assert_eq!(found, out, "{proposed:?}");
        }
    }
}
