//! What the timings so far tell of all points.
//!
//! Samples of the prior, times so far -> their weights, and the expected gain of a point. A
//! timing raises the weight of the samples that predicted it. The residual, by which the true times
//! differ from a sample, is a rough function of the configuration, a Student-t process (Shah,
//! Wilson and Ghahramani, AISTATS 2014, equations 4 and 5): a Gaussian process (see
//! [`gaussian_process`](super::gaussian_process)) whose deviation grows where the timings are
//! farther off than was assumed. So a few timings tell which bound of the model is the true one,
//! and where it is off. Times are logarithms; points are given by their positions in
//! [`PriorSamples::considered`].

use super::gaussian_process::{expected_improvement, exponential_covariance, factor_cholesky, solve_forward};
use super::prior::PriorSamples;
use super::problem::SearchProblem;

/// Of the samples only this many are used, the likeliest ones.
const MAX_MODELS: usize = 128;
/// The residual, by which the true times differ from a sample: its standard deviation as a
/// logarithm of time, the length over which it changes as a share of the space's extent, and
/// the standard deviation of the noise of one timing. These, the sizes of the model's errors and
/// [`DEGREES_OF_FREEDOM`] were chosen by searches of the suite's recorded spaces with 24 draws
/// of samples each, so that no draw's luck counts: 95% of them end within 1% of the best, 99.6%
/// within 3%.
const RESIDUAL_DEVIATION: f64 = 0.08;
const RESIDUAL_LENGTH: f64 = 0.9;
const RESIDUAL_NOISE: f64 = 0.01;
/// A smaller variance counts as this one.
const MIN_VARIANCE: f64 = 1e-9;
/// Occupancy is one more coordinate of the residual: the distance between an SM without threads
/// and a full one, in extents of an axis. Register caps that are near each other may yet leave
/// room for different numbers of blocks, on which the residual depends.
const OCCUPANCY_EXTENT: f64 = 2.0;
/// Upper bound of the residual's deviation: [`RESIDUAL_PER_DEVIATION`] times the standard
/// deviation of the logarithms of the times so far, plus [`MIN_RESIDUAL`]. Without it, equal
/// times of points for which a sample predicts different ones would be explained by residuals
/// that cancel the differences.
const RESIDUAL_PER_DEVIATION: f64 = 1.5;
const MIN_RESIDUAL: f64 = 0.02;
/// Degrees of freedom of the Student-t process: the assumed deviation weighs as much as this
/// many timings; where more timings contradict it, they outweigh it.
const DEGREES_OF_FREEDOM: f64 = 30.0;
/// Standard deviation of a sample's error that all points have in common. It is large, so that
/// the absolute level of the times does not decide between samples.
const COMMON_DEVIATION: f64 = 0.5;
/// No point takes less than this share of the time that its instructions take to be issued and
/// executed, so that no improvement beyond it counts. Where the instruction counts are
/// estimates they may be a tenth too high.
const LOWER_BOUND_SHARE: f64 = 0.98;
const LOWER_BOUND_SHARE_ESTIMATED: f64 = 0.88;

/// What the timings so far tell.
pub(super) struct Posterior<'a> {
    problem: &'a SearchProblem<'a>,
    considered: &'a [usize],
    /// The points that were timed.
    timed: Vec<usize>,
    /// The Cholesky factor of the covariance of the timings.
    factor: Vec<Vec<f64>>,
    /// The residual's standard deviation.
    deviation: f64,
    samples: Vec<WeightedSample<'a>>,
}

/// A sample of the prior, weighted by the timings so far.
struct WeightedSample<'a> {
    /// Its share of the likelihood of all samples.
    weight: f64,
    /// Factor by which the residuals exceed the assumed deviation.
    spread: f64,
    /// The residuals of the timings, divided by the Cholesky factor of their covariance.
    left: Vec<f64>,
    /// The times of all points in this sample.
    times: &'a [f64],
    /// The least time, of the timings and of what it believes of further points.
    least: f64,
}

