//! Gaussian processes (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006)
//! over the coordinates of points, and what an improvement is worth under them (expected
//! improvement: Jones, Schonlau and Welch, J. Global Optimization 13, 1998, equation 15).

pub(super) fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

pub(super) fn squared_exponential_covariance(squared: f64, length: f64) -> f64 {
    (-0.5 * squared / (length * length)).exp()
}

/// The covariance of a rough function, independent along each coordinate: the product of the
/// Ornstein-Uhlenbeck process's covariances (equation 4.18 with an exponent of 1).
pub(super) fn exponential_covariance(a: &[f64], b: &[f64], length: f64) -> f64 {
    let apart: f64 = a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum();
    (-apart / length).exp()
}

/// Computes the lower triangle whose product with its transpose is `matrix`, given by its
/// lower triangle. Returns `None` if the matrix is not positive definite.
pub(super) fn factor_cholesky(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
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

/// Solves `factor` x = `right` for a lower triangle.
pub(super) fn solve_forward(factor: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
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

/// The expected improvement over `least` of a normal variable with this mean and deviation; 0
/// if that is five deviations away or more.
pub(super) fn expected_improvement(least: f64, mean: f64, deviation: f64) -> f64 {
    let z = (least - mean) / deviation;
    if z <= -5.0 {
        return 0.0;
    }
    (least - mean) * normal_below(z) + deviation * (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_leaps_a_neighbour_tells_less_than_of_a_smooth_function_and_a_far_point_more() {
        let of = |apart: f64| {
            (
                exponential_covariance(&[0.3, 0.1], &[0.3, 0.1 + apart], 0.5),
                squared_exponential_covariance(squared_distance(&[0.1], &[0.1 + apart]), 0.5),
            )
        };
        for (apart, is_rougher) in [(0.05, true), (0.2, true), (0.9, true), (1.2, false)] {
            let (rough, smooth) = of(apart);
            assert_eq!(rough < smooth, is_rougher, "{apart}: {rough} and {smooth}");
        }
        // Leaps along one coordinate have nothing to do with those along another.
        let both = exponential_covariance(&[0.0, 0.0], &[0.2, 0.4], 0.5);
        let each = exponential_covariance(&[0.0], &[0.2], 0.5) * exponential_covariance(&[0.0], &[0.4], 0.5);
        assert!((both - each).abs() < 1e-12, "{both} and {each}");
        // Its difference falls in proportion to the distance.
        let lost = |apart: f64| 1.0 - of(apart).0;
        assert!((lost(2e-3) / lost(1e-3) - 2.0).abs() < 0.01);
    }
}
