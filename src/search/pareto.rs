//! The Pareto-optimal subset of a set of points in two metrics that are both to be small.

/// Returns the indices of the points that no other point dominates, that is, improves in one
/// metric without being worse in the other.
///
/// Points that are equal in both metrics do not dominate each other: all or none of them are in
/// the front. A point with a metric that is not a number is never in it. The order is that of
/// the first metric, then of the input.
pub fn pareto_front(points: &[(f64, f64)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points.len()).filter(|&i| !points[i].0.is_nan() && !points[i].1.is_nan()).collect();
    order.sort_by(|&a, &b| points[a].0.total_cmp(&points[b].0).then(points[a].1.total_cmp(&points[b].1)));
    let mut front: Vec<usize> = Vec::new();
    for index in order {
        let optimal = match front.last() {
            None => true,
            Some(&last) => points[index].1 < points[last].1 || points[index] == points[last],
        };
        if optimal {
            front.push(index);
        }
    }
    front
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_stay_together() {
        let points = [(1.0, 3.0), (2.0, 2.0), (2.0, 2.0), (2.0, 3.0), (3.0, 1.0), (f64::NAN, 0.0), (1.0, 4.0)];
        assert_eq!(pareto_front(&points), [0, 1, 2, 4]);
    }

    proptest! {
        #[test]
        fn the_front_is_what_its_definition_says(
            points in proptest::collection::vec((0_u8..6, 0_u8..6), 0..40)
        ) {
            let points: Vec<(f64, f64)> = points.into_iter().map(|(a, b)| (a.into(), b.into())).collect();
            let dominated = |p: &(f64, f64)| {
                points.iter().any(|q| q.0 <= p.0 && q.1 <= p.1 && q != p)
            };
            let mut expected: Vec<usize> = (0..points.len()).filter(|&i| !dominated(&points[i])).collect();
            let mut front = pareto_front(&points);
            expected.sort_unstable();
            front.sort_unstable();
            prop_assert_eq!(front, expected);
        }
    }
}
