//! Compiles the variants of a kernel in parallel: runs the front end once for each set of
//! options, and ptxas once for each register cap and cache operator.

use super::failure::first as first_line;
use super::kernel_info::KernelInfo;
use super::register_caps;
use crate::diag::progress;
use crate::launch::{Configuration, FrontEndOptions, LoadCacheOperator};
use crate::nvcc::{FrontEnd, FrontEndResult, ToolError, Toolchain};
use crate::ptx;
use crate::ptx::Edits;
use crate::sass::Cubin;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Values of macros by name.
pub type Macros = BTreeMap<String, i64>;

/// The machine code of one set of front-end options, register cap and cache operator.
#[derive(Clone, Debug)]
pub struct Assembly {
    pub symbol: String,
    pub cubin: Arc<[u8]>,
    pub digest: String,
    /// The registers of a thread; `None` if that is not known.
    pub registers: Option<u32>,
}

impl Assembly {
    fn new(symbol: &str, cubin: Vec<u8>, digest: String) -> Self {
        let registers = Cubin::parse(&cubin).ok().and_then(|read| Some(read.kernel(symbol)?.resources.registers));
        Self { symbol: symbol.to_owned(), cubin: Arc::from(cubin), digest, registers }
    }
}

/// Receives the baseline's code while the others are still compiled.
pub type OnBaselineCode<'a> = &'a (dyn Fn(&Assembly) + Sync);

/// The machine code, or what the compiler said.
pub type AssemblyResult = Result<Assembly, CompileFailure>;

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

/// The front end's output for each set of options so far; the kernels of a source share it.
#[derive(Clone)]
pub struct FrontEnds<'a> {
    toolchain: &'a Toolchain,
    /// Whether it is run on what device code needs of the source.
    is_on_device_code: bool,
    made: HashMap<FrontEndOptions, FrontEndResult>,
    /// The files that were read for what is not among it any more.
    files: BTreeSet<String>,
    deadlines: Option<CompileDeadlines>,
}

/// When to stop compiling what can be omitted: sets of options besides the first, variants besides
/// the baseline's.
#[derive(Clone, Copy, Debug)]
pub struct CompileDeadlines {
    pub front_ends: Instant,
    pub variants: Instant,
    /// Minimum time for variants, even if the front end overran its deadline: its output would be
    /// useless without them.
    pub least: Duration,
}

impl<'a> FrontEnds<'a> {
    /// Runs the front end on the whole source.
    pub fn new(toolchain: &'a Toolchain) -> Self {
        let (made, files) = (HashMap::new(), BTreeSet::new());
        Self { toolchain, is_on_device_code: false, made, files, deadlines: None }
    }

    /// Has the front end run on what device code needs of the source. Nothing was made yet.
    pub fn on_device_code(self) -> Self {
        Self { is_on_device_code: true, ..self }
    }

    /// Returns whether the front end is run on what device code needs of the source.
    pub fn are_on_device_code(&self) -> bool {
        self.is_on_device_code
    }

