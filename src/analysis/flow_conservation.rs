//! Executions that were observed of some blocks of a control flow -> of all of them, by flow
//! conservation: what flows into a block flows out.
//!
//! What is not known of a loop is what the `trips` clause says of its depth, else 32 iterations
//! (LLVM's prior of 124 : 4 for a back edge); a branch of which nothing is known is even.

use crate::sass::control_flow::{Flow, Loop};

/// Iterations of a loop that nothing is known about.
const UNKNOWN_TRIPS: f64 = 32.0;

/// Fills in the blocks that were not observed, and cuts those that exceed what flows in; also
/// gives what flows into each, which is more than its executions where parts of a warp meet
/// that went different ways.
pub(crate) fn conserve_flow(
    flow: &Flow,
    dominators: &[Option<usize>],
    observed: &[Option<f64>],
    trips: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let mut counts = vec![0.0; flow.blocks.len()];
    let mut inflow = vec![0.0; flow.blocks.len()];
    let mut entered = vec![0.0; flow.loops.len()];
    if let Some(&entry) = flow.entries.first() {
        inflow[entry] = 1.0;
    }
    let exits: Vec<f64> = flow.loops.iter().map(|l| exit_edges(flow, &l.blocks)).collect();
    let constant = in_every_iteration(flow);
    let order = flow.reverse_post_order();
    let most = flow_bounds(flow, observed, &order);
    for index in order {
        let own = flow.loops.iter().position(|l| l.header == index);
        if let Some(own) = own {
            entered[own] = inflow[index];
        }
        // However its lines were mixed, such a block keeps step with its loop.
        let every = constant[index].map(|header| counts[header]);
        counts[index] = match (every.or(observed[index]), own) {
            (Some(count), None) if every.is_some() => count,
            (Some(count), Some(_)) => count,
            // More than flows in: both sides of a branch hold copies of the same lines.
            (Some(count), None) => count.min(inflow[index]),
            (None, Some(own)) => {
                let depth = flow.loops[own].depth as usize;
                inflow[index] * trips.get(depth - 1).or(trips.last()).unwrap_or(&UNKNOWN_TRIPS)
            }
            // Threads that meet again go on as one warp: no more often than they parted.
            (None, None) => {
                let before = dominators[index].filter(|&at| flow.blocks[at].innermost == flow.blocks[index].innermost);
                before.map_or(inflow[index], |before| inflow[index].min(counts[before]))
            }
        };
        for (to, share) in outflow_of(flow, index, counts[index], (observed, &most), &entered, &exits) {
            inflow[to] += share;
        }
    }
    (counts, inflow)
}

/// The most that can flow into each block: what was observed of it, else what can flow into
/// those after it.
fn flow_bounds(flow: &Flow, observed: &[Option<f64>], order: &[usize]) -> Vec<f64> {
    let mut most = vec![f64::INFINITY; flow.blocks.len()];
    for &index in order.iter().rev() {
        let block = &flow.blocks[index];
        let after = block.successors.iter().filter(|&&to| !flow.is_back_edge(index, to));
        // A loop is entered no oftener than its header is executed.
        let own = flow.loops.iter().any(|l| l.header == index);
        most[index] = match observed[index] {
            Some(count) => count,
            None if own || block.successors.is_empty() => f64::INFINITY,
            None => after.map(|&to| most[to]).sum(),
        };
    }
    most
}

/// For each block that every iteration of its innermost loop passes (but for one that leaves
/// the loop), the loop's header.
fn in_every_iteration(flow: &Flow) -> Vec<Option<usize>> {
    let mut headers = vec![None; flow.blocks.len()];
    for (index, l) in flow.loops.iter().enumerate().filter(|(_, l)| l.blocks.len() <= LARGEST) {
        for &block in l.blocks.iter().filter(|&&block| flow.blocks[block].innermost == Some(index) && block != l.header)
        {
            if !closes_without(flow, l, block) {
                headers[block] = Some(l.header);
            }
        }
    }
    headers
}

