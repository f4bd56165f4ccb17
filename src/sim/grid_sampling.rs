//! Stratified sampling of a grid: from the warps that were run, estimates what the average warp
//! executes, and chooses the warp to run next.
//!
//! Blocks at the rims of a grid differ from inner ones, so the grid is divided into strata: first,
//! inner and last blocks along each dimension, each weighted by its number of blocks. Within a
//! stratum a sampled block represents all blocks that are nearer to it than to another sample. How
//! the warps of one block differ is known from the middle block of the stratum, or of the grid. If
//! that block predicts the same warps of other blocks, it is a control variate: only the
//! difference from it is extrapolated to the stratum. A warp that does all the work of its block
//! thus counts as one of many.
//!
//! A few places are drawn evenly and without a period. If most sampled blocks equal their
//! neighbours, the borders between different ones are searched by bisection: the next place is
//! where the blocks on both sides differ most, over the longest stretch. If hardly two blocks
//! agree, or a different one lies alone among equal ones (a long row of a sparse matrix), nearness
//! tells nothing. Then more places are drawn, and only drawn ones count.

use super::place::{middle_index, unravel_index};
use super::stratum::{SampledBlock, Stratum, block_shares, count_borders, find_gaps, mean_error, neighbours_agree};
use crate::launch::Launch;

/// Minimum share of the blocks of a stratum that is sampled for its own sake.
const MIN_STRATUM_SHARE: f64 = 0.002;
/// Difference that may be hidden between two blocks that agree, relative to the mean.
const HIDDEN_DIFFERENCE: f64 = 0.02;
/// In strata with at least this share of the blocks the ends are sampled, too.
const LARGE_STRATUM_SHARE: f64 = 0.05;
/// An estimate is good enough if its relative error is at most this.
const MAX_RELATIVE_ERROR: f64 = 0.002;
/// Minimum number of sampled blocks for a search for borders between them.
const MIN_BLOCKS_FOR_BORDERS: usize = 8;
/// Minimum number of blocks that are drawn. 32 finds a kind that makes up 1/16 of them with
/// p > 0.87.
pub(super) const MIN_DRAWN_BLOCKS: usize = 32;
/// Maximum number of warps that are sampled.
const MAX_WARPS: usize = 256;
/// A warp that executes at most this share of the longest warp's instructions is idle.
const IDLE_WARP_SHARE: f64 = 0.05;
/// Maximum share of all idle warps' instructions in those of the others.
const IDLE_TOTAL_SHARE: f64 = 0.25;
/// Minimum share of idle blocks that is reported.
const MIN_IDLE_SHARE: f64 = 0.02;
/// Maximum number of borders; with more, neighbours do not agree.
const MAX_BORDERS: usize = 8;
/// Maximum variance of the differences from the base block, relative to that of the samples. The
/// difference of two independent values has twice the variance of one, so beyond this the base
/// block does not predict other blocks.
const MAX_VARIANCE_RATIO: f64 = 1.5;
/// The golden ratio: successive multiples of it, modulo 1, fill any range evenly.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;

/// A warp that was run to its end.
struct WarpSample {
    block: u64,
    warp: u32,
    /// Executions of each step.
    counts: Vec<f64>,
    /// Active lanes over all executions of each memory step, if they were counted.
    lanes: Option<Vec<f64>>,
    /// Executed instructions in all.
    instructions: f64,
}

/// The samples of a launch.
pub(super) struct Grid {
    launch: Launch,
    samples: Vec<WarpSample>,
    /// Blocks that were sampled in a search for a border, not drawn.
    border_blocks: Vec<u64>,
}

/// The sampled blocks of each stratum, and whether neighbours agree.
struct GroupedSamples {
    blocks: Vec<Vec<SampledBlock>>,
    agree: bool,
}

/// The next warp to sample.
struct NextSample {
    block: u64,
    warp: u32,
    is_border_search: bool,
}

impl Grid {
    pub fn new(launch: &Launch) -> Self {
        Self { launch: *launch, samples: Vec::new(), border_blocks: Vec::new() }
    }

