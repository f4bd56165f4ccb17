//! Executions of each PTX line -> executions of each basic block of the machine code (SASS).
//!
//! ptxas moves, duplicates and unrolls code, so that no single line says how often a block
//! runs. The lines of a block vote: a line votes in the loop where it is nested deepest
//! (elsewhere it was hoisted to), with its executions divided by the copies that unrolling made
//! of it there, and the weighted median wins. Loops that share lines are copies of one PTX loop,
//! unrolled by different factors; the iterations go to the most unrolled one first, as in
//! ptxas's code. The counts of blocks without votes follow from flow conservation (see
//! `flow_conservation.rs`).

use super::calibration::Calibration;
use crate::analysis::flow_conservation::conserve_flow;
use crate::ptx::MemorySpace;
use crate::sass::Class;
use crate::sass::DeviceFunction;
use crate::sass::control_flow::{Block, Flow};
use crate::sass::instruction::Instruction;
use crate::sim::Profile;
use std::collections::BTreeMap;

/// Parts of the names of ptxas's subroutines for operands that the inlined code cannot treat
/// (denormals, infinities), which are rare.
const RARE_SUBROUTINES: [&str; 3] = ["slowpath", "mediumpath", "_full"];
/// The machine code whose blocks are counted.
pub(super) struct Code<'a> {
    pub instructions: &'a [Instruction],
    /// PTX line of each instruction.
    pub lines: &'a [Option<u32>],
    pub flow: &'a Flow,
    pub functions: &'a [DeviceFunction<'a>],
    pub calibration: &'a Calibration,
}

/// Executions of each block.
pub(super) struct BlockCounts {
    /// By the busiest warp.
    pub busiest: Vec<f64>,
    /// By the average warp of the grid.
    pub mean: Vec<f64>,
    /// Further instructions of the average warp because of divergence: the diverged parts of a
    /// warp execute the instructions before the point of reconvergence in its block one after
    /// another.
    pub divergence_overhead: f64,
}

/// Returns how often each block is executed.
///
/// `trips` are the assumed iterations of loops that the profile does not cover, from the
/// outermost depth inwards; the last one is for all deeper ones, too.
pub(super) fn block_counts(code: &Code<'_>, profile: Option<&Profile>, trips: &[f64]) -> BlockCounts {
    let diverged_only = diverged_only_blocks(code);
    let never: Vec<bool> = (code.flow.blocks.iter().enumerate())
        .map(|(index, block)| {
            diverged_only[index] || calls_rare_subroutine(code, block) && is_optional(code.flow, block)
        })
        .collect();
    let dominators = code.flow.immediate_dominators();
    let votes = profile.map(|profile| Votes::new(code, profile, &diverged_only, &dominators));
    let conserved = |observed: Vec<Option<f64>>| {
        let observed: Vec<_> =
            observed.into_iter().zip(&never).map(|(of, never)| if *never { Some(0.0) } else { of }).collect();
        conserve_flow(code.flow, &dominators, &observed, trips)
    };
    let observed = votes.as_ref().map_or_else(|| vec![None; code.flow.blocks.len()], Votes::vote_counts);
    let (busiest, _) = conserved(observed);
    let Some(votes) = votes else {
        return BlockCounts { mean: busiest.clone(), busiest, divergence_overhead: 0.0 };
    };
    // Copies of a line share its executions in the same ratio for the average warp as for the
    // busiest one.
    let ratios = busiest.iter().zip(votes.mean_ratios()).map(|(&count, part)| match part {
        Some(part) => Some(part * count),
        None => (count == 0.0).then_some(0.0),
    });
    let (mean, inflow) = conserved(ratios.collect());
    let divergence_overhead = code.flow.blocks.iter().zip(&mean).zip(&inflow).map(|((block, count), arriving)| {
        let meets = block.instructions.clone().rposition(|at| code.instructions[at].opcode.mnemonic == RECONVERGENCE);
        meets.map_or(0.0, |before| (before + 1) as f64 * (arriving - count).max(0.0))
    });
    BlockCounts { divergence_overhead: divergence_overhead.sum(), mean, busiest }
}

/// The instruction at which the diverged parts of a warp wait for each other.
const RECONVERGENCE: &str = "BSYNC";

