//! Finds accesses of two warps to the same byte of shared memory that no barrier orders.
//!
//! In: the accesses of a block's warps, and when all of them have met at a barrier. Out: the first
//! race. Invariant: what is found is one by the addresses and values of this run. All warps may
//! write the same value, and then read it; a byte that is updated atomically is not watched.

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

    fn has(self, period: u32, warp: u32) -> bool {
        self.period == period && self.warps >> warp & 1 != 0
    }

    fn add(&mut self, period: u32, warp: u32) {
        let before = if self.period == period { self.warps } else { 0 };
        *self = Self { period, warps: before | 1 << warp };
    }
}

#[derive(Clone, Copy, Default)]
struct WatchedByte {
    reads: Accesses,
    /// Writes of another value than the byte held, or of one that is not known.
    writes: Accesses,
    /// The warps that wrote the value that it holds: they read it whoever comes first.
    agreeing: Accesses,
    is_atomic: bool,
    is_unknown: bool,
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
            if byte.writes.is_by_others(self.period, warp) && !byte.agreeing.has(self.period, warp) {
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
            let written = value.map(|value| value.checked_shr(shift).unwrap_or(0) & 0xff);
            if !is_unknown && written == Some(held) {
                byte.agreeing.add(self.period, warp);
                continue;
            }
            // Two values that are not known may be one.
            let is_unequal = written.is_some() && !byte.is_unknown && byte.writes.is_by_others(self.period, warp);
            if is_unequal || byte.reads.is_by_others(self.period, warp) {
                self.found.get_or_insert(at);
            }
            byte.writes.add(self.period, warp);
            byte.agreeing = Accesses::default();
            byte.agreeing.add(self.period, warp);
            byte.is_unknown = written.is_none();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An access of a warp to the first four bytes, or a barrier.
    #[derive(Debug)]
    enum Step {
        Read(u32),
        Write(u32, Option<u64>),
        Atomic,
        Barrier,
    }

    #[test]
    fn accesses_of_two_warps_in_a_period_race_if_one_changes_the_value() {
        use Step::{Atomic, Barrier, Read, Write};
        for (steps, is_race) in [
            (&[Write(0, Some(1)), Read(0), Barrier, Read(1)][..], false),
            (&[Write(0, Some(1)), Read(1)], true),
            (&[Read(0), Write(1, Some(1))], true),
            (&[Read(0), Barrier, Write(1, Some(1))], false),
            (&[Write(0, Some(1)), Write(1, Some(2))], true),
            // All write the same value, and read it.
            (&[Write(0, Some(1)), Write(1, Some(1)), Read(1)], false),
            (&[Write(0, Some(1)), Write(1, Some(1)), Read(2)], true),
            (&[Write(0, Some(1)), Write(1, Some(1)), Write(2, Some(2)), Read(1)], true),
            // Values that are not known may be equal, and are read by who did not write them.
            (&[Write(0, None), Write(1, None)], false),
            (&[Write(0, None), Read(1)], true),
            (&[Atomic, Write(0, Some(1)), Read(1)], false),
        ] {
            let (mut watch, mut memory) = (RaceWatch::new(8), MaskedMemory::new(8));
            for step in steps {
                match *step {
                    Read(warp) => watch.read(warp, 0, 4),
                    Write(warp, value) => {
                        watch.write(warp, 0, 4, value, &memory);
                        memory.write_bits(0, 4, value.unwrap_or(0), value.is_none());
                    }
                    Atomic => watch.update_atomically(0, 4),
                    Barrier => watch.pass_barrier(),
                }
            }
            assert_eq!(watch.found.is_some(), is_race, "{steps:?}");
        }
    }

    #[test]
    fn sixteen_bytes_are_compared_by_their_own_bits() {
        let (mut watch, memory) = (RaceWatch::new(16), MaskedMemory::new(16));
        watch.write(0, 0, 16, Some(1), &memory);
        watch.read(1, 15, 1);
        assert_eq!(watch.found, Some(15));
    }
}
