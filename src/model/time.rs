//! The analysis of a kernel, occupancy and launch -> a predicted time and what bounds it.
//!
//! Blocks run in waves of resident blocks. A wave lasts as long as one warp alone takes, or as
//! long as the SM needs to issue and execute the work of all its warps, whichever is longer; a
//! kernel lasts as long as its waves, or as long as memory needs for its traffic. The warps of a
//! block request memory at the same time and are served one after another, which lengthens the
//! block's latency. Near the point where two bounds are equal, neither is reached: a power mean
//! rounds the corner. Absolute times are rough (static models are 20 to 50 % off); what counts
//! is the order of a kernel's configurations.

use super::analysis::{Analysis, L2_HELD_SHARES, Traffic, Work};
use super::bottleneck::Bottleneck;
use super::breakdown::Terms;
use super::caches::{Caches, L2Traffic, LINE_BYTES, SECTOR_BYTES};
use super::calibration::Calibration;
use super::latency::Latencies;
use super::occupancy::{Limiter, Occupancy};
use crate::gpu::{Machine, WARP};
use crate::launch::Launch;
use crate::sass::Pipe;
use serde::{Deserialize, Serialize};

/// A predicted time and its bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Microseconds; infinite if the kernel cannot be launched.
    pub us: f64,
    pub bottleneck: Bottleneck,
    /// Cycles of a warp alone, with the memory latencies of this launch's cache hits and misses.
    pub cycles: f64,
    pub terms: Terms,
}

impl Prediction {
    /// Returns the prediction for a launch that is not possible.
    pub(super) fn impossible(analysis: &Analysis) -> Self {
        let (us, cycles) = (f64::INFINITY, analysis.cycles);
        Self { us, bottleneck: Bottleneck::Launch, cycles, terms: Terms::default() }
    }
}

/// Instructions that an SM issues in a cycle.
const ISSUES_PER_CYCLE: f64 = 4.0;

/// The terms of a wave, in cycles, and the bottleneck of the greatest.
struct Wave {
    cycles: Terms,
    bound: Bottleneck,
}

