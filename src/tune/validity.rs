//! Checks the code of a space's configurations: finds launches that are refused because they
//! access memory out of bounds or assume another block, and launches that do less work than the
//! baseline, which the model must not choose.

use super::scoring::Scored;
use super::scoring_input::VariantSource;
use crate::analysis::{memory_check, ptx_facts};
use crate::launch::{Configuration, Dim3, Launch};
use crate::ptx::Module;
use crate::space::Overrun;
use crate::workload::{Fill, Workload};
use rayon::prelude::*;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// A source with a launch of its kernel, and the workload of that.
pub type Launched<'a> = (&'a VariantSource, &'a Launch, Option<&'a Workload>);

/// A launch that may be refused.
pub struct DoubtfulLaunch<'a> {
    pub configuration: &'a Configuration,
    /// The number of its source, which is the same in all calls of one [`Refusals`].
    pub number: usize,
    pub source: &'a VariantSource,
    pub launch: &'a Launch,
    pub workload: Option<&'a Workload>,
}

/// The reasons why launches of a kernel are refused, kept for later calls.
#[derive(Default)]
pub struct Refusals {
    /// By number of the source; `None` where its PTX is not understood.
    modules: HashMap<usize, Option<Module>>,
    /// By number of the source, block, and whether the grid is an axis.
    by_block: HashMap<(usize, Dim3, bool), Option<String>>,
    /// By number of the source and launch.
    overruns: HashMap<(usize, Launch), Vec<Overrun>>,
    /// The buffers that the baseline itself overruns, once that was asked for: the comment gives
    /// them a wrong size.
    baseline_overruns: OnceCell<Vec<String>>,
    /// What the baseline's own warps race on, once that was asked for.
    baseline_race: OnceCell<Option<String>>,
}

impl Refusals {
    /// Returns what the baseline's warps race on.
    pub fn baseline_race(&self, (source, launch, workload): Launched<'_>, has_shared: bool) -> Option<&str> {
        let find = || {
            let (module, workload) = parsed(source).zip(workload)?;
            memory_check::shared_race(&source.symbol, launch, (&module, workload), has_shared)
        };
        self.baseline_race.get_or_init(find).as_deref()
    }

    /// Returns why each of these must not be launched. `has_shared`: whether the comment says how
    /// much shared memory a launch has.
    pub fn find(
        &mut self,
        baseline: Launched<'_>,
        launches: &[DoubtfulLaunch<'_>],
        has_shared: bool,
    ) -> Vec<Option<String>> {
        let by_source = launches.iter().map(|doubtful| (doubtful.number, doubtful));
        add_missing(&mut self.modules, by_source, |doubtful| parsed(doubtful.source));
        let module_of = |number: usize| self.modules.get(&number).and_then(Option::as_ref);
        let may_overrun = |doubtful: &&DoubtfulLaunch<'_>| doubtful.launch.threads() > baseline.1.threads();
        let by_launch = launches.iter().filter(may_overrun).map(|doubtful| (doubtful.overrun_key(), doubtful));
        add_missing(&mut self.overruns, by_launch, |&DoubtfulLaunch { number, source, launch, workload, .. }| {
            let run = module_of(number).zip(workload);
            run.map_or(Vec::new(), |(module, workload)| {
                memory_check::last_beyond_buffers(module, &source.symbol, (launch, workload))
            })
        });
        let overrun = |doubtful: &DoubtfulLaunch<'_>| {
            let mut overruns = self.overruns.get(&doubtful.overrun_key())?.iter();
            let own = || self.baseline_overruns.get_or_init(|| overrun_buffers(baseline));
            let Overrun { buffer, has, .. } = overruns.find(|overrun| !own().contains(&overrun.buffer))?;
            Some(format!(
                "more threads reach beyond `{buffer}` ({has} elements): make it longer in program and comment, as in out[grid.x * block.x]"
            ))
        };
        let overruns: Vec<Option<String>> = launches.iter().map(overrun).collect();
        let others = launches.iter().zip(&overruns).filter(|(_, overrun)| overrun.is_none());
        let by_block = others.map(|(doubtful, _)| (doubtful.block_key(), doubtful));
        add_missing(&mut self.by_block, by_block, |&DoubtfulLaunch { number, source, launch, workload, .. }| {
            memory_check::explain_refusal(&source.symbol, launch, module_of(number).zip(workload)?, has_shared)
        });
        let of_block = |doubtful: &DoubtfulLaunch<'_>| self.by_block.get(&doubtful.block_key()).cloned().flatten();
        overruns.into_iter().zip(launches).map(|(overrun, doubtful)| overrun.or_else(|| of_block(doubtful))).collect()
    }
}

