//! Which sets of macros are compiled where nothing is timed.
//!
//! Each set costs a run of the front end, and their number is the product of the axes. With a GPU that is well spent. By the
//! model alone a farm's build should not take many times what nvcc takes, so the axes are looked at one at a time: every set
//! that differs from the baseline in one macro at most, and then those few that the model's gains along each axis, taken
//! together, speak for; both as the source would be compiled. Other register caps are for the best of them. Nothing here
//! touches the world.

use super::variants::Macros;

/// How many sets at most are compiled in the first round, how many in the second, and how many under every
/// register cap.
const ALONE: usize = 16;
const TOGETHER: usize = 2;
const BEST: usize = 1;

/// The sets that differ from the first, the baseline's, in one macro at most; the baseline's first.
pub fn alone(sets: &[Macros]) -> Vec<Macros> {
    let Some(baseline) = sets.first() else { return Vec::new() };
    sets.iter().filter(|set| changed(baseline, set).count() <= 1).take(ALONE).cloned().collect()
}

/// The sets among `sets` that are worth a second round: not `seen` yet, and of the least time if the gain of each changed
/// macro, as seen alone, multiplies. `time` is the least predicted time among the configurations of a set that was seen.
pub fn together(sets: &[Macros], seen: &[Macros], time: impl Fn(&Macros) -> Option<f64>) -> Vec<Macros> {
    let Some(baseline) = sets.first() else { return Vec::new() };
    let Some(base) = time(baseline) else { return Vec::new() };
    let ratio = |name: &str, value: i64| {
        let mut single = baseline.clone();
        single.insert(name.to_owned(), value);
        // What never occurs alone is taken to change nothing.
        time(&single).map_or(1.0, |time| time / base)
    };
    let mut estimated: Vec<(f64, &Macros)> = sets
        .iter()
        .filter(|set| !seen.contains(set))
        .map(|set| (changed(baseline, set).map(|(name, value)| ratio(name, value)).product(), set))
        .collect();
    estimated.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    estimated.into_iter().take(TOGETHER).map(|(_, set)| set.clone()).collect()
}

/// The sets of least time, for which every register cap is tried.
pub fn best(seen: &[Macros], time: impl Fn(&Macros) -> Option<f64>) -> Vec<Macros> {
    let mut timed: Vec<(f64, &Macros)> = seen.iter().filter_map(|set| Some((time(set)?, set))).collect();
    timed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    timed.into_iter().take(BEST).map(|(_, set)| set.clone()).collect()
}

/// The macros that have another value in `set`.
fn changed<'a>(baseline: &'a Macros, set: &'a Macros) -> impl Iterator<Item = (&'a str, i64)> {
    set.iter().filter(|(name, value)| baseline.get(*name) != Some(value)).map(|(name, value)| (name.as_str(), *value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets() -> Vec<Macros> {
        let set = |tile, work| Macros::from([("TILE".to_owned(), tile), ("WORK".to_owned(), work)]);
        let baseline = set(16, 1);
        let all = [8, 16, 32].into_iter().flat_map(|tile| [1, 2, 4, 8].map(|work| set(tile, work)));
        let others = all.filter(|set| *set != baseline);
        std::iter::once(baseline.clone()).chain(others).collect()
    }

    #[test]
    fn the_best_of_each_axis_meet_in_the_second_round() {
        let all = sets();
        let seen = alone(&all);
        assert_eq!(seen.len(), 6);
        assert_eq!(seen[0], all[0]);
        let time = |set: &Macros| {
            let found = seen.contains(set);
            found.then(|| 100.0 * if set["TILE"] == 32 { 0.8 } else { 1.0 } / set["WORK"].min(4) as f64)
        };
        let second = together(&all, &seen, time);
        let values: Vec<_> = second.iter().map(|set| (set["TILE"], set["WORK"])).collect();
        assert_eq!(values, [(32, 4), (32, 8)]);
    }

    #[test]
    fn one_axis_is_compiled_whole() {
        let all: Vec<Macros> = (1..6).map(|work| Macros::from([("WORK".to_owned(), work)])).collect();
        assert_eq!(alone(&all), all);
        assert_eq!(together(&all, &all, |_| Some(1.0)), Vec::<Macros>::new());
    }

    #[test]
    fn without_a_baseline_there_is_nothing_to_go_by() {
        assert_eq!(alone(&[]), Vec::<Macros>::new());
        assert_eq!(together(&sets(), &[], |_| None), Vec::<Macros>::new());
    }
}