    fn run(&self) -> impl Fn(&FrontEndOptions) -> FrontEndResult + Sync + use<'a> {
        let (toolchain, is_on_device_code) = (self.toolchain, self.is_on_device_code);
        move |options| match is_on_device_code {
            true => toolchain.front_end_on_device_code(options),
            false => toolchain.front_end_on_whole(options),
        }
    }

    /// The front end's output under a set that it was run for; `None` where it failed, too.
    pub fn made(&self, set: &FrontEndOptions) -> Option<&FrontEnd> {
        self.made.get(set)?.as_deref().ok()
    }

    /// The front end's output, or its error, under all sets so far.
    pub fn all(&self) -> HashMap<FrontEndOptions, FrontEndResult> {
        self.made.clone()
    }

    /// Has the front end run again, on the whole source. Returns what it made so far.
    pub fn begin_with_whole(&mut self) -> HashMap<FrontEndOptions, FrontEndResult> {
        self.is_on_device_code = false;
        let files: Vec<String> = self.files().cloned().collect();
        self.files.extend(files);
        std::mem::take(&mut self.made)
    }

    /// Goes on from what the front end made before [`Self::begin_with_whole`].
    pub fn end_with_whole(&mut self, made: HashMap<FrontEndOptions, FrontEndResult>) {
        self.is_on_device_code = true;
        self.made = made;
    }

    /// Tells whether the code is to be linked later.
    pub fn is_relocatable(&self) -> bool {
        self.toolchain.is_relocatable()
    }

    /// The files that the front end read.
    pub fn files(&self) -> impl Iterator<Item = &String> {
        self.files.iter().chain(self.made.values().flatten().flat_map(|made| &made.files))
    }

    /// Sets the deadlines of what is compiled from now on.
    pub fn set_deadlines(&mut self, deadlines: Option<CompileDeadlines>) {
        self.deadlines = deadlines;
    }

    /// Returns the deadline for variants. Their minimum time begins with the first call for
    /// several variants.
    fn deadline(&mut self, is_several: bool) -> Option<Instant> {
        let deadlines = self.deadlines.as_mut()?;
        let deadline = deadlines.variants.max(Instant::now() + deadlines.least);
        if is_several {
            (deadlines.variants, deadlines.least) = (deadline, Duration::ZERO);
        }
        Some(deadline)
    }

    /// As [`Self::get`], until the deadline: the first set in any case, then those that differ
    /// from it in the fewest values, evenly spread among these. The others get
    /// [`ToolError::OutOfTime`].
    pub fn get_in_time(&mut self, sets: &[FrontEndOptions]) -> Vec<FrontEndResult> {
        let mut order = compile_order(sets);
        order.retain(|(_, set)| !self.made.contains_key(*set));
        let (run, deadline) = (self.run(), self.deadlines.map(|deadlines| deadlines.front_ends));
        // A bridge gives them out in order.
        let made: Vec<(FrontEndOptions, FrontEndResult)> = order
            .into_iter()
            .par_bridge()
            .filter(|(index, _)| *index == 0 || !is_past(deadline))
            .map(|(_, set)| (set.clone(), run(set)))
            .collect();
        self.made.extend(made);
        let late = || Err(Arc::new(ToolError::OutOfTime));
        sets.iter().map(|set| self.made.get(set).cloned().unwrap_or_else(late)).collect()
    }

    /// Returns the front end's output for each of these sets; runs it in parallel for those that
    /// are missing.
    pub fn get(&mut self, sets: &[FrontEndOptions]) -> Vec<FrontEndResult> {
        let missing: Vec<&FrontEndOptions> = sets.iter().filter(|set| !self.made.contains_key(*set)).collect();
        let run = self.run();
        let made: Vec<(FrontEndOptions, FrontEndResult)> =
            missing.into_par_iter().map(|set| (set.clone(), run(set))).collect();
        self.made.extend(made);
        sets.iter().filter_map(|set| self.made.get(set).cloned()).collect()
    }
}

/// Returns sets in the order in which they are compiled, with the index of each: the first, then
/// those that differ from it in the fewest values, evenly spread among these.
pub fn compile_order(sets: &[FrontEndOptions]) -> Vec<(usize, &FrontEndOptions)> {
    let mut order: Vec<(usize, &FrontEndOptions)> = sets.iter().enumerate().collect();
    let changed = |set: &FrontEndOptions| {
        let of_first = |name: &String| sets[0].macros.get(name);
        let macros = set.macros.iter().filter(|(name, value)| of_first(name) != Some(value)).count();
        macros + usize::from(set.math != sets[0].math) + usize::from(set.unroll != sets[0].unroll)
    };
    // Multiples of the golden ratio lie evenly, however many of them are taken (Weyl).
    let place = |index: usize| (index as f64 * 0.618_033_988_749_895).fract();
    order.sort_by(|(a, set), (b, other)| changed(set).cmp(&changed(other)).then(place(*a).total_cmp(&place(*b))));
    order
}

