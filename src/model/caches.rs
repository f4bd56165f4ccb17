//! The memory accesses of a launch's warps -> what the caches hold of them, and the traffic
//! between SMs, level-2 cache and device memory.

use super::analysis::{Analysis, Traffic};
use super::occupancy::Occupancy;
use super::reuse::Reuse;
use crate::gpu::{Machine, WARP};
use crate::launch::Launch;
use crate::sim::profile::VARIABLES;

/// Bytes of a line. Device memory fetches a whole line even for a lone sector: the kernel
/// `scattered`, which reads and writes one sector of each line, takes three to four times as
/// long as its sectors' bytes would.
pub(super) const LINE_BYTES: f64 = 128.0;
pub(super) const SECTOR_BYTES: f64 = 32.0;

/// The caches of a machine, and the launch that uses them.
pub(super) struct Caches<'a> {
    machine: &'a Machine,
    analysis: &'a Analysis,
    /// Shared memory of an SM that its resident blocks take, in bytes, and their warps.
    shared: f64,
    resident_warps: f64,
    /// Blocks of an SM: those that are resident at the same time, and all of the launch.
    resident_blocks: f64,
    blocks_per_sm: f64,
    /// Warps of the whole launch.
    pub warps: f64,
    /// Bytes of each of the workload's buffers, if known.
    buffers: Option<&'a [u64]>,
}

/// Traffic of a warp between its SM and the level-2 cache.
#[derive(Clone, Copy, Default)]
pub(super) struct L2Traffic {
    pub bytes: f64,
    /// Lines in which these bytes lie, each counted for each request.
    pub lines: f64,
    /// Sectors that a store writes only partially.
    pub partial: f64,
    /// Sectors that a store completes after another has written a part of them.
    pub completed: f64,
    /// Lines with a sector that the level-2 cache evicts before it is complete.
    pub unfinished: f64,
    /// The bytes and lines that stores move.
    pub stored: f64,
    pub stored_lines: f64,
}