/// Whether each block is reached only by diverged threads of a warp. Such blocks are copies, for
/// diverged warps, of code that needs all threads of a warp (shuffles, votes). In PTX that
/// requires all of them the warp has converged, so that the copies are not executed.
fn diverged_only_blocks(code: &Code<'_>) -> Vec<bool> {
    let flow = code.flow;
    let mut unreached = vec![true; flow.blocks.len()];
    let mut stack: Vec<usize> = flow.entries.first().copied().into_iter().collect();
    while let Some(index) = stack.pop() {
        if !std::mem::replace(&mut unreached[index], false) {
            continue;
        }
        let block = &flow.blocks[index];
        let last = code.instructions.get(block.instructions.end.wrapping_sub(1));
        let diverged_target = last.filter(|last| last.if_diverged).and_then(|last| last.target);
        let is_diverged_target = |to: usize| {
            let first = code.instructions.get(flow.blocks[to].instructions.start);
            diverged_target.is_some() && first.map(|first| first.offset) == diverged_target
        };
        stack.extend(block.successors.iter().chain(&block.callee).copied().filter(|&to| !is_diverged_target(to)));
    }
    unreached
}

fn calls_rare_subroutine(code: &Code<'_>, block: &Block) -> bool {
    let entry = block.callee.and_then(|callee| code.instructions.get(code.flow.blocks[callee].instructions.start));
    let Some(entry) = entry else { return false };
    let name =
        code.functions.iter().find(|function| function.offset == entry.offset).map_or("", |function| function.name);
    name.starts_with("$__internal_") && RARE_SUBROUTINES.iter().any(|part| name.contains(part))
}

/// Whether a branch can skip the block.
fn is_optional(flow: &Flow, block: &Block) -> bool {
    block.predecessors.iter().all(|&p| flow.blocks[p].successors.len() > 1)
}

/// The index of a loop; `None` for the code outside of loops.
type Region = Option<usize>;

/// The number of copies of a line in a region: the least count over its mnemonics, because one
/// PTX instruction may become several of SASS. Only mnemonics of the greatest weight count,
/// because ptxas gives its own moves and branches some line nearby.
#[derive(Clone, Copy)]
struct Copies {
    region: Region,
    count: f64,
    weight: f64,
}

/// The instructions with one line, mnemonic and region: their number, and the weight of their
/// votes.
struct LineGroup {
    region: Region,
    mnemonic: &'static str,
    count: f64,
    weight: f64,
}

/// A line of the PTX that has instructions in the machine code.
struct PtxLine {
    /// Its executions by the busiest warp and by the average one.
    count: f64,
    mean: f64,
    /// By region.
    copies: Vec<Copies>,
    /// Of the regions that have it, those of the greatest loop depth, ascending.
    deepest_regions: Vec<Region>,
}

impl PtxLine {
    fn copies_in(&self, region: Region) -> Option<&Copies> {
        self.copies.iter().find(|copies| copies.region == region)
    }

    fn is_deepest_in(&self, region: Region) -> bool {
        self.deepest_regions.contains(&region)
    }
}

struct Votes<'a> {
    code: &'a Code<'a>,
    /// Whether the profile has any execution of its first line.
    is_entered: bool,
    lines: Vec<PtxLine>,
    /// For each instruction the index of its line in `lines`.
    line_of: Vec<Option<usize>>,
    /// For each block the indices of its lines, each once.
    of_block: Vec<Vec<usize>>,
    /// For each block the first block that is executed exactly as often; and for each of these
    /// first blocks all blocks that are.
    equivalents: Vec<usize>,
    equivalent_sets: Vec<Vec<usize>>,
}

