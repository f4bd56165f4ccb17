//! Estimates which sectors of a block its neighbours fetch into the level-2 cache before it.
//!
//! In: the accesses of a few threads, and of the same threads of neighbouring blocks. If the
//! blocks access memory in the same pattern at a fixed distance, the sampled block tells when
//! another block touches a sector: as late as the sampled block touches the sector at the same
//! distance before. Blocks of a GPU begin together and mostly keep step, so the block that touches
//! a sector earliest in its run finds it in device memory, the others in the level-2 cache. This
//! separates loads of a halo from loads of new data, though both are new to the block
//! (`stencil3d` on an H200: `kernels/results/h200/waits.txt`).

use super::address_map::AddressMap;
use super::interpreter::{LaunchContext, ThreadAllowance, ThreadPosition, run_thread};
use super::limits::LANE_INSTRUCTIONS;
use super::memory::region_of;
use super::request::{Request, SECTOR};
use crate::ptx::MemorySpace;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Share of the accesses to a buffer that must agree on the distance between blocks, as a
/// quotient. At a rim some indices are clamped.
const AGREEING_SHARE: (u32, u32) = (3, 4);
/// Maximum number of touches that are remembered of one place within the distance of blocks.
const MAX_TOUCHES: usize = 32;

/// Blocks in a row along a dimension of the grid, and how they access a buffer.
#[derive(Clone, Copy, Debug)]
struct BlockRow {
    /// Bytes from what a block accesses to what the next one does; not 0.
    distance: i64,
    /// Blocks before this one and after it.
    before: i64,
    after: i64,
}

/// The neighbours of a block, and what it has touched so far.
#[derive(Default)]
pub(super) struct NeighbourBlocks {
    /// By region of global memory; absent where blocks are not regularly apart.
    rows: BTreeMap<u64, Vec<BlockRow>>,
    /// By region, row and sector within the row's distance: the distances after which it was
    /// touched.
    touched: HashMap<(u64, usize, i64), VecDeque<i64>>,
}

impl NeighbourBlocks {
    /// Finds the distances between neighbouring blocks from the accesses of `threads`, threads of
    /// one block, in the first `window` executions of each step.
    pub fn new(context: &LaunchContext<'_>, threads: &[ThreadPosition], window: u32) -> Self {
        let Some(&ThreadPosition { block, .. }) = threads.first() else { return Self::default() };
        let run = |block: [u32; 3]| -> Vec<Vec<Request<1>>> {
            let allowance = ThreadAllowance {
                steps: LANE_INSTRUCTIONS,
                window,
                warmup: u64::from(window),
                ..ThreadAllowance::default()
            };
            let touches =
                |thread: &ThreadPosition| run_thread(context, ThreadPosition { block, ..*thread }, allowance).touches;
            threads.iter().map(touches).collect()
        };
        let grid = context.launch.grid;
        let own = run(block);
        let along = |axis: usize| -> HashMap<u64, BlockRow> {
            let (before, after) = (i64::from(block[axis]), i64::from(grid[axis] - 1 - block[axis]));
            let direction = if after > 0 { 1 } else { -1 };
            let mut other = block;
            other[axis] = other[axis].saturating_add_signed(direction);
            let row =
                |(region, distance)| (region, BlockRow { distance: distance * i64::from(direction), before, after });
            region_distances(&own, &run(other)).into_iter().map(row).collect()
        };
        let axes: Vec<HashMap<u64, BlockRow>> = (0..3).filter(|&axis| grid[axis] > 1).map(along).collect();
        let regions = axes.first().into_iter().flat_map(HashMap::keys);
        let all = |region: &u64| {
            let rows: Option<Vec<BlockRow>> = axes.iter().map(|axis| axis.get(region).copied()).collect();
            // What all blocks of a row touch at once tells nothing of who comes first.
            Some((*region, rows.filter(|rows| rows.iter().all(|row| row.distance != 0))?))
        };
        Self { rows: regions.filter_map(all).collect(), touched: HashMap::new() }
    }

    /// Tells whether a neighbour has touched a sector when the block first touches it; `None` if
    /// that is not known. Must be called for all such sectors in the order of time; `by_block` are
    /// the earlier ones.
    pub fn touched_before(&mut self, sector: u64, by_block: &AddressMap<u64>) -> Option<bool> {
        let address = sector * SECTOR;
        let region = region_of(address);
        let rows = self.rows.get(&region)?;
        let mut is_touched = false;
        for (index, row) in rows.iter().enumerate() {
            let (apart, at) = (row.distance.abs(), address as i64);
            let after = at.div_euclid(apart) * row.distance.signum();
            let known = self.touched.entry((region, index, at.rem_euclid(apart) / SECTOR as i64)).or_default();
            // The block this many further on comes to this sector when this one comes to what lies
            // as many distances before.
            is_touched |=
                known.iter().map(|other| after - other).any(|on| on != 0 && (-row.before..=row.after).contains(&on));
            if !known.contains(&after) {
                known.push_back(after);
                if known.len() > MAX_TOUCHES {
                    known.pop_front();
                }
            }
        }
        let touched_across = |across: i64| by_block.contains_key(&(address.wrapping_add_signed(-across) / SECTOR));
        Some(is_touched || find_diagonals(rows).into_iter().any(touched_across))
    }
}

