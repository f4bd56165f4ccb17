//! What a search over many rounds starts from.

use super::gaussian_process::{covariance_at, squared_distance};
use super::point::Point;

/// Over which share of the space's extent one point's refusal speaks for others, and how many
/// points that ran stand behind one of which nothing is known.
const LIKENESS: f64 = 0.2;
const CREDIT: f64 = 0.3;
/// Refusals under one value of a coordinate from which on all points with it are out, where
/// none of them ran.
const CONVICTED: usize = 3;

/// The points, where to begin, and how many may be timed.
#[derive(Debug)]
pub(super) struct Task<'a> {
    pub points: &'a [Point],
    /// The index of the baseline; none, where that is beyond the points.
    pub baseline: usize,
    /// Points that are timed at most, the baseline among them.
    pub most: usize,
    /// Coordinates of each point as shares of their extent in the space.
    pub places: Vec<Vec<f64>>,
}

impl<'a> Task<'a> {
    pub fn new(points: &'a [Point], baseline: usize, most: usize) -> Self {
        Self { points, baseline, most, places: scaled_points(points) }
    }

    /// Returns a first round: the baseline and at most `count` of `others`.
    pub fn first_round(&self, others: impl IntoIterator<Item = usize>, count: usize) -> Vec<usize> {
        let baseline = Some(self.baseline).filter(|&index| index < self.points.len());
        let others = others.into_iter().filter(|&index| index != self.baseline);
        baseline.into_iter().chain(others.take(count)).collect()
    }

    /// Returns which of the `given` points are known to run with correct results.
    pub fn known_borne<'t>(&'t self, given: &'t [usize], times: &'t [Option<f64>]) -> Feasibility<'t> {
        let ran = |&index: &usize| times.get(index).copied().flatten().is_some();
        let (good, mut bad): (Vec<usize>, Vec<usize>) = given.iter().partition(|index| ran(index));
        let mut culprits = Vec::new();
        // One value explains all the refusals that it can, so that what was refused along with it
        // is not suspected for them.
        while let Some((culprit, count)) = self.suspect_value(&good, &bad)
            && count >= CONVICTED
        {
            bad.retain(|&index| !self.has_value(index, culprit));
            culprits.push(culprit);
        }
        Feasibility { task: self, given, times, culprits }
    }

    /// The value of a coordinate that most of the refused points have, and none that ran; how
    /// many.
    fn suspect_value(&self, good: &[usize], bad: &[usize]) -> Option<(Culprit, usize)> {
        let values = bad.iter().flat_map(|&index| self.places[index].iter().copied().enumerate());
        let innocent = |culprit: Culprit| good.iter().any(|&index| self.has_value(index, culprit));
        let count = |culprit: Culprit| bad.iter().filter(|&&index| self.has_value(index, culprit)).count();
        let suspects = values.filter(|&culprit| !innocent(culprit)).map(|culprit| (culprit, count(culprit)));
        // Of equals the last: what a comment names stands behind what follows from it.
        suspects.max_by(|a, b| a.1.cmp(&b.1).then(a.0.0.cmp(&b.0.0)).then(a.0.1.total_cmp(&b.0.1)))
    }

    fn has_value(&self, index: usize, (dimension, value): Culprit) -> bool {
        self.places[index].get(dimension) == Some(&value)
    }
}

/// A coordinate and its value: what no point with it bears.
type Culprit = (usize, f64);

/// Which points run and give the right results, as far as is known.
pub(super) struct Feasibility<'t> {
    task: &'t Task<'t>,
    given: &'t [usize],
    times: &'t [Option<f64>],
    culprits: Vec<Culprit>,
}

impl Feasibility<'_> {
    /// Estimates how likely a point runs with correct results: the share of points near
    /// it that do. A block or macro that fails with one register cap fails with all of
    /// them.
    pub fn likelihood_of(&self, index: usize) -> f64 {
        if self.culprits.iter().any(|&culprit| self.task.has_value(index, culprit)) {
            return 0.0;
        }
        let (mut ran, mut all) = (CREDIT, CREDIT);
        for &other in self.given {
            let likeness =
                covariance_at(squared_distance(&self.task.places[index], &self.task.places[other]), LIKENESS);
            all += likeness;
            ran += if self.times.get(other).copied().flatten().is_some() { likeness } else { 0.0 };
        }
        ran / all
    }
}

/// The coordinates of the points as shares of their extent; what does not vary is left out.
fn scaled_points(points: &[Point]) -> Vec<Vec<f64>> {
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
        let task = Task::new(&points, 0, usize::MAX);
        // Of three rows of four the first alone runs.
        let times: Vec<Option<f64>> = (0..12).map(|at| (at < 4).then_some(1.0)).collect();
        for (given, out) in [
            (vec![2, 8, 9], vec![]),
            (vec![2, 8, 9, 10], vec![8, 9, 10, 11]),
            (vec![0, 1, 2, 3, 4, 5, 6, 7], vec![4, 5, 6, 7]),
            (vec![2, 4, 5, 6, 7, 8, 9, 10, 11], vec![4, 5, 6, 7, 8, 9, 10, 11]),
        ] {
            let borne = task.known_borne(&given, &times);
            let found: Vec<usize> = (0..12).filter(|&index| borne.likelihood_of(index) == 0.0).collect();
            assert_eq!(found, out, "{given:?}");
        }
    }
}
