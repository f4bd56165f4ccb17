//! Strata of a grid, and what the sampled blocks of a stratum say of the others: which neighbours
//! differ, what share each sample represents, and how large the error of the mean may be.

use super::place::{middle_index, unravel_index};

/// Minimum number of sampled blocks that can show that neighbours do not agree.
const MIN_BLOCKS_TO_COMPARE: usize = 6;

/// A box of blocks: along each dimension the first coordinate and the number.
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

    /// Returns how similar the place of another stratum is, x before y before z, since the lanes
    /// of a warp are consecutive in x.
    pub fn similarity(&self, other: &Self) -> u32 {
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

/// A sampled block within its stratum.
pub(super) struct SampledBlock {
    pub rank: u64,
    pub instructions: f64,
    /// Indices of its samples.
    pub samples: Vec<usize>,
}

/// Returns the gaps between sampled blocks of a stratum, with the difference of the instructions
/// at their ends.
pub(super) fn find_gaps(stratum: &Stratum, sampled: &[SampledBlock]) -> Vec<(u64, u64, f64)> {
    let mut gaps = Vec::new();
    for pair in sampled.windows(2) {
        gaps.push((pair[0].rank, pair[1].rank, (pair[1].instructions - pair[0].instructions).abs()));
    }
    if let (Some(first), Some(last)) = (sampled.first(), sampled.last()) {
        gaps.push((0, first.rank, 0.0));
        gaps.push((last.rank, stratum.block_count(), 0.0));
    }
    // The middle of a gap is neither of its ends.
    gaps.retain(|&(from, to, _)| to > from + 1 || from == 0 && to == 1 && sampled[0].rank == 1);
    gaps
}

/// Returns the share of a stratum that each sampled block represents.
pub(super) fn block_shares(stratum: &Stratum, sampled: &[SampledBlock]) -> Vec<f64> {
    let size = stratum.block_count() as f64;
    let border = |a: &SampledBlock, b: &SampledBlock| (a.rank as f64 + b.rank as f64) / 2.0 + 0.5;
    (0..sampled.len())
        .map(|at| {
            let from = at.checked_sub(1).map_or(0.0, |before| border(&sampled[before], &sampled[at]));
            let to = sampled.get(at + 1).map_or(size, |next| border(&sampled[at], next));
            (to - from) / size
        })
        .collect()
}

/// Tells whether most neighbouring samples are equal, so that a difference is a border between two
/// kinds of blocks.
pub(super) fn neighbours_agree(sampled: &[Vec<SampledBlock>]) -> bool {
    let pairs = || sampled.iter().flat_map(|blocks| blocks.windows(2));
    let same = pairs().filter(|pair| pair[0].instructions == pair[1].instructions).count();
    let is_alone = |three: &[SampledBlock]| {
        three[0].instructions == three[2].instructions && three[0].instructions != three[1].instructions
    };
    let blocks: usize = sampled.iter().map(Vec::len).sum();
    blocks < MIN_BLOCKS_TO_COMPARE
        || same * 2 >= pairs().count() && !sampled.iter().flat_map(|blocks| blocks.windows(3)).any(is_alone)
}

/// Counts the borders: pairs of neighbouring samples that differ.
pub(super) fn count_borders(sampled: &[Vec<SampledBlock>]) -> usize {
    sampled
        .iter()
        .flat_map(|blocks| blocks.windows(2))
        .filter(|pair| pair[0].instructions != pair[1].instructions)
        .count()
}

/// Estimates the error of the mean, in instructions.
pub(super) fn mean_error(strata: &[Stratum], sampled: &[Vec<SampledBlock>], agree: bool) -> f64 {
    if agree {
        // Somewhere in each gap there is a border.
        let of = |(stratum, sampled): (&Stratum, &Vec<SampledBlock>)| {
            let size = stratum.block_count() as f64;
            find_gaps(stratum, sampled)
                .iter()
                .map(|&(from, to, apart)| (to - from) as f64 / size * apart / 2.0)
                .sum::<f64>()
                * stratum.share
        };
        return strata.iter().zip(sampled).map(of).sum();
    }
    let all: Vec<f64> = sampled.iter().flatten().map(|block| block.instructions).collect();
    let count = all.len() as f64;
    let mean = all.iter().sum::<f64>() / count;
    (all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count).sqrt() / count.sqrt()
}
