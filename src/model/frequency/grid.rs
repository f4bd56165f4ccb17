//! Warps that were run, by their places -> what the average warp of the grid executes, and which place to look at next.
//!
//! Blocks at the rims of a grid do other things than those within, so the grid is cut into strata: first, inner and last blocks along
//! each dimension, each weighted by its blocks. Within a stratum a block stands for all that are nearer to it than to another. What
//! the warps of one block do is known from the middle block, as far as it was run: where that tells what the same warp of other
//! blocks does, only the difference from it is carried over to the grid (a control variate), so that a warp that does all the work
//! of its block counts as one of so many. New places are where the blocks on both sides differ most, over the longest stretch; or,
//! where hardly two blocks agree, in the middle of the longest.

use super::{middle, unravel};
use crate::space::Launch;

/// Strata with a smaller share of the blocks are not looked at for their own sake.
const SMALLEST: f64 = 0.002;
/// What two blocks that agree may still hide between them, relative to the mean.
const HIDDEN: f64 = 0.02;
/// Of strata with at least this share the ends are looked at, too.
const LARGE: f64 = 0.05;
/// An estimate is good enough when it may be off by this part.
const GOOD: f64 = 0.002;
/// Blocks at least and warps at most that are looked at.
const FEWEST: usize = 8;
const MOST: usize = 256;
/// From so many blocks on they tell whether blocks agree.
const TELLING: usize = 6;
/// Successive numbers times this, modulo 1, fill any range evenly: the golden ratio.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// A warp that was run to its end.
struct Sample {
    block: u64,
    warp: u32,
    /// Executions of each step.
    counts: Vec<f64>,
    /// All of them together.
    instructions: f64,
}

/// The samples of a launch.
pub(super) struct Grid {
    launch: Launch,
    samples: Vec<Sample>,
}

/// Blocks of like place: along each dimension the first coordinate and how many.
struct Stratum {
    from: [u32; 3],
    extent: [u32; 3],
    /// Of all blocks.
    share: f64,
}

impl Stratum {
    fn size(&self) -> u64 {
        self.extent.iter().map(|&n| u64::from(n)).product()
    }

    /// The number of a block among those of the stratum.
    fn rank(&self, block: [u32; 3]) -> Option<u64> {
        let mut rank = 0;
        for axis in (0..3).rev() {
            let at = block[axis].checked_sub(self.from[axis]).filter(|&at| at < self.extent[axis])?;
            rank = rank * u64::from(self.extent[axis]) + u64::from(at);
        }
        Some(rank)
    }

    /// The linear index of the block with a number.
    fn block(&self, rank: u64, grid: [u32; 3]) -> u64 {
        let at = unravel(rank, self.extent);
        let [x, y, z] = [0, 1, 2].map(|axis| u64::from(self.from[axis]) + u64::from(at[axis]));
        x + u64::from(grid[0]) * (y + u64::from(grid[1]) * z)
    }
}

/// A block that was looked at, within its stratum.
struct Looked {
    rank: u64,
    instructions: f64,
    /// Its samples.
    of: Vec<usize>,
}

impl Grid {
    pub fn new(launch: &Launch) -> Self {
        Self { launch: *launch, samples: Vec::new() }
    }

    pub fn add(&mut self, block: u64, warp: u32, counts: Vec<f64>, instructions: f64) {
        if !self.samples.iter().any(|sample| (sample.block, sample.warp) == (block, warp)) {
            self.samples.push(Sample { block, warp, counts, instructions });
        }
    }

    /// The warps of the middle block that were not run, in an order in which any first few are spread over it.
    pub fn rest_of_middle(&self) -> Vec<u32> {
        let middle = middle(self.launch.grid);
        let count = self.warps();
        let mut order: Vec<u32> =
            (0..count).map(|k| (f64::from(k) * GOLDEN).fract()).map(|at| scaled(at, count)).collect();
        order.extend(0..count);
        let mut seen: Vec<u32> = self.samples.iter().filter(|s| s.block == middle).map(|s| s.warp).collect();
        order.retain(|warp| {
            let new = !seen.contains(warp);
            seen.push(*warp);
            new
        });
        order
    }

