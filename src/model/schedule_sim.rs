//! Scheduled machine instructions -> the cycles that a warp that is alone on its SM takes for
//! each basic block.
//!
//! ptxas has encoded every hazard: those of fixed latency as stall counts, the others as
//! scoreboards. Replaying the instructions in order gives the schedule; only the variable
//! latencies come from a table. Scoreboards are carried from block to block, and the blocks of a
//! loop are replayed twice, so that they are in their steady state.

use super::calibration::Calibration;
use super::latency::Latencies;
use crate::ptx::MemorySpace;
use crate::sass::Class;
use crate::sass::control_flow::Flow;
use crate::sass::instruction::{Instruction, SCOREBOARDS};
use crate::sim::profile::Access;

/// Loops nested deeper than this are replayed only once: each level doubles the work.
const MAX_REPLAYED_TWICE_DEPTH: u32 = 4;
/// Outstanding operations of one scoreboard that are tracked individually.
const MAX_OUTSTANDING: usize = 8;
/// Sectors of a warp's access that arrive at the same time (a fully coalesced access of 4 bytes a
/// thread).
const COALESCED_SECTORS: f64 = 4.0;

/// The cycles of one execution of a basic block.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    /// Cycles from its first issue to that of its successor.
    pub cycles: f64,
    /// Of these, cycles waiting for global or local memory and textures.
    pub memory: f64,
    /// Points where the warp waits for long operations or a barrier (Ryoo et al.'s blocking
    /// instructions).
    pub blocking: f64,
}

/// Which memory serves loads from global memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadService {
    /// Latency of data that the warp has touched before.
    pub reread_latency: f64,
    /// Share of the data that others have brought into the level-2 cache that is still there; the
    /// rest comes from device memory.
    pub held: f64,
}

/// How a wait for several loads is longer than one for a single load. A wait ends when the last
/// sector has arrived. The latencies of sectors vary at random, so that the mean of the longest
/// one grows with the logarithm of their number.
#[derive(Clone, Copy, Debug, Default)]
struct WaitGrowth {
    /// Further cycles for each doubling of the number of sectors.
    doubling: f64,
    /// The sectors of this load, weighted by `doubling`.
    weight: f64,
}

pub(super) struct Replay<'a> {
    pub instructions: &'a [Instruction],
    /// The profiled or assumed access of each memory instruction.
    pub accesses: &'a [Option<Access>],
    pub flow: &'a Flow,
    pub counts: &'a [f64],
    pub calibration: &'a Calibration,
    pub latencies: Latencies,
    pub service: LoadService,
    /// Whether special functions count as long operations: only if no longer ones are executed.
    pub special_blocks: bool,
}

