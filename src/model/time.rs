//! What a warp does, occupancy and launch -> a predicted time and what bounds it.
//!
//! Waves of resident blocks: a wave lasts as long as one warp alone takes, or as the SM needs to issue and execute all of its
//! warps' work, whichever is longer; a kernel lasts as long as its waves, or as memory needs for its traffic. Near the point where
//! two bounds meet, neither is reached: a power mean rounds the corner. Absolute times are rough (static models are 20 to 50 %
//! off); what counts is the order of a kernel's configurations.

use super::analysis::{Analysis, Traffic};
use super::architecture::{Machine, WARP};
use super::latency::{BARRIER_WARP, Latencies};
use super::occupancy::Occupancy;
use crate::cubin::sass::Pipe;
use crate::space::Launch;
use serde::{Deserialize, Serialize};

/// A predicted time and its bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Microseconds; infinite where the kernel cannot be launched.
    pub us: f64,
    pub bottleneck: Bottleneck,
}

/// What a kernel's time is bound by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// Instructions issued: one a cycle for each sub-core.
    Issue,
    /// An execution unit.
    Pipe(Pipe),
    /// Passes over the banks of shared memory.
    SharedMemory,
    /// Sectors that move between the level-2 cache and the SMs.
    CacheBandwidth,
    /// Bytes that move to and from device memory.
    GlobalBandwidth,
    /// Waiting for loads, with too few warps to hide it.
    GlobalLatency,
    /// Waiting at barriers.
    Barrier,
    /// Waiting for dependent instructions, with too few warps to hide it.
    Latency,
    /// Starting blocks.
    Launch,
}

/// Sharpness of the corner between two bounds: loads wait in queues long before a bound is reached, so that it is a wide one. Of 1 to 8, 2
/// orders the recorded spaces best as a whole.
const SHARPNESS: f64 = 2.0;
/// Bytes of a line, of which device memory fetches no less for a lone sector: the kernel `scattered`, which reads and writes
/// one sector of each, takes three to four times as long as its sectors' bytes would.
const LINE_BYTES: f64 = 128.0;
const SECTOR_BYTES: f64 = 32.0;
/// Bytes that an SM and the level-2 cache exchange in a cycle (NVIDIA's A100 white paper: 5120 for 80 slices).
const CACHE_BYTES_PER_CYCLE: f64 = 64.0;
/// Instructions that an SM issues in a cycle.
const ISSUES_PER_CYCLE: f64 = 4.0;
/// Assumed: cycles from a block's start to its first instruction, cycles between two starts on an SM, and microseconds of a launch.
const BLOCK_LATENCY: f64 = 300.0;
const BLOCK_INTERVAL: f64 = 60.0;
const LAUNCH_US: f64 = 2.0;

/// The bounds of a wave, in cycles.
struct Wave {
    cycles: f64,
    bound: Bottleneck,
}

/// Predicts the time of one launch. `buffers` are the sizes of the workload's buffers in bytes, where they are known: what is read of
/// one oftener comes from the level-2 cache, as far as that holds it.
pub fn predict(
    machine: &Machine,
    analysis: &Analysis,
    launch: &Launch,
    occupancy: &Occupancy,
    buffers: Option<&[u64]>,
) -> Prediction {
    if occupancy.blocks == 0 || launch.threads() == 0 {
        return Prediction { us: f64::INFINITY, bottleneck: Bottleneck::Launch };
    }
    let sms = f64::from(machine.sms.max(1));
    let blocks = launch.blocks() as f64;
    let at_once = f64::from(occupancy.blocks);
    let block_warps = f64::from(launch.block_threads().div_ceil(WARP));
    let resident = f64::from(occupancy.warps);
    let shared = shared_taken(machine, analysis, occupancy, launch);
    let local_missed = local_missed(machine, analysis, occupancy, shared);
    let model = Model { machine, analysis, block_warps, local_missed, shared, resident };

    // Whole waves, then what is left, spread over the SMs first.
    let waves = (blocks / (sms * at_once)).floor();
    let left = blocks - waves * sms * at_once;
    let whole = model.wave(at_once);
    let tail = model.wave((left / sms).ceil());
    let has_tail = left > 0.0;
    let cycles = waves * whole.cycles + if has_tail { tail.cycles } else { 0.0 };
    // No kernel ends before its longest warp does.
    let cycles = cycles.max(model.alone());
    let bound = if waves >= 1.0 { whole.bound } else { tail.bound };
    let busy_us = cycles / (machine.clock_ghz * 1e3);

    let warps = blocks * block_warps;
    let memory_us = model.device_bytes(warps, buffers) / (machine.bandwidth_gbs * 1e3);
    let bottleneck = if memory_us > busy_us { Bottleneck::GlobalBandwidth } else { bound };
    Prediction { us: LAUNCH_US + corner(&[busy_us, memory_us]), bottleneck }
}

