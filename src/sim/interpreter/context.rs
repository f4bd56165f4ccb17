//! What all threads of a launch share, and what tells them apart.

use crate::launch::Launch;
use crate::sim::loops::Analyses;
use crate::sim::memory::Initial;
use crate::sim::program::{Program, Special};
use std::cell::RefCell;

/// The position of a thread: the indices of its block and of the thread in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadPosition {
    pub block: [u32; 3],
    pub thread: [u32; 3],
}

/// What all threads of a launch share: program, initial memory, arguments, launch.
#[derive(Clone, Copy)]
pub(crate) struct LaunchContext<'p> {
    pub program: &'p Program,
    pub initial: &'p Initial<'p>,
    /// Bytes of the entry's parameters.
    pub arguments: &'p [u8],
    pub launch: &'p Launch,
    pub analyses: &'p RefCell<Analyses>,
}

impl LaunchContext<'_> {
    /// Returns the bytes of shared memory of a block.
    pub fn shared_bytes(&self) -> u64 {
        self.program.dynamic_shared.saturating_add(self.launch.shared.into())
    }

    /// Returns the value of a special register of a thread; `None` if it is not known.
    pub fn special_value(&self, special: Special, at: ThreadPosition) -> Option<u64> {
        let launch = self.launch;
        let [bx, by, _] = launch.block.map(u64::from);
        let [x, y, z] = at.thread.map(u64::from);
        let linear = x + bx * (y + by * z);
        let lane = linear % 32;
        Some(match special {
            Special::Thread(axis) => u64::from(at.thread[axis]),
            Special::BlockSize(axis) => u64::from(launch.block[axis]),
            Special::Block(axis) => u64::from(at.block[axis]),
            Special::GridSize(axis) => u64::from(launch.grid[axis]),
            Special::Lane => lane,
            Special::WarpOfBlock => linear / 32,
            Special::WarpsOfBlock => u64::from(launch.block_threads().div_ceil(32)),
            Special::LaneMask(relation) => (0..32u64)
                .filter(|other| relation.holds_for(Some(other.cmp(&lane))))
                .fold(0, |mask, other| mask | 1 << other),
            Special::DynamicShared => u64::from(launch.shared),
            Special::TotalShared => u64::from(launch.shared) + self.program.shared,
            Special::Constant(value) => value,
            Special::Unknown => return None,
        })
    }
}