impl Replay<'_> {
    /// Returns the cost of each block, 0 for blocks that are not executed.
    pub(super) fn block_costs(&self) -> Vec<Cost> {
        let mut costs = vec![Cost::default(); self.flow.blocks.len()];
        let mut warp = ReplayedWarp::default();
        let all: Vec<usize> = (0..self.flow.blocks.len()).collect();
        self.walk_blocks(&all, None, &mut warp, &mut costs);
        costs
    }

    /// Replays blocks in the order of their addresses, and those of an inner loop twice in
    /// succession.
    fn walk_blocks(&self, blocks: &[usize], within: Option<usize>, warp: &mut ReplayedWarp, costs: &mut [Cost]) {
        let mut is_done = vec![false; blocks.len()];
        for at in 0..blocks.len() {
            let block = blocks[at];
            if is_done[at] {
                continue;
            }
            let Some(inner) = self.loop_below(block, within) else {
                if self.counts[block] > 0.0 {
                    costs[block] = self.replay_block(block, warp);
                }
                continue;
            };
            let inside = &self.flow.loops[inner].blocks;
            for (other, done) in blocks.iter().zip(&mut is_done).skip(at) {
                *done |= inside.binary_search(other).is_ok();
            }
            let passes = if self.flow.loops[inner].depth <= MAX_REPLAYED_TWICE_DEPTH { 2 } else { 1 };
            for _ in 0..passes {
                self.walk_blocks(inside, Some(inner), warp, costs);
            }
        }
    }

    /// The loop directly below `within` that the block is in.
    fn loop_below(&self, block: usize, within: Option<usize>) -> Option<usize> {
        let mut at = self.flow.blocks[block].innermost?;
        if Some(at) == within {
            return None;
        }
        while self.flow.loops[at].parent != within {
            at = self.flow.loops[at].parent?;
        }
        Some(at)
    }

    fn replay_block(&self, index: usize, warp: &mut ReplayedWarp) -> Cost {
        let start = warp.now;
        let mut cost = Cost::default();
        for at in self.flow.blocks[index].instructions.clone() {
            let instruction = &self.instructions[at];
            self.wait_for_operands(instruction, warp, &mut cost);
            let (latency, growth) = self.release_latency(instruction, self.accesses[at].as_ref());
            let completes = Operation { done: warp.now + latency, growth, batch: warp.next_batch(growth) };
            let is_long = self.is_long(instruction.opcode.class);
            match instruction.opcode.class {
                Class::AsyncCopy => warp.copies = warp.copies.later_of(completes),
                Class::AsyncGroup => {
                    let copies = warp.copies;
                    instruction.control.write.into_iter().for_each(|board| warp.set_board(board, copies, true));
                }
                _ => instruction.control.write.into_iter().for_each(|board| warp.set_board(board, completes, is_long)),
            }
            if instruction.opcode.class == Class::Barrier {
                warp.now += self.calibration.barrier_cycles;
                cost.blocking += 1.0;
            }
            warp.now += f64::from(instruction.control.stall.max(1));
        }
        cost.cycles = warp.now - start;
        cost
    }

    fn wait_for_operands(&self, instruction: &Instruction, warp: &mut ReplayedWarp, cost: &mut Cost) {
        let mut drained = Drained::default();
        for (index, board) in warp.boards.iter_mut().enumerate() {
            if instruction.control.wait & (1 << index) != 0 {
                board.drain_to(0, &mut drained);
            }
        }
        if let Some((index, remaining)) = instruction.partial_wait
            && let Some(board) = warp.boards.get_mut(usize::from(index))
        {
            board.drain_to(usize::from(remaining), &mut drained);
        }
        let ready = warp.ready_cycle(&drained).max(warp.now);
        if drained.is_long {
            cost.memory += ready - warp.now;
            cost.blocking += 1.0;
            // Long operations that were issued before this wait count as waited for: they are one
            // blocking point.
            warp.boards.iter_mut().for_each(|board| board.is_long = false);
            warp.has_waited = true;
        }
        warp.now = ready;
    }

    fn is_long(&self, class: Class) -> bool {
        match class {
            Class::Load(MemorySpace::Global | MemorySpace::Local | MemorySpace::Texture) => true,
            Class::Atomic(MemorySpace::Global) | Class::AsyncCopy | Class::AsyncTensor => true,
            Class::Special => self.special_blocks,
            _ => false,
        }
    }

    /// Cycles until an instruction's scoreboard is released, and how a wait for several grows.
    fn release_latency(&self, instruction: &Instruction, access: Option<&Access>) -> (f64, WaitGrowth) {
        let known = &self.latencies;
        let cycles = match instruction.opcode.class {
            Class::Special => known.special,
            Class::BitCount => known.bit_count,
            Class::Convert => known.convert,
            Class::Double => known.double,
            Class::Tensor | Class::AsyncTensor => known.tensor,
            Class::Shuffle => known.shuffle,
            Class::Reduce => known.reduce,
            Class::Match => known.reduce + self.calibration.match_cycles,
            Class::SystemRegister => known.system_register,
            Class::Fence => known.fence,
            Class::Load(MemorySpace::Shared) => known.shared + 2.0 * (access.map_or(1.0, |a| a.passes).max(1.0) - 1.0),
            Class::Load(MemorySpace::Constant) => known.constant,
            // Spilled values and local arrays hit the level-1 cache; `time.rs` adds the cycles if
            // they overflow it.
            Class::Load(MemorySpace::Local) => known.l1,
            Class::Load(MemorySpace::Texture) | Class::Store(MemorySpace::Texture) => known.texture.max(known.l2),
            Class::Load(MemorySpace::Global) | Class::AsyncCopy => return self.global_latency(access),
            Class::Atomic(MemorySpace::Shared) => known.shared_atomic,
            Class::Atomic(_) => known.global_atomic,
            _ => 0.0,
        };
        (cycles, WaitGrowth::default())
    }

    /// The latency of a load from global memory: the average over hits and misses (as Liang et
    /// al. average by hit ratio), and a cycle for each further sector. A gather waits for the
    /// last of its lanes, so that it hits only if all of them do. Of a coalesced access the new
    /// sectors at its edge have been fetched by another warp.
    fn global_latency(&self, access: Option<&Access>) -> (f64, WaitGrowth) {
        let (lines, sectors, again) = access.map_or((1.0, COALESCED_SECTORS, 0.0), |access| {
            let again = if access.lines > self.calibration.max_coalesced_lines { access.hits } else { access.in_l1 };
            (access.lines, access.sectors, again.clamp(0.0, 1.0))
        });
        let new = (lines * (1.0 - again)).max(1.0);
        // The probability that any of its lines comes from device memory, and the number of
        // sectors if so.
        let near = access.map_or(0.0, |access| access.in_l2.clamp(0.0, 1.0)) * self.service.held;
        let far = 1.0 - near.powf(new);
        let of_far = if far > 0.0 { (sectors * (1.0 - again) * (1.0 - near) / far).max(1.0) } else { 1.0 };
        let (dram, dram_doubling) = self.latencies.dram_cycles(of_far, self.calibration);
        let (l2, l2_doubling) = self.latencies.l2_cycles(new, self.calibration);
        let first = far * dram + (1.0 - far) * l2;
        let doubling = (1.0 - again) * (far * dram_doubling + (1.0 - far) * l2_doubling);
        let waited = far * of_far + (1.0 - far) * new;
        let cycles =
            again * self.service.reread_latency + (1.0 - again) * first + (sectors - COALESCED_SECTORS).max(0.0);
        (cycles, WaitGrowth { doubling, weight: doubling * waited })
    }
}