/// Predicts the time of one launch. `buffers` are the sizes of the workload's buffers in bytes,
/// if known: they tell how much of the data that is read repeatedly the caches hold.
pub fn predict_time(
    machine: &Machine,
    analysis: &Analysis,
    launch: &Launch,
    occupancy: &Occupancy,
    buffers: Option<&[u64]>,
) -> Prediction {
    if occupancy.blocks == 0 || launch.threads() == 0 {
        return Prediction::impossible(analysis);
    }
    let sms = f64::from(machine.sms.max(1));
    let all = launch.blocks() as f64;
    // The blocks that have anything to do.
    let blocks = (all * (1.0 - analysis.work.idle)).max(1.0);
    let max_blocks = f64::from(occupancy.blocks);
    let block_warps = f64::from(launch.block_threads().div_ceil(WARP));
    let caches = Caches::new(machine, analysis, launch, occupancy, buffers);
    let resident_warps = max_blocks.min((blocks / sms).ceil()) * block_warps;
    let local_miss_share = caches.local_miss_share(resident_warps);
    let cycles = analysis.cycles;
    let calibration = &analysis.calibration;
    let mut model = Model {
        machine,
        analysis,
        block_warps,
        local_miss_share,
        cycles,
        l2_traffic: caches.moved_sectors(),
        caches,
        active_ratio: all / blocks,
    };
    let device = model.caches.device_traffic();
    model.cycles = model.latency_cycles(blocks.min(sms * max_blocks) / sms * block_warps, device.held);

    // Whole waves, then the remaining blocks, spread evenly over the SMs.
    let waves = (blocks / (sms * max_blocks)).floor();
    let left = blocks - waves * sms * max_blocks;
    let whole = model.compute_wave(max_blocks);
    // Idle blocks take places on SMs, too: the working ones of a grid that fits at once are not
    // spread evenly.
    let imbalance = if waves < 1.0 && blocks < all { calibration.placement_imbalance } else { 1.0 };
    let tail = model.compute_wave(fullest_blocks(left / sms, max_blocks, imbalance));
    let has_tail = left > 0.0;
    let per_us = machine.clock_ghz * 1e3;
    let part =
        |of: fn(&Terms) -> f64| (waves * of(&whole.cycles) + if has_tail { of(&tail.cycles) } else { 0.0 }) / per_us;
    let terms = Terms {
        // No kernel ends before its longest warp does.
        latency: part(|of| of.latency).max(model.lone_warp_cycles() / per_us),
        issue: part(|of| of.issue),
        pipe: part(|of| of.pipe),
        memory_pipe: part(|of| of.memory_pipe),
        cache: part(|of| of.cache),
        stored: if waves >= 1.0 { whole.cycles.stored } else { tail.cycles.stored },
        device: device.bytes / (machine.bandwidth_gbs * 1e3),
        atomics: model.atomic_us(),
        constant: part(|of| of.constant),
        launch: part(|of| of.launch),
        queue: queue_share(analysis, max_blocks.min((blocks / sms).max(1.0))),
        overhead: calibration.launch_us,
    };
    let bound = if waves >= 1.0 { whole.bound } else { tail.bound };
    // The bottleneck is the greatest term.
    let Terms { latency, issue, pipe, memory_pipe, cache, constant, .. } = terms;
    // The fetches that complete sectors are bound by device memory.
    let fetched = model.fetch_cycles() * model.caches.warps / sms / per_us;
    let on_chip = [latency, issue, pipe, memory_pipe, cache - fetched, constant];
    let greatest_on_chip = on_chip.into_iter().fold(0.0, f64::max);
    let without_atomics = Terms { atomics: 0.0, launch: 0.0, ..terms }.time_without_launch();
    let without_launch = Terms { launch: 0.0, ..terms }.time_without_launch();
    let bottleneck = match bound {
        _ if terms.launch > without_launch => Bottleneck::Launch,
        _ if terms.atomics > without_atomics => Bottleneck::Atomics,
        _ if terms.device > greatest_on_chip => Bottleneck::GlobalBandwidth,
        bound => bound,
    };
    // A latency-bound kernel has too few resident warps; if the grid has more, a resource limits
    // them.
    let waits = matches!(bottleneck, Bottleneck::GlobalLatency | Bottleneck::Latency) && waves >= 1.0;
    let bottleneck = match occupancy.limiter {
        Limiter::Registers if waits => Bottleneck::RegisterCapacity,
        Limiter::SharedMemory if waits => Bottleneck::SharedCapacity,
        _ => bottleneck,
    };
    Prediction {
        us: terms.time_us_with(calibration.corner_exponent),
        bottleneck,
        cycles: model.cycles + model.extra_cycles(),
        terms,
    }
}

/// The share of the memory terms that is added to the latency because of queueing, with this
/// many blocks on each SM.
///
/// The warps of a block start at the same time, so that they request memory at the same time,
/// and the block ends with the last of them. So a block lasts longer than a warp alone by the
/// time that its warps wait for each other, and the more so the fewer blocks share an SM. That
/// holds once between two barriers, after which all warps start together again; if there are
/// several waits between two barriers, only the first one is simultaneous.
fn queue_share(analysis: &Analysis, blocks: f64) -> f64 {
    let stretches = analysis.work.barriers + 1.0;
    let waits = (analysis.regions / stretches).max(1.0);
    analysis.calibration.queue_share / (waits * blocks)
}

/// Blocks of the fullest SM, with `each` blocks for each SM on average and at most `max_blocks`
/// on one.
fn fullest_blocks(each: f64, max_blocks: f64, imbalance: f64) -> f64 {
    (each * imbalance).ceil().min(max_blocks)
}

