//! A kernel's memory accesses in the order of its code -> reuse distances: which sectors a warp
//! touches between two uses of one sector.
//!
//! The profile has the number of instructions that a thread executes between the two uses. The
//! sectors that the warp touches in that many instructions before an access are summed, each
//! once, in the code of the smallest loop around the access that has at least that many
//! instructions.
//! Whether a cache still holds the sector follows from this distance and from the warps that
//! share the cache (see `caches.rs`).

use crate::ptx::AccessKind;
use crate::sass::control_flow::Flow;
use crate::sim::profile::Access;

/// Sectors that a warp touches again, and the reuse distance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reuse {
    /// Sectors of 32 bytes that the warp touches in between, on average, by the workload's
    /// buffer (none where it is not known).
    pub between: Vec<(Option<u32>, f64)>,
    /// Sectors that it touches again at this distance, over its life.
    pub sectors: f64,
    /// Those of them that it loads.
    pub read: f64,
}

/// An access of the code.
pub(super) struct Touch {
    /// Index of its basic block.
    pub block: usize,
    /// Executions by a thread.
    pub count: f64,
    pub access: Access,
}

impl Touch {
    /// Share of its sectors that another warp of the thread block, and not this one, has touched.
    fn neighbours_share(&self) -> f64 {
        (self.access.block_reuse - self.access.reuse).clamp(0.0, 1.0)
    }
}

/// A part of a region's code: an inner loop as a whole, or a block that is in none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RegionPart {
    /// Index of the loop.
    Loop(usize),
    /// Index of the block.
    Block(usize),
}

/// A part of a region with its position in the region's instructions.
struct Segment {
    part: RegionPart,
    /// Instructions before it, and of it, in one iteration of the region.
    start: f64,
    length: f64,
    /// Index into the touches, and sectors.
    touches: Vec<(usize, f64)>,
}

/// One iteration of a loop, or the whole kernel, as a sequence of segments.
struct Region {
    length: f64,
    segments: Vec<Segment>,
    /// Whether it is a loop, whose end is followed by its start.
    repeats: bool,
}

/// Returns what a warp touches again, by similar distances. `counts` are the executions of each
/// basic block; `scale` is the number of machine instructions for each instruction of the
/// profile.
pub(super) fn find_reuses(flow: &Flow, counts: &[f64], touches: &[Touch], scale: f64) -> Vec<Reuse> {
    let mut regions: Vec<Option<Region>> = (0..=flow.loops.len()).map(|_| None).collect();
    let mut found: Vec<Reuse> = Vec::new();
    for touch in touches.iter().filter(|touch| touch.access.reuse > 0.0) {
        let after = touch.access.reuse_after * scale;
        let mut around = flow.blocks[touch.block].innermost;
        let region = loop {
            let place = around.map_or(flow.loops.len(), |index| index);
            let region = regions[place].get_or_insert_with(|| Region::new(flow, counts, touches, around));
            match around {
                Some(inner) if region.length < after => around = flow.loops[inner].parent,
                _ => break &*region,
            }
        };
        let between = region.moved_between(flow, touches, touch, after, scale);
        let sectors = touch.count * touch.access.sectors * touch.access.reuse;
        let read = if touch.access.kind == AccessKind::Load { sectors } else { 0.0 };
        add_reuse(&mut found, Reuse { between, sectors, read });
    }
    found
}

/// Distances whose ratio is at most this are merged.
const SAME_DISTANCE_RATIO: f64 = 1.2;

impl Reuse {
    fn reuse_distance(&self) -> f64 {
        self.between.iter().map(|(_, sectors)| sectors).sum()
    }

    /// Whether the distances are similar in each buffer.
    fn has_similar_distances(&self, other: &Self) -> bool {
        let near = |a: f64, b: f64| a <= b * SAME_DISTANCE_RATIO + 1.0 && b <= a * SAME_DISTANCE_RATIO + 1.0;
        self.between.len() == other.between.len()
            && self.between.iter().zip(&other.between).all(|(a, b)| a.0 == b.0 && near(a.1, b.1))
    }
}