fn is_past(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

/// The reason for a configuration whose unroll factor is predicted to be far slower.
const HOPELESS: &str = "not compiled: without a register cap, this factor is predicted to be far slower";

/// The reason for a configuration whose set of macros was screened out.
const NOT_COMPILED: &str = "not compiled: if nothing is timed, nvcc's own compile time bounds how much is";

/// Distinct machine code of one kernel.
#[derive(Clone)]
pub struct Variant {
    /// Values of the kernel's axes, with the first math options and unroll factor that give this
    /// code.
    pub options: FrontEndOptions,
    /// The kernel's name in this code.
    pub symbol: String,
    /// The register caps that give this code, ascending.
    pub caps: Vec<u32>,
    /// The first cache operator that gives this code: none, where none does.
    pub cache: Option<LoadCacheOperator>,
    pub digest: String,
    pub cubin: Arc<[u8]>,
}

/// The runs of ptxas for one set of options: each register cap with each cache operator.
pub struct PtxasRuns {
    pub caps: Vec<u32>,
    pub operators: Vec<Option<LoadCacheOperator>>,
}

impl PtxasRuns {
    /// Returns the runs of the first round ([`Edits::is_compiled_first`]); `None` if these are all,
    /// or lack the baseline.
    pub fn first_round(&self, baseline: Edits) -> Option<Self> {
        let is_compiled_first = |cap, cache| Edits { cap, cache, ..Edits::default() }.is_compiled_first(baseline);
        let (caps, operators) = (self.caps.iter().copied(), self.operators.iter().copied());
        let first_round = Self {
            caps: caps.filter(|&cap| is_compiled_first(cap, baseline.cache)).collect(),
            operators: operators.filter(|&cache| is_compiled_first(baseline.cap, cache)).collect(),
        };
        let is_part = first_round.caps.len() < self.caps.len() || first_round.operators.len() < self.operators.len();
        let has_baseline = first_round.caps.contains(&baseline.cap) && first_round.operators.contains(&baseline.cache);
        (is_part && has_baseline).then_some(first_round)
    }
}

/// Every variant of a kernel that was compiled.
#[derive(Default)]
pub struct Variants {
    pub all: Vec<Variant>,
    /// By the axes' options and the edits of the PTX: the index of the variant, or why there is
    /// none.
    by_key: HashMap<(FrontEndOptions, Edits), Result<usize, CompileFailure>>,
    /// The sets of options of which only the first round is compiled, as the model predicts them
    /// to be far slower.
    pub hopeless: Vec<FrontEndOptions>,
}

impl Variants {
    /// Compiles the missing variants of these sets of options under these register caps and cache
    /// operators. Passes the baseline's code to `first` as soon as it is compiled.
    pub fn compile(
        &mut self,
        front_ends: &mut FrontEnds<'_>,
        info: &KernelInfo<'_>,
        axes: &[FrontEndOptions],
        written: &PtxasRuns,
        first: OnBaselineCode<'_>,
    ) {
        let full: Vec<FrontEndOptions> = axes.iter().map(|set| info.options(set)).collect();
        let made = front_ends.get_in_time(&full);
        let same = first_with_same_ptx(info, axes, &made);
        let toolchain = front_ends.toolchain;
        let deadline = front_ends.deadline(axes.len() * written.caps.len() * written.operators.len() > 1);
        let baseline = info.baseline();
        let of_baseline = baseline.front_end();
        let jobs: Vec<(usize, Option<LoadCacheOperator>, Vec<u32>)> = (0..axes.len())
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
        let caps: Vec<Vec<u32>> = jobs.iter().map(|(_, _, caps)| caps.clone()).collect();
        let assembled = register_caps::assemble_all(&caps, &|job, cap| {
            let (set, cache, _) = &jobs[job];
            let is_baseline = axes[*set] == of_baseline && (cap, *cache) == (baseline.cap, baseline.cache);
            if !is_baseline && is_past(deadline) {
                return Err(CompileFailure::OutOfTime);
            }
            let refused = |error: &Arc<ToolError>| match **error {
                ToolError::OutOfTime => CompileFailure::OutOfTime,
                _ => CompileFailure::Source { options: full[*set].clone(), said: first_line(error) },
            };
            let front_end = made[*set].as_ref().map_err(refused)?;
            let symbol = info.entry(&axes[*set]).map_err(CompileFailure::Code)?.symbol.as_str();
            let edits = Edits { cap, cache: *cache, ..Edits::default() };
            let assembled = toolchain.assemble(&front_end.isolated_ptx(symbol), symbol, edits);
            progress::compiled(&info.annotation.name);
            let (cubin, digest) = assembled.map_err(|error| CompileFailure::Code(first_line(&error)))?;
            let assembly = Assembly::new(symbol, cubin, digest);
            if is_baseline {
                first(&assembly);
            }
            Ok(assembly)
        });
        for ((set, cache, caps), assembled) in jobs.into_iter().zip(assembled) {
            for (cap, result) in caps.into_iter().zip(assembled) {
                let edits = Edits { cap, cache, ..Edits::default() };
                let index = result.map(|assembly| self.insert(&axes[set], edits, assembly));
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
    fn insert(&mut self, options: &FrontEndOptions, Edits { cap, cache, .. }: Edits, assembly: Assembly) -> usize {
        let Assembly { symbol, cubin, digest, .. } = assembly;
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

/// Returns for each set of options the first one that has the same PTX and differs at most in the
/// unroll factor. ptxas is run for that one only.
fn first_with_same_ptx(info: &KernelInfo<'_>, axes: &[FrontEndOptions], made: &[FrontEndResult]) -> Vec<usize> {
    let without_factor = |set: usize| FrontEndOptions { unroll: None, ..axes[set].clone() };
    let code = |set: usize| {
        let module = ptx::Module::parse(&made[set].as_ref().ok()?.ptx).ok()?;
        module.canonical_text(&info.entry(&axes[set]).ok()?.symbol)
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

/// Returns the options that the front end is run with for a set of the axes' options. The
/// baseline's macros are omitted: the source has these values itself.
pub fn options_for(baseline: &Macros, set: &FrontEndOptions) -> FrontEndOptions {
    let macros = if set.macros == *baseline { Macros::new() } else { set.macros.clone() };
    FrontEndOptions { macros, ..set.clone() }
}
