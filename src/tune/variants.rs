//! All variants of a kernel: the front end once for each set of its options, ptxas
//! once for each register cap and cache operator, in parallel.

use super::failure::first as first_line;
use super::kernel_info::KernelInfo;
use super::register_caps;
use crate::diag::progress;
use crate::launch::{CacheOperator, Configuration, FrontEndOptions};
use crate::nvcc::{FrontEnd, ToolError, Toolchain};
use crate::ptx;
use crate::ptx::Edits;
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Values of macros by name.
pub type Macros = BTreeMap<String, i64>;

/// What the front end made under one set of options.
pub type Made = Result<Arc<FrontEnd>, Arc<ToolError>>;

/// The machine code of one set of front-end options, register cap and cache operator.
#[derive(Clone, Debug)]
pub struct Assembly {
    pub symbol: String,
    pub cubin: Arc<[u8]>,
    pub digest: String,
}

/// Gets the baseline's code while the others are still compiled.
pub type First<'a> = &'a (dyn Fn(&Assembly) + Sync);

/// The machine code, or what the compiler said.
pub type Assembled = Result<Assembly, CompileFailure>;

/// Why there is no machine code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileFailure {
    /// There was no time left for it.
    #[error("{}", ToolError::OutOfTime)]
    OutOfTime,
    /// What the front end says first of the source under these options.
    #[error("with {options}: {said}")]
    Source { options: FrontEndOptions, said: String },
    /// The source has no such kernel under these macros, or ptxas does not take it.
    #[error("{0}")]
    Code(String),
}

/// What the front end made under each set of options so far; kernels of one source share it.
#[derive(Clone)]
pub struct FrontEnds<'a> {
    toolchain: &'a Toolchain,
    made: HashMap<FrontEndOptions, Made>,
    bounds: Option<Bounds>,
}

/// From when on nothing is compiled that can be done without: sets of options besides the first,
/// variants besides the baseline's.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub front_ends: Instant,
    pub variants: Instant,
    /// What variants have in any case, however long the front end took for the sets that it had
    /// begun: they would be for nothing else.
    pub least: Duration,
}

impl<'a> FrontEnds<'a> {
    pub fn new(toolchain: &'a Toolchain) -> Self {
        Self { toolchain, made: HashMap::new(), bounds: None }
    }

    /// The front end's output under a set that it was run for; `None` where it failed, too.
    pub fn made(&self, set: &FrontEndOptions) -> Option<&FrontEnd> {
        self.made.get(set)?.as_deref().ok()
    }

    /// Tells whether the code is to be linked later.
    pub fn is_relocatable(&self) -> bool {
        self.toolchain.is_relocatable()
    }

    /// The files that the front end read.
    pub fn files(&self) -> impl Iterator<Item = &String> {
        self.made.values().flatten().flat_map(|made| &made.files)
    }

    /// Bounds what is compiled from now on.
    pub fn bound(&mut self, bounds: Option<Bounds>) {
        self.bounds = bounds;
    }

    /// From when on no variant is compiled that can be done without; what they have in any case
    /// begins when this is asked for several.
    fn until(&mut self, is_several: bool) -> Option<Instant> {
        let bounds = self.bounds.as_mut()?;
        let until = bounds.variants.max(Instant::now() + bounds.least);
        if is_several {
            (bounds.variants, bounds.least) = (until, Duration::ZERO);
        }
        Some(until)
    }

    /// As [`Self::get`], for as long as there is time: the first set in any case, then those
    /// that differ from it in the fewest values, and of these a spread. The others are
    /// [`ToolError::OutOfTime`] this time.
    pub fn get_in_time(&mut self, sets: &[FrontEndOptions]) -> Vec<Made> {
        let mut order: Vec<(usize, &FrontEndOptions)> = sets.iter().enumerate().collect();
        let changed = |set: &FrontEndOptions| {
            let of_first = |name: &String| sets[0].macros.get(name);
            let macros = set.macros.iter().filter(|(name, value)| of_first(name) != Some(value)).count();
            macros + usize::from(set.math != sets[0].math) + usize::from(set.unroll != sets[0].unroll)
        };
        // Multiples of the golden ratio lie evenly, however many of them are taken (Weyl).
        let place = |index: usize| (index as f64 * 0.618_033_988_749_895).fract();
        order.sort_by(|(a, set), (b, other)| changed(set).cmp(&changed(other)).then(place(*a).total_cmp(&place(*b))));
        order.retain(|(_, set)| !self.made.contains_key(*set));
        let (toolchain, until) = (self.toolchain, self.bounds.map(|bounds| bounds.front_ends));
        // A bridge gives them out in order.
        let made: Vec<(FrontEndOptions, Made)> = order
            .into_iter()
            .par_bridge()
            .filter(|(index, _)| *index == 0 || !is_over(until))
            .map(|(_, set)| (set.clone(), toolchain.front_end(set).map(Arc::new).map_err(Arc::new)))
            .collect();
        self.made.extend(made);
        let late = || Err(Arc::new(ToolError::OutOfTime));
        sets.iter().map(|set| self.made.get(set).cloned().unwrap_or_else(late)).collect()
    }

