//! The profile of a kernel: how often each PTX line is executed, and what its memory accesses look
//! like.
//!
//! A profile of the PTX holds for every variant that ptxas makes of it: ptxas's line table
//! (`.nv_debug_line_sass`, written with `-lineinfo`, which leaves the code unchanged) maps each
//! SASS instruction to a PTX line.

use crate::ptx::{AccessKind, MemorySpace};
use std::collections::BTreeMap;

/// The execution profile of one kernel under one launch and workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// By PTX line (1-based): executions by the busiest sampled warp, which executes the branches
    /// of all its lanes (divergence as Liang et al. treat it). A line that is absent is never
    /// executed.
    pub counts: BTreeMap<u32, f64>,
    /// The same of the average warp of the grid, from a sample of its warps weighted by what
    /// they stand for.
    pub mean: BTreeMap<u32, f64>,
    /// By PTX line of a memory instruction: what a warp's access looks like.
    pub accesses: BTreeMap<u32, Access>,
    /// By buffer of the workload.
    pub spread: BTreeMap<u32, Spread>,
    /// Lines of global memory that the average warp has stored to and will store to again, of
    /// other bytes, at any time.
    pub open_lines: f64,
    /// Bytes of the module's own variables in global memory.
    pub variables: u64,
    /// Instructions that the average warp of the grid executes (some warps leave at once).
    pub mean_instructions: f64,
    /// Instructions of the longest warp of the average block over those of the average warp: 1
    /// where the warps of a block do the same, or where it is not known.
    pub straggling: f64,
    /// Share of the grid's blocks, its last ones, that have next to nothing to do.
    pub idle: f64,
    /// The allowance sufficed to know the average warp: what was run came to its own end, and
    /// more of the grid would tell little more.
    pub settled: bool,
    /// False where a limit was reached, an instruction was unknown or control depended on data
    /// that was not known; the counts are then estimates.
    pub exact: bool,
}

impl Profile {
    /// The accesses of this profile, and how far the warps of a block differ, with what the
    /// warps of another execute.
    #[must_use]
    pub fn with_counts_of(&self, other: &Self) -> Self {
        Self {
            accesses: self.accesses.clone(),
            spread: self.spread.clone(),
            open_lines: self.open_lines,
            variables: self.variables,
            straggling: self.straggling,
            ..other.clone()
        }
    }

    /// Returns the profile for `warps` warps that share these buffers. Fetches beyond a
    /// buffer's size are counted as hits of the level-2 cache, as far as nothing else is
    /// known.
    #[must_use]
    pub fn with_shared(mut self, buffers: &[u64], warps: f64) -> Self {
        let brought = |(line, access): (&u32, &Access)| {
            let is_read = access.kind == AccessKind::Load && access.space == MemorySpace::Global;
            is_read
                .then(|| (access.buffer, self.mean.get(line).copied().unwrap_or(0.0) * access.fresh_sectors() * warps))
        };
        let mut by_buffer: BTreeMap<Option<u32>, f64> = BTreeMap::new();
        for (buffer, sectors) in self.accesses.iter().filter_map(brought) {
            *by_buffer.entry(buffer).or_default() += sectors;
        }
        for access in self.accesses.values_mut() {
            let sectors =
                buffer_bytes(access.buffer, buffers, self.variables).map(|bytes| bytes as f64 / SECTOR_BYTES as f64);
            let once = sectors.zip(by_buffer.get(&access.buffer)).map_or(1.0, |(sectors, brought)| sectors / brought);
            access.in_l2 += std::mem::take(&mut access.in_l2_unknown) * (1.0 - once).max(0.0);
        }
        self
    }

    /// Returns the profile with at most as many first touches of a buffer as it has
    /// sectors. A record may end long before a loop that walks over a buffer repeatedly.
    #[must_use]
    pub fn within_buffers(mut self, buffers: &[u64]) -> Self {
        let instructions: f64 = self.counts.values().sum();
        for (line, access) in &mut self.accesses {
            let of = buffer_bytes(access.buffer, buffers, self.variables);
            let (Some(bytes), Some(&count)) = (of, self.counts.get(line)) else { continue };
            // It may begin within a sector.
            let sectors = bytes.div_ceil(SECTOR_BYTES) as f64 + 1.0;
            let (touched, reuse) = (count * access.sectors, access.reuse.clamp(0.0, 1.0));
            let new = touched * (1.0 - reuse);
            if access.kind == AccessKind::Load && new > sectors {
                let again = 1.0 - sectors / touched;
                let a_walk = instructions * sectors / new;
                access.reuse_after = (reuse * access.reuse_after + (again - reuse) * a_walk) / again;
                access.hits =
                    if reuse < 1.0 { 1.0 - (1.0 - access.hits) * (1.0 - again) / (1.0 - reuse) } else { access.hits };
                access.in_l1 = access.in_l1.max(again);
                access.reuse = again;
                access.block_reuse = access.block_reuse.max(again);
            }
        }
        self
    }
}

/// Bytes of one of the workload's buffers, or of the module's variables, if it is known which.
fn buffer_bytes(buffer: Option<u32>, buffers: &[u64], variables: u64) -> Option<u64> {
    match buffer? {
        VARIABLES => Some(variables),
        buffer => buffers.get(buffer as usize).copied(),
    }
}

