//! How much of a space is compiled if nothing is timed, and which part of it.
//!
//! In: the sizes of the baseline's preprocessed source and PTX, the space's sets of macros. Out: the sets to compile, and how many
//! runs of ptxas the register caps may take. Invariant: the result depends on counts alone, never on the clock, so that a slow
//! machine chooses as a fast one does. With a GPU the whole space is compiled: that is well spent there.

use super::variants::Macros;

/// Processor time of nvcc's steps in microseconds per byte that they read or write, for toolkit 13.0.88 (`--dryrun`, each step timed
/// alone, 9 sources with 1 KB to 14 MB of PTX: `kernels/results/compile_cost.txt`).
mod microseconds_per_byte {
    /// Host preprocessor, cudafe++ and host compiler, by bytes of preprocessed source.
    pub const HOST: f64 = 0.60;
    /// Device preprocessor and the parser of cicc, by bytes of preprocessed source.
    pub const PARSE: f64 = 0.25;
    /// The optimiser of cicc, by bytes of PTX that it writes.
    pub const OPTIMIZE: f64 = 1.2;
    /// ptxas, by bytes of PTX of the kernel.
    pub const ASSEMBLE: f64 = 1.6;
}

/// What starting ptxas and reading its output takes, in microseconds of processor time.
const START: f64 = 40e3;

/// The search may take this many times what nvcc takes for the source, and at least this many microseconds.
const SHARE_OF_COMPILE: f64 = 2.0;
const LEAST: f64 = 2e6;

/// What the model takes for a kernel and for each of its sets of macros, in microseconds.
const MODEL: f64 = 300e3;
const MODEL_OF_SET: f64 = 60e3;

/// Runs of ptxas that the register caps of one set take, if these can be had: 12 caps, of which a few bind.
const CAP_RUNS: f64 = 5.0;

/// The sizes in bytes that the cost of compiling a source follows.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// The preprocessed source.
    pub source: usize,
    /// The PTX of the source, and of the kernel in it.
    pub ptx: usize,
    pub kernel_ptx: usize,
    /// The kernels of the source that share what a search may take.
    pub kernels: usize,
}

/// How much of a space is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affordable {
    /// Sets of macros, the baseline's among them; at least one.
    pub macro_sets: usize,
    /// Register caps and cache operators, each with each, of the best set; at least one.
    pub assemblies: usize,
}

impl Affordable {
    /// Bounds the search for one kernel by what nvcc takes for its source.
    pub fn for_sizes(Sizes { source, ptx, kernel_ptx, kernels }: Sizes) -> Self {
        use microseconds_per_byte::{ASSEMBLE, HOST, OPTIMIZE, PARSE};
        let front_end = PARSE * source as f64 + OPTIMIZE * ptx as f64;
        let compile = HOST * source as f64 + front_end + ASSEMBLE * ptx as f64;
        let assembly = START + ASSEMBLE * kernel_ptx as f64;
        // All kernels share the front end's run for the baseline.
        let search = (SHARE_OF_COMPILE * compile).max(LEAST) - front_end;
        let left = search / kernels.max(1) as f64 - MODEL - assembly - MODEL_OF_SET;
        let set = front_end + assembly + MODEL_OF_SET;
        let others = ((left - CAP_RUNS * assembly) / set).max(0.0).floor();
        let assemblies = ((left - others * set) / assembly).max(1.0);
        Self { macro_sets: 1 + others as usize, assemblies: assemblies as usize }
    }
}

