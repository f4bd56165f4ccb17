//! A flow graph -> the postdominators of its nodes: those of instructions of PTX, and of blocks
//! of machine code.

/// No node, or none yet.
const NONE: usize = usize::MAX;

/// For each node the nearest other one, or the end, that all ways from it pass; none where no
/// way leads to the end. The end is the successor with the number of nodes.
pub fn immediate_postdominators(successors: &[Vec<usize>]) -> Vec<Option<usize>> {
    let end = successors.len();
    let order = post_order_from_end(successors);
    let mut position = vec![0; end + 1];
    order.iter().enumerate().for_each(|(number, &at)| position[at] = number);
    // The iteration of Cooper, Harvey and Kennedy on the graph backwards.
    let mut found = vec![NONE; end + 1];
    found[end] = end;
    let mut has_changed = true;
    while has_changed {
        has_changed = false;
        for &at in order.iter().rev().filter(|&&at| at != end) {
            let known = successors[at].iter().copied().filter(|&next| found[next] != NONE);
            let common = |mut a: usize, mut b: usize| {
                while a != b {
                    let nearer = if position[a] < position[b] { &mut a } else { &mut b };
                    *nearer = found[*nearer];
                }
                a
            };
            let new = known.reduce(common).unwrap_or(NONE);
            has_changed |= std::mem::replace(&mut found[at], new) != new;
        }
    }
    found[..end].iter().map(|&after| Some(after).filter(|&after| after != NONE)).collect()
}

/// What leads to the end, and the end, each behind all that a search backwards finds from it.
fn post_order_from_end(successors: &[Vec<usize>]) -> Vec<usize> {
    let end = successors.len();
    let mut predecessors = vec![Vec::new(); end + 1];
    for (at, next) in successors.iter().enumerate() {
        next.iter().for_each(|&next| predecessors[next].push(at));
    }
    let mut order = Vec::with_capacity(end + 1);
    let mut is_seen = vec![false; end + 1];
    is_seen[end] = true;
    let mut path = vec![(end, 0)];
    while let Some((at, step)) = path.last_mut() {
        match predecessors[*at].get(*step) {
            Some(&before) => {
                *step += 1;
                if !std::mem::replace(&mut is_seen[before], true) {
                    path.push((before, 0));
                }
            }
            None => {
                order.push(*at);
                path.pop();
            }
        }
    }
    order
}