impl<'a> Votes<'a> {
    fn new(code: &'a Code<'a>, profile: &Profile, left_out: &[bool], dominators: &[Option<usize>]) -> Self {
        let (line_of, mut lines) = number_lines(code.lines, profile);
        let mut groups: Vec<Vec<LineGroup>> = lines.iter().map(|_| Vec::new()).collect();
        for (block, _) in code.flow.blocks.iter().zip(left_out).filter(|(_, left_out)| !**left_out) {
            let region = block.innermost;
            for index in block.instructions.clone() {
                let Some(line) = line_of[index] else { continue };
                let instruction = &code.instructions[index];
                let mnemonic = instruction.opcode.mnemonic;
                let known = groups[line].iter_mut().find(|known| known.region == region && known.mnemonic == mnemonic);
                match known {
                    Some(known) => known.count += 1.0,
                    None => groups[line].push(LineGroup {
                        region,
                        mnemonic,
                        count: 1.0,
                        weight: vote_weight(instruction, code.calibration),
                    }),
                }
            }
        }
        let depth = |region: Region| region.map_or(0, |index| code.flow.loops[index].depth);
        for (line, groups) in lines.iter_mut().zip(&groups) {
            for one in groups {
                match line.copies.iter_mut().find(|copies| copies.region == one.region) {
                    Some(known) if known.weight > one.weight => {}
                    Some(known) if known.weight == one.weight => known.count = known.count.min(one.count),
                    Some(known) => (known.count, known.weight) = (one.count, one.weight),
                    None => line.copies.push(Copies { region: one.region, count: one.count, weight: one.weight }),
                }
            }
            let regions = || line.copies.iter().map(|copies| copies.region);
            let deepest = regions().map(depth).max().unwrap_or(0);
            line.deepest_regions = regions().filter(|&region| depth(region) == deepest).collect();
            line.deepest_regions.sort_unstable();
        }
        let mut seen = vec![usize::MAX; lines.len()];
        let each_once = |(number, block): (usize, &Block)| {
            let is_new = |line: &usize| std::mem::replace(&mut seen[*line], number) != number;
            line_of[block.instructions.clone()].iter().copied().flatten().filter(is_new).collect()
        };
        let of_block = code.flow.blocks.iter().enumerate().map(each_once).collect();
        let equivalents = code.flow.equivalent_blocks(dominators);
        let mut equivalent_sets: Vec<Vec<usize>> = vec![Vec::new(); code.flow.blocks.len()];
        for (index, &first) in equivalents.iter().enumerate().filter(|(index, _)| !left_out[*index]) {
            equivalent_sets[first].push(index);
        }
        let is_entered = profile.counts.values().next().is_some_and(|&first| first > 0.0);
        Self { code, is_entered, lines, line_of, of_block, equivalents, equivalent_sets }
    }

    fn vote_counts(&self) -> Vec<Option<f64>> {
        let flow = self.code.flow;
        let entered = self.loop_entries();
        let once = |block: &Block| block.innermost.map_or(0.0, |index| entered[index]);
        let mut counts: Vec<Option<f64>> =
            flow.blocks.iter().enumerate().map(|(at, block)| self.vote_of_block(at, once(block))).collect();
        for group in self.unrolled_groups() {
            self.share_iterations(&group, &mut counts);
        }
        // Every warp executes the first block once, whatever instructions ptxas moved into it.
        if let Some(&entry) = flow.entries.first()
            && flow.blocks[entry].innermost.is_none()
            && self.is_entered
        {
            counts[entry] = Some(1.0);
        }
        counts
    }

    /// How often each loop is entered: as often as the header of its parent loop is executed.
    fn loop_entries(&self) -> Vec<f64> {
        let flow = self.code.flow;
        let mut entered: Vec<f64> = Vec::with_capacity(flow.loops.len());
        // Outer loops come first.
        for inner in &flow.loops {
            let around = inner.parent.map(|outer| {
                let vote = self.vote_of_block(flow.loops[outer].header, entered[outer]);
                vote.unwrap_or(entered[outer]).max(entered[outer])
            });
            entered.push(around.unwrap_or(1.0));
        }
        entered
    }

    /// The block's executions: the weighted median of its lines' executions, each divided by the
    /// line's copies in the block's region.
    ///
    /// `entered` is how often the block's loop is entered. To save registers, ptxas recomputes in
    /// a loop values that PTX computes before it: lines that are executed no more often than
    /// `entered` are ignored if enough others are.
    fn vote_of_block(&self, block: usize, entered: f64) -> Option<f64> {
        let region = self.code.flow.blocks[block].innermost;
        let mut votes: Vec<(f64, f64)> = Vec::new();
        let mut moved: Vec<(f64, f64)> = Vec::new();
        for line in self.of_block[block].iter().map(|&line| &self.lines[line]).filter(|line| line.is_deepest_in(region))
        {
            if let Some(copies) = line.copies_in(region) {
                let into = if line.count > entered { &mut votes } else { &mut moved };
                into.push((line.count / copies.count, copies.weight));
            }
        }
        let weight = |votes: &[(f64, f64)]| votes.iter().map(|vote| vote.1).sum::<f64>();
        if weight(&votes) < self.code.calibration.min_vote_share * weight(&moved) {
            votes.append(&mut moved);
        }
        weighted_median(if votes.is_empty() { moved } else { votes })
    }