/// How long the average block is resident, over the time of the busiest warp of the grid. A block
/// is replaced by another one as soon as its last warp ends; with barriers its warps wait for
/// each other.
fn residence_ratio(work: &Work, active_ratio: f64, straggler_power: f64) -> f64 {
    if work.barriers > 0.0 {
        1.0
    } else {
        (work.activity * active_ratio * work.straggling.powf(straggler_power)).min(1.0)
    }
}

struct Model<'a> {
    machine: &'a Machine,
    analysis: &'a Analysis,
    block_warps: f64,
    local_miss_share: f64,
    /// Cycles of a warp alone, with the memory latencies of this launch.
    cycles: f64,
    /// A warp's traffic with the level-2 cache, without re-reads after evictions from the level-1
    /// cache.
    l2_traffic: L2Traffic,
    caches: Caches<'a>,
    /// All blocks over those that have anything to do: the work of a warp of the latter over that
    /// of the average warp of the grid.
    active_ratio: f64,
}

impl Model<'_> {
    /// Further cycles of a warp for barriers, and for spilled values that miss the level-1 cache.
    fn extra_cycles(&self) -> f64 {
        self.barrier_cycles() + self.overflow_cycles()
    }

    fn barrier_cycles(&self) -> f64 {
        self.analysis.work.barriers * self.analysis.calibration.barrier_cycles_per_warp * (self.block_warps - 1.0)
    }

    fn overflow_cycles(&self) -> f64 {
        let latencies = Latencies::for_capability(self.machine.architecture.capability);
        let lost = self.local_miss_share * (self.analysis.work.local_loaded + self.analysis.work.local_stored);
        lost / ISSUES_PER_CYCLE * (latencies.l2 - latencies.l1) / self.analysis.calibration.local_overlap
    }

    /// Cycles of the longest warp if it is alone on its SM.
    fn lone_warp_cycles(&self) -> f64 {
        self.cycles + self.extra_cycles()
    }

    /// Computes a wave with this many blocks on each SM.
    fn compute_wave(&self, blocks: f64) -> Wave {
        let Analysis { work, calibration, .. } = self.analysis;
        let warps = blocks * self.block_warps * self.active_ratio;
        let extra = self.extra_cycles();
        let alone = (self.cycles + extra) * residence_ratio(work, self.active_ratio, calibration.straggler_power);

        let again = self.caches.l1_misses(blocks * self.block_warps);
        // Spills are written through to the level-2 cache, and reloads hit the level-1 cache as
        // far as it holds them, as the recorded spaces of an H200 show.
        let local = work.local_stored + work.local_loaded * self.local_miss_share;
        let local_lines = work.local_stored_lines + work.local_loaded_lines * self.local_miss_share;
        let cache = self.l2_traffic.bytes + (again + local) * SECTOR_BYTES;
        let lines = self.l2_traffic.lines + again * self.caches.lines_per_sector() + local_lines;
        let partial = self.l2_traffic.partial + work.local_partial;
        let exchanged = |bytes: f64, lines: f64, partial: f64| {
            let bytes = (bytes - partial * SECTOR_BYTES).max(0.0) / calibration.l2_bytes_per_cycle;
            bytes.max(lines * calibration.l2_line_cycles) + partial * calibration.partial_store_cycles
        };
        let in_parts = self.split_store_cycles(blocks * self.block_warps) + self.fetch_cycles();
        let stored =
            exchanged(self.l2_traffic.stored, self.l2_traffic.stored_lines, self.l2_traffic.partial) + in_parts;
        let exchanged = exchanged(cache, lines, partial) + in_parts;
        let memory = work.pipes[Pipe::Memory as usize];
        let pipe = |pipe: Pipe| warps * work.pipes[pipe as usize];
        let busiest = Pipe::ALL.into_iter().filter(|pipe| *pipe != Pipe::Memory);
        let busiest = busiest.fold(Pipe::Alu, |a, b| if pipe(b) > pipe(a) { b } else { a });
        let cycles = Terms {
            latency: if blocks > 0.0 { alone } else { 0.0 },
            issue: warps * self.analysis.mean_instructions / ISSUES_PER_CYCLE,
            pipe: pipe(busiest),
            memory_pipe: pipe(Pipe::Memory) + warps * lines * calibration.fill_cycles,
            cache: warps * exchanged,
            stored: if exchanged > 0.0 { (stored / exchanged).min(1.0) } else { 0.0 },
            device: 0.0,
            atomics: 0.0,
            constant: warps * work.exposed_constants * calibration.constant_cycles,
            launch: blocks * self.active_ratio * calibration.block_interval * f64::from(self.machine.sms),
            queue: 0.0,
            overhead: 0.0,
        };
        let memory_bound = match (work.shared_cycles, work.exchange_cycles) {
            (shared, _) if shared * 2.0 > memory => Bottleneck::SharedMemory,
            (_, exchange) if exchange * 2.0 > memory => Bottleneck::Exchange,
            _ => Bottleneck::Pipe(Pipe::Memory),
        };
        let bounds = [
            (self.latency_bound(), cycles.latency),
            (Bottleneck::Issue, cycles.issue),
            (Bottleneck::CacheBandwidth, cycles.cache),
            (Bottleneck::ConstantCache, cycles.constant),
            (Bottleneck::Pipe(busiest), cycles.pipe),
            (memory_bound, cycles.memory_pipe),
        ];
        let (bound, _) = bounds.into_iter().fold((Bottleneck::Launch, 0.0), |a, b| if b.1 > a.1 { b } else { a });
        Wave { cycles, bound }
    }

    /// Cycles of an SM, for each warp, for the sectors that several stores complete, with this
    /// many warps on each SM.
    fn split_store_cycles(&self, warps: f64) -> f64 {
        let open = self.analysis.work.open_lines * LINE_BYTES * warps * f64::from(self.machine.sms);
        self.analysis.calibration.split_store_cycles
            * self.l2_traffic.completed
            * (open / self.machine.l2_bytes as f64).min(1.0)
    }

    /// Cycles of an SM, for each warp, to fetch the other bytes of sectors that are evicted
    /// incomplete.
    fn fetch_cycles(&self) -> f64 {
        self.analysis.calibration.unfinished_cycles * self.l2_traffic.unfinished
    }

    fn latency_bound(&self) -> Bottleneck {
        let (cycles, memory) = (self.cycles, self.analysis.memory_cycles);
        let waits = [
            // With more registers nothing would be spilled.
            (Bottleneck::RegisterCapacity, self.overflow_cycles()),
            (Bottleneck::Barrier, self.barrier_cycles()),
        ];
        let of_memory = if memory * 2.0 > cycles { Bottleneck::GlobalLatency } else { Bottleneck::Latency };
        let (bound, _) =
            waits.into_iter().fold((of_memory, memory.max(cycles / 2.0)), |a, b| if b.1 > a.1 { b } else { a });
        bound
    }

    /// Cycles of a warp alone, with the cache misses of this many warps on each SM; the level-2
    /// cache holds the share `held` of what others have brought into it.
    fn latency_cycles(&self, warps: f64, held: f64) -> f64 {
        let analysis = self.analysis;
        let latencies = Latencies::for_capability(self.machine.architecture.capability);
        let again: f64 = analysis.reuses.iter().map(|reuse| reuse.read).sum();
        let share = |part: f64, whole: f64| if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 };
        let l1_lost = share(self.caches.l1_misses(warps), again);
        let l2_lost = share(self.caches.l2_misses(warps * f64::from(self.machine.sms), |of| of.read), again);
        let dram_factor = (latencies.dram - latencies.l2) / (latencies.l2 - latencies.l1);
        analysis.cycles + analysis.l2_reread_cycles * (l1_lost + l2_lost * dram_factor)
            - l2_saved_cycles(analysis, held)
    }

    /// Microseconds for the atomics of all warps on the most contended buffer.
    fn atomic_us(&self) -> f64 {
        let of = |of: &Traffic| {
            let lines = (self.caches.buffer_bytes(of.buffer) / LINE_BYTES).max(1.0);
            of.busy_ns * self.caches.warps / concurrent_atomic_lines(lines, &self.analysis.calibration) / 1e3
        };
        self.analysis.traffic.iter().map(of).fold(0.0, f64::max)
    }
}