impl DoubtfulLaunch<'_> {
    fn overrun_key(&self) -> (usize, Launch) {
        (self.number, *self.launch)
    }

    fn block_key(&self) -> (usize, Dim3, bool) {
        (self.number, self.configuration.block, self.configuration.grid.is_some())
    }
}

/// Finds in parallel what is not known yet, of the first launch with each key.
fn add_missing<'l, 'a: 'l, K: Clone + Eq + Hash + Send, V: Send>(
    known: &mut HashMap<K, V>,
    launches: impl Iterator<Item = (K, &'l DoubtfulLaunch<'a>)>,
    find: impl Fn(&DoubtfulLaunch<'a>) -> V + Sync,
) {
    let mut seen = HashSet::new();
    let missing = launches.filter(|(key, _)| !known.contains_key(key) && seen.insert(key.clone()));
    let missing: Vec<(K, &DoubtfulLaunch<'a>)> = missing.collect();
    known.extend(missing.into_par_iter().map(|(key, doubtful)| (key, find(doubtful))).collect::<Vec<_>>());
}

fn parsed(source: &VariantSource) -> Option<Module> {
    Module::parse(source.ptx.as_deref()?).ok()
}

/// Returns the buffers that a launch overruns.
fn overrun_buffers((source, launch, workload): Launched<'_>) -> Vec<String> {
    let run = parsed(source).zip(workload);
    let found = run.map(|(module, workload)| memory_check::beyond_buffers(&module, &source.symbol, (launch, workload)));
    found.into_iter().flatten().map(|overrun| overrun.buffer).collect()
}

/// Minimum share of the baseline's bytes that a configuration must write. A profile of a part
/// of the grid is off by less.
const SAME_WORK: f64 = 0.99;

/// Finds launches that write less than the baseline's.
pub struct Stores<'a> {
    scored: &'a Scored,
    /// Maximum number of bytes that a thread stores, by source.
    bytes_per_thread: Vec<Option<u64>>,
}

impl<'a> Stores<'a> {
    /// Looks at the sources that have workloads to write.
    pub fn new(scored: &'a Scored) -> Self {
        let input = &scored.input;
        let stored = |source: &VariantSource| {
            let module = Module::parse(source.ptx.as_deref()?).ok()?;
            ptx_facts::stored_by(&module, &source.symbol)
        };
        let has_workload = input.workloads.iter().any(Option::is_some);
        let bytes_per_thread = input.sources.iter().map(|source| has_workload.then(|| stored(source)).flatten());
        Self { scored, bytes_per_thread: bytes_per_thread.collect() }
    }

    /// Returns why a configuration does less work than the baseline, by what its threads can
    /// store and by what the model saw them write.
    pub fn undone_work(&self, index: usize) -> Option<String> {
        self.empty_buffer(index).or_else(|| self.fewer_bytes(index))
    }

    /// Finds a buffer that is there to be written and that the baseline's threads can fill, and
    /// the configuration's cannot.
    fn empty_buffer(&self, index: usize) -> Option<String> {
        let input = &self.scored.input;
        let most =
            |of: usize| Some(input.launches[of].threads().saturating_mul(self.bytes_per_thread[input.source_of[of]]?));
        let (own, baseline_most) = (most(index)?, most(input.baseline)?);
        let outputs = |of: usize| {
            let buffers = input.workloads[of].iter().flat_map(|workload| &workload.buffers);
            buffers.filter(|buffer| buffer.fill == Fill::Poison)
        };
        let is_filled = |name: &str| outputs(input.baseline).any(|of| of.name == name && of.bytes() <= baseline_most);
        let left = outputs(index).find(|buffer| buffer.bytes() > own && is_filled(&buffer.name))?;
        Some(format!(
            "its threads store at most {own} of `{}`'s {} bytes: let the grid follow the block, as in threads(n)",
            left.name,
            left.bytes()
        ))
    }

    /// Finds a buffer of the same size in both launches to which the configuration writes fewer
    /// bytes.
    fn fewer_bytes(&self, index: usize) -> Option<String> {
        let Scored { input, written, .. } = self.scored;
        let (bytes, baseline_bytes) = (written[index].as_ref()?, written[input.baseline].as_ref()?);
        let buffer = |of: usize, number: u32| input.workloads[of].as_ref()?.buffers.get(number as usize);
        baseline_bytes.iter().find_map(|(&number, &expected)| {
            let (buffer, baseline_buffer) = (buffer(index, number)?, buffer(input.baseline, number)?);
            let bytes = bytes.get(&number).copied().unwrap_or(0.0);
            let is_less = buffer.bytes() == baseline_buffer.bytes() && bytes < expected * SAME_WORK;
            is_less.then(|| {
                format!(
                    "it writes {bytes:.0} bytes to `{}`, and the baseline {expected:.0}: let the grid follow the block and the macros, as in threads(n)",
                    buffer.name
                )
            })
        })
    }
}