    /// The block and warp to look at next; `None` where the mean is known well enough.
    pub fn next(&self) -> Option<(u64, u32)> {
        if self.samples.len() >= MOST || self.samples.is_empty() {
            return None;
        }
        let base = self.base();
        let strata = self.strata();
        let looked: Vec<Vec<Looked>> = strata.iter().map(|stratum| self.looked(stratum, base.as_ref())).collect();
        let number = self.samples.len() as f64;
        let warp = scaled((number * GOLDEN).fract(), self.warps());
        let at = |stratum: &Stratum, rank: u64| (stratum.block(rank, self.launch.grid), warp);
        let unseen =
            strata.iter().zip(&looked).filter(|(stratum, looked)| looked.is_empty() && stratum.share >= SMALLEST);
        if let Some((stratum, _)) = unseen.max_by(|(a, _), (b, _)| a.share.total_cmp(&b.share)) {
            return Some(at(stratum, stratum.size() / 2));
        }
        for (stratum, looked) in strata.iter().zip(&looked).filter(|(stratum, _)| stratum.share >= LARGE) {
            for end in [stratum.size() - 1, 0] {
                if !looked.iter().any(|block| block.rank == end) {
                    return Some(at(stratum, end));
                }
            }
        }
        let mean = self.mean_of_samples();
        let agree = agree(&looked);
        let blocks: usize = looked.iter().map(Vec::len).sum();
        if blocks >= FEWEST && off(&strata, &looked, agree) <= GOOD * mean {
            return None;
        }
        let mut best: Option<(f64, &Stratum, u64)> = None;
        for (stratum, looked) in strata.iter().zip(&looked) {
            for (from, to, apart) in gaps(stratum, looked) {
                let worth = if agree { apart + HIDDEN * mean } else { 1.0 };
                let worth = worth * (to - from) as f64 / stratum.size() as f64 * stratum.share;
                if best.as_ref().is_none_or(|(most, ..)| worth > *most) {
                    best = Some((worth, stratum, from + (to - from) / 2));
                }
            }
        }
        best.map(|(_, stratum, rank)| at(stratum, rank))
    }

    /// Whether more samples would hardly move the mean. That no warp was run to its end is no sign that they would.
    pub fn is_settled(&self) -> bool {
        if self.samples.is_empty() || self.next().is_none() {
            return true;
        }
        let base = self.base();
        let strata = self.strata();
        let looked: Vec<Vec<Looked>> = strata.iter().map(|stratum| self.looked(stratum, base.as_ref())).collect();
        off(&strata, &looked, agree(&looked)) <= GOOD * self.mean_of_samples()
    }

    fn mean_of_samples(&self) -> f64 {
        self.samples.iter().map(|sample| sample.instructions).sum::<f64>() / self.samples.len() as f64
    }

    /// Executions of each step by the average warp; `None` where no warp was run to its end.
    pub fn mean(&self) -> Option<Vec<f64>> {
        let steps = self.samples.first()?.counts.len();
        let base = self.base();
        let strata = self.strata();
        let (mut mean, mut whole) = (vec![0.0; steps], 0.0);
        for stratum in &strata {
            let looked = self.looked(stratum, base.as_ref());
            for (block, share) in looked.iter().zip(shares(stratum, &looked)) {
                let weight = stratum.share * share;
                whole += weight;
                for &index in &block.of {
                    let sample = &self.samples[index];
                    let expected = base.as_ref().map(|base| &self.samples[base.of[sample.warp as usize]].counts);
                    for (at, sum) in mean.iter_mut().enumerate() {
                        let difference = sample.counts[at] - expected.map_or(0.0, |expected| expected[at]);
                        *sum += difference * weight / block.of.len() as f64;
                    }
                }
            }
        }
        let warps = f64::from(self.warps());
        for (at, sum) in mean.iter_mut().enumerate() {
            let own: f64 = base.iter().flat_map(|base| &base.of).map(|&of| self.samples[of].counts[at] / warps).sum();
            *sum = (own + *sum / whole).max(0.0);
        }
        Some(mean)
    }

    fn warps(&self) -> u32 {
        self.launch.block_threads().div_ceil(32)
    }

    /// What the warps of a block do, by those of the middle block, if that tells more of the other blocks' warps than their mean does.
    fn base(&self) -> Option<Base> {
        let middle = middle(self.launch.grid);
        let known: Vec<usize> = (0..self.samples.len()).filter(|&index| self.samples[index].block == middle).collect();
        let nearest = |warp: u32| known.iter().copied().min_by_key(|&index| self.samples[index].warp.abs_diff(warp));
        let of: Vec<usize> = (0..self.warps()).map(nearest).collect::<Option<_>>()?;
        let base = Base { of };
        let others = || self.samples.iter().filter(|sample| sample.block != middle);
        let count = others().count() as f64;
        let mean = others().map(|sample| sample.instructions).sum::<f64>() / count.max(1.0);
        let raw: f64 = others().map(|sample| (sample.instructions - mean).powi(2)).sum();
        let left: f64 = others().map(|sample| self.apart(sample, Some(&base)).powi(2)).sum();
        (left <= raw || count < 2.0).then_some(base)
    }

    /// Instructions of a warp, less those of its like in the middle block.
    fn apart(&self, sample: &Sample, base: Option<&Base>) -> f64 {
        sample.instructions - base.map_or(0.0, |base| self.samples[base.of[sample.warp as usize]].instructions)
    }

