//! What the warps of a launch access -> what of it the caches hold, and what moves between them
//! and to and from device memory.

use super::analysis::{Analysis, Traffic};
use super::occupancy::Occupancy;
use super::reuse::Reuse;
use crate::gpu::{Machine, WARP};
use crate::launch::Launch;
use crate::sim::profile::VARIABLES;

/// Bytes of a line, of which device memory fetches no less for a lone sector: the kernel
/// `scattered`, which reads and writes one sector of each, takes three to four times as long as
/// its sectors' bytes would.
pub(super) const LINE_BYTES: f64 = 128.0;
pub(super) const SECTOR_BYTES: f64 = 32.0;
/// How often the level-2 cache holds what a warp reads again, where it is in two parts: half of
/// it lies in memory of the other part.
const L2_COPIES: f64 = 1.5;

/// The caches that a launch meets, and what it does to them.
pub(super) struct Caches<'a> {
    machine: &'a Machine,
    analysis: &'a Analysis,
    /// Shared memory of an SM that its blocks take, in bytes, and its warps.
    shared: f64,
    resident_warps: f64,
    /// Blocks of an SM, those that it has at once and all that it ever has.
    resident_blocks: f64,
    blocks_per_sm: f64,
    /// Warps of the whole launch.
    pub warps: f64,
    /// Bytes of each of the workload's buffers, where it is known.
    buffers: Option<&'a [u64]>,
}

/// Traffic between an SM and the level-2 cache.
#[derive(Clone, Copy, Default)]
pub(super) struct L2Traffic {
    pub bytes: f64,
    /// Lines in which these bytes lie, each as often as anything of it moves.
    pub lines: f64,
    /// Sectors of which a store writes only a part.
    pub partial: f64,
    /// Sectors that a store completes after a part of them has left.
    pub completed: f64,
    /// Lines with a sector that the level-2 cache lets go of before it is whole.
    pub unfinished: f64,
    /// The bytes and lines that stores move.
    pub stored: f64,
    pub stored_lines: f64,
}

/// Traffic with device memory.
pub(super) struct DeviceTraffic {
    pub bytes: f64,
    /// Share of what others have brought into the level-2 cache that it still holds when a warp
    /// reads it.
    pub held: f64,
}

impl<'a> Caches<'a> {
    pub fn new(
        machine: &'a Machine,
        analysis: &'a Analysis,
        launch: &Launch,
        occupancy: &Occupancy,
        buffers: Option<&'a [u64]>,
    ) -> Self {
        let block_warps = f64::from(launch.block_threads().div_ceil(WARP));
        let blocks_per_sm = launch.blocks() as f64 / f64::from(machine.sms.max(1));
        Self {
            machine,
            analysis,
            shared: shared_memory_used(machine, analysis, occupancy, launch),
            resident_warps: f64::from(occupancy.warps),
            resident_blocks: f64::from(occupancy.blocks).min(blocks_per_sm.ceil()).max(1.0),
            blocks_per_sm,
            warps: launch.blocks() as f64 * block_warps,
            buffers,
        }
    }

    /// Share of the accesses to local memory that the level-1 cache cannot hold, of this many
    /// warps: CRAT's rule, the resident threads' stacks over the cache that shared memory
    /// leaves.
    pub fn local_miss_share(&self, warps: f64) -> f64 {
        let stacks = f64::from(self.analysis.resources.stack_frame) * warps * f64::from(WARP);
        if stacks <= self.l1_bytes() { 0.0 } else { 1.0 - self.l1_bytes() / stacks }
    }

    /// Bytes of an SM's level-1 cache that shared memory leaves.
    fn l1_bytes(&self) -> f64 {
        (f64::from(self.machine.architecture.unified_cache) - self.shared).max(0.0)
    }

    /// Bytes that the level-2 cache holds: since compute capability 8.0 it is in two parts,
    /// each of which caches for the SMs next to it (NVIDIA's A100 white paper), so that
    /// what all SMs read is there twice, and what a warp alone reads again twice as well
    /// where its memory belongs to the other part.
    fn effective_l2_bytes(&self) -> f64 {
        let parts = if self.machine.architecture.capability >= 80 { L2_COPIES } else { 1.0 };
        self.machine.l2_bytes as f64 / parts
    }

