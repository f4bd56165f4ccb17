//! What a search over many rounds starts from.

use super::gaussian::{covariance, squared};
use super::strategy::Point;

/// Over which share of the space's extent one point's refusal speaks for others, and how many points that ran stand behind one of
/// which nothing is known.
const LIKENESS: f64 = 0.2;
const CREDIT: f64 = 0.3;

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
        Self { points, baseline, most, places: places(points) }
    }

    /// A first round: the baseline, and besides it of `others` at most `count`.
    pub fn begin(&self, others: impl IntoIterator<Item = usize>, count: usize) -> Vec<usize> {
        let baseline = Some(self.baseline).filter(|&index| index < self.points.len());
        let others = others.into_iter().filter(|&index| index != self.baseline);
        baseline.into_iter().chain(others.take(count)).collect()
    }

    /// How likely a point is to run and to give the right results: the share of those near it that did, of the `given`. A block or
    /// a macro that a kernel does not bear, it bears with no other register cap either.
    pub fn bears(&self, index: usize, given: &[usize], times: &[Option<f64>]) -> f64 {
        let (mut ran, mut all) = (CREDIT, CREDIT);
        for &other in given {
            let likeness = covariance(squared(&self.places[index], &self.places[other]), LIKENESS);
            all += likeness;
            ran += if times.get(other).copied().flatten().is_some() { likeness } else { 0.0 };
        }
        ran / all
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
