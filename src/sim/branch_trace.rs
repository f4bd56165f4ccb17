//! Where a thread went, and how often a warp goes there: lanes that branch differently make the
//! warp go both ways, and a loop lasts as long as its longest lane, each time anew.
//!
//! Each lane is run alone, so its way is recorded: the first step of each basic block with the
//! passes of the loops around it. What lanes have in common there they execute together; the
//! union of their records is what the warp executes.

use super::program::{Operation, Program};
use std::collections::HashMap;

/// Blocks that are recorded of a lane.
const RECORDS: usize = 1536;

/// One execution of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
struct BlockRun {
    /// Passes of the outermost loop.
    outermost: u32,
    leader: u32,
    /// Of the passes of all loops around it.
    key: u64,
    /// The innermost of them.
    within: Pass,
}

/// One pass of a loop.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Pass {
    /// Of the passes of the loops around the loop.
    around: u64,
    head: u32,
    number: u64,
}

/// A loop that the thread is in.
struct Active {
    head: u32,
    /// The last step that branched back.
    end: u32,
    passes: u64,
    /// Calls that the thread was in.
    depth: usize,
    /// The key around it.
    around: u64,
}

/// The way of one lane.
#[derive(Default)]
pub(super) struct Path {
    records: Vec<BlockRun>,
    active: Vec<Active>,
    key: u64,
    /// Passes that were not run, but counted: the first of them, and the number of the one
    /// after them.
    skipped: Vec<(Pass, u64)>,
    /// Not all of it was recorded.
    pub cut: bool,
}

fn mix_hash(around: u64, head: u32, passes: u64) -> u64 {
    let mixed = (around ^ (u64::from(head) << 40) ^ passes).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

impl Path {
    /// Records that a block begins. `outer` is the head of the outermost loop around it.
    pub fn enter_block(&mut self, leader: u32, outer: u32) {
        if self.records.len() < RECORDS {
            let first = self.active.first().filter(|active| active.head == outer);
            let outermost = first.map_or(0, |first| first.passes.min(u64::from(u32::MAX)) as u32);
            let within = self.active.last().map_or(Pass::default(), |inner| Pass {
                around: inner.around,
                head: inner.head,
                number: inner.passes,
            });
            self.records.push(BlockRun { outermost, leader, key: self.key, within });
        } else {
            self.cut = true;
        }
    }

    /// Records that a branch back at `end` was taken and that `skipped` iterations were
    /// skipped.
    pub fn go_back(&mut self, head: u32, end: u32, skipped: u64, depth: usize) {
        self.go_on(head, depth);
        match self.active.iter().rposition(|active| active.head == head && active.depth == depth) {
            Some(at) => self.active.truncate(at + 1),
            None => self.active.push(Active { head, end, passes: 0, depth, around: self.key }),
        }
        if let Some(active) = self.active.last_mut() {
            active.end = active.end.max(end);
            let number = active.passes.saturating_add(1);
            active.passes = number.saturating_add(skipped);
            if skipped > 0 {
                self.skipped.push((Pass { around: active.around, head, number }, active.passes));
            }
            self.key = mix_hash(active.around, head, active.passes);
        }
    }

    /// Records that the thread continues at `step`, which ends the loops that do not
    /// contain it.
    pub fn go_on(&mut self, step: u32, depth: usize) {
        while let Some(active) = self.active.last()
            && (active.depth > depth || active.depth == depth && !(active.head..=active.end).contains(&step))
        {
            self.key = active.around;
            self.active.pop();
        }
    }
}

/// Marks the first steps of basic blocks.
pub(super) fn find_leaders(program: &Program) -> Vec<bool> {
    let mut leaders = vec![false; program.steps.len() + 1];
    leaders[0] = true;
    for routine in &program.routines {
        leaders[routine.steps.start as usize] = true;
    }
    for (at, step) in program.steps.iter().enumerate() {
        match step.operation {
            Operation::Branch(target) => {
                leaders[at + 1] = true;
                if let Some(leader) = leaders.get_mut(target as usize) {
                    *leader = true;
                }
            }
            Operation::BranchTable { list, count } => {
                for &target in program.slot_list(list, count) {
                    if let Some(leader) = leaders.get_mut(target as usize) {
                        *leader = true;
                    }
                }
            }
            _ => {}
        }
    }
    leaders
}

/// Returns the head of the outermost loop around each step, or the step itself if it is
/// in no loop.
pub(super) fn outermost_heads(program: &Program) -> Vec<u32> {
    let mut heads: Vec<u32> = (0..program.steps.len() as u32).collect();
    let mut from = program.steps.len();
    // From behind, so that the outer one of two loops that end in different places is met first.
    for (at, step) in program.steps.iter().enumerate().rev() {
        if let Operation::Branch(head) = step.operation
            && (head as usize) <= at
            && (head as usize) < from
        {
            heads[head as usize..=at.min(from - 1)].fill(head);
            from = head as usize;
        }
    }
    heads
}

/// Returns by what factor a warp executes each block more often than its busiest lane.
/// The key is the block's first step; a block without a key has the factor 1.
pub(super) fn shared_blocks(paths: &[Path]) -> HashMap<u32, f64> {
    let Some((first, others)) = paths.split_first() else { return HashMap::new() };
    if others.iter().all(|other| other.records == first.records) {
        return HashMap::new();
    }
    // Lanes that were cut off are compared as far as all of them came.
    let last = |path: &Path| path.records.last().map_or(0, |record| record.outermost);
    let horizon = paths.iter().filter(|path| path.cut).map(last).filter(|&last| last > 0).min().unwrap_or(u32::MAX);
    let mut skipped: HashMap<(u64, u32), Vec<(u64, u64)>> = HashMap::new();
    for (from, to) in paths.iter().flat_map(|path| &path.skipped) {
        let of_loop = skipped.entry((from.around, from.head)).or_default();
        if !of_loop.contains(&(from.number, *to)) {
            of_loop.push((from.number, *to));
        }
    }
    // What one lane passed unrecorded is no measure of what another has recorded there.
    let is_skipped = |pass: &Pass| {
        let of_loop = skipped.get(&(pass.around, pass.head));
        of_loop.is_some_and(|of_loop| of_loop.iter().any(|&(from, to)| (from..to).contains(&pass.number)))
    };
    let mut together: Vec<(u32, u64)> = Vec::new();
    let mut busiest: HashMap<u32, u32> = HashMap::new();
    for path in paths {
        let mut own: HashMap<u32, u32> = HashMap::new();
        let counts = |record: &&BlockRun| record.outermost < horizon && !is_skipped(&record.within);
        for record in path.records.iter().filter(counts) {
            together.push((record.leader, record.key));
            *own.entry(record.leader).or_default() += 1;
        }
        for (leader, count) in own {
            let most = busiest.entry(leader).or_default();
            *most = count.max(*most);
        }
    }
    together.sort_unstable();
    together.dedup();
    let mut union: HashMap<u32, u32> = HashMap::new();
    for (leader, _) in together {
        *union.entry(leader).or_default() += 1;
    }
    let ratio = |(leader, count): (u32, u32)| {
        let most = busiest.get(&leader).copied().unwrap_or(1).max(1);
        (leader, (f64::from(count) / f64::from(most)).max(1.0))
    };
    union.into_iter().map(ratio).collect()
}
