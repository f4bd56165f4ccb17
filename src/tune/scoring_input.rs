//! The input of scoring: each configuration of a space with its launch, workload, machine code
//! and PTX.
//!
//! In: a kernel under tuning with its variants, or a recorded space (`record::RecordedSpace`).
//! Out: [`ScoringInput`]. Scoring depends on nothing else, so a recorded space is scored as a
//! compile scores it. Invariant: every index is in range.

use super::failure::Problem;
use super::kernel_info::KernelInfo;
use super::validity::{DoubtfulLaunch, Refusals};
use super::variants::{FrontEnds, Variant, Variants};
use super::written_variables;
use crate::analysis::grid_sync;
use crate::gpu::Machine;
use crate::launch::{Configuration, FrontEndOptions, Launch, MathOption};
use crate::model::{CALIBRATION, Calibration, Score};
use crate::ptx::{Destination, Edits, Module, Transplant, calls_by_address};
use crate::workload::{Entry, Workload, WrittenVariable};
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// A space and everything that its scores depend on. The vectors before `baseline` are parallel
/// to `configurations`.
pub struct ScoringInput {
    pub machine: Machine,
    /// The constants of the model.
    pub calibration: Calibration,
    pub configurations: Vec<Configuration>,
    pub launches: Vec<Launch>,
    pub workloads: Vec<Option<Arc<Workload>>>,
    /// Index into `codes`, or why there is none.
    pub variants: Vec<Result<usize, String>>,
    /// Whether only a comparison of its results can show that the configuration is correct.
    pub needs_comparison: Vec<bool>,
    /// Iterations that the comment gives for loops (its `trips` clause).
    pub trips: Vec<Vec<f64>>,
    /// Index into `sources`.
    pub source_of: Vec<usize>,
    /// Index of the baseline.
    pub baseline: usize,
    /// Whether all blocks of a launch must be resident at once.
    pub waits_for_grid: bool,
    /// For each configuration the first one with the same machine code and launch: they are one
    /// point for the search.
    pub representative: Vec<usize>,
    pub sources: Vec<VariantSource>,
    pub codes: Vec<Code>,
}

/// What the front end made under one set of options.
#[derive(Clone)]
pub struct VariantSource {
    /// The kernel's name in it.
    pub symbol: String,
    /// Whether the comment declares the kernel cooperative: its blocks wait for each other.
    pub is_declared_cooperative: bool,
    /// Without other kernels; `None` where the front end failed, or was not run.
    pub ptx: Option<Arc<str>>,
    /// The same with all kernels of the source.
    pub whole_ptx: Option<Arc<str>>,
}

/// The machine code of a variant.
#[derive(Clone)]
pub struct Code {
    /// The kernel's name in it.
    pub symbol: String,
    /// Digest of the code alone, without the rest of the cubin.
    pub digest: String,
    pub cubin: Arc<[u8]>,
}

impl VariantSource {
    /// Whether the kernel's blocks wait for each other.
    pub fn waits_for_grid(&self) -> bool {
        if self.is_declared_cooperative {
            return true;
        }
        // Hardly any kernel has it, and reading PTX takes a while.
        let ptx = self.ptx.as_deref().filter(|ptx| ptx.contains("%envreg"));
        ptx.and_then(|ptx| Module::parse(ptx).ok())
            .is_some_and(|module| grid_sync::waits_for_grid(&module, &self.symbol))
    }

    /// The variables that the kernel may write under these macros.
    fn written(&self, info: &KernelInfo<'_>) -> Vec<WrittenVariable> {
        // Hardly any kernel has one, and reading PTX takes a while.
        let ptx = self.ptx.as_deref().filter(|ptx| ptx.contains(".global .align"));
        let module = ptx.and_then(|ptx| Module::parse(ptx).ok());
        let entry = Entry { symbol: self.symbol.clone(), ..info.entry.clone() };
        module.map_or(Vec::new(), |module| written_variables::written(info.annotation, &entry, &module))
    }
}