    fn strata(&self) -> Vec<Stratum> {
        let grid = self.launch.grid;
        let parts = |n: u32| -> Vec<(u32, u32)> {
            match n {
                0 | 1 => vec![(0, n)],
                2 => vec![(0, 1), (1, 1)],
                _ => vec![(0, 1), (1, n - 2), (n - 1, 1)],
            }
        };
        let [xs, ys, zs] = grid.map(parts);
        let blocks = self.launch.blocks() as f64;
        let mut strata = Vec::new();
        for &z in &zs {
            for &y in &ys {
                for &x in &xs {
                    let stratum = Stratum { from: [x.0, y.0, z.0], extent: [x.1, y.1, z.1], share: 0.0 };
                    strata.push(Stratum { share: stratum.size() as f64 / blocks, ..stratum });
                }
            }
        }
        strata
    }

    /// The blocks of a stratum of which warps were run, in their order.
    fn looked(&self, stratum: &Stratum, base: Option<&Base>) -> Vec<Looked> {
        let mut looked: Vec<Looked> = Vec::new();
        for (index, sample) in self.samples.iter().enumerate() {
            let Some(rank) = stratum.rank(unravel(sample.block, self.launch.grid)) else { continue };
            match looked.iter_mut().find(|block| block.rank == rank) {
                Some(block) => block.of.push(index),
                None => looked.push(Looked { rank, instructions: 0.0, of: vec![index] }),
            }
        }
        for block in &mut looked {
            let sum: f64 = block.of.iter().map(|&index| self.apart(&self.samples[index], base)).sum();
            block.instructions = sum / block.of.len() as f64;
        }
        looked.sort_unstable_by_key(|block| block.rank);
        looked
    }
}

/// For each warp of a block, the sample of the middle block that is most like it.
struct Base {
    of: Vec<usize>,
}

fn scaled(part: f64, count: u32) -> u32 {
    ((part * f64::from(count)) as u32).min(count.saturating_sub(1))
}

/// The stretches of a stratum between blocks that were looked at, with how far the instructions at their ends are apart.
fn gaps(stratum: &Stratum, looked: &[Looked]) -> Vec<(u64, u64, f64)> {
    let mut gaps = Vec::new();
    for pair in looked.windows(2) {
        gaps.push((pair[0].rank, pair[1].rank, (pair[1].instructions - pair[0].instructions).abs()));
    }
    if let (Some(first), Some(last)) = (looked.first(), looked.last()) {
        gaps.push((0, first.rank, 0.0));
        gaps.push((last.rank, stratum.size(), 0.0));
    }
    // The middle of a gap is neither of its ends.
    gaps.retain(|&(from, to, _)| to > from + 1 || from == 0 && to == 1 && looked[0].rank == 1);
    gaps
}

/// The part of a stratum that each block that was looked at stands for.
fn shares(stratum: &Stratum, looked: &[Looked]) -> Vec<f64> {
    let size = stratum.size() as f64;
    let border = |a: &Looked, b: &Looked| (a.rank as f64 + b.rank as f64) / 2.0 + 0.5;
    (0..looked.len())
        .map(|at| {
            let from = at.checked_sub(1).map_or(0.0, |before| border(&looked[before], &looked[at]));
            let to = looked.get(at + 1).map_or(size, |next| border(&looked[at], next));
            (to - from) / size
        })
        .collect()
}

/// Whether most neighbours do the same, so that where they differ there is a border between two kinds.
fn agree(looked: &[Vec<Looked>]) -> bool {
    let pairs = || looked.iter().flat_map(|blocks| blocks.windows(2));
    let same = pairs().filter(|pair| pair[0].instructions == pair[1].instructions).count();
    let blocks: usize = looked.iter().map(Vec::len).sum();
    blocks < TELLING || same * 2 >= pairs().count()
}

/// How far off the mean may be, in instructions.
fn off(strata: &[Stratum], looked: &[Vec<Looked>], agree: bool) -> f64 {
    if agree {
        // Somewhere in each gap there is a border.
        let of = |(stratum, looked): (&Stratum, &Vec<Looked>)| {
            let size = stratum.size() as f64;
            gaps(stratum, looked).iter().map(|&(from, to, apart)| (to - from) as f64 / size * apart / 2.0).sum::<f64>()
                * stratum.share
        };
        return strata.iter().zip(looked).map(of).sum();
    }
    let all: Vec<f64> = looked.iter().flatten().map(|block| block.instructions).collect();
    let count = all.len() as f64;
    let mean = all.iter().sum::<f64>() / count;
    (all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count).sqrt() / count.sqrt()
}