/// Traffic of a launch with device memory.
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

    /// Share of the accesses to local memory that miss the level-1 cache, with this many resident
    /// warps. As in CRAT, it follows from the size of the resident threads' stacks and of the
    /// cache that shared memory leaves.
    pub fn local_miss_share(&self, warps: f64) -> f64 {
        let stacks = f64::from(self.analysis.resources.stack_frame) * warps * f64::from(WARP);
        if stacks <= self.l1_bytes() { 0.0 } else { 1.0 - self.l1_bytes() / stacks }
    }

    /// Bytes of an SM's level-1 cache that shared memory leaves.
    fn l1_bytes(&self) -> f64 {
        (f64::from(self.machine.architecture.unified_cache) - self.shared).max(0.0)
    }

    /// Bytes of different data that the level-2 cache holds. Since compute capability 8.0 it has
    /// two partitions, each of which caches for the SMs next to it (NVIDIA's A100 white paper).
    /// Data that all SMs read is in both; data of a single warp is in both if its memory belongs
    /// to the other partition.
    fn effective_l2_bytes(&self) -> f64 {
        let parts = if self.machine.architecture.capability >= 80 { self.analysis.calibration.l2_copies } else { 1.0 };
        self.machine.l2_bytes as f64 / parts
    }

    /// Returns the sectors that a warp reads again after the level-1 cache has evicted them, with
    /// `warps` resident warps on an SM.
    pub fn l1_misses(&self, warps: f64) -> f64 {
        // The warps together touch no more than the whole buffer; and a line takes the space of a
        // whole one, however few of its sectors are valid.
        self.evicted_sectors(
            self.l1_bytes(),
            |of| of.read,
            |buffer, sectors| {
                let whole = self.traffic_of(buffer).filter(|of| of.sectors > 0.0).map_or(1.0, used_line_share);
                (sectors * SECTOR_BYTES / whole * warps).min(self.buffer_bytes(buffer))
            },
        )
    }

    /// Returns the sectors that a warp reads again after the level-2 cache has evicted them, with
    /// `warps` resident warps on the GPU. They are neighbours in the grid, and are assumed to
    /// share as much data as the grid's warps do on average. `part` selects loads or all.
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

    /// Sectors that a warp touches again and that a cache of `cache` bytes has evicted meanwhile.
    /// `between` gives the bytes of a buffer that come into the cache while a warp touches this
    /// many sectors of it.
    fn evicted_sectors(&self, cache: f64, part: fn(&Reuse) -> f64, between: impl Fn(Option<u32>, f64) -> f64) -> f64 {
        let lost = |reuse: &Reuse| {
            let bytes = reuse.between.iter().map(|&(buffer, sectors)| between(buffer, sectors));
            part(reuse) * self.evicted_share(bytes.sum(), cache)
        };
        self.analysis.reuses.iter().map(lost).sum()
    }

    /// Share of data that a cache has evicted after `moved` further bytes were fetched.
    fn evicted_share(&self, moved: f64, cache: f64) -> f64 {
        (moved / cache.max(1.0) - self.analysis.calibration.eviction_start).clamp(0.0, 1.0)
    }

    fn traffic_of(&self, buffer: Option<u32>) -> Option<&Traffic> {
        self.analysis.traffic.iter().find(|of| of.buffer == buffer)
    }

    /// Returns the size of a buffer in bytes; infinity if it is not known.
    pub fn buffer_bytes(&self, buffer: Option<u32>) -> f64 {
        if buffer == Some(VARIABLES) {
            return self.analysis.variables as f64;
        }
        let known = self.buffers.zip(buffer).and_then(|(buffers, buffer)| buffers.get(buffer as usize));
        known.map_or(f64::INFINITY, |&bytes| bytes as f64)
    }

    /// Returns a warp's traffic with the level-2 cache: its writes and the first reads of its
    /// block. Of a buffer that the blocks of an SM read repeatedly, the level-1 cache keeps what
    /// fits.
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
            // Whole lines are read again in the same order, lone sectors at random.
            let in_turn = (read - once) * (1.0 - self.evicted_share(between, self.l1_bytes()));
            let kept = match lone_sector_share(of) {
                0.0 => in_turn,
                lone => in_turn + (self.l1_gather_hits(of, read, total) - in_turn) * lone,
            };
            let of_warp = (read - kept + bytes(of.stored)) / warps;
            moved.bytes += of_warp;
            moved.lines += of_warp / SECTOR_BYTES * of.lines / of.sectors;
            moved.partial += of.partial;
            moved.completed += of.completed;
            moved.unfinished += of.unfinished;
            moved.stored += of.stored * SECTOR_BYTES;
            moved.stored_lines += of.stored * of.lines / of.sectors;
        }
        moved
    }

    /// Of `read` bytes of a buffer that an SM reads as lone sectors at random, those that hit its
    /// level-1 cache; `total` are all bytes that it reads and writes.
    ///
    /// Each sector is read at random times while the window of the buffer that the SM's blocks
    /// read passes over it. A read hits if the sector was read before, within the time in which
    /// the cache's contents are replaced: with n reads of a sector, and a cache of the share c of
    /// the bytes that are fetched during the window, a share of
    /// 1 - (1 - exp(-nc)) / n - (1 - c) exp(-nc) of the reads. Hits replace nothing, so that c
    /// depends on this share: it is found by iteration.
    fn l1_gather_hits(&self, of: &Traffic, read: f64, total: f64) -> f64 {
        let reads = read / self.buffer_bytes(of.buffer);
        if reads <= 0.0 {
            return 0.0;
        }
        let window = self.window_share(of.spread.together);
        let mut held = 0.0;
        for _ in 0..MAX_ITERATIONS {
            let passing = (total - read + read * (1.0 - held) * self.analysis.calibration.gather_footprint) * window;
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

    /// Share of a buffer that the resident blocks of an SM read, if each block reads the share
    /// `of_block`. Blocks are assigned to the SMs in turn: those of one SM are as many blocks
    /// apart as there are SMs, and their parts of the buffer accordingly. On an H200 `spmv` hits
    /// less, the more rows a block has: 28% of the vector's sectors with 16 lanes for each row,
    /// 22, 17, 14 and none with 8 to 1 (`traffic.json`).
    fn window_share(&self, of_block: f64) -> f64 {
        let advance = (1.0 - of_block) / self.blocks_per_sm.max(1.0);
        (of_block + (self.resident_blocks - 1.0) * advance.min(of_block)).min(1.0)
    }

    /// Average number of lines for each sector that is accessed.
    pub fn lines_per_sector(&self) -> f64 {
        let sum = |part: fn(&Traffic) -> f64| self.analysis.traffic.iter().map(part).sum::<f64>();
        let sectors = sum(|of| of.sectors);
        if sectors > 0.0 { sum(|of| of.lines) / sectors } else { 0.0 }
    }

    /// Returns the traffic of all warps with device memory.
    ///
    /// The touched part of each buffer is fetched once. Further accesses hit the level-2 cache if
    /// it holds what is fetched between two passes over the buffer. Whole lines are shared by
    /// neighbouring threads at nearly the same time and hit; only lone sectors are used again
    /// after a long time.
    pub fn device_traffic(&self) -> DeviceTraffic {
        let warps = self.warps;
        // Repeated stores of a block hit the level-2 cache, or are counted by their reuse.
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
            // If half of a line is used at once, the rest is used soon after. Between two uses of
            // a lone sector the whole buffer is read, and its part of all other traffic.
            let lone = lone_sector_share(of);
            let between = once * lone + (total - once * lone) * once / moved;
            let held = (self.machine.l2_bytes as f64 / between.max(1.0)).min(1.0).max(1.0 - lone);
            // Reads are fetched, writes are written back.
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

/// Bytes of shared memory that the resident blocks of an SM take; a carve-out's, if that is more.
fn shared_memory_used(machine: &Machine, analysis: &Analysis, occupancy: &Occupancy, launch: &Launch) -> f64 {
    let reserved = machine.architecture.shared_reserved;
    let of_block = analysis.resources.static_shared.saturating_add(launch.shared).saturating_add(reserved);
    let carved = launch.carveout.map_or(0, |percent| machine.architecture.preferred_shared(percent));
    (f64::from(of_block) * f64::from(occupancy.blocks)).max(f64::from(carved))
}

/// The iteration of [`Caches::l1_gather_hits`] ends after this many steps, or when the share of
/// hits changes by less than this.
const MAX_ITERATIONS: usize = 8;
const CONVERGED: f64 = 0.001;

/// A sector's share of a line.
const LONE_SECTOR_SHARE: f64 = SECTOR_BYTES / LINE_BYTES;

/// To which degree accesses are to lone sectors: 1 if each line has one used sector, 0 from two
/// on, linear between.
fn lone_sector_share(of: &Traffic) -> f64 {
    (2.0 - used_line_share(of) / LONE_SECTOR_SHARE).max(0.0)
}

/// Average share of a line that an access to this buffer uses.
fn used_line_share(of: &Traffic) -> f64 {
    (of.sectors * SECTOR_BYTES / (of.lines * LINE_BYTES).max(f64::MIN_POSITIVE)).clamp(LONE_SECTOR_SHARE, 1.0)
}