/// Cycles that a warp waits less because the level-2 cache holds the share `held` of what others
/// have brought into it: interpolated between [`L2_HELD_SHARES`].
fn l2_saved_cycles(analysis: &Analysis, held: f64) -> f64 {
    let (mut share, mut cycles) = (0.0, 0.0);
    for (to, of) in L2_HELD_SHARES.into_iter().zip(analysis.l2_saved_cycles) {
        if held <= to {
            return cycles + (of - cycles) * (held - share) / (to - share);
        }
        (share, cycles) = (to, of);
    }
    cycles
}

/// How many lines are updated atomically at the same time, of this many.
fn concurrent_atomic_lines(lines: f64, calibration: &Calibration) -> f64 {
    (1.0 / (calibration.atomic_unit_lines / lines + 1.0 / calibration.max_atomic_lines)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::calibration::CALIBRATION;
    use super::*;

    #[test]
    fn a_block_stays_until_its_longest_warp_is_done() {
        let of = |activity: f64, straggling: f64, barriers: f64| {
            residence_ratio(
                &Work { activity, straggling, barriers, ..Work::default() },
                1.0,
                CALIBRATION.straggler_power,
            )
        };
        assert_eq!(of(1.0, 1.0, 0.0), 1.0);
        // Half of the blocks leave at once; in each of them one warp works; all wait at a barrier.
        assert_eq!(of(0.5, 1.0, 0.0), 0.5);
        assert!(of(0.25, 4.0, 0.0) > 0.4 && of(0.25, 4.0, 0.0) <= 1.0);
        assert_eq!(of(0.25, 1.0, 2.0), 1.0);
    }

    #[test]
    fn the_first_blocks_of_a_grid_crowd_on_some_multiprocessors() {
        // The first of how many that fit on each of 132 SMs, and those of the fullest SM
        // (`placement.txt`).
        for (first, max_blocks, most) in [
            (66.0, 2.0, 1.0),
            (132.0, 2.0, 2.0),
            (99.0, 4.0, 2.0),
            (198.0, 4.0, 3.0),
            (264.0, 8.0, 3.0),
            (528.0, 8.0, 6.0),
            (1056.0, 16.0, 11.0),
            (2112.0, 32.0, 22.0),
        ] {
            let imbalance = CALIBRATION.placement_imbalance;
            assert_eq!(fullest_blocks(first / 132.0, max_blocks, imbalance), most, "{first} of {max_blocks} each");
        }
        assert_eq!(fullest_blocks(2.96, 8.0, 1.0), 3.0);
        assert_eq!(fullest_blocks(7.0, 8.0, CALIBRATION.placement_imbalance), 8.0);
    }

    #[test]
    fn lines_are_updated_at_once_as_on_an_h200() {
        // Those of `atomics.txt` that lanes update at random: one update of a line takes 0.64 ns.
        for (lines, updates) in [(32.0, 11_170.0), (64.0, 15_145.0), (256.0, 31_195.0), (65_536.0, 85_279.0)] {
            let modelled: f64 = concurrent_atomic_lines(lines, &CALIBRATION) / 0.64e-3;
            assert!((modelled / updates - 1.0).abs() < 0.5, "{lines}: {modelled:.0} for {updates}");
        }
        assert_eq!(concurrent_atomic_lines(1.0, &CALIBRATION), 1.0);
    }
}