impl ScoringInput {
    /// Collects the scoring input of a kernel under tuning. Configurations that must not be
    /// launched get the reason in place of their variant; `refusals` has those of earlier calls.
    pub(super) fn new(
        info: &KernelInfo<'_>,
        front_ends: &FrontEnds<'_>,
        variants: &Variants,
        refusals: &mut Refusals,
    ) -> Result<Self, Problem> {
        let mut configurations = info.space.searched();
        let baseline = info.baseline();
        let baseline = configurations.iter().position(|found| *found == baseline).unwrap_or_else(|| {
            configurations.push(baseline);
            configurations.len() - 1
        });
        let (sources, source_of) = sources(info, front_ends, &configurations);
        let written: Vec<_> = sources.par_iter().map(|source| source.written(info)).collect();
        let mut workloads: Vec<Option<Arc<Workload>>> = Vec::with_capacity(configurations.len());
        let mut launches = Vec::with_capacity(configurations.len());
        let mut known: Vec<Arc<Workload>> = Vec::new();
        let mut last_of: Vec<Option<usize>> = vec![None; sources.len()];
        for (index, configuration) in configurations.iter().enumerate() {
            // Arguments that do not follow the launch are the same for all of one source.
            let bound = last_of[source_of[index]].replace(index).filter(|_| info.launch_path.keeps_arguments());
            if let Some(bound) = bound {
                workloads.push(workloads[bound].clone());
                launches.push(info.space.launch(configuration)?);
                continue;
            }
            let (launch, workload) = info.launch(configuration)?;
            launches.push(launch);
            workloads.push(workload.map(|mut workload| {
                written_variables::extend(&mut workload.written, &written[source_of[index]]);
                match known.iter().find(|known| ***known == workload) {
                    Some(shared) => Arc::clone(shared),
                    None => {
                        known.push(Arc::new(workload));
                        Arc::clone(&known[known.len() - 1])
                    }
                }
            }));
        }
        let trips: Result<Vec<_>, _> = configurations.iter().map(|found| info.space.trip_counts(found)).collect();
        let mut of: Vec<Result<usize, String>> =
            configurations.iter().map(|configuration| variants.of(configuration)).collect();
        let baseline_launch = (&sources[source_of[baseline]], &launches[baseline], workloads[baseline].as_deref());
        if let Some(raced) = refusals.baseline_race(baseline_launch, info.has_shared_clause()) {
            return Err(Problem::Race(raced.to_owned()));
        }
        let transplants = transplants(info, front_ends, &sources, source_of[baseline]);
        let mut doubtful: Vec<usize> = Vec::new();
        for (index, variant) in of.iter_mut().enumerate().filter(|(index, _)| *index != baseline) {
            if variant.is_err() {
                continue;
            }
            let configuration = &configurations[index];
            let by_launch = info.launch_path.refusal(&info.space, configuration, &launches[index]);
            let by_entry = || transplants[source_of[index]].clone().err();
            let unproved = || info.launch_path.refuses_uncompared(&info.space, configuration, &launches[index]);
            match by_launch.or_else(by_entry).or_else(unproved) {
                Some(reason) => *variant = Err(reason),
                None => doubtful.push(index),
            }
        }
        // The order of the space gives a source the same number in each call.
        let doubtful_launches = doubtful.iter().map(|&index| DoubtfulLaunch {
            configuration: &configurations[index],
            number: source_of[index],
            source: &sources[source_of[index]],
            launch: &launches[index],
            workload: workloads[index].as_deref(),
        });
        let doubtful_launches: Vec<DoubtfulLaunch<'_>> = doubtful_launches.collect();
        let found = refusals.find(baseline_launch, &doubtful_launches, info.has_shared_clause());
        for (index, reason) in doubtful.into_iter().zip(found) {
            if let Some(reason) = reason {
                of[index] = Err(reason);
            }
        }
        let codes = variants.all.iter();
        let codes = codes.map(|Variant { symbol, digest, cubin, .. }| Code {
            symbol: symbol.clone(),
            digest: digest.clone(),
            cubin: Arc::clone(cubin),
        });
        let representative = representatives(&of, &launches, baseline);
        let needs_comparison = |index: usize| {
            index != baseline && info.refuses_predicted(&configurations[index], &launches[index]).is_some()
        };
        let needs_comparison = (0..configurations.len()).map(needs_comparison).collect();
        Ok(Self {
            machine: info.machine,
            calibration: CALIBRATION,
            representative,
            configurations,
            launches,
            workloads,
            variants: of,
            needs_comparison,
            trips: trips?,
            source_of,
            baseline,
            waits_for_grid: info.waits_for_grid,
            sources,
            codes: codes.collect(),
        })
    }
}

/// Returns why a configuration that an earlier nvtune chose must not be launched, by the rules of
/// [`ScoringInput::new`]. The front end has been run under its macros; what only ptxas knows is
/// not considered.
pub(super) fn refusal(
    info: &KernelInfo<'_>,
    front_ends: &FrontEnds<'_>,
    configuration: &Configuration,
) -> Option<String> {
    let baseline = info.baseline();
    if *configuration == baseline {
        return None;
    }
    let (launch, workload) = info.launch(configuration).ok()?;
    let (before, baseline_launch) = info.launch(&baseline).ok()?;
    let launch_path = &info.launch_path;
    let reason = launch_path.refusal(&info.space, configuration, &launch);
    let reason = reason.or_else(|| launch_path.refuses_uncompared(&info.space, configuration, &launch));
    reason.or_else(|| {
        let (sources, source_of) = sources(info, front_ends, &[configuration.clone(), baseline]);
        let [source, of_baseline] = [0, 1].map(|of| &sources[source_of[of]]);
        let by_entry = transplants(info, front_ends, &sources, source_of[1]).swap_remove(source_of[0]).err();
        let (number, launch, workload) = (source_of[0], &launch, workload.as_ref());
        let doubtful = DoubtfulLaunch { configuration, number, source, launch, workload };
        let baseline = (of_baseline, &before, baseline_launch.as_ref());
        let (mut refusals, has_shared) = (Refusals::default(), info.has_shared_clause());
        let by_race =
            || refusals.baseline_race(baseline, has_shared).map(|raced| Problem::Race(raced.to_owned()).to_string());
        let by_entry = by_entry.or_else(by_race);
        by_entry.or_else(|| refusals.find(baseline, &[doubtful], has_shared).pop().flatten())
    })
}