/// Selects `count` sets that fill the space evenly: the first, which is the baseline's, and then in turn the one that is farthest from
/// all before it. On the recorded spaces of an H200 four such sets give 97% of the gain that all give, and as much as any order
/// along the axes with three times as many.
pub fn spread(sets: &[Macros], count: usize) -> Vec<Macros> {
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

/// Returns the squared distance of two sets in logarithms of their values: 2 to 4 is as far as 16 to 32.
fn distance(set: &Macros, other: &Macros) -> f64 {
    let logarithm = |value: i64| (value.unsigned_abs() as f64 + 1.0).log2() * value.signum() as f64;
    let pairs = set.iter().filter_map(|(name, value)| Some((*value, *other.get(name)?)));
    pairs.map(|(a, b)| (logarithm(a) - logarithm(b)).powi(2)).sum()
}

/// Selects the set of least predicted time; every register cap is tried for it.
pub fn best(sets: &[Macros], time: impl Fn(&Macros) -> Option<f64>) -> Option<&Macros> {
    let timed = sets.iter().filter_map(|set| Some((time(set)?, set)));
    timed.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, set)| set)
}

/// Selects `count` of the values evenly, the first and last among them, with the one that must be there.
pub fn thinned<T: Copy + PartialEq>(values: &[T], count: usize, required: T) -> Vec<T> {
    let last = values.len().saturating_sub(1);
    if count > last {
        return values.to_vec();
    }
    let steps = count.saturating_sub(1).max(1);
    let is_selected = |index: usize| (0..count).any(|step| step * last / steps == index);
    let selected =
        values.iter().enumerate().filter(|&(index, value)| *value == required || count > 1 && is_selected(index));
    selected.map(|(_, value)| *value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADERS: usize = 1_570_000;

    fn sets() -> Vec<Macros> {
        let set = |tile, work| Macros::from([("TILE".to_owned(), tile), ("WORK".to_owned(), work)]);
        let baseline = set(16, 1);
        let all = [8, 16, 32].into_iter().flat_map(|tile| [1, 2, 4, 8].map(|work| set(tile, work)));
        let others = all.filter(|set| *set != baseline);
        std::iter::once(baseline.clone()).chain(others).collect()
    }

    fn values(sets: &[Macros]) -> Vec<(i64, i64)> {
        sets.iter().map(|set| (set["TILE"], set["WORK"])).collect()
    }

    #[test]
    fn selected_sets_lie_far_apart() {
        assert_eq!(values(&spread(&sets(), 4)), [(16, 1), (32, 8), (8, 8), (16, 4)]);
        assert_eq!(values(&spread(&sets(), 1)), [(16, 1)]);
        assert_eq!(spread(&sets(), 100).len(), sets().len());
        assert_eq!(spread(&[], 4), Vec::<Macros>::new());
    }

    #[test]
    fn search_is_bounded_by_compile() {
        let sizes = |source, ptx, kernel_ptx, kernels| Sizes { source, ptx, kernel_ptx, kernels };
        for (case, sizes, macro_sets, assemblies) in [
            ("small kernel", sizes(HEADERS, 10_000, 8_000, 1), 4, 10),
            ("small source", sizes(100_000, 10_000, 8_000, 1), 11, 8),
            ("four kernels", sizes(HEADERS, 40_000, 8_000, 4), 1, 1),
            ("large PTX of many kernels", sizes(HEADERS, 14_000_000, 100_000, 1), 4, 70),
            ("large kernel", sizes(HEADERS, 14_000_000, 14_000_000, 1), 1, 1),
        ] {
            assert_eq!(Affordable::for_sizes(sizes), Affordable { macro_sets, assemblies }, "{case}");
        }
    }

    #[test]
    fn best_set_has_least_time() {
        let all = sets();
        assert_eq!(best(&all, |set| Some(1.0 / set["WORK"] as f64)).map(|set| set["WORK"]), Some(8));
        assert_eq!(best(&all, |_| None), None);
    }

    #[test]
    fn thinned_values_keep_ends_and_required_value() {
        for (count, expected) in
            [(9, &[0, 32, 40, 48, 64, 96, 128][..]), (3, &[0, 40, 48, 128]), (2, &[0, 40, 128]), (1, &[40])]
        {
            assert_eq!(thinned(&[0, 32, 40, 48, 64, 96, 128], count, 40), expected, "{count}");
        }
    }
}
