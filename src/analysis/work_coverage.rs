//! Whether each thread of a kernel has a share of the work of its own, so that a launch of fewer leaves some undone.
//!
//! In: PTX, and launches. Out: the reason not to choose one of too few threads where nothing is timed. What always holds: what is not certain
//! is not told.

use super::ptx_facts::reads;
use crate::launch::{Configuration, DIMENSIONS, Launch};
use crate::ptx::opcode::Class;
use crate::ptx::{Body, Module};
use crate::space::{Counted, Space};

/// By dimension: the kernel knows its threads, and not how many blocks of them there are. For kernels that know them by their position alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shares([bool; 3]);

impl Shares {
    /// None where the kernel may hand out its work by atomics, or in functions that it calls.
    pub fn of(module: &Module, symbol: &str) -> Self {
        let body = module.entry(symbol).and_then(|entry| entry.body.as_ref());
        let is_certain =
            |body: &&Body| !body.instructions().any(|found| found.is_call() || found.opcode.class() == Class::Atomic);
        let Some(body) = body.filter(is_certain) else { return Self::default() };
        Self([".x", ".y", ".z"].map(|dimension| {
            let reads = |register: &str| reads(body, register, dimension);
            reads("%tid") && reads("%ctaid") && !reads("%nctaid")
        }))
    }

    /// That a launch has fewer threads than the one that is `made` of the baseline under the same macros; with the remedy.
    pub fn left_undone(
        self,
        space: &Space,
        configuration: &Configuration,
        launch: &Launch,
        made: impl Fn(&Configuration) -> Option<Launch>,
    ) -> Option<String> {
        if self.0 == [false; 3] {
            return None;
        }
        let like_baseline = Configuration { macros: configuration.macros.clone(), ..space.baseline().clone() };
        let (before, after) = (threads(&made(&like_baseline)?), threads(launch));
        let at = (0..3).find(|&at| self.0[at] && after[at] < before[at])?;
        // A grid that the block counts, itself or as a macro that is tied to it, covers what there is to do, whatever is left over.
        let tied = space.tied_macros();
        let is_counted = |of: usize| {
            let Counted { block, macros, .. } = space.counted_by(of);
            block[at] || macros.iter().any(|name| tied.contains(name))
        };
        if configuration.grid.is_none() && (0..3).any(is_counted) {
            return None;
        }
        let name = DIMENSIONS[at];
        Some(format!(
            "fewer threads in {name} than the baseline's would do less, for the kernel asks for no gridDim.{name}: let the grid follow the block, as in threads(n) or grid(ceildiv(n, block.{name}))"
        ))
    }
}

/// The threads of a launch in x, y and z.
pub fn threads(launch: &Launch) -> [u64; 3] {
    std::array::from_fn(|at| u64::from(launch.grid[at]) * u64::from(launch.block[at]))
}