    /// The ratio of each block's executions by the average warp to those by the busiest: the
    /// weighted median of its lines' ratios.
    fn mean_ratios(&self) -> Vec<Option<f64>> {
        let mut seen = vec![usize::MAX; self.lines.len()];
        let mut ratios: Vec<Option<f64>> = Vec::with_capacity(self.of_block.len());
        for (block, own) in self.code.flow.blocks.iter().enumerate() {
            let region = own.innermost;
            // Blocks that are executed exactly as often have the same ratio.
            let first = self.equivalents[block];
            let equivalent_sets = &self.equivalent_sets[first];
            let alone = [block];
            let blocks = if equivalent_sets.contains(&block) { equivalent_sets } else { &alone[..] };
            let before = blocks.first().copied().filter(|&other| other < block);
            if let Some(before) = before.filter(|&other| self.code.flow.blocks[other].innermost == region) {
                ratios.push(ratios[before]);
                continue;
            }
            let mut votes: Vec<(f64, f64)> = Vec::new();
            let mut elsewhere: Vec<(f64, f64)> = Vec::new();
            for &line in blocks.iter().flat_map(|&block| &self.of_block[block]) {
                let of = &self.lines[line];
                if std::mem::replace(&mut seen[line], block) != block && of.count > 0.0 {
                    let weight = of.copies_in(region).map_or(0.0, |copies| copies.weight);
                    let into = if of.is_deepest_in(region) { &mut votes } else { &mut elsewhere };
                    into.push((of.mean / of.count, weight));
                }
            }
            // A block may consist of nothing but the peeled last iterations of a loop.
            ratios.push(weighted_median(if votes.is_empty() { elsewhere } else { votes }));
        }
        ratios
    }

    /// Groups of loops that are copies of one PTX loop: of the same parent, with shared lines (see
    /// [`Calibration::copy_share`]).
    fn unrolled_groups(&self) -> Vec<Vec<usize>> {
        let loops = &self.code.flow.loops;
        let mut own = vec![0_usize; loops.len()];
        let mut shared: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for line in &self.lines {
            let members: Vec<usize> = line.deepest_regions.iter().copied().flatten().collect();
            members.iter().for_each(|&index| own[index] += 1);
            for pair in members.windows(2).filter(|pair| loops[pair[0]].parent == loops[pair[1]].parent) {
                *shared.entry((pair[0], pair[1])).or_default() += 1;
            }
        }
        let mut leader: Vec<usize> = (0..loops.len()).collect();
        for ((one, other), count) in shared {
            if count as f64 >= self.code.calibration.copy_share * own[one].min(own[other]) as f64 {
                let (a, b) = (find_leader(&leader, one), find_leader(&leader, other));
                leader[a.max(b)] = a.min(b);
            }
        }
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for index in 0..loops.len() {
            groups.entry(find_leader(&leader, index)).or_default().push(index);
        }
        groups.into_values().collect()
    }

    /// Distributes the iterations of one PTX loop over its copies, the most unrolled first. The
    /// copies are loops, and straight code for the last few iterations.
    fn share_iterations(&self, group: &[usize], counts: &mut [Option<f64>]) {
        let flow = self.code.flow;
        let in_all = |line: &&PtxLine| group.iter().all(|&index| line.is_deepest_in(Some(index)));
        let shared: Vec<&PtxLine> = self.lines.iter().filter(in_all).collect();
        let Some(total) = weighted_median(shared.iter().map(|line| (line.count, 1.0)).collect()) else {
            return;
        };
        let parent = flow.loops[group[0]].parent;
        let entered = parent.and_then(|parent| counts[flow.loops[parent].header]).unwrap_or(1.0);
        let factor = |index: usize| {
            let copies = shared.iter().filter_map(|line| line.copies_in(Some(index)));
            weighted_median(copies.map(|copies| (copies.count, copies.weight)).collect()).unwrap_or(1.0)
        };
        let mut members: Vec<Copy> =
            group.iter().map(|&index| Copy { factor: factor(index), part: CopyPart::Loop(index) }).collect();
        let essential = self.essential_lines(group);
        members.extend(self.straight_copies(parent, &essential));
        if entered <= 0.0 || total <= 0.0 {
            for Copy { part, .. } in members {
                if let CopyPart::Straight(block) = part {
                    counts[block] = Some(0.0);
                }
            }
            return;
        }
        if members.len() == 1 {
            return;
        }
        members.sort_by(|a, b| b.factor.total_cmp(&a.factor).then(a.part.cmp(&b.part)));
        let mut left = total / entered;
        for Copy { factor, part } in members {
            let trips = (left / factor + 1e-6).floor();
            match part {
                CopyPart::Loop(index) => {
                    left -= trips * factor;
                    // A block's vote is kept relative to the loop's iterations.
                    let scale = entered * trips / (total / factor);
                    for &block in &flow.loops[index].blocks {
                        if flow.blocks[block].innermost == Some(index) {
                            counts[block] = counts[block].map(|count| count * scale);
                        }
                    }
                }
                CopyPart::Straight(block) => {
                    let trips = trips.min(1.0);
                    left -= trips * factor;
                    counts[block] = Some(entered * trips);
                }
            }
        }
    }

