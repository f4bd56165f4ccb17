//! What a search without a GPU may cost: it is bounded by nvcc's own compile.
//!
//! In: the sizes of the preprocessed source and the PTX. Out: how many sets of macros and
//! register caps are compiled. Invariant: the result depends on counts alone, never on the
//! clock, so that a slow machine chooses as a fast one does.

/// Processor time of nvcc's steps in microseconds per byte that they read or write, for toolkit
/// 13.0.88 (`--dryrun`, each step timed alone, 9 sources with 1 KB to 14 MB of PTX:
/// `kernels/results/compile_cost.txt`).
mod microseconds_per_byte {
    /// Host preprocessor, cudafe++ and host compiler, by bytes of preprocessed source.
    pub const HOST: f64 = 0.60;
    /// Device preprocessor, by bytes of preprocessed source.
    pub const PREPROCESS: f64 = 0.05;
    /// The parser of cicc, by bytes that it is given.
    pub const PARSE: f64 = 0.20;
    /// The optimiser of cicc, by bytes of PTX that it writes.
    pub const OPTIMIZE: f64 = 1.2;
    /// ptxas, by bytes of PTX of the kernel.
    pub const ASSEMBLE: f64 = 1.6;
}

/// Sets of macros that are compiled at most if nothing is timed. On the recorded spaces of an
/// H200 and an H100 a sixth to eighth set changes the mean gain of the model's choices by less
/// than 0.5%.
pub const MAX_MACRO_SETS: usize = 8;

/// Processor time of starting ptxas and reading its output, in microseconds.
const PTXAS_START: f64 = 40e3;

/// The search may take this many times what nvcc takes for the source, and at least this many
/// microseconds. The promise is 3 times; the rest is for machines on which the same counts take
/// more processor time (`kernels/results/static_cost_16_cores.txt`).
const SHARE_OF_COMPILE: f64 = 2.55;
const MIN_SEARCH_US: f64 = 2e6;

/// Runs of the preprocessor, in microseconds per byte, that ask for macros, constants and host
/// code.
const QUERY: f64 = 0.2;

/// Processor time of the model for a kernel, and for each of its sets of macros, in microseconds.
const MODEL: f64 = 150e3;
const MODEL_OF_SET: f64 = 60e3;

/// Additional processor time of the model in microseconds for each byte of the kernel's PTX under
/// a set of macros, and for each operation of the formulas of buffer contents. Rounded up from
/// the processor time of nvtune itself for 18 kernels of the suite.
const MODEL_OF_PTX: f64 = 16.0;
const MODEL_OF_FORMULA: f64 = 15e3;

/// Typical number of ptxas runs for the register caps of one set: 12 caps, of which a few bind.
const CAP_RUNS: f64 = 5.0;

/// The sizes in bytes that the cost of compiling a source under one set of macros follows.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// The preprocessed source, and what of it cicc is given.
    pub source: usize,
    pub parsed: usize,
    /// The PTX of the source, and of the kernel in it.
    pub ptx: usize,
    pub kernel_ptx: usize,
}

impl Sizes {
    fn front_end(self) -> f64 {
        let preprocess = microseconds_per_byte::PREPROCESS * self.source as f64;
        preprocess
            + microseconds_per_byte::PARSE * self.parsed as f64
            + microseconds_per_byte::OPTIMIZE * self.ptx as f64
    }

    /// Returns the processor time of cicc for the whole source, if it was given a part.
    fn confirmation(self) -> f64 {
        if self.parsed == self.source {
            return 0.0;
        }
        microseconds_per_byte::PARSE * self.source as f64 + microseconds_per_byte::OPTIMIZE * self.ptx as f64
    }

    fn assembly(self) -> f64 {
        PTXAS_START + microseconds_per_byte::ASSEMBLE * self.kernel_ptx as f64
    }

    /// Returns the processor time of nvcc for the source.
    fn compile(self) -> f64 {
        let assemblies = microseconds_per_byte::ASSEMBLE * self.ptx as f64;
        let whole = Self { parsed: self.source, ..self };
        microseconds_per_byte::HOST * self.source as f64 + whole.front_end() + assemblies
    }

    /// Returns the processor time of one more set of macros.
    fn set(self) -> f64 {
        self.front_end() + self.assembly() + self.model()
    }

    /// Returns the processor time of the model for a set of macros.
    fn model(self) -> f64 {
        MODEL_OF_SET + MODEL_OF_PTX * self.kernel_ptx as f64
    }
}

/// The processor time that remains for the search of one kernel, in microseconds, estimated from
/// the sizes of what is compiled.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    left: f64,
    /// The largest code so far, which the next set's is taken to be no larger than.
    largest: Sizes,
}

impl Budget {
    /// Bounds the search by what nvcc takes for the source, of which this is the baseline;
    /// `kernels` share that. The formulas of the workload have `formula_steps` operations.
    pub fn for_baseline(baseline: Sizes, kernels: usize, formula_steps: usize) -> Self {
        // All kernels share the front end's run for the baseline.
        let shared = baseline.front_end() + baseline.confirmation() + QUERY * baseline.source as f64;
        let search = (SHARE_OF_COMPILE * baseline.compile()).max(MIN_SEARCH_US) - shared;
        let model = MODEL + MODEL_OF_FORMULA * formula_steps as f64 + baseline.model();
        let own = model + baseline.assembly();
        Self { left: search / kernels.max(1) as f64 - own, largest: baseline }
    }

