//! Decoded instructions -> basic blocks, their successors, and natural loops.
//!
//! A kernel's section may hold device functions after the kernel. Each is a graph of its own
//! whose blocks are here too: a call goes on after itself and names the block that it enters.
//! Padding after the last instruction that is reached is not here.

use super::instruction::{INSTRUCTION_BYTES, Instruction};
use super::kernel::CubinKernel;
use super::opcode::Class;
use crate::ptx;
use std::ops::Range;

/// Loops nested deeper than this are not looked at: no program has them, and each level holds
/// the blocks of all within.
const DEEPEST: u32 = 16;
/// A block of at most this many instructions that goes nowhere does nothing but leave.
const STUB: usize = 2;

/// The blocks of a kernel, in the order of their addresses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow {
    pub blocks: Vec<Block>,
    /// Natural loops; an inner loop comes after the loop around it.
    pub loops: Vec<Loop>,
    /// First blocks: of the kernel, then of each device function that is called.
    pub entries: Vec<usize>,
}

/// Instructions that are executed one after another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// Indices of its instructions.
    pub instructions: Range<usize>,
    /// Blocks that may follow, within the same function.
    pub successors: Vec<usize>,
    /// Blocks that it may follow.
    pub predecessors: Vec<usize>,
    /// The first block of the function that it calls at its end.
    pub callee: Option<usize>,
    /// The innermost loop that it is in.
    pub innermost: Option<usize>,
    /// Whether threads may leave the function at its end.
    pub leaves: bool,
}

/// A natural loop: the blocks that reach a back edge without passing its header.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    pub header: usize,
    /// Its blocks, those of inner loops included, ascending.
    pub blocks: Vec<usize>,
    /// The loop around it.
    pub parent: Option<usize>,
    /// 1 for a loop that is in no other.
    pub depth: u32,
}

impl Block {
    /// Whether the block only leaves the kernel.
    pub fn is_stub(&self) -> bool {
        self.successors.is_empty() && self.callee.is_none() && self.instructions.len() <= STUB
    }
}

impl Flow {
    /// The control flow of a kernel whose instructions were decoded.
    pub fn new(kernel: &CubinKernel<'_>, instructions: &[Instruction]) -> Self {
        let mut flow = Self { blocks: cut_blocks(kernel, instructions), ..Self::default() };
        flow.connect_blocks(kernel, instructions);
        flow.keep_reached();
        flow.find_loops();
        flow
    }

    /// Counts the loops around a block.
    pub fn loop_depth(&self, block: usize) -> u32 {
        self.blocks.get(block).and_then(|block| block.innermost).map_or(0, |index| self.loops[index].depth)
    }

    /// The blocks in an order in which each comes after all that lead to it, but for the back
    /// edges of loops.
    pub fn reverse_post_order(&self) -> Vec<usize> {
        let position = self.post_order();
        let mut order: Vec<usize> = (0..self.blocks.len()).collect();
        order.sort_unstable_by_key(|&index| std::cmp::Reverse(position[index]));
        order
    }

    /// Whether an edge goes back to the header of a loop that it is in.
    pub fn is_back_edge(&self, from: usize, to: usize) -> bool {
        self.loops.iter().any(|l| l.header == to && l.blocks.binary_search(&from).is_ok())
    }

    /// For each block the nearest other one that all ways to it pass; none for an entry, and
    /// for what two entries reach.
    pub fn immediate_dominators(&self) -> Vec<Option<usize>> {
        let found = self.find_dominators(&self.post_order());
        (0..found.len())
            .map(|index| Some(found[index]).filter(|&above| above != index && above < found.len()))
            .collect()
    }

    /// Returns for each block the first block that is executed exactly as often. It is in
    /// the same loop, dominates the block, and is followed by the block on all paths.
    pub fn equivalent_blocks(&self, dominators: &[Option<usize>]) -> Vec<usize> {
        let after = self.immediate_postdominators();
        let passes = |from: usize, through: usize| {
            let mut at = Some(from);
            while let Some(index) = at.filter(|&index| index != through) {
                at = after[index];
            }
            at.is_some()
        };
        let mut equivalents: Vec<usize> = (0..self.blocks.len()).collect();
        for index in self.reverse_post_order() {
            let mut above = dominators[index];
            while let Some(at) = above.filter(|&at| self.blocks[at].innermost != self.blocks[index].innermost) {
                above = dominators[at];
            }
            if let Some(at) = above.filter(|&at| passes(at, index)) {
                equivalents[index] = equivalents[at];
            }
        }
        equivalents
    }

    /// For each block the nearest other one that all ways from it pass; none where that is the
    /// end of the kernel, or no end is reached.
    fn immediate_postdominators(&self) -> Vec<Option<usize>> {
        let end = self.blocks.len();
        let followed = |block: &Block| block.successors.iter().copied().chain(block.leaves.then_some(end)).collect();
        let successors: Vec<Vec<usize>> = self.blocks.iter().map(followed).collect();
        let after = ptx::immediate_postdominators(&successors);
        after.into_iter().map(|after| after.filter(|&after| after < end)).collect()
    }