    /// The lines of memory and floating-point instructions that all loops of a group have: each
    /// copy of the loop's body contains them.
    fn essential_lines(&self, group: &[usize]) -> Vec<usize> {
        let blocks = group.iter().flat_map(|&index| &self.code.flow.loops[index].blocks);
        let mut lines: Vec<usize> = blocks
            .flat_map(|&block| self.code.flow.blocks[block].instructions.clone())
            .filter(|&at| is_reliable(&self.code.instructions[at]))
            .filter_map(|at| self.line_of[at])
            .collect();
        lines.sort_unstable();
        lines.dedup();
        lines.retain(|&line| group.iter().all(|&index| self.lines[line].is_deepest_in(Some(index))));
        lines
    }

    /// Straight-line copies: blocks of the region around a group of loops that contain (nearly)
    /// all its essential lines.
    fn straight_copies(&self, region: Region, essential: &[usize]) -> Vec<Copy> {
        if essential.is_empty() {
            return Vec::new();
        }
        let holds = |block: &Block| {
            let mut copies = vec![0.0; essential.len()];
            for line in self.line_of[block.instructions.clone()].iter().flatten() {
                if let Ok(at) = essential.binary_search(line) {
                    copies[at] += 1.0;
                }
            }
            let found: Vec<(f64, f64)> = copies.into_iter().filter(|&n| n > 0.0).map(|n| (n, 1.0)).collect();
            if found.len() as f64 >= self.code.calibration.min_essential_share * essential.len() as f64 {
                weighted_median(found)
            } else {
                None
            }
        };
        let blocks = self.code.flow.blocks.iter().enumerate().filter(|(_, block)| block.innermost == region);
        blocks
            .filter_map(|(index, block)| Some(Copy { factor: holds(block)?, part: CopyPart::Straight(index) }))
            .collect()
    }
}

/// Returns each instruction's line as an index into the lines, and the lines.
fn number_lines(of: &[Option<u32>], profile: &Profile) -> (Vec<Option<usize>>, Vec<PtxLine>) {
    let mut distinct: Vec<u32> = of.iter().copied().flatten().collect();
    distinct.sort_unstable();
    distinct.dedup();
    let executed = |counts: &BTreeMap<u32, f64>, line: &u32| counts.get(line).copied().unwrap_or(0.0);
    let line = |line: &u32| PtxLine {
        count: executed(&profile.counts, line),
        mean: executed(&profile.mean, line),
        copies: Vec::new(),
        deepest_regions: Vec::new(),
    };
    let number = |line: &Option<u32>| line.and_then(|line| distinct.binary_search(&line).ok());
    (of.iter().map(number).collect(), distinct.iter().map(line).collect())
}

/// A copy of a PTX loop's body, `factor` iterations long.
struct Copy {
    factor: f64,
    part: CopyPart,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum CopyPart {
    Loop(usize),
    /// A block that is executed at most once each time the loop is entered.
    Straight(usize),
}

fn find_leader(leader: &[usize], mut index: usize) -> usize {
    while leader[index] != index {
        index = leader[index];
    }
    index
}

/// Whether ptxas seldom duplicates an instruction like this within a block. Spills have the line
/// of some unrelated instruction nearby; constants are reloaded anywhere.
fn has_own_line(instruction: &Instruction) -> bool {
    match instruction.opcode.class {
        Class::Load(space) | Class::Store(space) => !matches!(space, MemorySpace::Local | MemorySpace::Constant),
        Class::Atomic(_) | Class::Double | Class::Half | Class::Tensor | Class::Special => true,
        Class::Fma => instruction.opcode.mnemonic.starts_with('F'),
        _ => false,
    }
}

/// Whether its line tells how often its block is executed. A guarded instruction was behind a
/// branch in PTX, so that its line is executed less often than the block.
fn is_reliable(instruction: &Instruction) -> bool {
    has_own_line(instruction) && instruction.guard.is_always()
}

/// The weight of the vote of an instruction's line.
fn vote_weight(instruction: &Instruction, calibration: &Calibration) -> f64 {
    let weight = if has_own_line(instruction) { calibration.reliable_weight } else { 1.0 };
    if instruction.guard.is_always() { weight } else { weight * calibration.guarded_factor }
}

/// The weighted (lower) median of pairs of value and weight.
fn weighted_median(mut votes: Vec<(f64, f64)>) -> Option<f64> {
    votes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = votes.iter().map(|vote| vote.1).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    votes.iter().find_map(|&(value, weight)| {
        sum += weight;
        (sum >= half).then_some(value)
    })
}
