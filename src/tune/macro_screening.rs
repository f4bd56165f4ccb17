//! Selects the sets of macros that are compiled if nothing is timed: sets far apart in the space.

use crate::launch::FrontEndOptions;

/// Selects `count` sets that fill the space evenly: the first, which is the baseline's, and
/// then in turn the one that is farthest from all before it. What the model chooses among four
/// such sets is a column of `kernels/results/EVAL.md`.
pub fn spread(sets: &[FrontEndOptions], count: usize) -> Vec<FrontEndOptions> {
    let Some(baseline) = sets.first() else { return Vec::new() };
    let mut nearest: Vec<f64> = sets.iter().map(|set| distance(baseline, set)).collect();
    let mut selected = vec![baseline.clone()];
    while selected.len() < count.min(sets.len()) {
        let Some((index, _)) = nearest.iter().enumerate().max_by(|(a, x), (b, y)| x.total_cmp(y).then(b.cmp(a))) else {
            break;
        };
        selected.push(sets[index].clone());
        nearest.iter_mut().zip(sets).for_each(|(nearest, set)| *nearest = nearest.min(distance(&sets[index], set)));
    }
    selected
}

/// Returns the squared distance of two sets in logarithms of their values: 2 to 4 is as far as
/// 16 to 32. nvcc's own factor of loops is 4 where it unrolls one whose count is not known.
fn distance(set: &FrontEndOptions, other: &FrontEndOptions) -> f64 {
    let logarithm = |value: i64| (value.unsigned_abs() as f64 + 1.0).log2() * value.signum() as f64;
    let pairs = set.macros.iter().filter_map(|(name, value)| Some((*value, *other.macros.get(name)?)));
    let [factor, other] = [set, other].map(|of| i64::from(of.unroll.unwrap_or(4)));
    pairs.chain([(factor, other)]).map(|(a, b)| (logarithm(a) - logarithm(b)).powi(2)).sum()
}

/// Selects the set of least predicted time; every register cap is tried for it.
pub fn best(sets: &[FrontEndOptions], time: impl Fn(&FrontEndOptions) -> Option<f64>) -> Option<&FrontEndOptions> {
    let timed = sets.iter().filter_map(|set| Some((time(set)?, set)));
    timed.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, set)| set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn sets() -> Vec<FrontEndOptions> {
        let set =
            |tile, work| FrontEndOptions::from(BTreeMap::from([("TILE".to_owned(), tile), ("WORK".to_owned(), work)]));
        let baseline = set(16, 1);
        let all = [8, 16, 32].into_iter().flat_map(|tile| [1, 2, 4, 8].map(|work| set(tile, work)));
        let others = all.filter(|set| *set != baseline);
        std::iter::once(baseline.clone()).chain(others).collect()
    }

    fn values(sets: &[FrontEndOptions]) -> Vec<(i64, i64)> {
        sets.iter().map(|set| (set.macros["TILE"], set.macros["WORK"])).collect()
    }

    #[test]
    fn selected_sets_lie_far_apart() {
        assert_eq!(values(&spread(&sets(), 4)), [(16, 1), (32, 8), (8, 8), (16, 4)]);
        assert_eq!(values(&spread(&sets(), 1)), [(16, 1)]);
        assert_eq!(spread(&sets(), 100).len(), sets().len());
        assert_eq!(spread(&[], 4), Vec::<FrontEndOptions>::new());
    }

    #[test]
    fn best_set_has_least_time() {
        let all = sets();
        assert_eq!(best(&all, |set| Some(1.0 / set.macros["WORK"] as f64)).map(|set| set.macros["WORK"]), Some(8));
        assert_eq!(best(&all, |_| None), None);
    }
}