    /// Returns the sectors that a warp reads again after the level-1 cache has lost them,
    /// with `warps` resident warps on an SM.
    pub fn l1_misses(&self, warps: f64) -> f64 {
        // However many warps there are, they touch no more of a buffer than there is of it; and a
        // line takes its place whole, however few of its sectors are there.
        self.evicted_sectors(
            self.l1_bytes(),
            |of| of.read,
            |buffer, sectors| {
                let whole = self.traffic_of(buffer).filter(|of| of.sectors > 0.0).map_or(1.0, used_line_share);
                (sectors * SECTOR_BYTES / whole * warps).min(self.buffer_bytes(buffer))
            },
        )
    }

    /// Returns the sectors that a warp reads again after the level-2 cache has lost them.
    /// All resident warps read through it. They are neighbours in the grid and share as
    /// much as the grid's warps do on average.
    pub fn l2_misses(&self, warps: f64, part: fn(&Reuse) -> f64) -> f64 {
        self.evicted_sectors(self.effective_l2_bytes(), part, |buffer, sectors| {
            let (alone, size) = (sectors * SECTOR_BYTES * warps, self.buffer_bytes(buffer));
            let together = self.traffic_of(buffer).filter(|_| size.is_finite()).map_or(alone, |of| {
                let sharing = (of.fresh * SECTOR_BYTES * self.warps / size).max(1.0);
                alone / sharing + of.spread.alone * size
            });
            alone.min(together).min(size)
        })
    }

    /// Sectors that a warp reads again and that a cache has lost meanwhile. `between` are the
    /// bytes of a buffer that come into it while a warp touches this many sectors.
    fn evicted_sectors(&self, cache: f64, part: fn(&Reuse) -> f64, between: impl Fn(Option<u32>, f64) -> f64) -> f64 {
        let lost = |reuse: &Reuse| {
            let bytes = reuse.between.iter().map(|&(buffer, sectors)| between(buffer, sectors));
            part(reuse) * evicted_share(bytes.sum(), cache)
        };
        self.analysis.reuses.iter().map(lost).sum()
    }

    fn traffic_of(&self, buffer: Option<u32>) -> Option<&Traffic> {
        self.analysis.traffic.iter().find(|of| of.buffer == buffer)
    }

    /// Returns the bytes of a buffer as far as they are known.
    pub fn buffer_bytes(&self, buffer: Option<u32>) -> f64 {
        if buffer == Some(VARIABLES) {
            return self.analysis.variables as f64;
        }
        let known = self.buffers.zip(buffer).and_then(|(buffers, buffer)| buffers.get(buffer as usize));
        known.map_or(f64::INFINITY, |&bytes| bytes as f64)
    }

    /// Returns what a warp exchanges with the level-2 cache: its writes and the first
    /// reads of its block. For a buffer that the blocks of an SM read repeatedly, the
    /// level-1 cache keeps what fits.
    pub fn moved_sectors(&self) -> L2Traffic {
        let warps = self.warps / f64::from(self.machine.sms.max(1));
        let bytes = |sectors: f64| sectors * SECTOR_BYTES * warps;
        let traffic = &self.analysis.traffic;
        let total: f64 = traffic.iter().map(|of| bytes(of.fresh + of.stored)).sum();
        let mut moved = L2Traffic::default();
        for of in traffic.iter().filter(|of| of.sectors > 0.0) {
            let read = bytes(of.fresh);
            let once = read.min(self.buffer_bytes(of.buffer));
            let between = if read > 0.0 { total * once / read } else { 0.0 };
            // What is read side by side is read again in its turn, lone sectors here and there.
            let in_turn = (read - once) * (1.0 - evicted_share(between, self.l1_bytes()));
            let kept = match lone_sector_share(of) {
                0.0 => in_turn,
                lone => in_turn + (self.l1_gather_hits(of, read, total) - in_turn) * lone,
            };
            let of_warp = (read - kept + bytes(of.stored)) / warps;
            moved.bytes += of_warp;
            moved.lines += of_warp / SECTOR_BYTES * of.lines / of.sectors;
            moved.partial += of.partial;
            moved.completed += of.completed;
            moved.unfinished += of.unfinished * self.evicted_unfinished_share(of);
            moved.stored += of.stored * SECTOR_BYTES;
            moved.stored_lines += of.stored * of.lines / of.sectors;
        }
        moved
    }