/// Returns the distances of the diagonal neighbours of a block.
fn find_diagonals(rows: &[BlockRow]) -> Vec<i64> {
    let mut found = vec![(0, 0)];
    for row in rows {
        let steps = |&(distance, steps): &(i64, u32)| {
            [(distance - row.distance, steps + 1), (distance, steps), (distance + row.distance, steps + 1)]
        };
        found = found.iter().flat_map(steps).collect();
    }
    found.into_iter().filter(|(_, steps)| *steps > 1).map(|(distance, _)| distance).collect()
}

/// Returns for each region of global memory the distance between the accesses of two blocks, if
/// nearly all accesses agree on it.
fn region_distances(own: &[Vec<Request<1>>], other: &[Vec<Request<1>>]) -> HashMap<u64, i64> {
    let global = |of: &[Vec<Request<1>>]| -> Vec<((usize, u32, u64), u64)> {
        let by_thread = of.iter().enumerate().flat_map(|(thread, of)| of.iter().map(move |touch| (thread, touch)));
        let global = by_thread.filter(|(_, touch)| touch.space == MemorySpace::Global);
        global.map(|(thread, touch)| ((thread, touch.step, touch.execution), touch.addresses[0])).collect()
    };
    let known: HashMap<_, _> = global(own).into_iter().collect();
    let mut counts: HashMap<u64, BTreeMap<i64, u32>> = HashMap::new();
    for (which, address) in global(other) {
        if let Some(&like) = known.get(&which) {
            *counts.entry(region_of(like)).or_default().entry(address.wrapping_sub(like) as i64).or_default() += 1;
        }
    }
    let most = |(region, counts): (u64, BTreeMap<i64, u32>)| {
        let all: u32 = counts.values().sum();
        let (distance, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        (count * AGREEING_SHARE.1 >= all * AGREEING_SHARE.0).then_some((region, distance))
    };
    counts.into_iter().filter_map(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::AccessKind;

    /// Sectors of a buffer, which begins at a multiple of any distance here.
    fn sector(at: u64) -> u64 {
        (1 << 40) / SECTOR + at
    }

    fn row(sectors: i64, [before, after]: [i64; 2]) -> BlockRow {
        BlockRow { distance: sectors * SECTOR as i64, before, after }
    }

    #[test]
    fn a_neighbour_has_touched_what_the_block_touches_as_far_back_before() {
        // Rows of blocks, the sectors that a block touches in their order, and those of them that a
        // neighbour has touched before.
        let many = [50, 50];
        type Case<'a> = (&'a str, Vec<BlockRow>, &'a [u64], &'a [u64]);
        let rows: [Case<'_>; 7] = [
            ("side by side", vec![row(4, many)], &[100, 101, 102, 103], &[]),
            ("with a halo, after its own", vec![row(4, many)], &[100, 101, 102, 103, 99, 104], &[99, 104]),
            ("with a halo, before its own", vec![row(4, many)], &[104, 100, 101, 102, 103], &[100]),
            ("and the plane before, many blocks back", vec![row(4, many)], &[100, 101, 102, 103, 36, 37], &[36, 37]),
            ("as far as there are blocks", vec![row(4, [50, 15])], &[36, 37, 100, 101], &[]),
            ("downwards", vec![row(-4, [0, 50])], &[100, 101, 96, 104], &[96]),
            ("in two dimensions, and at a corner", vec![row(4, many), row(64, many)], &[100, 101, 165, 32], &[165, 32]),
        ];
        for (what, rows, order, expected) in rows {
            let mut neighbours = NeighbourBlocks { rows: BTreeMap::from([(1, rows)]), touched: HashMap::new() };
            let mut by_block = AddressMap::default();
            let mut before = Vec::new();
            for &at in order {
                if neighbours.touched_before(sector(at), &by_block) == Some(true) {
                    before.push(at);
                }
                by_block.insert(sector(at), 0);
            }
            assert_eq!(before, expected, "{what}");
            assert_eq!(neighbours.touched_before((2 << 40) / SECTOR, &by_block), None, "{what}");
        }
    }

    #[test]
    fn blocks_are_apart_by_what_nearly_all_accesses_are() {
        let touches = |addresses: &[u64]| -> Vec<Request<1>> {
            let touch = |(step, &address): (usize, &u64)| {
                let (space, kind) = (MemorySpace::Global, AccessKind::Load);
                Request {
                    step: step as u32,
                    warp: 0,
                    execution: 1,
                    time: 0,
                    space,
                    kind,
                    width: 4,
                    lanes: 1,
                    addresses: [(1 << 40) + address],
                }
            };
            addresses.iter().enumerate().map(touch).collect()
        };
        let own = [touches(&[0, 4, 8, 12]), touches(&[400])];
        // What the same threads of another block access, and how far that is from the first.
        type Case<'a> = (&'a str, [&'a [u64]; 2], Option<i64>);
        let rows: [Case<'_>; 4] = [
            ("regular", [&[128, 132, 136, 140], &[528]], Some(128)),
            ("held back at a rim", [&[128, 132, 136, 136], &[528]], Some(128)),
            ("the same for all", [&[0, 4, 8, 12], &[400]], Some(0)),
            ("as an index says", [&[128, 132, 40, 900], &[16]], None),
        ];
        for (what, other, expected) in rows {
            let found = region_distances(&own, &other.map(touches));
            assert_eq!(found.get(&1).copied(), expected, "{what}");
        }
    }
}