impl ScoringInput {
    /// Returns the coordinates of a configuration for [`crate::search`]: logarithms of threads,
    /// blocks and macros, so that 32 to 64 is as far as 512 to 1024. Registers and threads in
    /// flight stand for the cap, since a cap that does not bind changes nothing.
    pub fn coordinates(&self, index: usize, score: &Score) -> Vec<f64> {
        let Configuration { grid, macros, cache, carveout, math, unroll, .. } = &self.configurations[index];
        let launch = &self.launches[index];
        let [x, y, z] = launch.block.map(f64::from);
        let mut coordinates =
            vec![(x * y * z).log2(), x.log2(), (y * z).log2(), f64::from(score.registers).log2(), score.in_flight];
        if grid.is_some() {
            coordinates.push((launch.blocks() as f64).log2());
        }
        // What is left to the driver or to nvcc is not among the values.
        coordinates.push(cache.map_or(0.0, |operator| 1.0 + f64::from(operator as u8)));
        coordinates.push(carveout.map_or(-10.0, f64::from));
        coordinates.extend(MathOption::ALL.map(|(_, option)| f64::from(u8::from(math.contains(option)))));
        // nvcc's own factor is 4 where it unrolls a loop whose count is not known.
        coordinates.push(f64::from(unroll.unwrap_or(4)).log2());
        // A macro may be 0 or negative.
        let logarithm = |value: i64| (1.0 + value.unsigned_abs() as f64).log2().copysign(value as f64);
        coordinates.extend(macros.values().map(|&value| logarithm(value)));
        coordinates
    }
}

/// Tells for each source whether its entry can be put into the module of the source `baseline`.
fn transplants(
    info: &KernelInfo<'_>,
    front_ends: &FrontEnds<'_>,
    sources: &[VariantSource],
    baseline: usize,
) -> Vec<Result<(), String>> {
    let host = &sources[baseline];
    let is_possible = |(number, source): (usize, &VariantSource)| {
        let (Some(host_ptx), Some(ptx)) = (&host.whole_ptx, &source.whole_ptx) else { return Ok(()) };
        let destination = info.launch_path.destination();
        if number == baseline {
            return Ok(());
        }
        // ptxas looks at all functions of a module to see where such calls lead: copies of
        // functions change the code.
        let is_closed = destination == Destination::Added && !front_ends.is_relocatable();
        if is_closed && calls_by_address(ptx, &source.symbol).unwrap_or(true) {
            return Err(
                "it calls functions by address, which would lead to other functions under these macros".to_owned()
            );
        }
        let made = Transplant::new((host_ptx, &host.symbol), (ptx, &source.symbol), Edits::default(), destination);
        made.map(drop).map_err(|error| error.to_string())
    };
    sources.par_iter().enumerate().map(is_possible).collect()
}

/// Returns for each configuration the first one with the same machine code and launch. The
/// baseline represents all that equal it, so that it is the one that is timed.
pub fn representatives(variants: &[Result<usize, String>], launches: &[Launch], baseline: usize) -> Vec<usize> {
    let mut first: HashMap<(usize, Launch), usize> = HashMap::new();
    for index in std::iter::once(baseline).chain(0..variants.len()) {
        if let Ok(variant) = variants[index] {
            first.entry((variant, launches[index])).or_insert(index);
        }
    }
    let of = |(index, variant): (usize, &Result<usize, String>)| {
        variant.as_ref().ok().and_then(|&variant| first.get(&(variant, launches[index]))).copied().unwrap_or(index)
    };
    variants.iter().enumerate().map(of).collect()
}

/// The front end's output for each set of the axes' options, and which one is each
/// configuration's.
fn sources(
    info: &KernelInfo<'_>,
    front_ends: &FrontEnds<'_>,
    configurations: &[Configuration],
) -> (Vec<VariantSource>, Vec<usize>) {
    let mut numbers: HashMap<FrontEndOptions, usize> = HashMap::new();
    let mut sets: Vec<FrontEndOptions> = Vec::new();
    let mut of = Vec::with_capacity(configurations.len());
    for configuration in configurations {
        of.push(*numbers.entry(configuration.front_end()).or_insert_with_key(|set| {
            sets.push(set.clone());
            sets.len() - 1
        }));
    }
    let source = |set: &FrontEndOptions| {
        let made = front_ends.made(&info.options(set));
        let symbol = info.entry(set).unwrap_or(&info.entry).symbol.clone();
        VariantSource {
            is_declared_cooperative: info.annotation.clauses.cooperative,
            ptx: made.map(|made| made.isolated_ptx(&symbol)),
            whole_ptx: made.map(|made| Arc::clone(&made.ptx)),
            symbol,
        }
    };
    let sources = sets.iter().map(source);
    (sources.collect(), of)
}