    /// Of the sectors of a buffer that a block leaves unfinished, the part that the level-2
    /// cache lets go of so. Where the grid writes all of the buffer other blocks finish
    /// them, and soon, but for lone sectors that each block writes all over it.
    fn evicted_unfinished_share(&self, of: &Traffic) -> f64 {
        let size = self.buffer_bytes(of.buffer);
        if of.written * self.warps < size * FULLY_WRITTEN_SHARE {
            return 1.0;
        }
        lone_sector_share(of) * (of.spread.together * size / (self.effective_l2_bytes() * FINISHED_WINDOW)).min(1.0)
    }

    /// Of this many bytes of a buffer that an SM reads here and there, those that its level-1
    /// cache holds; `total` is all that it reads and writes.
    ///
    /// Each sector is read at random times while the window that the SM's blocks look at passes
    /// over it, and is held if it was read before, and no longer ago than the cache takes to be
    /// replaced: with n reads of a sector, and a cache of the part c of what passes through it
    /// meanwhile, that is 1 - (1 - exp(-nc)) / n - (1 - c) exp(-nc) of the reads. What is held
    /// replaces nothing.
    fn l1_gather_hits(&self, of: &Traffic, read: f64, total: f64) -> f64 {
        let reads = read / self.buffer_bytes(of.buffer);
        if reads <= 0.0 {
            return 0.0;
        }
        let window = self.window_share(of.spread.together);
        let mut held = 0.0;
        for _ in 0..MAX_ITERATIONS {
            let passing = (total - read + read * (1.0 - held) * GATHER_FOOTPRINT) * window;
            let part = (self.l1_bytes() / passing.max(1.0)).min(1.0);
            let none = (-reads * part).exp();
            let before = std::mem::replace(&mut held, 1.0 - (1.0 - none) / reads - (1.0 - part) * none);
            held = held.clamp(0.0, 1.0);
            if (held - before).abs() < CONVERGED {
                break;
            }
        }
        read * held
    }

    /// Share of a buffer that the blocks that an SM has at once look at, of which each looks at
    /// such a share. Blocks are dealt to the SMs in turn, so that those of one are apart by as
    /// many as there are SMs, and what they look at as far as these advance through the
    /// buffer. On an H200 `spmv` hits less, the more rows a block has: 28% of the vector's
    /// sectors with 16 lanes for each, 22, 17, 14 and none with 8 to 1 (`traffic.json`).
    fn window_share(&self, of_block: f64) -> f64 {
        let advance = (1.0 - of_block) / self.blocks_per_sm.max(1.0);
        (of_block + (self.resident_blocks - 1.0) * advance.min(of_block)).min(1.0)
    }

    /// Lines for a sector that is accessed, on average.
    pub fn lines_per_sector(&self) -> f64 {
        let sum = |part: fn(&Traffic) -> f64| self.analysis.traffic.iter().map(part).sum::<f64>();
        let sectors = sum(|of| of.sectors);
        if sectors > 0.0 { sum(|of| of.lines) / sectors } else { 0.0 }
    }