    pub fn add_sample(&mut self, block: u64, warp: u32, counts: Vec<f64>, lanes: Option<Vec<f64>>, instructions: f64) {
        if !self.samples.iter().any(|sample| (sample.block, sample.warp) == (block, warp)) {
            self.samples.push(WarpSample { block, warp, counts, lanes, instructions });
        }
    }

    /// Returns the warps of the grid's middle block that were not run, then those of the middle
    /// blocks of other large strata. Within a block any first few of them are spread over it.
    pub fn middle_block_warps(&self) -> Vec<(u64, u32)> {
        let count = self.warp_count();
        let mut order: Vec<u32> =
            (0..count).map(|k| (f64::from(k) * GOLDEN_RATIO).fract()).map(|at| scale_count(at, count)).collect();
        order.extend(0..count);
        let mut strata = self.find_strata();
        strata.retain(|stratum| stratum.share >= LARGE_STRATUM_SHARE);
        strata.sort_by(|a, b| b.share.total_cmp(&a.share));
        let mut blocks = vec![middle_index(self.launch.grid)];
        for block in strata.iter().map(|stratum| stratum.middle_block(self.launch.grid)) {
            if !blocks.contains(&block) {
                blocks.push(block);
            }
        }
        blocks.truncate((MAX_WARPS / 2 / count.max(1) as usize).max(1));
        let mut seen: Vec<(u64, u32)> = self.samples.iter().map(|sample| (sample.block, sample.warp)).collect();
        let mut rest = Vec::new();
        for place in blocks.iter().flat_map(|&block| order.iter().map(move |&warp| (block, warp))) {
            if !seen.contains(&place) {
                seen.push(place);
                rest.push(place);
            }
        }
        rest
    }

    /// Returns the block and warp to run next, or `None` if the mean is known well
    /// enough.
    pub fn next_warp(&mut self) -> Option<(u64, u32)> {
        let NextSample { block, warp, is_border_search } = self.choose_next()?;
        if is_border_search {
            self.border_blocks.push(block);
        }
        Some((block, warp))
    }

    fn choose_next(&self) -> Option<NextSample> {
        if self.samples.len() >= MAX_WARPS || self.samples.is_empty() {
            return None;
        }
        let strata = self.find_strata();
        let grouped = self.group_samples(&strata, &self.base_blocks(&strata));
        let sampled = &grouped.blocks;
        let number = self.samples.len() as f64;
        let warp = scale_count((number * GOLDEN_RATIO).fract(), self.warp_count());
        let at = |stratum: &Stratum, rank: u64, is_border_search: bool| {
            Some(NextSample { block: stratum.block_at(rank, self.launch.grid), warp, is_border_search })
        };
        let unseen = strata
            .iter()
            .zip(sampled)
            .filter(|(stratum, sampled)| sampled.is_empty() && stratum.share >= MIN_STRATUM_SHARE);
        if let Some((stratum, _)) = unseen.max_by(|(a, _), (b, _)| a.share.total_cmp(&b.share)) {
            return at(stratum, stratum.block_count() / 2, false);
        }
        for (stratum, sampled) in strata.iter().zip(sampled).filter(|(stratum, _)| stratum.share >= LARGE_STRATUM_SHARE)
        {
            for end in [stratum.block_count() - 1, 0] {
                if !sampled.iter().any(|block| block.rank == end) {
                    return at(stratum, end, false);
                }
            }
        }
        let known = self.is_known(&strata, &grouped);
        let blocks: usize = sampled.iter().map(Vec::len).sum();
        if !grouped.agree || known || blocks < MIN_BLOCKS_FOR_BORDERS {
            let enough = known && self.sampled_blocks() >= MIN_DRAWN_BLOCKS + self.border_blocks.len();
            let (block, warp) = self.draw_warp().filter(|_| !enough)?;
            return Some(NextSample { block, warp, is_border_search: false });
        }
        let mean = self.mean_instructions(&strata, sampled);
        let mut best: Option<(f64, &Stratum, u64)> = None;
        for (stratum, sampled) in strata.iter().zip(sampled) {
            for (from, to, apart) in find_gaps(stratum, sampled) {
                let worth = (apart + HIDDEN_DIFFERENCE * mean) * (to - from) as f64 / stratum.block_count() as f64
                    * stratum.share;
                if best.as_ref().is_none_or(|(most, ..)| worth > *most) {
                    best = Some((worth, stratum, from + (to - from) / 2));
                }
            }
        }
        best.and_then(|(_, stratum, rank)| at(stratum, rank, true))
    }

