//! Ranks the steps of a program: of diverged lanes a warp runs those of the least rank first.
//!
//! The blocks of each routine are in a weak topological order (Bourdoncle, "Efficient chaotic
//! iteration strategies with widenings", 1993): a block comes before its successors, and all
//! blocks of a loop before what follows the loop. So lanes reconverge as early as on the hardware
//! (Diamos et al., "SIMD re-convergence at thread frontiers", MICRO-44).

use super::program::{Operation, Program};

/// Maximum number of blocks that are ordered, as the search is recursive; more keep the order of
/// the text.
const MAX_BLOCKS: usize = 1000;

/// Returns the rank of each step, and of the end.
pub(super) fn rank_steps(program: &Program) -> Vec<u32> {
    let count = program.steps.len();
    let firsts: Vec<u32> = (0..count as u32).filter(|&at| program.leaders[at as usize]).collect();
    if firsts.len() > MAX_BLOCKS {
        return (0..=count as u32).collect();
    }
    let block_of = |step: u32| firsts.partition_point(|&first| first <= step).saturating_sub(1);
    let end = |block: usize| firsts.get(block + 1).map_or(count, |&next| next as usize);
    let successors: Vec<Vec<usize>> = (0..firsts.len())
        .map(|block| {
            let Some(last) = end(block).checked_sub(1) else { return Vec::new() };
            let step = &program.steps[last];
            let next = (last as u32 + 1, step.guard != 0);
            let (targets, falls): (Vec<u32>, bool) = match step.operation {
                Operation::Branch(target) => (vec![target], next.1),
                Operation::BranchTable { list, count } => (program.slot_list(list, count).to_vec(), next.1),
                Operation::Return | Operation::Exit => (Vec::new(), next.1),
                _ => (Vec::new(), true),
            };
            let all = targets.into_iter().chain(falls.then_some(next.0));
            all.filter(|&to| (to as usize) < count).map(block_of).collect()
        })
        .collect();
    let mut search = Search { successors, found: vec![0; firsts.len()], number: 0, stack: Vec::new(), out: Vec::new() };
    for routine in &program.routines {
        let entry = block_of(routine.steps.start);
        if search.found.get(entry) == Some(&0) {
            search.visit_block(entry);
        }
    }
    let mut ranks = vec![u32::MAX; count + 1];
    let mut rank = 0;
    for &block in search.out.iter().rev() {
        for at in &mut ranks[firsts[block] as usize..end(block)] {
            *at = rank;
            rank += 1;
        }
    }
    ranks
}

struct Search {
    successors: Vec<Vec<usize>>,
    /// The number under which each block was found; 0: not yet, `u32::MAX`: done.
    found: Vec<u32>,
    number: u32,
    stack: Vec<usize>,
    /// The blocks in reverse order.
    out: Vec<usize>,
}

impl Search {
    fn visit_block(&mut self, block: usize) -> u32 {
        self.stack.push(block);
        self.number += 1;
        let own = self.number;
        self.found[block] = own;
        let (mut head, mut is_loop) = (own, false);
        for index in 0..self.successors[block].len() {
            let to = self.successors[block][index];
            let least = if self.found[to] == 0 { self.visit_block(to) } else { self.found[to] };
            if least <= head {
                head = least;
                is_loop = true;
            }
        }
        if head == own {
            self.found[block] = u32::MAX;
            while let Some(member) = self.stack.pop() {
                if member == block {
                    break;
                }
                self.found[member] = 0;
            }
            if is_loop {
                // The loop without its head, whose blocks come together.
                for index in 0..self.successors[block].len() {
                    let to = self.successors[block][index];
                    if self.found[to] == 0 {
                        self.visit_block(to);
                    }
                }
            }
            self.out.push(block);
        }
        head
    }
}