    /// Returns how many more sets of macros are compiled, at most `count`.
    pub fn affordable_sets(&self, count: usize) -> usize {
        // One of them may win.
        let after = CAP_RUNS * self.largest.assembly() + self.largest.confirmation();
        let sets = (self.left - after) / self.largest.set();
        count.min(sets.max(0.0) as usize)
    }

    /// Subtracts the cost of a set that was compiled.
    pub fn spend(&mut self, set: Sizes) {
        self.left -= set.set();
        if set.ptx > self.largest.ptx {
            self.largest = set;
        }
    }

    /// Returns how many of `count` register caps are tried for the best set with each of
    /// `operators` cache operators: all if there is room for the runs of ptxas that they
    /// usually take, for most do not bind; at least one.
    pub fn affordable_caps(&self, count: usize, operators: usize) -> usize {
        let runs = self.left / self.largest.assembly() / operators.max(1) as f64;
        if runs >= CAP_RUNS { count } else { count.min(runs.max(1.0) as usize) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADERS: usize = 1_570_000;

    /// Compiles sets of these sizes, as many as are affordable, two at a time; returns their
    /// number, the baseline's among them, and how many of 12 caps are tried for the best.
    fn afforded(baseline: Sizes, other: Sizes, (kernels, formula_steps): (usize, usize)) -> (usize, usize) {
        let mut budget = Budget::for_baseline(baseline, kernels, formula_steps);
        let mut sets = 1;
        loop {
            let count = budget.affordable_sets(2.min(MAX_MACRO_SETS - sets));
            if count == 0 {
                return (sets, budget.affordable_caps(12, 1));
            }
            (0..count).for_each(|_| budget.spend(other));
            sets += count;
        }
    }

    const fn sizes(source: usize, ptx: usize, kernel_ptx: usize) -> Sizes {
        Sizes { source, parsed: source, ptx, kernel_ptx }
    }

    #[test]
    fn search_is_bounded_by_compile() {
        let small = sizes(HEADERS, 10_000, 8_000);
        let large = sizes(HEADERS, 14_000_000, 14_000_000);
        let attention = sizes(1_700_000, 27_000, 27_000);
        for (case, baseline, other, counts, expected) in [
            ("small kernel", small, small, (1, 0), (4, 12)),
            ("small kernel of long formulas", small, small, (1, 50), (3, 12)),
            ("small kernel of large sets", small, sizes(HEADERS, 200_000, 198_000), (1, 0), (3, 1)),
            (
                "small kernel of which cicc is given a part",
                Sizes { parsed: 10_000, ..small },
                Sizes { parsed: 10_000, ..small },
                (1, 0),
                (6, 12),
            ),
            ("medium kernel", attention, attention, (1, 0), (2, 12)),
            ("small source", sizes(100_000, 10_000, 8_000), sizes(100_000, 10_000, 8_000), (1, 0), (5, 12)),
            ("four kernels", sizes(HEADERS, 40_000, 8_000), small, (4, 0), (1, 12)),
            ("many kernels", sizes(HEADERS, 14_000_000, 100_000), sizes(HEADERS, 14_000_000, 100_000), (1, 0), (5, 12)),
            ("large kernel", large, large, (1, 0), (1, 1)),
        ] {
            assert_eq!(afforded(baseline, other, counts), expected, "{case}");
        }
    }

    /// What is compiled by these counts takes, by the weights above: front ends, runs of ptxas
    /// and the model.
    fn cost(baseline: Sizes, (sets, cap_runs): (usize, usize), formula_steps: usize) -> f64 {
        let others = (sets - 1) as f64 * baseline.set();
        let shared = baseline.set() + QUERY * baseline.source as f64 + MODEL + MODEL_OF_FORMULA * formula_steps as f64;
        shared + others + cap_runs as f64 * baseline.assembly()
    }

    #[test]
    fn compiles_of_every_source_stay_within_the_bound() {
        for source in [50_000, 500_000, 1_700_000, 3_000_000] {
            for ptx in [1_000, 8_000, 27_000, 100_000, 1_000_000, 14_000_000] {
                for formula_steps in [0, 20, 60] {
                    let baseline = sizes(source, ptx, ptx);
                    let (sets, caps) = afforded(baseline, baseline, (1, formula_steps));
                    let cap_runs = if caps == 12 { CAP_RUNS as usize } else { caps };
                    let bound = (SHARE_OF_COMPILE * baseline.compile()).max(MIN_SEARCH_US);
                    let taken = cost(baseline, (sets, cap_runs), formula_steps);
                    // The baseline and one cap are compiled whatever they take.
                    let least = cost(baseline, (1, 1), formula_steps);
                    assert!(sets <= MAX_MACRO_SETS, "{baseline:?}: {sets} sets");
                    assert!(taken <= bound.max(least), "{baseline:?}: {taken} of {bound}, {sets} sets, {caps} caps");
                }
            }
        }
    }
}