/// The share of a buffer's parts (1024 of one size) in which warps touch anything. Small where
/// what they access lies together, towards 1 where it is all over the buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// A warp, on average.
    pub alone: f64,
    /// All of a block that were looked at.
    pub together: f64,
}

impl Default for Spread {
    /// That of what nobody looked at.
    fn default() -> Self {
        Self { alone: 1.0, together: 1.0 }
    }
}

const SECTOR_BYTES: u64 = 32;
/// In place of a buffer's index: the module's own variables.
pub const VARIABLES: u32 = u32::MAX;

/// A warp-wide memory access, averaged over the executions looked at (lanes that take part in
/// it).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Access {
    pub space: MemorySpace,
    pub kind: AccessKind,
    /// Bytes accessed by one thread.
    pub width: u32,
    /// Global and local memory: distinct 32-byte sectors that one warp's access touches (1 to
    /// 128); constant memory: distinct 64-byte lines.
    pub sectors: f64,
    /// Global and local memory: distinct 128-byte lines that it touches (1 to 64); constant
    /// memory: as `sectors`.
    pub lines: f64,
    /// Stores to global memory: sectors that leave the SM for it, those left out that leave
    /// with an earlier store.
    pub store_sectors: f64,
    /// Of these, those of which not all bytes are written.
    pub partial: f64,
    /// Of those that leave, those of which a part has left before, for the first time.
    pub completed: f64,
    /// Of those that leave, those of which the block stores some bytes and neither stores nor
    /// loads the others; each counts for the first store to it alone.
    pub unfinished: f64,
    /// Share of the sectors that leave to which a warp of the block has stored before.
    pub stored_before: f64,
    /// Atomics in global memory: nanoseconds that lines of the level-2 cache are busy with one,
    /// summed over them.
    pub busy_ns: f64,
    /// Shared memory: passes needed for bank conflicts (1 is none; the passes that 8- and
    /// 16-byte accesses need in any case are not counted, but where pairs of lanes share
    /// their address they need half of them: 0.5). Constant memory: distinct words, which
    /// are read one after the other. Local memory: look-ups of lines that the level-1 cache
    /// makes one after the other; global memory: cycles that it takes for these, or for the
    /// words of a load.
    pub passes: f64,
    /// Share of the sectors that the same warp touched before: 0 is streaming, towards 1 is
    /// reuse in cache. Where a line is executed more often than was recorded, it is that of
    /// the second half of the record.
    pub reuse: f64,
    /// Share of the sectors that are in the level-1 cache: the same warp touched them before, or
    /// another warp of its block so long before that they have arrived.
    pub in_l1: f64,
    /// Share of the other sectors that are in the level-2 cache: another warp of the block
    /// requested them shortly before, or other blocks did.
    pub in_l2: f64,
    /// Share of the other sectors of which it is not known whether other blocks requested them, as
    /// the blocks have no regular distance.
    pub in_l2_unknown: f64,
    /// Share of the accesses with every sector in the level-1 cache.
    pub hits: f64,
    /// PTX instructions that the thread executes between a reuse and the last access to the
    /// sector, on average; 0 without reuse.
    pub reuse_after: f64,
    /// As `reuse`, counting what any sampled warp of the block touched before.
    pub block_reuse: f64,
    /// Sectors that this line brings in anew for the block: distinct sectors over all sampled
    /// warps and executions, divided by the number of warp-wide accesses. Below `sectors`
    /// where warps or iterations share sectors.
    pub block_sectors: f64,
    /// Threads of the warp that take part, on average (1 to 32).
    pub lanes: f64,
    /// All lanes use one address, in every execution looked at.
    pub broadcast: bool,
    /// Global memory: index in the workload's buffers of what is accessed, or [`VARIABLES`],
    /// where it is always the same one. With its size it bounds the traffic that has to
    /// come from DRAM.
    pub buffer: Option<u32>,
}

impl Access {
    /// Returns the sectors of one access that no warp of the block has touched before.
    pub(crate) fn fresh_sectors(&self) -> f64 {
        self.sectors * (1.0 - self.reuse.max(self.block_reuse).clamp(0.0, 1.0))
    }

    /// Becomes the mean of itself and another, which has this share.
    pub(crate) fn mix_in(&mut self, other: &Self, share: f64) {
        let mix = |a: &mut f64, b: f64| *a += (b - *a) * share;
        mix(&mut self.sectors, other.sectors);
        mix(&mut self.lines, other.lines);
        mix(&mut self.store_sectors, other.store_sectors);
        mix(&mut self.partial, other.partial);
        mix(&mut self.completed, other.completed);
        mix(&mut self.unfinished, other.unfinished);
        mix(&mut self.stored_before, other.stored_before);
        mix(&mut self.busy_ns, other.busy_ns);
        mix(&mut self.passes, other.passes);
        mix(&mut self.reuse, other.reuse);
        mix(&mut self.in_l1, other.in_l1);
        mix(&mut self.in_l2, other.in_l2);
        mix(&mut self.in_l2_unknown, other.in_l2_unknown);
        mix(&mut self.hits, other.hits);
        mix(&mut self.reuse_after, other.reuse_after);
        mix(&mut self.block_reuse, other.block_reuse);
        mix(&mut self.block_sectors, other.block_sectors);
        mix(&mut self.lanes, other.lanes);
        self.broadcast &= other.broadcast;
        self.buffer = self.buffer.filter(|_| self.buffer == other.buffer);
    }
}