/// What is expected of a point that was not timed.
pub(super) struct Estimate {
    pub at: usize,
    /// Lower bound of its time.
    bound: f64,
    /// The covariance with the points before it, divided by the Cholesky factor of theirs.
    half: Vec<f64>,
    /// The residual's variance, but for the factor that each sample has.
    variance: f64,
    /// By sample, the expected time.
    means: Vec<f64>,
}

impl<'a> Posterior<'a> {
    /// Weighs the samples by `known`, points and their times, of which the least is `least`. Of
    /// these `scales` of [`RESIDUAL_DEVIATION`] the likeliest is used.
    pub fn new(
        problem: &'a SearchProblem<'a>,
        prior: &'a PriorSamples,
        known: &[(usize, f64)],
        least: f64,
        scales: &[f64],
    ) -> Option<Self> {
        let bound = RESIDUAL_PER_DEVIATION * standard_deviation(known.iter().map(|&(_, time)| time)) + MIN_RESIDUAL;
        let freedom = DEGREES_OF_FREEDOM + known.len() as f64;
        let under = |scale: &f64| {
            let mut posterior = Self {
                problem,
                considered: &prior.considered,
                timed: known.iter().map(|&(at, _)| at).collect(),
                factor: Vec::new(),
                deviation: scale * RESIDUAL_DEVIATION.min(bound),
                samples: Vec::new(),
            };
            let factor = posterior.factor_timed()?;
            let weigh = |times: &'a Vec<f64>| {
                let left: Vec<f64> = known.iter().map(|&(at, time)| time - times[at]).collect();
                let left = solve_forward(&factor, &left);
                let squares = dot(&left, &left);
                let weight = -0.5 * freedom * (squares / DEGREES_OF_FREEDOM).ln_1p();
                let spread = ((DEGREES_OF_FREEDOM + squares) / freedom).sqrt();
                WeightedSample { weight, spread, left, times, least }
            };
            let mut samples: Vec<WeightedSample<'a>> = prior.times.iter().map(weigh).collect();
            samples.retain(|sample| sample.weight.is_finite());
            samples.sort_by(|a, b| b.weight.total_cmp(&a.weight));
            samples.truncate(MAX_MODELS);
            // From logarithms of likelihoods to shares.
            let likeliest = samples.first()?.weight;
            let total: f64 = samples.iter().map(|sample| (sample.weight - likeliest).exp()).sum();
            samples.iter_mut().for_each(|sample| sample.weight = (sample.weight - likeliest).exp() / total);
            let determinant: f64 = factor.iter().enumerate().map(|(row, entries)| entries[row].ln()).sum();
            (posterior.factor, posterior.samples) = (factor, samples);
            Some((likeliest + total.ln() - determinant, posterior))
        };
        let fits = scales.iter().filter_map(under);
        fits.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, posterior)| posterior)
    }

    /// Lower bound of a point's time, from its instruction throughput.
    pub fn lower_bound(&self, at: usize) -> f64 {
        let score = &self.problem.points[self.considered[at]].score;
        (score.terms.throughput_bound_us() * if score.exact { LOWER_BOUND_SHARE } else { LOWER_BOUND_SHARE_ESTIMATED })
            .ln()
    }

    /// What is expected of a point.
    pub fn estimate(&self, at: usize) -> Estimate {
        let column: Vec<f64> = self.timed.iter().map(|&other| self.covariance_of(at, other)).collect();
        let half = solve_forward(&self.factor, &column);
        let variance = self.covariance_of(at, at) - dot(&half, &half);
        let means = self.samples.iter().map(|sample| sample.times[at] + dot(&half, &sample.left)).collect();
        Estimate { at, bound: self.lower_bound(at), half, variance, means }
    }

    /// The expected improvement over the least time, as a share of it.
    pub fn expected_gain(&self, Estimate { bound, variance, means, .. }: &Estimate) -> f64 {
        let deviation = variance.max(MIN_VARIANCE).sqrt();
        let gain = |(sample, &mean): (&WeightedSample<'_>, &f64)| {
            let deviation = deviation * sample.spread;
            let beyond = if bound.is_finite() { expected_improvement(*bound, mean, deviation) } else { 0.0 };
            sample.weight * (expected_improvement(sample.least, mean, deviation) - beyond).max(0.0)
        };
        self.samples.iter().zip(means).map(gain).sum()
    }

    /// Has each sample believe that a point takes what it expects of it, and corrects the
    /// estimates of others.
    pub fn believe<'e>(&mut self, believed: &Estimate, others: impl Iterator<Item = &'e mut Estimate>) {
        for (sample, &mean) in self.samples.iter_mut().zip(&believed.means) {
            sample.least = sample.least.min(mean);
        }
        let pivot = (believed.variance.max(MIN_VARIANCE) + RESIDUAL_NOISE * RESIDUAL_NOISE).sqrt();
        for other in others {
            let entry = (self.covariance_of(other.at, believed.at) - dot(&other.half, &believed.half)) / pivot;
            other.half.push(entry);
            other.variance -= entry * entry;
        }
    }

    /// The Cholesky factor of the covariance of the timings.
    fn factor_timed(&self) -> Option<Vec<Vec<f64>>> {
        let entry = |row: usize, column: usize| {
            let noise = if row == column { RESIDUAL_NOISE * RESIDUAL_NOISE } else { 0.0 };
            self.covariance_of(self.timed[row], self.timed[column]) + noise
        };
        factor_cholesky((0..self.timed.len()).map(|row| (0..=row).map(|column| entry(row, column)).collect()).collect())
    }

    /// Covariance of the residual at two points.
    fn covariance_of(&self, a: usize, b: usize) -> f64 {
        let [a, b] = [a, b].map(|at| self.considered[at]);
        let occupied = |index: usize| [self.problem.points[index].score.in_flight * OCCUPANCY_EXTENT];
        let along_axes = exponential_covariance(
            &self.problem.scaled_coordinates[a],
            &self.problem.scaled_coordinates[b],
            RESIDUAL_LENGTH,
        );
        let shape = along_axes * exponential_covariance(&occupied(a), &occupied(b), RESIDUAL_LENGTH);
        self.deviation * self.deviation * shape + COMMON_DEVIATION * COMMON_DEVIATION
    }
}

