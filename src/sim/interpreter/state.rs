//! The state that the warps of a block share: memory and barriers; and the record of a warp's
//! accesses.

use super::context::LaunchContext;
use super::race_watch::RaceWatch;
use crate::sim::masked_memory::MaskedMemory;
use crate::sim::memory::Initial;
use crate::sim::memory::Overlay;
use crate::sim::memory::region_of;
use crate::sim::program::Reduction;
use crate::sim::program::Slot;
use crate::sim::request::{Request, StepExecutions};

/// The recorded accesses of a warp.
#[derive(Default)]
pub(super) struct Recording<const N: usize> {
    /// Executions of each step to record.
    pub window: u32,
    pub requests: Vec<Request<N>>,
    pub executions: Vec<StepExecutions>,
}

impl<const N: usize> Recording<N> {
    /// Records the accesses of `steps` steps.
    pub fn new(window: u32, steps: usize) -> Self {
        Self { window, requests: Vec::new(), executions: vec![StepExecutions::default(); steps] }
    }

    /// Counts an execution of a step by this many lanes; tells whether it is to be recorded.
    pub fn count_execution(&mut self, step: u32, lanes: u32) -> bool {
        let Some(executions) = self.executions.get_mut(step as usize) else { return false };
        executions.accumulate(StepExecutions { count: 1.0, lanes: f64::from(lanes.count_ones()) });
        executions.count <= f64::from(self.window)
    }
}

/// Barriers that a block has.
pub(super) const BARRIERS: usize = 16;

/// The state of one barrier.
#[derive(Default)]
pub(super) struct Barrier {
    /// The waiting lanes by warp, with the slot for what is reduced.
    pub waiting: Vec<(u32, u32, Slot)>,
    pub arrived: u32,
    /// Number of threads that the instruction waits for, if it gives one.
    pub expected: Option<u32>,
    pub reduction: Option<Reduction>,
    pub holding: u32,
    pub unknown: bool,
}

/// Memory and barriers of a block.
pub(super) struct State<'p> {
    initial: &'p Initial<'p>,
    pub shared: MaskedMemory,
    pub global: Overlay,
    /// Regions of global memory that were written.
    pub regions: Vec<u64>,
    pub barriers: [Barrier; BARRIERS],
    /// Where races are looked for, and all barriers so far were those of the whole block.
    pub races: Option<RaceWatch>,
}

impl<'p> State<'p> {
    /// The state before the block begins.
    pub fn new(context: &LaunchContext<'p>) -> Self {
        Self {
            initial: context.initial,
            shared: MaskedMemory::new(context.shared_bytes()),
            global: Overlay::default(),
            regions: Vec::new(),
            barriers: Default::default(),
            races: None,
        }
    }

    pub fn read_global(&self, address: u64, size: u32) -> (u64, bool) {
        let (below, below_unknown) = self.initial.read_global(address, size);
        if !self.regions.contains(&region_of(address)) {
            return (below, below_unknown);
        }
        let (value, whole, unknown) = self.global.read_over(address, size, below);
        (value, unknown || below_unknown && !whole)
    }

    pub fn set_global(&mut self, address: u64, size: u32, value: u64, unknown: bool) {
        if !self.regions.contains(&region_of(address)) {
            self.regions.push(region_of(address));
        }
        self.global.write_bits(address, size, value, unknown);
    }
}
