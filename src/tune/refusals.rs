//! The code of a space's configurations -> why launches in some blocks are refused, whatever is timed, and which the model must not choose.

use super::laid::{Laid, Source};
use super::reach::Blocks;
use super::subject::Subject;
use super::{astray, facts};
use crate::ptx::Module;
use crate::space::{Configuration, Dim3, Launch};
use crate::workload::{Fill, Workload};
use std::collections::HashMap;

/// What the code says against launches in blocks of some shape.
pub struct Refusals<'a> {
    subject: &'a Subject<'a>,
    /// By number of the source.
    modules: HashMap<usize, Option<Module>>,
    /// By number of the source, block, and whether the grid is an axis, which all of it hangs on.
    known: HashMap<(usize, Dim3, bool), Option<String>>,
}

impl<'a> Refusals<'a> {
    /// For a kernel.
    pub fn new(subject: &'a Subject<'a>) -> Self {
        Self { subject, modules: HashMap::new(), known: HashMap::new() }
    }

    /// Why a configuration must not be launched so.
    pub fn refusal(
        &mut self,
        configuration: &Configuration,
        (number, source): (usize, &Source),
        (launch, workload): (&Launch, Option<&Workload>),
    ) -> Option<String> {
        let key = (number, configuration.block, configuration.grid.is_some());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let module = self.modules.entry(number);
        let module = module.or_insert_with(|| Module::parse(source.ptx.as_deref()?).ok());
        let run = module.as_ref().zip(workload);
        // Where the grid is an axis, it is the winner's.
        let blocks = configuration.grid.is_none().then(|| {
            let Subject { reach, space, .. } = self.subject;
            reach.blocks(space, configuration, launch)
        });
        let undivided = blocks.and_then(|blocks| undivided(blocks, &source.symbol, run));
        let says_how_much = self.subject.annotation.shared.is_some();
        let refusal = undivided.or_else(|| astray::refusal(&source.symbol, launch, run?, says_how_much));
        self.known.insert(key, refusal.clone());
        refusal
    }
}

/// What a program that knows nothing of the macros by which the work is divided would leave undone, or do beyond it.
fn undivided(blocks: Blocks, symbol: &str, run: Option<(&Module, &Workload)>) -> Option<String> {
    match blocks {
        Blocks::Asked => None,
        Blocks::Lacking(reason) => Some(reason),
        Blocks::Beyond { launch, needed, reason } => {
            let is_left = |(module, workload)| facts::leaves_beyond(module, symbol, &launch, workload, needed);
            (!run.is_none_or(is_left)).then_some(reason)
        }
    }
}

/// How much the threads of a space's launches store at most, by source.
pub struct Stores<'a> {
    laid: &'a Laid,
    of_thread: Vec<Option<u64>>,
}

impl<'a> Stores<'a> {
    /// Looks at the sources that have workloads to write.
    pub fn of(laid: &'a Laid) -> Self {
        let stored = |source: &Source| {
            let module = Module::parse(source.ptx.as_deref()?).ok()?;
            facts::stored_by(&module, &source.symbol)
        };
        let has_workload = laid.workloads.iter().any(Option::is_some);
        let of_thread = laid.sources.iter().map(|source| has_workload.then(|| stored(source)).flatten());
        Self { laid, of_thread: of_thread.collect() }
    }

    /// That a configuration cannot fill a buffer that is there to be written and that the baseline's threads can fill.
    pub fn left_empty(&self, index: usize) -> Option<String> {
        let laid = self.laid;
        let most = |of: usize| Some(laid.launches[of].threads().saturating_mul(self.of_thread[laid.source_of[of]]?));
        let (own, natural) = (most(index)?, most(laid.baseline)?);
        let outputs = |of: usize| {
            let buffers = laid.workloads[of].iter().flat_map(|workload| &workload.buffers);
            buffers.filter(|buffer| buffer.fill == Fill::Poison)
        };
        let is_filled = |name: &str| outputs(laid.baseline).any(|of| of.name == name && of.bytes() <= natural);
        let left = outputs(index).find(|buffer| buffer.bytes() > own && is_filled(&buffer.name))?;
        Some(format!(
            "its threads store {own} bytes at most, and `{}` has {}: let the grid follow the block, as in threads(n)",
            left.name,
            left.bytes()
        ))
    }
}