/// The standard deviation of a sample.
fn standard_deviation(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    (values.map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0)).sqrt()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::super::prior::ErrorScale;
    use super::super::strategies::tests::bound;
    use super::*;
    use crate::model::Terms;
    use crate::search::point::Point;

    #[test]
    fn what_is_unexplained_is_less_alike_the_more_occupancy_differs() {
        let make = |in_flight: f64| {
            let mut point: Point = bound(Terms { latency: 100.0, ..Terms::default() });
            (point.coordinates, point.score.in_flight) = (vec![0.0], in_flight);
            point
        };
        let points = [0.5, 0.5, 0.625, 0.75].map(make);
        let problem = SearchProblem::new(&points, 0, 8);
        let scale = ErrorScale { part: 0.3, drift: 0.1, corner: 0.0, is_damped: false };
        let prior = PriorSamples::new(&problem, scale);
        let posterior = Posterior::new(&problem, &prior, &[(0, 1.0), (1, 1.5)], 1.0, &[1.0]).unwrap();
        let at = |index: usize| prior.considered.iter().position(|&other| other == index).unwrap();
        let [same, near, far] = [1, 2, 3].map(|other| posterior.covariance_of(at(0), at(other)));
        assert_eq!(same, posterior.covariance_of(at(0), at(0)));
        assert!(same > near && near > far && far > COMMON_DEVIATION * COMMON_DEVIATION, "{same} {near} {far}");
    }
}