fn add_reuse(found: &mut Vec<Reuse>, new: Reuse) {
    match found.iter_mut().find(|known| known.has_similar_distances(&new)) {
        Some(known) => {
            // The larger distance is kept for both.
            if known.reuse_distance() < new.reuse_distance() {
                known.between = new.between;
            }
            known.sectors += new.sectors;
            known.read += new.read;
        }
        None => found.push(new),
    }
}

impl Region {
    fn new(flow: &Flow, counts: &[f64], touches: &[Touch], around: Option<usize>) -> Self {
        let iterations = around.map_or(1.0, |index| counts[flow.loops[index].header]).max(f64::MIN_POSITIVE);
        let mut segments: Vec<Segment> = Vec::new();
        let mut of_block: Vec<Option<usize>> = vec![None; flow.blocks.len()];
        for (index, block) in flow.blocks.iter().enumerate().filter(|(index, _)| counts[*index] > 0.0) {
            let Some(part) = region_part(flow, index, around) else { continue };
            let at = segments
                .iter()
                .position(|segment| segment.part == part && matches!(part, RegionPart::Loop(_)))
                .unwrap_or_else(|| {
                    segments.push(Segment { part, start: 0.0, length: 0.0, touches: Vec::new() });
                    segments.len() - 1
                });
            segments[at].length += block.instructions.len() as f64 * counts[index] / iterations;
            of_block[index] = Some(at);
        }
        for (number, touch) in touches.iter().enumerate() {
            if let Some(at) = of_block[touch.block] {
                segments[at].touches.push((number, touch.access.sectors * touch.count / iterations));
            }
        }
        let mut length = 0.0;
        for segment in &mut segments {
            segment.start = length;
            length += segment.length;
        }
        Self { length, segments, repeats: around.is_some() }
    }

    /// Sectors that a warp touches in the `after` instructions before `touch`, by buffer.
    fn moved_between(
        &self,
        flow: &Flow,
        touches: &[Touch],
        touch: &Touch,
        after: f64,
        scale: f64,
    ) -> Vec<(Option<u32>, f64)> {
        let holds = |segment: &&Segment| match segment.part {
            RegionPart::Loop(inner) => flow.loops[inner].blocks.binary_search(&touch.block).is_ok(),
            RegionPart::Block(block) => block == touch.block,
        };
        let end = self.segments.iter().find(holds).map_or(self.length, |own| own.start + own.length / 2.0);
        let start = end - after;
        let overlap = |segment: &Segment, from: f64, to: f64| {
            ((segment.start + segment.length).min(to) - segment.start.max(from)).max(0.0) / segment.length
        };
        let mut moved: Vec<(Option<u32>, f64)> = Vec::new();
        for segment in self.segments.iter().filter(|segment| segment.length > 0.0) {
            let mut share = overlap(segment, start, end);
            if self.repeats && start < 0.0 {
                share += overlap(segment, start + self.length, self.length);
            }
            for &(number, sectors) in segment.touches.iter().filter(|_| share > 0.0) {
                let other = &touches[number];
                let again = if other.access.reuse_after * scale < after { other.access.reuse } else { 0.0 };
                let new = share.min(1.0) * sectors * (1.0 - again - other.neighbours_share()).max(0.0);
                match moved.iter_mut().find(|(buffer, _)| *buffer == other.access.buffer) {
                    Some((_, sum)) => *sum += new,
                    None => moved.push((other.access.buffer, new)),
                }
            }
        }
        moved.sort_unstable_by_key(|(buffer, _)| *buffer);
        moved
    }
}

/// The part of the region `around` (a loop, or the whole kernel) that a block is in: an inner
/// loop, or the block itself; `None` if it is not in the region.
fn region_part(flow: &Flow, block: usize, around: Option<usize>) -> Option<RegionPart> {
    let mut at = flow.blocks[block].innermost;
    if at == around {
        return Some(RegionPart::Block(block));
    }
    while let Some(inner) = at {
        let parent = flow.loops[inner].parent;
        if parent == around {
            return Some(RegionPart::Loop(inner));
        }
        at = parent;
    }
    None
}