    fn connect_blocks(&mut self, kernel: &CubinKernel<'_>, instructions: &[Instruction]) {
        let starts: Vec<usize> = self.blocks.iter().map(|block| block.instructions.start).collect();
        let block_at = |offset: u32| starts.binary_search(&index_of(offset)?).ok();
        let mut entries = vec![0];
        for index in 0..self.blocks.len() {
            let block = &self.blocks[index];
            let Some(last) = instructions.get(block.instructions.end.wrapping_sub(1)) else {
                continue;
            };
            let next = (index + 1 < self.blocks.len()).then_some(index + 1);
            let taken = last.target.and_then(block_at);
            let mut callee = None;
            let mut successors = Vec::new();
            if falls_through(last) {
                successors.extend(next);
            }
            match last.opcode.class {
                Class::Branch => successors.extend(taken),
                Class::Call => {
                    callee = taken;
                    entries.extend(taken);
                }
                Class::IndirectBranch => {
                    let table = kernel.indirect.iter().find(|branch| branch.offset == last.offset);
                    successors.extend(table.iter().flat_map(|table| &table.targets).filter_map(|&to| block_at(to)));
                }
                _ => {}
            }
            successors.sort_unstable();
            successors.dedup();
            let block = &mut self.blocks[index];
            block.successors = successors;
            block.leaves = block.successors.is_empty() || last.opcode.class == Class::Exit;
            block.callee = callee;
        }
        entries[1..].sort_unstable();
        entries.dedup();
        self.entries = if self.blocks.is_empty() { Vec::new() } else { entries };
    }

    /// Drops blocks that nothing reaches (padding, and functions that are not called), and
    /// links predecessors.
    fn keep_reached(&mut self) {
        let mut reached = vec![false; self.blocks.len()];
        let mut stack: Vec<usize> = self.entries.first().copied().into_iter().collect();
        while let Some(index) = stack.pop() {
            if std::mem::replace(&mut reached[index], true) {
                continue;
            }
            let block = &self.blocks[index];
            stack.extend(block.successors.iter().chain(&block.callee));
        }
        let mut renumbered = vec![0; self.blocks.len()];
        let mut count = 0;
        for (index, &is_reached) in reached.iter().enumerate() {
            renumbered[index] = count;
            count += usize::from(is_reached);
        }
        let mut keep = reached.iter();
        self.blocks.retain(|_| keep.next().copied().unwrap_or(false));
        for block in &mut self.blocks {
            for successor in block.successors.iter_mut().chain(&mut block.callee) {
                *successor = renumbered[*successor];
            }
        }
        self.entries.retain(|&entry| reached[entry]);
        for entry in &mut self.entries {
            *entry = renumbered[*entry];
        }
        for index in 0..self.blocks.len() {
            for successor in self.blocks[index].successors.clone() {
                self.blocks[successor].predecessors.push(index);
            }
        }
    }

    fn find_loops(&mut self) {
        let order = self.post_order();
        let dominators = self.find_dominators(&order);
        let mut loops: Vec<Loop> = Vec::new();
        // A header comes before those of the loops within: loops of different headers are nested or
        // apart.
        let mut depth = vec![0; self.blocks.len()];
        for header in self.reverse_post_order() {
            let backs: Vec<usize> = self.blocks[header]
                .predecessors
                .iter()
                .copied()
                .filter(|&from| dominates_block(&dominators, &order, header, from))
                .collect();
            if !backs.is_empty() && depth[header] < DEEPEST {
                let blocks = self.natural_loop(header, backs);
                blocks.iter().for_each(|&block| depth[block] += 1);
                loops.push(Loop { header, blocks, parent: None, depth: 1 });
            }
        }
        // Outer loops first: a loop that contains another has more blocks.
        loops.sort_by_key(|l| (std::cmp::Reverse(l.blocks.len()), l.header));
        for index in 0..loops.len() {
            let parent =
                (0..index).rev().find(|&outer| loops[outer].blocks.binary_search(&loops[index].header).is_ok());
            loops[index].parent = parent;
            loops[index].depth = 1 + parent.map_or(0, |outer| loops[outer].depth);
            for &block in &loops[index].blocks {
                self.blocks[block].innermost = Some(index);
            }
        }
        self.loops = loops;
    }

    fn natural_loop(&self, header: usize, backs: Vec<usize>) -> Vec<usize> {
        let mut is_inside = vec![false; self.blocks.len()];
        is_inside[header] = true;
        let mut stack = backs;
        while let Some(index) = stack.pop() {
            if !std::mem::replace(&mut is_inside[index], true) {
                stack.extend(&self.blocks[index].predecessors);
            }
        }
        (0..self.blocks.len()).filter(|&index| is_inside[index]).collect()
    }