    /// The front end's output under each of these sets, run in parallel where it is not there
    /// yet.
    pub fn get(&mut self, sets: &[FrontEndOptions]) -> Vec<Made> {
        let missing: Vec<&FrontEndOptions> = sets.iter().filter(|set| !self.made.contains_key(*set)).collect();
        let toolchain = self.toolchain;
        let made: Vec<(FrontEndOptions, Made)> = missing
            .into_par_iter()
            .map(|set| (set.clone(), toolchain.front_end(set).map(Arc::new).map_err(Arc::new)))
            .collect();
        self.made.extend(made);
        sets.iter().filter_map(|set| self.made.get(set).cloned()).collect()
    }
}

fn is_over(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() >= until)
}

/// Why a configuration of a factor that the model gave no hope has no variant.
const HOPELESS: &str = "not compiled: without a register cap, this factor is predicted to be far slower";

/// Why a configuration of a set of macros that was screened out has no variant.
const NOT_COMPILED: &str = "not compiled: if nothing is timed, nvcc's own compile time bounds how much is";

/// Distinct machine code of one kernel.
pub struct Variant {
    /// Those of the kernel's axes, with the first math options and factor that give this code.
    pub options: FrontEndOptions,
    /// The kernel's name in this code.
    pub symbol: String,
    /// The register caps that give this code, ascending.
    pub caps: Vec<u32>,
    /// The first cache operator that gives this code: none, where none does.
    pub cache: Option<CacheOperator>,
    pub digest: String,
    pub cubin: Arc<[u8]>,
}

/// What ptxas is run under, each cap with each operator.
pub struct PtxasRuns {
    pub caps: Vec<u32>,
    pub operators: Vec<Option<CacheOperator>>,
}

impl PtxasRuns {
    /// The part of it that is natural; `None` where that is all, or lacks the baseline.
    pub fn natural(&self, baseline: Edits) -> Option<Self> {
        let is_natural = |cap, cache| Edits { cap, cache, ..Edits::default() }.is_natural(baseline);
        let (caps, operators) = (self.caps.iter().copied(), self.operators.iter().copied());
        let natural = Self {
            caps: caps.filter(|&cap| is_natural(cap, baseline.cache)).collect(),
            operators: operators.filter(|&cache| is_natural(baseline.cap, cache)).collect(),
        };
        let is_part = natural.caps.len() < self.caps.len() || natural.operators.len() < self.operators.len();
        let has_baseline = natural.caps.contains(&baseline.cap) && natural.operators.contains(&baseline.cache);
        (is_part && has_baseline).then_some(natural)
    }
}

/// Every variant of a kernel that was compiled.
#[derive(Default)]
pub struct Variants {
    pub all: Vec<Variant>,
    /// By the axes' options and the edits of the PTX: the index of the variant, or why there is
    /// none.
    by_key: HashMap<(FrontEndOptions, Edits), Result<usize, CompileFailure>>,
    /// The sets of options whose other variants are not compiled, by what the model says of the
    /// natural ones.
    pub hopeless: Vec<FrontEndOptions>,
}

