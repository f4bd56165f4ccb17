//! Pairs of numbers -> how far they agree on an order.

use std::cmp::Ordering;

/// Kendall's tau-b: 1 where both numbers order the pairs alike, -1 where they order them the other way, 0 where one says nothing
/// of the other or does not vary. Ties count for neither (Kendall, Biometrika 33, 1945). Quadratic in the number of pairs.
pub fn tau_b(pairs: &[(f64, f64)]) -> f64 {
    let (mut agreed, mut untied_first, mut untied_second) = (0i64, 0u64, 0u64);
    for (index, (x, y)) in pairs.iter().enumerate() {
        for (other_x, other_y) in &pairs[..index] {
            let sign = |ordering: Ordering| ordering as i64;
            let (first, second) = (sign(x.total_cmp(other_x)), sign(y.total_cmp(other_y)));
            agreed += first * second;
            untied_first += first.unsigned_abs();
            untied_second += second.unsigned_abs();
        }
    }
    let untied = (untied_first as f64 * untied_second as f64).sqrt();
    if untied > 0.0 { agreed as f64 / untied } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::tau_b;

    #[test]
    fn tau_is_that_of_the_definition() {
        let close = |pairs: &[(f64, f64)], expected: f64| {
            let tau = tau_b(pairs);
            assert!((tau - expected).abs() < 1e-12, "{pairs:?}: {tau}, not {expected}");
        };
        close(&[(1.0, 2.0), (2.0, 5.0), (3.0, 9.0)], 1.0);
        close(&[(1.0, 9.0), (2.0, 5.0), (3.0, 2.0)], -1.0);
        close(&[(1.0, 1.0), (1.0, 2.0)], 0.0);
        close(&[], 0.0);
        // Five pairs agree, one does not.
        close(&[(1.0, 1.0), (2.0, 2.0), (3.0, 4.0), (4.0, 3.0)], 4.0 / 6.0);
        // (2, 2) and (2, 3) tie in the first number: of 3 pairs 2 agree, 2 are untied there and 3 here.
        close(&[(1.0, 1.0), (2.0, 2.0), (2.0, 3.0)], 2.0 / 6.0_f64.sqrt());
    }
}