    /// Position of each block in a post-order walk from the kernel's entry, calls included: a
    /// block comes after all that it reaches.
    fn post_order(&self) -> Vec<usize> {
        let mut position = vec![usize::MAX; self.blocks.len()];
        let mut seen = vec![false; self.blocks.len()];
        let mut count = 0;
        let mut stack: Vec<(usize, usize)> = self.entries.first().map(|&entry| (entry, 0)).into_iter().collect();
        self.entries.first().into_iter().for_each(|&entry| seen[entry] = true);
        while let Some((index, step)) = stack.pop() {
            let block = &self.blocks[index];
            let next = block.successors.get(step).or(block.callee.as_ref().filter(|_| step == block.successors.len()));
            match next {
                Some(&next) => {
                    stack.push((index, step + 1));
                    if !std::mem::replace(&mut seen[next], true) {
                        stack.push((next, 0));
                    }
                }
                None => {
                    position[index] = count;
                    count += 1;
                }
            }
        }
        position
    }

    /// Immediate dominators (Cooper, Harvey and Kennedy's iteration); an entry is its own.
    fn find_dominators(&self, position: &[usize]) -> Vec<usize> {
        const NONE: usize = usize::MAX;
        let mut dominators = vec![NONE; self.blocks.len()];
        for &entry in &self.entries {
            dominators[entry] = entry;
        }
        let mut order: Vec<usize> = (0..self.blocks.len()).collect();
        order.sort_unstable_by_key(|&index| std::cmp::Reverse(position[index]));
        let mut changed = true;
        while changed {
            changed = false;
            for &index in &order {
                if self.entries.contains(&index) {
                    continue;
                }
                let known = self.blocks[index].predecessors.iter().copied().filter(|&p| dominators[p] != NONE);
                let new = known.reduce(|a, b| common_dominator(&dominators, position, a, b)).unwrap_or(NONE);
                if dominators[index] != new {
                    dominators[index] = new;
                    changed = true;
                }
            }
        }
        dominators
    }
}

/// The nearest block that dominates both.
fn common_dominator(dominators: &[usize], position: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        let lower = if position[a] < position[b] { &mut a } else { &mut b };
        let up = dominators[*lower];
        if up == *lower {
            // Two entries reach the block: no block dominates it but itself.
            return up;
        }
        *lower = up;
    }
    a
}

fn dominates_block(dominators: &[usize], position: &[usize], above: usize, below: usize) -> bool {
    let mut at = below;
    while at != above {
        match dominators.get(at) {
            Some(&up) if up != at && position[at] < position[above] => at = up,
            _ => return false,
        }
    }
    true
}

/// Cuts instructions into blocks, up to the padding.
fn cut_blocks(kernel: &CubinKernel<'_>, instructions: &[Instruction]) -> Vec<Block> {
    let code = &instructions[..without_padding(instructions)];
    let mut is_leader = vec![false; code.len()];
    let mut lead = |offset: u32| {
        if let Some(leader) = index_of(offset).and_then(|index| is_leader.get_mut(index)) {
            *leader = true;
        }
    };
    lead(0);
    for function in &kernel.functions {
        lead(function.offset);
    }
    for branch in &kernel.indirect {
        branch.targets.iter().copied().for_each(&mut lead);
    }
    for instruction in code {
        if matches!(instruction.opcode.class, Class::Branch | Class::Call) {
            instruction.target.into_iter().for_each(&mut lead);
        }
        if ends_block(instruction) {
            lead(instruction.offset.saturating_add(INSTRUCTION_BYTES));
        }
    }
    let mut starts: Vec<usize> = (0..code.len()).filter(|&index| is_leader[index]).collect();
    starts.push(code.len());
    starts.windows(2).map(|pair| Block { instructions: pair[0]..pair[1], ..Block::default() }).collect()
}

fn index_of(offset: u32) -> Option<usize> {
    offset.is_multiple_of(INSTRUCTION_BYTES).then_some((offset / INSTRUCTION_BYTES) as usize)
}

/// The number of instructions before the trailing `BRA .` and `NOP`s.
fn without_padding(instructions: &[Instruction]) -> usize {
    let is_padding = |i: &Instruction| {
        i.opcode.class == Class::Nop || (i.opcode.class == Class::Branch && i.target == Some(i.offset))
    };
    instructions.iter().rposition(|i| !is_padding(i)).map_or(0, |last| last + 1)
}

fn ends_block(instruction: &Instruction) -> bool {
    use super::opcode::Class::{Branch, Call, Exit, IndirectBranch, Return};
    matches!(instruction.opcode.class, Branch | Call | Exit | IndirectBranch | Return)
}

/// Whether the next instruction may follow this one.
fn falls_through(last: &Instruction) -> bool {
    match last.opcode.class {
        Class::Branch | Class::IndirectBranch | Class::Exit | Class::Return => last.is_conditional,
        _ => true,
    }
}
