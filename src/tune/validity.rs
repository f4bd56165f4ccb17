//! Checks the code of a space's configurations: finds launches that are refused because they
//! access memory out of bounds or assume another block, and launches that do less work than the
//! baseline, which the model must not choose.

use super::kernel_info::KernelInfo;
use super::scoring::Scored;
use super::scoring_input::VariantSource;
use crate::analysis::{memory_check, ptx_facts};
use crate::launch::{Configuration, Dim3, Launch};
use crate::ptx::Module;
use crate::space::Overrun;
use crate::workload::{Fill, Workload};
use std::cell::OnceCell;
use std::collections::HashMap;

/// A source with a launch of its kernel, and the workload of that.
pub type Launched<'a> = (&'a VariantSource, &'a Launch, Option<&'a Workload>);

/// Finds and caches the reasons why launches are refused.
pub struct Refusals<'a> {
    info: &'a KernelInfo<'a>,
    baseline: Launched<'a>,
    /// By number of the source.
    modules: HashMap<usize, Option<Module>>,
    /// By number of the source, block, and whether the grid is an axis.
    known: HashMap<(usize, Dim3, bool), Option<String>>,
    /// Out-of-bounds accesses, by number of the source and launch.
    overruns: HashMap<(usize, Launch), Option<String>>,
    /// The buffers that the baseline itself overruns, once that was asked for: the comment gives
    /// them a wrong size.
    baseline_overruns: OnceCell<Vec<String>>,
}

impl<'a> Refusals<'a> {
    /// For a kernel, and how its baseline is launched.
    pub fn new(info: &'a KernelInfo<'a>, baseline: Launched<'a>) -> Self {
        let (modules, known, overruns) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { info, baseline, modules, known, overruns, baseline_overruns: OnceCell::new() }
    }

    /// Why a configuration must not be launched so.
    pub fn refusal(
        &mut self,
        configuration: &Configuration,
        (number, source): (usize, &VariantSource),
        (launch, workload): (&Launch, Option<&Workload>),
    ) -> Option<String> {
        let module = self.modules.entry(number).or_insert_with(|| parsed(source));
        let run = module.as_ref().zip(workload);
        let (_, before, _) = self.baseline;
        if let Some((module, workload)) = run.filter(|_| launch.threads() > before.threads()) {
            let overruns = self.overruns.entry((number, *launch)).or_insert_with(|| {
                let baseline_overruns = || self.baseline_overruns.get_or_init(|| baseline_overruns(self.baseline));
                let mut found = memory_check::last_beyond_buffers(module, &source.symbol, (launch, workload)).into_iter();
                let Overrun { buffer, has, .. } = found.find(|overrun| !baseline_overruns().contains(&overrun.buffer))?;
                Some(format!(
                    "more threads reach beyond `{buffer}` ({has} elements): make it longer in program and comment, as in out[grid.x * block.x]"
                ))
            });
            if overruns.is_some() {
                return overruns.clone();
            }
        }
        let key = (number, configuration.block, configuration.grid.is_some());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let says_how_much = self.info.annotation.clauses.shared.is_some();
        let refusal = memory_check::explain_refusal(&source.symbol, launch, run?, says_how_much);
        self.known.insert(key, refusal.clone());
        refusal
    }
}

fn parsed(source: &VariantSource) -> Option<Module> {
    Module::parse(source.ptx.as_deref()?).ok()
}

/// Returns the buffers that a launch overruns.
fn baseline_overruns((source, launch, workload): Launched<'_>) -> Vec<String> {
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
