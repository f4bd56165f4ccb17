//! Blocks of like place in a grid, and what the blocks of them that were looked at say of the
//! others: which neighbours differ, what part each stands for, how far off their mean may be.

use super::place::{middle_index, unravel_index};

/// From this many blocks on they tell whether blocks agree.
const TELLING: usize = 6;

/// Blocks of like place: along each dimension the first coordinate and how many.
pub(super) struct Stratum {
    pub from: [u32; 3],
    pub extent: [u32; 3],
    /// Of all blocks.
    pub share: f64,
}

impl Stratum {
    pub fn block_count(&self) -> u64 {
        self.extent.iter().map(|&n| u64::from(n)).product()
    }

    /// The number of a block among those of the stratum.
    pub fn rank_of(&self, block: [u32; 3]) -> Option<u64> {
        let mut rank = 0;
        for axis in (0..3).rev() {
            let at = block[axis].checked_sub(self.from[axis]).filter(|&at| at < self.extent[axis])?;
            rank = rank * u64::from(self.extent[axis]) + u64::from(at);
        }
        Some(rank)
    }

    /// How alike another stratum lies: in x above all, for the lanes of a warp follow each
    /// other there.
    pub fn likeness(&self, other: &Self) -> u32 {
        (0..3).map(|axis| u32::from(self.from[axis] == other.from[axis]) << (2 - axis)).sum()
    }

    /// The linear index of the block in the middle along each dimension.
    pub fn middle_block(&self, grid: [u32; 3]) -> u64 {
        self.block_at(middle_index(self.extent), grid)
    }

    /// The linear index of the block with a number.
    pub fn block_at(&self, rank: u64, grid: [u32; 3]) -> u64 {
        let at = unravel_index(rank, self.extent);
        let [x, y, z] = [0, 1, 2].map(|axis| u64::from(self.from[axis]) + u64::from(at[axis]));
        x + u64::from(grid[0]) * (y + u64::from(grid[1]) * z)
    }
}

/// A block that was looked at, within its stratum.
pub(super) struct SampledBlock {
    pub rank: u64,
    pub instructions: f64,
    /// Its samples.
    pub of: Vec<usize>,
}

/// The stretches of a stratum between blocks that were looked at, with how far the instructions
/// at their ends are apart.
pub(super) fn find_gaps(stratum: &Stratum, looked: &[SampledBlock]) -> Vec<(u64, u64, f64)> {
    let mut gaps = Vec::new();
    for pair in looked.windows(2) {
        gaps.push((pair[0].rank, pair[1].rank, (pair[1].instructions - pair[0].instructions).abs()));
    }
    if let (Some(first), Some(last)) = (looked.first(), looked.last()) {
        gaps.push((0, first.rank, 0.0));
        gaps.push((last.rank, stratum.block_count(), 0.0));
    }
    // The middle of a gap is neither of its ends.
    gaps.retain(|&(from, to, _)| to > from + 1 || from == 0 && to == 1 && looked[0].rank == 1);
    gaps
}

/// The part of a stratum that each block that was looked at stands for.
pub(super) fn block_shares(stratum: &Stratum, looked: &[SampledBlock]) -> Vec<f64> {
    let size = stratum.block_count() as f64;
    let border = |a: &SampledBlock, b: &SampledBlock| (a.rank as f64 + b.rank as f64) / 2.0 + 0.5;
    (0..looked.len())
        .map(|at| {
            let from = at.checked_sub(1).map_or(0.0, |before| border(&looked[before], &looked[at]));
            let to = looked.get(at + 1).map_or(size, |next| border(&looked[at], next));
            (to - from) / size
        })
        .collect()
}

/// Whether most neighbours do the same, so that where they differ there is a border between two
/// kinds.
pub(super) fn neighbours_agree(looked: &[Vec<SampledBlock>]) -> bool {
    let pairs = || looked.iter().flat_map(|blocks| blocks.windows(2));
    let same = pairs().filter(|pair| pair[0].instructions == pair[1].instructions).count();
    let is_alone = |three: &[SampledBlock]| {
        three[0].instructions == three[2].instructions && three[0].instructions != three[1].instructions
    };
    let blocks: usize = looked.iter().map(Vec::len).sum();
    blocks < TELLING || same * 2 >= pairs().count() && !looked.iter().flat_map(|blocks| blocks.windows(3)).any(is_alone)
}

/// Between how many neighbours there is a border.
pub(super) fn count_borders(looked: &[Vec<SampledBlock>]) -> usize {
    looked
        .iter()
        .flat_map(|blocks| blocks.windows(2))
        .filter(|pair| pair[0].instructions != pair[1].instructions)
        .count()
}

/// How far off the mean may be, in instructions.
pub(super) fn mean_error(strata: &[Stratum], looked: &[Vec<SampledBlock>], agree: bool) -> f64 {
    if agree {
        // Somewhere in each gap there is a border.
        let of = |(stratum, looked): (&Stratum, &Vec<SampledBlock>)| {
            let size = stratum.block_count() as f64;
            find_gaps(stratum, looked)
                .iter()
                .map(|&(from, to, apart)| (to - from) as f64 / size * apart / 2.0)
                .sum::<f64>()
                * stratum.share
        };
        return strata.iter().zip(looked).map(of).sum();
    }
    let all: Vec<f64> = looked.iter().flatten().map(|block| block.instructions).collect();
    let count = all.len() as f64;
    let mean = all.iter().sum::<f64>() / count;
    (all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count).sqrt() / count.sqrt()
}