    /// Draws a warp that was not run. Drawn warps are spread evenly over the launch and without a
    /// period. Launches with equal numbers of threads draw the same warps, so that the data they
    /// see favours no block shape.
    fn draw_warp(&self) -> Option<(u64, u32)> {
        let warps = u64::from(self.warp_count());
        let all = (self.launch.blocks() * warps) as f64;
        let places = (1..=2 * MAX_WARPS).map(|k| ((k as f64 * GOLDEN_RATIO).fract() * all) as u64);
        let mut places = places.map(|at| (at / warps, (at % warps) as u32));
        places.find(|&place| !self.samples.iter().any(|sample| (sample.block, sample.warp) == place))
    }

    /// Tells whether more samples would hardly change the mean; also true if no warp ran to its
    /// end.
    pub fn is_settled(&self) -> bool {
        if self.samples.is_empty() || self.choose_next().is_none() {
            return true;
        }
        let strata = self.find_strata();
        self.is_known(&strata, &self.group_samples(&strata, &self.base_blocks(&strata)))
    }

    /// Tells whether the estimated error of the mean is small enough.
    fn is_known(&self, strata: &[Stratum], GroupedSamples { blocks, agree }: &GroupedSamples) -> bool {
        mean_error(strata, blocks, *agree) <= MAX_RELATIVE_ERROR * self.mean_instructions(strata, blocks)
    }