/// Bytes of shared memory that the resident blocks of an SM take, or that a carve-out takes whether they are used or not.
fn shared_taken(machine: &Machine, analysis: &Analysis, occupancy: &Occupancy, launch: &Launch) -> f64 {
    let reserved = machine.architecture.shared_reserved;
    let of_block = analysis.resources.static_shared.saturating_add(launch.shared).saturating_add(reserved);
    let carved = launch.carveout.map_or(0, |percent| machine.architecture.preferred_shared(percent));
    (f64::from(of_block) * f64::from(occupancy.blocks)).max(f64::from(carved))
}

/// Share of the accesses to local memory that the level-1 cache cannot hold: CRAT's rule, the resident threads' stacks over the
/// cache that shared memory leaves.
fn local_missed(machine: &Machine, analysis: &Analysis, occupancy: &Occupancy, shared: f64) -> f64 {
    let cache = (f64::from(machine.architecture.unified_cache) - shared).max(0.0);
    let stacks = f64::from(analysis.resources.stack_frame) * f64::from(occupancy.warps * WARP);
    if stacks <= cache { 0.0 } else { 1.0 - cache / stacks }
}

/// A smooth maximum.
fn corner(bounds: &[f64]) -> f64 {
    let most = bounds.iter().copied().fold(0.0, f64::max);
    if most == 0.0 {
        return 0.0;
    }
    most * bounds.iter().map(|bound| (bound / most).powf(SHARPNESS)).sum::<f64>().powf(SHARPNESS.recip())
}

struct Model<'a> {
    machine: &'a Machine,
    analysis: &'a Analysis,
    block_warps: f64,
    local_missed: f64,
    /// Shared memory of an SM that its blocks take, in bytes, and its warps.
    shared: f64,
    resident: f64,
}

