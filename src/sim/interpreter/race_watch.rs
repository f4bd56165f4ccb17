//! Finds accesses of two warps to the same byte of shared memory that no barrier orders.
//!
//! In: the accesses of a block's warps, and when all of them have met at a barrier. Out: the first
//! race. Invariant: what is found is one by the addresses and values of this run. A write that
//! leaves a byte as it is does not count, because all warps may write the same; a byte that is
//! updated atomically is not watched.

use crate::sim::masked_memory::MaskedMemory;

/// The period between two barriers in which a byte was last accessed, and the warps that did.
#[derive(Clone, Copy, Default)]
struct Accesses {
    period: u32,
    /// One bit for each warp of the block.
    warps: u32,
}

impl Accesses {
    /// Whether another warp than `warp` is among them in this period.
    fn is_by_others(self, period: u32, warp: u32) -> bool {
        self.period == period && self.warps & !(1 << warp) != 0
    }

    fn add(&mut self, period: u32, warp: u32) {
        let before = if self.period == period { self.warps } else { 0 };
        *self = Self { period, warps: before | 1 << warp };
    }
}

#[derive(Clone, Copy, Default)]
struct WatchedByte {
    reads: Accesses,
    writes: Accesses,
    is_atomic: bool,
}

/// The accesses of a block's warps to its shared memory, as far as they may be part of a race.
pub(super) struct RaceWatch {
    /// Begins with 1: nothing was accessed in period 0.
    period: u32,
    bytes: Vec<WatchedByte>,
    /// The offset of the first byte that is part of a race.
    pub found: Option<u64>,
}

impl RaceWatch {
    /// Watches this many bytes of shared memory.
    pub fn new(bytes: u64) -> Self {
        Self { period: 1, bytes: vec![WatchedByte::default(); bytes as usize], found: None }
    }

    /// Begins a new period: all warps have met at a barrier.
    pub fn pass_barrier(&mut self) {
        self.period += 1;
    }

    pub fn read(&mut self, warp: u32, address: u64, size: u32) {
        for at in address..address + u64::from(size) {
            let Some(byte) = self.bytes.get_mut(at as usize).filter(|byte| !byte.is_atomic) else { continue };
            if byte.writes.is_by_others(self.period, warp) {
                self.found.get_or_insert(at);
            }
            byte.reads.add(self.period, warp);
        }
    }

    /// Adds a write of `value`, or of something that is not known, to what `memory` holds.
    pub fn write(&mut self, warp: u32, address: u64, size: u32, value: Option<u64>, memory: &MaskedMemory) {
        for (at, shift) in (address..address + u64::from(size)).zip((0..).step_by(8)) {
            let Some(byte) = self.bytes.get_mut(at as usize).filter(|byte| !byte.is_atomic) else { continue };
            let (held, is_unknown) = memory.read_bits(at, 1);
            if !is_unknown && value.is_some_and(|value| value >> shift & 0xff == held) {
                continue;
            }
            let accesses = [byte.reads, byte.writes];
            if accesses.iter().any(|accesses| accesses.is_by_others(self.period, warp)) {
                self.found.get_or_insert(at);
            }
            byte.writes.add(self.period, warp);
        }
    }

    pub fn update_atomically(&mut self, address: u64, size: u32) {
        for at in address..address + u64::from(size) {
            if let Some(byte) = self.bytes.get_mut(at as usize) {
                byte.is_atomic = true;
            }
        }
    }
}
