//! Scheduled instructions -> the cycles that a single warp takes for each block, uncontended.
//!
//! ptxas has encoded every hazard: those of fixed latency as stall counts, the others as scoreboards. Replaying them in order gives
//! the schedule; only the variable latencies come from a table. Scoreboards are carried from block to block, and the blocks of a
//! loop are replayed twice, so that they are in their steady state.

use super::latency::{self, Latencies};
use super::profile::{Access, Space};
use crate::cubin::flow::Flow;
use crate::cubin::sass::{Class, Instruction, SCOREBOARDS};

/// Loops nested deeper than this are replayed once: each level doubles the work.
const STEADY_DEPTH: u32 = 4;
/// Operations outstanding on one scoreboard that are told apart.
const OUTSTANDING: usize = 8;
/// Sectors of a warp's access that arrive together (a fully coalesced access of 4 bytes a thread).
const TOGETHER: f64 = 4.0;
/// Lines of an access beyond which its lanes gather from all over.
const GATHERED: f64 = 3.0;

/// What a block costs each time that it is executed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    /// From its first issue to its successor's.
    pub cycles: f64,
    /// Of these, cycles waiting for global or local memory and textures.
    pub memory: f64,
    /// Points where the warp waits for long operations or a barrier (Ryoo et al.'s blocking instructions).
    pub blocking: f64,
}

/// Latencies of loads from global memory, by what serves them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    /// Of what the warp has touched before, and of what it has not.
    pub again: f64,
    pub first: f64,
}

pub(super) struct Replay<'a> {
    pub instructions: &'a [Instruction],
    /// What the profile says of each memory instruction.
    pub accesses: &'a [Option<Access>],
    pub flow: &'a Flow,
    pub counts: &'a [f64],
    pub latencies: Latencies,
    pub served: Served,
    /// Whether special functions count as long operations: only where nothing longer is executed.
    pub special_blocks: bool,
}