impl Model<'_> {
    /// What barriers and spilled values that the level-1 cache lost add to a warp's cycles.
    fn extra(&self) -> f64 {
        let work = &self.analysis.work;
        let barriers = work.barriers * BARRIER_WARP * (self.block_warps - 1.0);
        let latencies = Latencies::of(self.machine.architecture.capability);
        let overflow =
            self.local_missed * work.local_sectors / ISSUES_PER_CYCLE * (latencies.l2 - latencies.l1) / OVERLAPPED;
        barriers + overflow
    }

    /// Cycles of the longest warp if it is alone.
    fn alone(&self) -> f64 {
        BLOCK_LATENCY + self.analysis.cycles + self.extra()
    }

    /// A wave with so many blocks on each SM.
    fn wave(&self, blocks: f64) -> Wave {
        let work = &self.analysis.work;
        let warps = blocks * self.block_warps * work.activity;
        let extra = self.extra();
        // Where warps differ others take the place of those that are done, unless barriers make them wait for each other.
        let average = if work.barriers > 0.0 { 1.0 } else { work.activity };
        let alone = BLOCK_LATENCY + (self.analysis.cycles + extra) * average;

        let again = self.missed(blocks * self.block_warps, self.level1());
        let cache =
            (work.sectors_loaded + work.sectors_stored + again + work.local_sectors * self.local_missed) * SECTOR_BYTES;
        let memory = work.pipes[Pipe::Memory as usize];
        let mut bounds = vec![
            (self.latency_bound(extra), alone),
            (Bottleneck::Issue, warps * self.analysis.instructions / ISSUES_PER_CYCLE),
            (Bottleneck::CacheBandwidth, warps * cache / CACHE_BYTES_PER_CYCLE),
            (Bottleneck::Launch, blocks * BLOCK_INTERVAL),
        ];
        for pipe in Pipe::ALL {
            let name = match pipe {
                Pipe::Memory if work.shared_cycles * 2.0 > memory => Bottleneck::SharedMemory,
                other => Bottleneck::Pipe(other),
            };
            bounds.push((name, warps * work.pipes[pipe as usize]));
        }
        let (bound, _) = bounds.iter().copied().fold((Bottleneck::Launch, 0.0), |a, b| if b.1 > a.1 { b } else { a });
        // The SM's own bounds overlap perfectly with each other; only the warp's latency and the busiest of them meet in a corner.
        let busiest = bounds[1..].iter().map(|bound| bound.1).fold(0.0, f64::max);
        let cycles = if blocks > 0.0 { corner(&[alone, busiest]) } else { 0.0 };
        Wave { cycles, bound }
    }

    fn latency_bound(&self, extra: f64) -> Bottleneck {
        let (cycles, memory) = (self.analysis.cycles, self.analysis.memory_cycles);
        if extra > memory && extra > cycles / 2.0 {
            Bottleneck::Barrier
        } else if memory * 2.0 > cycles {
            Bottleneck::GlobalLatency
        } else {
            Bottleneck::Latency
        }
    }

    /// Bytes of an SM's level-1 cache that shared memory leaves.
    fn level1(&self) -> f64 {
        (f64::from(self.machine.architecture.unified_cache) - self.shared).max(0.0)
    }

    /// Bytes that the level-2 cache holds: since compute capability 8.0 it is in two parts, each of which caches for the SMs next to it
    /// (NVIDIA's A100 white paper), so that what all SMs read is there twice.
    fn level2(&self) -> f64 {
        let parts = if self.machine.architecture.capability >= 80 { 2.0 } else { 1.0 };
        self.machine.l2_bytes as f64 / parts
    }

    /// Sectors that a warp reads again and that a cache has lost meanwhile: so many warps moved more than its bytes through it.
    fn missed(&self, warps: f64, cache: f64) -> f64 {
        let work = &self.analysis.work;
        let moved = (work.sectors_loaded + work.sectors_stored) * SECTOR_BYTES * warps;
        let rate = moved / self.analysis.instructions.max(1.0);
        let lost = |(interval, sectors): (usize, &f64)| {
            let between = rate * INTERVAL_MEAN * f64::from(1u32 << interval);
            if between > cache { sectors * (1.0 - cache / between) } else { 0.0 }
        };
        work.reused.iter().enumerate().map(lost).sum()
    }

    /// Bytes that so many warps move to and from device memory.
    ///
    /// Each buffer is fetched once, as far as it is touched. What is touched again comes from the level-2 cache if that holds what
    /// passes through it between two passes over the buffer; where whole lines are accessed, threads side by side share them
    /// soon, so that only lone sectors are far apart.
    fn device_bytes(&self, warps: f64, buffers: Option<&[u64]>) -> f64 {
        let warps = warps * self.analysis.work.activity;
        let size = |buffer: Option<u32>| {
            let known = buffers.zip(buffer).and_then(|(buffers, buffer)| buffers.get(buffer as usize));
            known.map_or(f64::INFINITY, |&bytes| bytes as f64)
        };
        let once = |traffic: &Traffic| (traffic.sectors * SECTOR_BYTES * warps).min(size(traffic.buffer));
        let total: f64 = self.analysis.traffic.iter().map(once).sum();
        let bytes = self.analysis.traffic.iter().filter(|traffic| traffic.sectors > 0.0).map(|traffic| {
            let moved = traffic.sectors * SECTOR_BYTES * warps;
            let whole = (moved / (traffic.lines * LINE_BYTES * warps).max(f64::MIN_POSITIVE)).clamp(LONE, 1.0);
            let once = once(traffic);
            let between = total * once / moved;
            let held = (self.machine.l2_bytes as f64 / between.max(1.0)).min(1.0).max((whole - LONE) / (1.0 - LONE));
            // No more than all of a buffer is fetched the first time, however few sectors of a line are used at once.
            (once / whole).min(size(traffic.buffer).max(once)) + (moved - once) / whole * (1.0 - held)
        });
        let resident = self.resident * f64::from(self.machine.sms);
        let again = self.missed(resident, self.level2()) * SECTOR_BYTES * warps;
        bytes.sum::<f64>() + again
    }
}

/// An interval is between its power of two and the next.
const INTERVAL_MEAN: f64 = 1.5;
/// Share of a line that a lone sector is.
const LONE: f64 = SECTOR_BYTES / LINE_BYTES;

/// Accesses to local memory that a warp overlaps, assumed.
const OVERLAPPED: f64 = 4.0;