    /// What all warps move to and from device memory.
    ///
    /// Each buffer is fetched once, as far as it is touched. What is touched again comes from
    /// the level-2 cache if that holds what passes through it between two passes over the
    /// buffer; where whole lines are accessed, threads side by side share them soon, so
    /// that only lone sectors are far apart.
    pub fn device_traffic(&self) -> DeviceTraffic {
        let warps = self.warps;
        // What a block stores to again is in the level-2 cache still, or is counted by its reuse.
        let passing = |traffic: &Traffic| traffic.sectors - traffic.rewritten;
        let traffic = || self.analysis.traffic.iter().filter(|traffic| passing(traffic) > 0.0);
        let size = |traffic: &Traffic| self.buffer_bytes(traffic.buffer);
        let once = |traffic: &Traffic| (passing(traffic) * SECTOR_BYTES * warps).min(size(traffic));
        let total: f64 = traffic().map(once).sum();
        let (mut bytes, mut found_in_l2, mut found_and_held) = (0.0, 0.0, 0.0);
        for of in traffic() {
            let moved = passing(of) * SECTOR_BYTES * warps;
            let whole = used_line_share(of);
            let once = once(of);
            // Where half of a line is used at once, whoever uses the rest is near. Between two
            // visits of a lone sector lies all of its buffer, and what else passes meanwhile.
            let lone = lone_sector_share(of);
            let between = once * lone + (total - once * lone) * once / moved;
            let held = (self.machine.l2_bytes as f64 / between.max(1.0)).min(1.0).max(1.0 - lone);
            // What is written goes back, besides what was fetched.
            for part in [of.sectors - of.stored, of.stored - of.rewritten] {
                let moved = part * SECTOR_BYTES * warps;
                let once = moved.min(size(of));
                // No more than all of a buffer is fetched the first time, however few sectors of a
                // line are used at once.
                bytes += (once / whole).min(size(of).max(once)) + (moved - once) / whole * (1.0 - held);
            }
            found_in_l2 += of.in_l2;
            found_and_held += of.in_l2 * held;
        }
        let resident_warps = self.resident_warps * f64::from(self.machine.sms);
        let again = self.l2_misses(resident_warps, |of| of.sectors) * SECTOR_BYTES * warps;
        DeviceTraffic { bytes: bytes + again, held: if found_in_l2 > 0.0 { found_and_held / found_in_l2 } else { 1.0 } }
    }
}

/// Bytes of shared memory that the resident blocks of an SM take, or that a carve-out takes
/// whether they are used or not.
fn shared_memory_used(machine: &Machine, analysis: &Analysis, occupancy: &Occupancy, launch: &Launch) -> f64 {
    let reserved = machine.architecture.shared_reserved;
    let of_block = analysis.resources.static_shared.saturating_add(launch.shared).saturating_add(reserved);
    let carved = launch.carveout.map_or(0, |percent| machine.architecture.preferred_shared(percent));
    (f64::from(of_block) * f64::from(occupancy.blocks)).max(f64::from(carved))
}

/// A cache loses the first of what is read again when this share of it has been replaced since,
/// and the last when as much beyond all of it: sets fill unevenly, and warps do not keep step.
const EVICTION_START: f64 = 0.5;

/// Share of what is read again that a cache has lost, this many bytes after it.
fn evicted_share(moved: f64, cache: f64) -> f64 {
    (moved / cache.max(1.0) - EVICTION_START).clamp(0.0, 1.0)
}

/// Bytes of the level-1 cache that a byte of lone sectors takes: between those of its sector
/// and those of its line, of which others may be read soon.
const GATHER_FOOTPRINT: f64 = 2.0;
/// Rounds in which what is held and what therefore passes through come to agree, to this share.
const MAX_ITERATIONS: usize = 8;
const CONVERGED: f64 = 0.001;

/// Share of a buffer's bytes from which on all of them are taken to be written.
const FULLY_WRITTEN_SHARE: f64 = 0.95;
/// Assumed: other blocks finish a sector before the level-2 cache lets go of it, the likelier,
/// the smaller the window is in which a few warps of a block write; not any longer where the
/// window is this share of the cache.
const FINISHED_WINDOW: f64 = 1.0 / 16.0;

/// Share of a line that a lone sector is.
const LONE_SECTOR_SHARE: f64 = SECTOR_BYTES / LINE_BYTES;

/// How far what is accessed is lone sectors: 1 where each line has one, 0 from two on.
fn lone_sector_share(of: &Traffic) -> f64 {
    (2.0 - used_line_share(of) / LONE_SECTOR_SHARE).max(0.0)
}

/// Share of the lines of a buffer that is accessed at once.
fn used_line_share(of: &Traffic) -> f64 {
    (of.sectors * SECTOR_BYTES / (of.lines * LINE_BYTES).max(f64::MIN_POSITIVE)).clamp(LONE_SECTOR_SHARE, 1.0)
}