impl Replay<'_> {
    /// The cost of each block; 0 for those that are not executed.
    pub(super) fn run(&self) -> Vec<Cost> {
        let mut costs = vec![Cost::default(); self.flow.blocks.len()];
        let mut warp = Warp::default();
        let all: Vec<usize> = (0..self.flow.blocks.len()).collect();
        self.walk(&all, None, &mut warp, &mut costs);
        costs
    }

    /// Replays blocks in the order of their addresses; those of an inner loop once more after its end.
    fn walk(&self, blocks: &[usize], within: Option<usize>, warp: &mut Warp, costs: &mut [Cost]) {
        let mut is_done = vec![false; blocks.len()];
        for at in 0..blocks.len() {
            let block = blocks[at];
            if is_done[at] {
                continue;
            }
            let Some(inner) = self.loop_below(block, within) else {
                if self.counts[block] > 0.0 {
                    costs[block] = self.block(block, warp);
                }
                continue;
            };
            let inside = &self.flow.loops[inner].blocks;
            for (other, done) in blocks.iter().zip(&mut is_done).skip(at) {
                *done |= inside.binary_search(other).is_ok();
            }
            let passes = if self.flow.loops[inner].depth <= STEADY_DEPTH { 2 } else { 1 };
            for _ in 0..passes {
                self.walk(inside, Some(inner), warp, costs);
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

    fn block(&self, index: usize, warp: &mut Warp) -> Cost {
        let start = warp.now;
        let mut cost = Cost::default();
        for at in self.flow.blocks[index].instructions.clone() {
            let instruction = &self.instructions[at];
            self.wait(instruction, warp, &mut cost);
            let completes = warp.now + self.latency(instruction, self.accesses[at].as_ref());
            let is_long = self.is_long(instruction.opcode.class);
            match instruction.opcode.class {
                Class::AsyncCopy => warp.copies = warp.copies.max(completes),
                Class::AsyncGroup => {
                    let done = warp.copies;
                    instruction.control.write.into_iter().for_each(|board| warp.set(board, done, true));
                }
                _ => instruction.control.write.into_iter().for_each(|board| warp.set(board, completes, is_long)),
            }
            if let Some(board) = instruction.control.read {
                warp.set(board, warp.now + latency::OPERANDS_READ, false);
            }
            if instruction.opcode.class == Class::Barrier {
                warp.now += latency::BARRIER;
                cost.blocking += 1.0;
            }
            warp.now += f64::from(instruction.control.stall.max(1));
        }
        cost.cycles = warp.now - start;
        cost
    }

    fn wait(&self, instruction: &Instruction, warp: &mut Warp, cost: &mut Cost) {
        let mut ready = warp.now;
        let mut is_long = false;
        for (index, board) in warp.boards.iter_mut().enumerate() {
            if instruction.control.wait & (1 << index) != 0 {
                let (done, was_long) = board.drain(0);
                ready = ready.max(done);
                is_long |= was_long;
            }
        }
        if let Some((index, remaining)) = instruction.partial_wait
            && let Some(board) = warp.boards.get_mut(usize::from(index))
        {
            let (done, was_long) = board.drain(usize::from(remaining));
            ready = ready.max(done);
            is_long |= was_long;
        }
        if is_long {
            cost.memory += ready - warp.now;
            cost.blocking += 1.0;
            // Operations that were issued before the wait are one unit with those waited for.
            warp.boards.iter_mut().for_each(|board| board.is_long = false);
        }
        warp.now = ready;
    }

    fn is_long(&self, class: Class) -> bool {
        match class {
            Class::Load(Space::Global | Space::Local | Space::Texture) => true,
            Class::Atomic(Space::Global) | Class::AsyncCopy | Class::AsyncTensor => true,
            Class::Special => self.special_blocks,
            _ => false,
        }
    }

    /// Cycles until an instruction's scoreboard is released.
    fn latency(&self, instruction: &Instruction, access: Option<&Access>) -> f64 {
        let known = &self.latencies;
        match instruction.opcode.class {
            Class::Special => known.special,
            Class::BitCount => known.bit_count,
            Class::Convert => known.convert,
            Class::Double => known.double,
            Class::Tensor | Class::AsyncTensor => known.tensor,
            Class::Shuffle => known.shuffle,
            Class::Reduce => known.reduce,
            Class::Match => known.reduce + latency::MATCH,
            Class::SystemRegister => known.system_register,
            Class::Fence => known.fence,
            Class::Load(Space::Shared) => known.shared + 2.0 * (access.map_or(1.0, |a| a.passes).max(1.0) - 1.0),
            Class::Load(Space::Constant) => known.constant,
            // Spilled values and local arrays stay in the level-1 cache unless it overflows, which the time model looks at.
            Class::Load(Space::Local) => known.l1,
            Class::Load(Space::Texture) | Class::Store(Space::Texture) => known.texture.max(known.l2),
            Class::Load(Space::Global) => self.global(access),
            Class::AsyncCopy => self.global(access) + latency::ASYNC_COPY,
            Class::Atomic(Space::Shared) => known.shared_atomic,
            Class::Atomic(_) => known.global_atomic,
            _ => latency::UNKNOWN,
        }
    }

    /// The average over hits and misses (as Liang et al. average by hit ratio), and a cycle for each sector that comes later. Where lanes
    /// gather from all over, the last of them is waited for: one that misses is as bad as all. Where they lie side by side, what is new at
    /// the rim another warp has brought.
    fn global(&self, access: Option<&Access>) -> f64 {
        let Some(access) = access else { return self.served.first };
        let again = if access.lines > GATHERED { access.hits } else { access.reuse }.clamp(0.0, 1.0);
        again * self.served.again + (1.0 - again) * self.served.first + (access.sectors - TOGETHER).max(0.0)
    }
}

/// A warp's clock and scoreboards.
#[derive(Default)]
struct Warp {
    now: f64,
    boards: [Board; SCOREBOARDS],
    /// When the asynchronous copies issued so far are done.
    copies: f64,
}

impl Warp {
    fn set(&mut self, board: u8, done: f64, is_long: bool) {
        if let Some(board) = self.boards.get_mut(usize::from(board)) {
            board.push(done, is_long);
        }
    }
}

/// The operations outstanding on a scoreboard.
#[derive(Clone, Copy, Default)]
struct Board {
    /// When the latest operations are done, in the order of their issue.
    done: [f64; OUTSTANDING],
    count: usize,
    /// When all that were issued before those are done.
    earlier: f64,
    is_long: bool,
}

impl Board {
    fn push(&mut self, done: f64, is_long: bool) {
        if self.count == OUTSTANDING {
            self.earlier = self.earlier.max(self.done[0]);
            self.done.rotate_left(1);
            self.count -= 1;
        }
        self.done[self.count] = done;
        self.count += 1;
        self.is_long |= is_long;
    }

    /// Waits until at most `remaining` operations are outstanding: when that is, and whether a long one was waited for.
    fn drain(&mut self, remaining: usize) -> (f64, bool) {
        let waited = self.count.saturating_sub(remaining);
        let is_long = self.is_long && (waited > 0 || self.earlier > 0.0);
        let done = self.done[..waited].iter().fold(self.earlier, |latest, &done| latest.max(done));
        self.done.copy_within(waited..self.count, 0);
        self.count -= waited;
        self.earlier = 0.0;
        if self.count == 0 {
            self.is_long = false;
        }
        (done, is_long)
    }
}