/// Blocks of a loop that is looked at so, for the work grows with their square.
const LARGEST: usize = 256;

/// Whether an iteration of the loop can go past a block.
fn closes_without(flow: &Flow, l: &Loop, avoided: usize) -> bool {
    let mut seen = vec![false; flow.blocks.len()];
    seen[avoided] = true;
    let mut stack = vec![l.header];
    while let Some(at) = stack.pop() {
        for &to in &flow.blocks[at].successors {
            if to == l.header {
                return true;
            }
            if l.blocks.binary_search(&to).is_ok() && !std::mem::replace(&mut seen[to], true) {
                stack.push(to);
            }
        }
    }
    false
}

/// Edges that leave a loop.
fn exit_edges(flow: &Flow, blocks: &[usize]) -> f64 {
    let leaves = |to: &&usize| blocks.binary_search(to).is_err();
    blocks.iter().map(|&block| flow.blocks[block].successors.iter().filter(leaves).count()).sum::<usize>().max(1) as f64
}

/// How a block's executions go on to its successors and to its callee.
fn outflow_of(
    flow: &Flow,
    from: usize,
    count: f64,
    (observed, most): (&[Option<f64>], &[f64]),
    entered: &[f64],
    exits: &[f64],
) -> Vec<(usize, f64)> {
    let block = &flow.blocks[from];
    let mut shares: Vec<(usize, f64)> = block.callee.map(|callee| (callee, count)).into_iter().collect();
    let mut inside = Vec::new();
    let mut left = count;
    for &to in &block.successors {
        if flow.is_back_edge(from, to) {
            continue;
        }
        // Loops come outermost first.
        let outermost = flow
            .loops
            .iter()
            .position(|l| l.blocks.binary_search(&from).is_ok() && l.blocks.binary_search(&to).is_err());
        if let Some(outermost) = outermost {
            // As often as the loop was entered; where it has several ways out, an observed block
            // knows its own share.
            let ways = if observed[to].is_some() { 1.0 } else { exits[outermost] };
            let share = entered[outermost] / ways;
            shares.push((to, share));
            left = (left - share).max(0.0);
        } else {
            inside.push(to);
        }
    }
    // Who can be reached from here only takes what was observed of him first; a warp may go all
    // ways of a branch, one after another.
    let is_owned = |to: usize| observed[to].is_some() && flow.blocks[to].predecessors.len() == 1;
    let owned: f64 = inside.iter().filter(|&&to| is_owned(to)).filter_map(|&to| observed[to]).sum();
    left = (left - owned).max(0.0);
    // The others share what is left evenly, but for those that only leave the kernel.
    let is_likely = |to: usize| {
        let leaves = observed[to].is_none() && inside.len() > 1 && flow.blocks[to].is_stub();
        !is_owned(to) && !leaves
    };
    let likely: Vec<usize> = inside.iter().copied().filter(|&to| is_likely(to)).collect();
    let others = share_evenly(left, &likely.iter().map(|&to| most[to]).collect::<Vec<_>>());
    for &to in &inside {
        let share = match observed[to] {
            Some(own) if is_owned(to) => own.min(count),
            _ => likely.iter().position(|&other| other == to).map_or(0.0, |at| others[at]),
        };
        shares.push((to, share));
    }
    shares
}

/// Shares an amount among takers evenly, but to each no more than its bound, unless all have
/// theirs.
fn share_evenly(amount: f64, bounds: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..bounds.len()).collect();
    order.sort_by(|&a, &b| bounds[a].total_cmp(&bounds[b]));
    let mut shares = vec![0.0; bounds.len()];
    let mut left = amount;
    for (at, &index) in order.iter().enumerate() {
        shares[index] = bounds[index].min(left / (order.len() - at) as f64);
        left -= shares[index];
    }
    if left > 0.0 {
        let count = shares.len() as f64;
        shares.iter_mut().for_each(|share| *share += left / count);
    }
    shares
}
