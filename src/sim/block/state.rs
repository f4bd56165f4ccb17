//! The state that the warps of a block share: memory and barriers; and the record of a warp's
//! accesses.

use crate::sim::access::StepExecutions;
use crate::sim::masked_memory::MaskedMemory;
use crate::sim::memory::Initial;
use crate::sim::memory::Overlay;
use crate::sim::memory::region_of;
use crate::sim::program::Reduction;
use crate::sim::program::Slot;
use crate::sim::request::Request;

/// The recorded accesses of a warp.
#[derive(Default)]
pub(crate) struct Recording {
    pub(super) window: u32,
    pub(super) requests: Vec<Request>,
    pub(super) executions: Vec<StepExecutions>,
}

impl Recording {
    /// Counts an execution of a step by this many lanes; tells whether it is to be recorded.
    pub(super) fn count_execution(&mut self, step: u32, lanes: u32) -> bool {
        let Some(executions) = self.executions.get_mut(step as usize) else { return false };
        executions.accumulate(StepExecutions { count: 1.0, lanes: f64::from(lanes.count_ones()) });
        executions.count <= f64::from(self.window)
    }
}

/// Barriers that a block has.
pub(crate) const BARRIERS: usize = 16;

/// The state of one barrier.
#[derive(Default)]
pub(crate) struct Barrier {
    /// The waiting lanes by warp, with the slot for what is reduced.
    pub(super) waiting: Vec<(u32, u32, Slot)>,
    pub(super) arrived: u32,
    /// Number of threads that the instruction waits for, if it gives one.
    pub(super) expected: Option<u32>,
    pub(super) reduction: Option<Reduction>,
    pub(super) holding: u32,
    pub(super) unknown: bool,
}

/// Memory and barriers of a block.
pub(crate) struct State<'p> {
    pub(super) initial: &'p Initial<'p>,
    pub(super) shared: MaskedMemory,
    pub(super) global: Overlay,
    /// Regions of global memory that were written.
    pub(super) regions: Vec<u64>,
    pub(super) barriers: [Barrier; BARRIERS],
}

impl<'p> State<'p> {
    pub(super) fn read_global(&self, address: u64, size: u32) -> (u64, bool) {
        let (below, below_unknown) = self.initial.read_global(address, size);
        if !self.regions.contains(&region_of(address)) {
            return (below, below_unknown);
        }
        let (value, whole, unknown) = self.global.read_over(address, size, below);
        (value, unknown || below_unknown && !whole)
    }

    pub(super) fn set_global(&mut self, address: u64, size: u32, value: u64, unknown: bool) {
        if !self.regions.contains(&region_of(address)) {
            self.regions.push(region_of(address));
        }
        self.global.write_bits(address, size, value, unknown);
    }
}