    /// The number of blocks of which warps were run.
    pub fn sampled_blocks(&self) -> usize {
        let mut blocks: Vec<u64> = self.samples.iter().map(|sample| sample.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks.len()
    }

    /// Tells whether enough blocks were sampled to know how far they differ.
    pub fn has_many(&self) -> bool {
        self.sampled_blocks() as u64 >= self.launch.blocks().min(MIN_BLOCKS_FOR_BORDERS as u64)
    }

    /// Instructions of the average warp.
    fn mean_instructions(&self, strata: &[Stratum], sampled: &[Vec<SampledBlock>]) -> f64 {
        let of = |(stratum, sampled): (&Stratum, &Vec<SampledBlock>)| {
            let of_block =
                |block: &SampledBlock| self.sample_lengths(&block.samples).sum::<f64>() / block.samples.len() as f64;
            let each = sampled.iter().zip(block_shares(stratum, sampled));
            each.map(|(block, share)| of_block(block) * share).sum::<f64>() * stratum.share
        };
        strata.iter().zip(sampled).map(of).sum()
    }

    /// Returns executions of each step by the average warp, or `None` if no warp was run
    /// to its end.
    pub fn mean_counts(&self) -> Option<Vec<f64>> {
        self.mean_of(|sample| Some(&sample.counts))
    }

    /// Lanes that take part in the average warp's executions of each memory step; `None` where
    /// they were not counted.
    pub fn mean_lanes(&self) -> Option<Vec<f64>> {
        self.mean_of(|sample| sample.lanes.as_ref())
    }

    fn mean_of<'a>(&'a self, of: impl Fn(&'a WarpSample) -> Option<&'a Vec<f64>>) -> Option<Vec<f64>> {
        let values: Vec<&Vec<f64>> = self.samples.iter().map(of).collect::<Option<_>>()?;
        let steps = values.first()?.len();
        let strata = self.find_strata();
        let bases = self.base_blocks(&strata);
        let (mut mean, mut whole) = (vec![0.0; steps], 0.0);
        for ((stratum, base), sampled) in strata.iter().zip(&bases).zip(self.group_samples(&strata, &bases).blocks) {
            if sampled.is_empty() {
                continue;
            }
            whole += stratum.share;
            for &index in base.iter().flat_map(|base| &base.samples) {
                let weight = stratum.share / f64::from(self.warp_count());
                mean.iter_mut().zip(values[index]).for_each(|(sum, count)| *sum += count * weight);
            }
            for (block, share) in sampled.iter().zip(block_shares(stratum, &sampled)) {
                let weight = stratum.share * share / block.samples.len() as f64;
                for &index in &block.samples {
                    let expected = base.as_ref().map(|base| values[base.samples[self.samples[index].warp as usize]]);
                    for (at, sum) in mean.iter_mut().enumerate() {
                        *sum += (values[index][at] - expected.map_or(0.0, |expected| expected[at])) * weight;
                    }
                }
            }
        }
        mean.iter_mut().for_each(|sum| *sum = (*sum / whole).max(0.0));
        Some(mean)
    }

    /// Returns the share of the blocks after the last block that does substantial work.
    /// It is above 0 if the grid is larger than its data.
    pub fn idle_share(&self) -> f64 {
        let longest = self.samples.iter().map(|sample| sample.instructions).fold(0.0, f64::max);
        let works = |sample: &&WarpSample| sample.instructions > longest * IDLE_WARP_SHARE;
        let Some(last) = self.samples.iter().filter(works).map(|sample| sample.block).max() else { return 0.0 };
        let after = self.samples.iter().map(|sample| sample.block).filter(|&block| block > last);
        let Some(next) = after.min() else { return 0.0 };
        // Somewhere between the two; what is known of a stratum says nothing of the one before.
        let grid = self.launch.grid;
        let strata = self.find_strata();
        let of_next = strata.iter().find(|stratum| stratum.rank_of(unravel_index(next, grid)).is_some());
        let apart = of_next.filter(|stratum| stratum.rank_of(unravel_index(last, grid)).is_none());
        let from = apart.map_or((last + next).div_ceil(2), |stratum| stratum.block_at(0, grid).max(last + 1));
        let idle = self.launch.blocks().saturating_sub(from);
        let share = idle as f64 / self.launch.blocks().max(1) as f64;
        let (before, after): (Vec<&WarpSample>, Vec<&WarpSample>) =
            self.samples.iter().partition(|of| of.block <= last);
        let mean = |of: Vec<&WarpSample>| of.iter().map(|of| of.instructions).sum::<f64>() / of.len() as f64;
        let (before, after) = (mean(before) * (1.0 - share), mean(after) * share);
        // The last block of many a grid is only in part beyond the data, and many that do little
        // may do most of all.
        if idle > 1 && share >= MIN_IDLE_SHARE && after <= before * IDLE_TOTAL_SHARE { share } else { 0.0 }
    }

    /// Estimates the instructions of the longest warp of the average block; `None` if no warp ran
    /// to its end.
    pub fn longest_of_block(&self) -> Option<f64> {
        let strata = self.find_strata();
        let (mut sum, mut whole) = (0.0, 0.0);
        let bases = self.base_blocks(&strata);
        for ((stratum, base), sampled) in strata.iter().zip(&bases).zip(self.group_samples(&strata, &bases).blocks) {
            let shares = block_shares(stratum, &sampled);
            let supposed = match base {
                // What the base's warps do, and as much besides as those of these blocks that were
                // run.
                Some(base) => {
                    let beyond: f64 =
                        sampled.iter().zip(&shares).map(|(block, share)| block.instructions * share).sum();
                    let of_base = self.sample_lengths(&base.samples).fold(0.0, f64::max);
                    // Where others are longer than any of the base's, as every 64th row of a sparse
                    // matrix is, it has none of their kind.
                    let lacks_some = sampled
                        .iter()
                        .flat_map(|block| self.sample_lengths(&block.samples))
                        .any(|length| length > of_base);
                    let by_chance = if lacks_some { self.expected_longest(&sampled, &shares) } else { 0.0 };
                    by_chance.max(of_base + beyond)
                }
                None => self.expected_longest(&sampled, &shares),
            };
            for (block, share) in sampled.iter().zip(&shares) {
                let known = self.is_whole(block).then(|| self.sample_lengths(&block.samples).fold(0.0, f64::max));
                sum += stratum.share * share * known.unwrap_or(supposed);
                whole += stratum.share * share;
            }
        }
        (whole > 0.0).then(|| sum / whole)
    }

    /// Estimates the longest warp of a block whose warps are drawn from these blocks' warps, with
    /// the spread of blocks that were run as a whole.
    fn expected_longest(&self, sampled: &[SampledBlock], shares: &[f64]) -> f64 {
        let each = sampled.iter().zip(shares).flat_map(|(block, share)| {
            self.sample_lengths(&block.samples).map(move |length| (length, share / block.samples.len() as f64))
        });
        let mut each: Vec<(f64, f64)> = each.collect();
        each.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mean: f64 = each.iter().map(|(length, share)| length * share).sum();
        let spread: f64 = each.iter().map(|(length, share)| (length - mean).powi(2) * share).sum();
        // The longest of them all is no longer than one of them if none is.
        let none_beyond = |share: f64| share.min(1.0).powi(self.warp_count() as i32);
        let (mut below, mut longest) = (0.0, 0.0);
        for (length, share) in each {
            longest += length * (none_beyond(below + share) - none_beyond(below));
            below += share;
        }
        let (mut within, mut number) = (0.0, 0.0);
        for block in sampled.iter().filter(|block| self.is_whole(block)) {
            within +=
                self.sample_lengths(&block.samples).map(|length| (length - block.instructions).powi(2)).sum::<f64>();
            number += block.samples.len() as f64;
        }
        let apart = if number > 0.0 && spread > 0.0 { (within / number / spread).sqrt().min(1.0) } else { 1.0 };
        mean + apart * (longest - mean)
    }

    /// Instructions of these samples.
    fn sample_lengths<'a>(&'a self, of: &'a [usize]) -> impl Iterator<Item = f64> + 'a {
        of.iter().map(|&index| self.samples[index].instructions)
    }

    /// Whether all warps of a block were run.
    fn is_whole(&self, block: &SampledBlock) -> bool {
        block.samples.len() == self.warp_count() as usize
    }

    fn warp_count(&self) -> u32 {
        self.launch.block_threads().div_ceil(32)
    }

    /// Returns the base block of each stratum: its middle block if all warps of that were run,
    /// else that of the most similar stratum, or of the grid. `None` for all if base blocks
    /// predict the warps of other blocks worse than their mean does.
    fn base_blocks(&self, strata: &[Stratum]) -> Vec<Option<BaseBlock>> {
        let own = |stratum: &Stratum| {
            let block = stratum.middle_block(self.launch.grid);
            let is_whole =
                self.samples.iter().filter(|sample| sample.block == block).count() == self.warp_count() as usize;
            self.base_at(block).filter(|_| is_whole)
        };
        let known: Vec<(&Stratum, BaseBlock)> =
            strata.iter().filter_map(|stratum| Some((stratum, own(stratum)?))).collect();
        let centre = self.base_at(middle_index(self.launch.grid));
        let of = |stratum: &Stratum| {
            let alike = known.iter().max_by_key(|(other, _)| stratum.similarity(other)).map(|(_, base)| base.clone());
            alike.or_else(|| centre.clone())
        };
        let bases: Vec<Option<BaseBlock>> = strata.iter().map(of).collect();
        // Each sample that is no base itself, with what it does beyond its like.
        let mut others: Vec<(f64, f64)> = Vec::new();
        for sample in &self.samples {
            let at = unravel_index(sample.block, self.launch.grid);
            let of = strata.iter().position(|stratum| stratum.rank_of(at).is_some());
            if let Some(base) = of.and_then(|of| bases[of].as_ref()).filter(|base| base.block != sample.block) {
                others.push((sample.instructions, self.distance_from_base(sample, Some(base))));
            }
        }
        let count = others.len() as f64;
        let mean = others.iter().map(|(instructions, _)| instructions).sum::<f64>() / count.max(1.0);
        let raw: f64 = others.iter().map(|(instructions, _)| (instructions - mean).powi(2)).sum();
        let left: f64 = others.iter().map(|(_, apart)| apart.powi(2)).sum();
        if left <= raw * MAX_VARIANCE_RATIO || count < 2.0 { bases } else { vec![None; strata.len()] }
    }

    /// Returns a block as base block: for each warp the nearest sampled warp. `None` if no warp of
    /// the block was run.
    fn base_at(&self, block: u64) -> Option<BaseBlock> {
        let known: Vec<usize> = (0..self.samples.len()).filter(|&index| self.samples[index].block == block).collect();
        let nearest = |warp: u32| known.iter().copied().min_by_key(|&index| self.samples[index].warp.abs_diff(warp));
        let samples: Vec<usize> = (0..self.warp_count()).map(nearest).collect::<Option<_>>()?;
        Some(BaseBlock { block, samples })
    }

    /// Returns the instructions of a warp minus those of the same warp of the base block.
    fn distance_from_base(&self, sample: &WarpSample, base: Option<&BaseBlock>) -> f64 {
        sample.instructions - base.map_or(0.0, |base| self.samples[base.samples[sample.warp as usize]].instructions)
    }

    fn find_strata(&self) -> Vec<Stratum> {
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
                    strata.push(Stratum { share: stratum.block_count() as f64 / blocks, ..stratum });
                }
            }
        }
        strata
    }

    /// Groups the samples that count by stratum and block.
    fn group_samples(&self, strata: &[Stratum], bases: &[Option<BaseBlock>]) -> GroupedSamples {
        let of_all = |counts: &dyn Fn(&WarpSample) -> bool| -> Vec<Vec<SampledBlock>> {
            let each = strata.iter().zip(bases);
            each.map(|(stratum, base)| self.blocks_of_stratum(stratum, base.as_ref(), counts)).collect()
        };
        // Of what was sought nothing is to be learnt about how blocks differ: it lies next to what
        // it is like.
        let drawn = of_all(&|sample| !self.border_blocks.contains(&sample.block));
        if !neighbours_agree(&drawn) {
            return GroupedSamples { blocks: drawn, agree: false };
        }
        let all = of_all(&|_| true);
        let agree = count_borders(&all) <= MAX_BORDERS;
        GroupedSamples { blocks: if agree { all } else { drawn }, agree }
    }

    /// The blocks of a stratum of which warps were run, in their order.
    fn blocks_of_stratum(
        &self,
        stratum: &Stratum,
        base: Option<&BaseBlock>,
        counts: &dyn Fn(&WarpSample) -> bool,
    ) -> Vec<SampledBlock> {
        let mut sampled: Vec<SampledBlock> = Vec::new();
        for (index, sample) in self.samples.iter().enumerate().filter(|(_, sample)| counts(sample)) {
            let Some(rank) = stratum.rank_of(unravel_index(sample.block, self.launch.grid)) else { continue };
            match sampled.iter_mut().find(|block| block.rank == rank) {
                Some(block) => block.samples.push(index),
                None => sampled.push(SampledBlock { rank, instructions: 0.0, samples: vec![index] }),
            }
        }
        for block in &mut sampled {
            let sum: f64 = block.samples.iter().map(|&index| self.distance_from_base(&self.samples[index], base)).sum();
            block.instructions = sum / block.samples.len() as f64;
        }
        sampled.sort_unstable_by_key(|block| block.rank);
        sampled
    }
}

/// A block that predicts the warps of others: for each warp the index of the sample that stands
/// for it.
#[derive(Clone)]
struct BaseBlock {
    block: u64,
    samples: Vec<usize>,
}

fn scale_count(part: f64, count: u32) -> u32 {
    ((part * f64::from(count)) as u32).min(count.saturating_sub(1))
}
