//! One execution of a memory instruction by a warp: the addresses of its lanes, how often such
//! were made, and the units that memory has.

use crate::ptx::AccessKind;
use crate::ptx::MemorySpace;

/// Bytes of a sector, the unit of traffic between caches and memory.
pub(crate) const SECTOR: u64 = 32;

pub(crate) const SECTORS_PER_LINE: u64 = 4;

/// Bytes of a bank's word.
pub(crate) const WORD: u64 = 4;

/// One execution of a memory step by a warp of `N` lanes, or by a thread that runs alone.
#[derive(Clone, Debug)]
pub(crate) struct Request<const N: usize = 32> {
    pub step: u32,
    pub warp: u32,
    /// The index of this execution among those of the step by the warp.
    pub execution: u64,
    /// Instructions that the warp had executed.
    pub time: u64,
    pub space: MemorySpace,
    pub kind: AccessKind,
    pub width: u32,
    /// The lanes that take part, and the address in the space of each.
    pub lanes: u32,
    pub addresses: [u64; N],
}

impl Request {
    pub fn each_touch(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..32).filter(|lane| self.lanes >> lane & 1 != 0).map(|lane| (lane, self.addresses[lane as usize]))
    }

    pub fn last_byte(&self, address: u64) -> u64 {
        address.saturating_add(u64::from(self.width.max(1)) - 1)
    }
}

/// How often the sampled warps executed a memory step, recorded or not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StepExecutions {
    pub count: f64,
    /// The lanes that took part, over all executions.
    pub lanes: f64,
}

impl StepExecutions {
    pub fn accumulate(&mut self, other: Self) {
        self.count += other.count;
        self.lanes += other.lanes;
    }
}

pub(crate) fn sorted_distinct(mut values: Vec<u64>) -> Vec<u64> {
    values.sort_unstable();
    values.dedup();
    values
}

/// Where a byte of a lane's local memory is, apart from global addresses and other warps'
/// memory: the same word of neighbouring lanes lies side by side.
pub(crate) fn in_local(warp: u32, lane: u64, address: u64) -> u64 {
    let within = (address / WORD).wrapping_mul(WARP).wrapping_add(lane).wrapping_mul(WORD).wrapping_add(address % WORD);
    within ^ (1 << 63) ^ (u64::from(warp) << 40)
}

/// Lanes of a warp.
pub(crate) const WARP: u64 = 32;