impl Variants {
    /// Compiles the code of these sets of the axes' options under these register caps and cache
    /// operators, where it is not there yet. The baseline's code is shown to `first` as
    /// soon as it is there.
    pub fn compile(
        &mut self,
        front_ends: &mut FrontEnds<'_>,
        subject: &KernelInfo<'_>,
        axes: &[FrontEndOptions],
        written: &PtxasRuns,
        first: First<'_>,
    ) {
        let full: Vec<FrontEndOptions> = axes.iter().map(|set| subject.options(set)).collect();
        let made = front_ends.get_in_time(&full);
        let same = first_with_code(subject, axes, &made);
        let toolchain = front_ends.toolchain;
        let until = front_ends.until(axes.len() * written.caps.len() * written.operators.len() > 1);
        let baseline = subject.baseline();
        let of_baseline = baseline.front_end();
        let jobs: Vec<(usize, Option<CacheOperator>, Vec<u32>)> = (0..axes.len())
            .filter(|&set| same[set] == set)
            .flat_map(|set| written.operators.iter().map(move |&cache| (set, cache)))
            .map(|(set, cache)| {
                let is_there = |&cap: &u32| {
                    self.by_key.contains_key(&(axes[set].clone(), Edits { cap, cache, ..Edits::default() }))
                };
                let mut caps: Vec<u32> = written.caps.iter().copied().filter(|cap| !is_there(cap)).collect();
                caps.dedup();
                (set, cache, caps)
            })
            .collect();
        let assembled: Vec<Vec<Assembled>> = jobs
            .par_iter()
            .map(|(set, cache, caps)| {
                register_caps::assemble_all(caps, &|cap| {
                    let is_baseline = axes[*set] == of_baseline && (cap, *cache) == (baseline.cap, baseline.cache);
                    if !is_baseline && is_over(until) {
                        return Err(CompileFailure::OutOfTime);
                    }
                    let refused = |error: &Arc<ToolError>| match **error {
                        ToolError::OutOfTime => CompileFailure::OutOfTime,
                        _ => CompileFailure::Source { options: full[*set].clone(), said: first_line(error) },
                    };
                    let front_end = made[*set].as_ref().map_err(refused)?;
                    let symbol = subject.entry(&axes[*set]).map_err(CompileFailure::Code)?.symbol.as_str();
                    let edits = Edits { cap, cache: *cache, ..Edits::default() };
                    let assembled = toolchain.assemble(&front_end.ptx, symbol, edits);
                    progress::compiled(&subject.annotation.name);
                    let (cubin, digest) = assembled.map_err(|error| CompileFailure::Code(first_line(&error)))?;
                    let assembly = Assembly { symbol: symbol.to_owned(), cubin: Arc::from(cubin), digest };
                    if is_baseline {
                        first(&assembly);
                    }
                    Ok(assembly)
                })
            })
            .collect();
        for ((set, cache, caps), assembled) in jobs.into_iter().zip(assembled) {
            for (cap, result) in caps.into_iter().zip(assembled) {
                let edits = Edits { cap, cache, ..Edits::default() };
                let index = result.map(|assembly| self.index_of(&axes[set], edits, assembly));
                self.by_key.insert((axes[set].clone(), edits), index);
            }
        }
        for (set, &first) in same.iter().enumerate().filter(|(set, first)| set != *first) {
            for (&cap, &cache) in written.caps.iter().flat_map(|cap| written.operators.iter().map(move |of| (cap, of)))
            {
                let edits = Edits { cap, cache, ..Edits::default() };
                if let Some(index) = self.by_key.get(&(axes[first].clone(), edits)).cloned() {
                    self.by_key.insert((axes[set].clone(), edits), index);
                }
            }
        }
    }

    /// Variants are distinguished by their machine code, and by their macros, on which launches
    /// depend.
    fn index_of(&mut self, options: &FrontEndOptions, Edits { cap, cache, .. }: Edits, assembly: Assembly) -> usize {
        let Assembly { symbol, cubin, digest } = assembly;
        let same = |variant: &Variant| variant.digest == digest && variant.options.macros == options.macros;
        if let Some(index) = self.all.iter().position(same) {
            let caps = &mut self.all[index].caps;
            if !caps.contains(&cap) {
                caps.push(cap);
            }
            return index;
        }
        self.all.push(Variant { options: options.clone(), symbol, caps: vec![cap], cache, digest, cubin });
        self.all.len() - 1
    }

    /// The variant of a configuration, or why there is none.
    pub fn of(&self, configuration: &Configuration) -> Result<usize, String> {
        match self.by_key.get(&(configuration.front_end(), Edits::from(configuration))) {
            Some(Ok(index)) => Ok(*index),
            Some(Err(failure)) => Err(failure.to_string()),
            None if self.hopeless.contains(&configuration.front_end()) => Err(HOPELESS.to_owned()),
            None => Err(NOT_COMPILED.to_owned()),
        }
    }

    /// Why a configuration has no variant although it was to be compiled.
    pub fn failure(&self, configuration: &Configuration) -> Option<&CompileFailure> {
        self.by_key.get(&(configuration.front_end(), Edits::from(configuration)))?.as_ref().err()
    }
}

/// For each set of the axes' options the first that differs at most in the factor of loops and
/// has the same PTX: ptxas is run for that one.
fn first_with_code(subject: &KernelInfo<'_>, axes: &[FrontEndOptions], made: &[Made]) -> Vec<usize> {
    let without_factor = |set: usize| FrontEndOptions { unroll: None, ..axes[set].clone() };
    let code = |set: usize| {
        let module = ptx::Module::parse(&made[set].as_ref().ok()?.ptx).ok()?;
        module.canonical_text(&subject.entry(&axes[set]).ok()?.symbol)
    };
    if axes.iter().all(|set| set.unroll.is_none()) {
        return (0..axes.len()).collect();
    }
    let codes: Vec<Option<String>> = (0..axes.len()).into_par_iter().map(code).collect();
    let is_same = |set: usize, other: &usize| {
        codes[set].is_some() && codes[set] == codes[*other] && without_factor(set) == without_factor(*other)
    };
    (0..axes.len()).map(|set| (0..set).find(|other| is_same(set, other)).unwrap_or(set)).collect()
}

/// What the front end is given for a set of a kernel's: of the baseline's macros none, which
/// the source has itself.
pub fn options_for(baseline: &Macros, set: &FrontEndOptions) -> FrontEndOptions {
    let macros = if set.macros == *baseline { Macros::new() } else { set.macros.clone() };
    FrontEndOptions { macros, ..set.clone() }
}
