//! Whether each thread of a kernel has a share of the work of its own, so that a launch of
//! fewer leaves some undone.
//!
//! In: PTX, and launches. Out: the reason not to choose one of too few threads where nothing is
//! timed. Invariant: only what is certain is reported.

use super::ptx_facts::reads_register;
use crate::launch::{Configuration, DIMENSIONS, Launch};
use crate::ptx::opcode::Class;
use crate::ptx::{Body, Module};
use crate::space::{GridFactors, Space};

/// By dimension: the kernel knows its threads, and not how many blocks of them there are. For
/// kernels that know them by their position alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shares([bool; 3]);

impl Shares {
    /// Finds how a kernel shares out its work. Returns none if it may do so by atomics or
    /// in functions that it calls.
    pub fn of_kernel(module: &Module, symbol: &str) -> Self {
        let body = module.entry(symbol).and_then(|entry| entry.body.as_ref());
        let is_certain =
            |body: &&Body| !body.instructions().any(|found| found.is_call() || found.opcode.class() == Class::Atomic);
        let Some(body) = body.filter(is_certain) else { return Self::default() };
        Self([".x", ".y", ".z"].map(|dimension| {
            let reads = |register: &str| reads_register(body, register, dimension);
            reads("%tid") && reads("%ctaid") && !reads("%nctaid")
        }))
    }

    /// That a launch has fewer threads than the one that is `made` of the baseline under the
    /// same macros; with the remedy.
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
        let (before, after) = (threads_by_dimension(&made(&like_baseline)?), threads_by_dimension(launch));
        let at = (0..3).find(|&at| self.0[at] && after[at] < before[at])?;
        // A grid that the block counts, itself or as a macro that is tied to it, covers what there
        // is to do, whatever is left over.
        let tied = space.tied_macros();
        let is_counted = |of: usize| {
            let GridFactors { block, macros, .. } = space.counted_by(of);
            block[at] || macros.iter().any(|name| tied.contains(name))
        };
        if configuration.grid.is_none() && (0..3).any(is_counted) {
            return None;
        }
        let name = DIMENSIONS[at];
        Some(format!(
            "fewer threads in {name} do less, as no gridDim.{name} is read: let the grid follow the block, as in threads(n)"
        ))
    }
}

/// Returns the threads of a launch in x, y and z.
pub fn threads_by_dimension(launch: &Launch) -> [u64; 3] {
    std::array::from_fn(|at| u64::from(launch.grid[at]) * u64::from(launch.block[at]))
}

#[cfg(test)]
mod tests {
    use super::Shares;
    use crate::ptx::Module;

    #[test]
    fn kernel_that_hands_out_work_by_atomics_has_no_shares() {
        let shares = |handed_out: &str| {
            let text = format!(
                ".version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .u64 a) {{\n\
                 .reg .b32 %r<9>; .reg .b64 %rd<9>;\nld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n\
                 {handed_out}\nst.global.u32 [%rd1], %r1;\nret;\n}}\n"
            );
            Shares::of_kernel(&Module::parse(&text).expect("PTX"), "k").0
        };
        assert_eq!(shares("add.u32 %r3, %r1, %r2;"), [true, false, false]);
        assert_eq!(shares("atom.global.add.u32 %r3, [%rd1], 1;"), [false; 3]);
    }
}
