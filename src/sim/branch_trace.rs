//! Branch traces of lanes that were run alone, and how often their warp executes each block. If
//! lanes diverge, the warp executes both sides; a loop lasts as long as its longest lane.
//!
//! A trace has the first step of each basic block that a lane executes, with the iterations of the
//! loops around it. Entries that several lanes have in common are executed together; the union
//! of the traces is what the warp executes.

use super::program::{Operation, Program};
use std::collections::HashMap;

/// Maximum number of blocks that are recorded of a lane.
const MAX_RECORDS: usize = 1536;

/// One execution of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
struct BlockRun {
    /// Iteration of the outermost loop.
    outermost: u32,
    leader: u32,
    /// Hash of the iterations of all loops around it.
    key: u64,
    /// The iteration of the innermost loop.
    within: Pass,
}

/// One iteration of a loop.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Pass {
    /// Hash of the iterations of the loops around the loop.
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
    /// Depth of the call stack.
    depth: usize,
    /// The key around it.
    around: u64,
}

/// The branch trace of one lane.
#[derive(Default)]
pub(super) struct LaneTrace {
    records: Vec<BlockRun>,
    active: Vec<Active>,
    key: u64,
    /// Iterations that were counted without being run: the first of them, and the number of the
    /// one after the last.
    skipped: Vec<(Pass, u64)>,
    /// Whether the trace is incomplete.
    pub cut: bool,
}

fn mix_hash(around: u64, head: u32, passes: u64) -> u64 {
    let mixed = (around ^ (u64::from(head) << 40) ^ passes).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

impl LaneTrace {
    /// Records that a block begins. `outer` is the head of the outermost loop around it.
    pub fn enter_block(&mut self, leader: u32, outer: u32) {
        if self.records.len() < MAX_RECORDS {
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
    pub fn loop_back(&mut self, head: u32, end: u32, skipped: u64, depth: usize) {
        self.continue_at(head, depth);
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
    pub fn continue_at(&mut self, step: u32, depth: usize) {
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
pub(super) fn divergence_factors(traces: &[LaneTrace]) -> HashMap<u32, f64> {
    let Some((first, others)) = traces.split_first() else { return HashMap::new() };
    if others.iter().all(|other| other.records == first.records) {
        return HashMap::new();
    }
    // Lanes that were cut off are compared as far as all of them came.
    let last = |trace: &LaneTrace| trace.records.last().map_or(0, |record| record.outermost);
    let horizon = traces.iter().filter(|trace| trace.cut).map(last).filter(|&last| last > 0).min().unwrap_or(u32::MAX);
    let mut skipped: HashMap<(u64, u32), Vec<(u64, u64)>> = HashMap::new();
    for (from, to) in traces.iter().flat_map(|trace| &trace.skipped) {
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
    for trace in traces {
        let mut own: HashMap<u32, u32> = HashMap::new();
        let counts = |record: &&BlockRun| record.outermost < horizon && !is_skipped(&record.within);
        for record in trace.records.iter().filter(counts) {
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