/// A warp's clock and scoreboards.
#[derive(Default)]
struct ReplayedWarp {
    now: f64,
    boards: [Scoreboard; SCOREBOARDS],
    /// The asynchronous copies that have been issued and not been committed to a group.
    copies: Operation,
    /// The loads between two waits are a batch: the number of the current one, and whether there
    /// was a wait since its last load.
    batch: u32,
    has_waited: bool,
    /// The batch that was waited for last, and the weight of its loads that have completed.
    drained: (u32, f64),
}

impl ReplayedWarp {
    fn set_board(&mut self, board: u8, operation: Operation, is_long: bool) {
        if let Some(board) = self.boards.get_mut(usize::from(board)) {
            board.push_operation(operation, is_long);
        }
    }

    /// The batch of an operation that is issued now.
    fn next_batch(&mut self, growth: WaitGrowth) -> u32 {
        if growth.weight > 0.0 && std::mem::take(&mut self.has_waited) {
            self.batch += 1;
        }
        self.batch
    }

    /// The cycle in which all that was waited for has completed: that of the latest operation,
    /// and later the more loads of its batch there are.
    fn ready_cycle(&mut self, drained: &Drained) -> f64 {
        let Operation { done, growth, batch } = drained.all;
        if growth.weight <= 0.0 {
            return done;
        }
        let before = if self.drained.0 == batch { self.drained.1 } else { 0.0 };
        let weight = before + drained.weight;
        self.drained = (batch, weight);
        done + growth.doubling * (weight / growth.weight).max(1.0).log2()
    }
}

/// An operation that releases a scoreboard when it is done.
#[derive(Clone, Copy, Debug, Default)]
struct Operation {
    done: f64,
    growth: WaitGrowth,
    batch: u32,
}

impl Operation {
    /// The later of the two.
    fn later_of(self, other: Self) -> Self {
        if other.done >= self.done { other } else { self }
    }
}

/// The operations that a wait was for: the latest one, and their weights.
#[derive(Default)]
struct Drained {
    all: Operation,
    /// The sum of the operations' weights.
    weight: f64,
    is_long: bool,
}

/// The operations outstanding on a scoreboard.
#[derive(Clone, Copy, Default)]
struct Scoreboard {
    /// The latest operations, in the order of their issue.
    latest: [Operation; MAX_OUTSTANDING],
    count: usize,
    /// The latest of all that were issued before those, and the sum of their weights.
    earlier: Operation,
    earlier_weight: f64,
    is_long: bool,
}

impl Scoreboard {
    fn push_operation(&mut self, operation: Operation, is_long: bool) {
        if self.count == MAX_OUTSTANDING {
            self.earlier = self.earlier.later_of(self.latest[0]);
            self.earlier_weight += self.latest[0].growth.weight;
            self.latest.rotate_left(1);
            self.count -= 1;
        }
        self.latest[self.count] = operation;
        self.count += 1;
        self.is_long |= is_long;
    }

    /// Waits until at most `remaining` operations are outstanding, and adds what was waited
    /// for.
    fn drain_to(&mut self, remaining: usize, drained: &mut Drained) {
        let waited = self.count.saturating_sub(remaining);
        drained.is_long |= self.is_long && (waited > 0 || self.earlier.done > 0.0);
        drained.all =
            self.latest[..waited].iter().fold(drained.all.later_of(self.earlier), |all, &one| all.later_of(one));
        drained.weight += self.earlier_weight + self.latest[..waited].iter().map(|one| one.growth.weight).sum::<f64>();
        self.latest.copy_within(waited..self.count, 0);
        self.count -= waited;
        (self.earlier, self.earlier_weight) = Default::default();
        if self.count == 0 {
            self.is_long = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_between_two_waits_wait_for_each_other() {
        let mut warp = ReplayedWarp::default();
        let mut ready = |batch: u32, loads: u32| {
            let growth = WaitGrowth { doubling: 100.0, weight: 400.0 };
            let weight = growth.weight * f64::from(loads);
            warp.ready_cycle(&Drained { all: Operation { done: 700.0, growth, batch }, weight, is_long: true })
        };
        // One load; a second and then two more of its batch, whose last is the longest of four; two
        // of the next batch at once.
        let rows = [(0, 1, 700.0), (0, 1, 800.0), (0, 2, 900.0), (1, 2, 800.0)];
        for (batch, loads, expected) in rows {
            assert_eq!(ready(batch, loads), expected, "{loads} of {batch}");
        }
    }
}
