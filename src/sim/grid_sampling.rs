//! Warps that were run, by their places -> what the average warp of the grid executes, and
//! which place to look at next.
//!
//! Blocks at the rims of a grid do other things than those within, so the grid is cut into
//! strata: first, inner and last blocks along each dimension, each weighted by its blocks.
//! Within a stratum a block stands for all that are nearer to it than to another. What the
//! warps of one block do is known from the middle block of its stratum, as far as it was run,
//! or from that of the grid: where that tells what the same warp of other blocks does, only the
//! difference from it is carried over to the stratum (a control variate), so that a warp that
//! does all the work of its block, or none where a block reaches beyond the data, counts as one
//! of this many.
//!
//! A few places are drawn, evenly and without a period. Where most of them do the same as their
//! neighbours, the borders between those that do not are sought: new places are where the
//! blocks on both sides differ most, over the longest stretch. Where hardly two agree, or one
//! that differs lies alone among them, as a long row of a sparse matrix does, what is nearest
//! tells nothing, and a place that was sought says no more than that it is like the one next to
//! which it was sought: more are drawn instead, and only these count.

use super::place::{middle_index, unravel_index};
use super::stratum::{SampledBlock, Stratum, block_shares, count_borders, find_gaps, mean_error, neighbours_agree};
use crate::launch::Launch;

/// Strata with a smaller share of the blocks are not looked at for their own sake.
const SMALLEST: f64 = 0.002;
/// What two blocks that agree may still hide between them, relative to the mean.
const HIDDEN: f64 = 0.02;
/// Of strata with at least this share the ends are looked at, too.
const LARGE: f64 = 0.05;
/// An estimate is good enough when it may be off by this part.
const GOOD: f64 = 0.002;
/// From this many blocks on borders are sought between them.
const FEWEST: usize = 8;
/// The fewest blocks that are drawn: with fewer, a kind that every sixteenth block is of would be
/// missed.
pub(super) const ENOUGH: usize = 32;
/// The most warps that are looked at.
const MOST: usize = 256;
/// Who executes no more than this part of what the longest warp does only finds that nothing is
/// left to do.
const IDLE: f64 = 0.05;
/// And all of them together no more than this part of what the others do.
const IDLE_TOGETHER: f64 = 0.25;
/// Fewer of the blocks than this idle are not worth mentioning.
const FEW_IDLE: f64 = 0.02;
/// And that more neighbours than these differ, that they do not.
const MOST_BORDERS: usize = 8;
/// What the warps of one block do tells nothing of those of others where these are as much
/// farther apart from their like there than from their mean: of two that have nothing to do
/// with each other, the difference has twice the variance of one.
const WORSE: f64 = 1.5;
/// Successive numbers times this, modulo 1, fill any range evenly: the golden ratio.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// A warp that was run to its end.
struct WarpSample {
    block: u64,
    warp: u32,
    /// Executions of each step.
    counts: Vec<f64>,
    /// Lanes that took part in those of each memory step, over all executions, where that was
    /// counted.
    lanes: Option<Vec<f64>>,
    /// All executions together.
    instructions: f64,
}

/// The samples of a launch.
pub(super) struct Grid {
    launch: Launch,
    samples: Vec<WarpSample>,
    /// Blocks that were looked at for a border next to them.
    sought: Vec<u64>,
}

/// What is known of the blocks of each stratum, and whether neighbours agree.
struct Looks {
    blocks: Vec<Vec<SampledBlock>>,
    agree: bool,
}

/// A place to look at next.
struct Next {
    block: u64,
    warp: u32,
    is_sought: bool,
}

impl Grid {
    pub fn new(launch: &Launch) -> Self {
        Self { launch: *launch, samples: Vec::new(), sought: Vec::new() }
    }

    pub fn add_sample(&mut self, block: u64, warp: u32, counts: Vec<f64>, lanes: Option<Vec<f64>>, instructions: f64) {
        if !self.samples.iter().any(|sample| (sample.block, sample.warp) == (block, warp)) {
            self.samples.push(WarpSample { block, warp, counts, lanes, instructions });
        }
    }

    /// The warps of the middle block of the grid, then of those of its other large strata, that
    /// were not run; those of a block are in an order in which any first few are spread over
    /// it.
    pub fn rest_of_middles(&self) -> Vec<(u64, u32)> {
        let count = self.warp_count();
        let mut order: Vec<u32> =
            (0..count).map(|k| (f64::from(k) * GOLDEN).fract()).map(|at| scale_count(at, count)).collect();
        order.extend(0..count);
        let mut strata = self.find_strata();
        strata.retain(|stratum| stratum.share >= LARGE);
        strata.sort_by(|a, b| b.share.total_cmp(&a.share));
        let mut blocks = vec![middle_index(self.launch.grid)];
        for block in strata.iter().map(|stratum| stratum.middle_block(self.launch.grid)) {
            if !blocks.contains(&block) {
                blocks.push(block);
            }
        }
        blocks.truncate((MOST / 2 / count.max(1) as usize).max(1));
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
        let Next { block, warp, is_sought } = self.choose_next()?;
        if is_sought {
            self.sought.push(block);
        }
        Some((block, warp))
    }

    fn choose_next(&self) -> Option<Next> {
        if self.samples.len() >= MOST || self.samples.is_empty() {
            return None;
        }
        let strata = self.find_strata();
        let looks = self.group_looked(&strata, &self.stratum_bases(&strata));
        let looked = &looks.blocks;
        let number = self.samples.len() as f64;
        let warp = scale_count((number * GOLDEN).fract(), self.warp_count());
        let at = |stratum: &Stratum, rank: u64, is_sought: bool| {
            Some(Next { block: stratum.block_at(rank, self.launch.grid), warp, is_sought })
        };
        let unseen =
            strata.iter().zip(looked).filter(|(stratum, looked)| looked.is_empty() && stratum.share >= SMALLEST);
        if let Some((stratum, _)) = unseen.max_by(|(a, _), (b, _)| a.share.total_cmp(&b.share)) {
            return at(stratum, stratum.block_count() / 2, false);
        }
        for (stratum, looked) in strata.iter().zip(looked).filter(|(stratum, _)| stratum.share >= LARGE) {
            for end in [stratum.block_count() - 1, 0] {
                if !looked.iter().any(|block| block.rank == end) {
                    return at(stratum, end, false);
                }
            }
        }
        let known = self.is_known(&strata, &looks);
        let blocks: usize = looked.iter().map(Vec::len).sum();
        if !looks.agree || known || blocks < FEWEST {
            let enough = known && self.sampled_blocks() >= ENOUGH + self.sought.len();
            let (block, warp) = self.draw_warp().filter(|_| !enough)?;
            return Some(Next { block, warp, is_sought: false });
        }
        let mean = self.mean_instructions(&strata, looked);
        let mut best: Option<(f64, &Stratum, u64)> = None;
        for (stratum, looked) in strata.iter().zip(looked) {
            for (from, to, apart) in find_gaps(stratum, looked) {
                let worth = (apart + HIDDEN * mean) * (to - from) as f64 / stratum.block_count() as f64 * stratum.share;
                if best.as_ref().is_none_or(|(most, ..)| worth > *most) {
                    best = Some((worth, stratum, from + (to - from) / 2));
                }
            }
        }
        best.and_then(|(_, stratum, rank)| at(stratum, rank, true))
    }

    /// A warp that was not run, such that all of these are spread evenly over the launch and
    /// without a period. In launches of as many threads they are the same ones: what they tell
    /// of the data says nothing for one shape and against another.
    fn draw_warp(&self) -> Option<(u64, u32)> {
        let warps = u64::from(self.warp_count());
        let all = (self.launch.blocks() * warps) as f64;
        let places = (1..=2 * MOST).map(|k| ((k as f64 * GOLDEN).fract() * all) as u64);
        let mut places = places.map(|at| (at / warps, (at % warps) as u32));
        places.find(|&place| !self.samples.iter().any(|sample| (sample.block, sample.warp) == place))
    }

    /// Whether more samples would hardly move the mean. That no warp was run to its end is no
    /// sign that they would.
    pub fn is_settled(&self) -> bool {
        if self.samples.is_empty() || self.choose_next().is_none() {
            return true;
        }
        let strata = self.find_strata();
        self.is_known(&strata, &self.group_looked(&strata, &self.stratum_bases(&strata)))
    }

    /// Whether the mean can hardly be off, by what was looked at.
    fn is_known(&self, strata: &[Stratum], Looks { blocks, agree }: &Looks) -> bool {
        mean_error(strata, blocks, *agree) <= GOOD * self.mean_instructions(strata, blocks)
    }

    /// The number of blocks of which warps were run.
    pub fn sampled_blocks(&self) -> usize {
        let mut blocks: Vec<u64> = self.samples.iter().map(|sample| sample.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks.len()
    }

    /// Whether these are enough to tell how far blocks differ.
    pub fn has_many(&self) -> bool {
        self.sampled_blocks() as u64 >= self.launch.blocks().min(FEWEST as u64)
    }

    /// Instructions of the average warp.
    fn mean_instructions(&self, strata: &[Stratum], looked: &[Vec<SampledBlock>]) -> f64 {
        let of = |(stratum, looked): (&Stratum, &Vec<SampledBlock>)| {
            let of_block = |block: &SampledBlock| self.sample_lengths(&block.of).sum::<f64>() / block.of.len() as f64;
            let each = looked.iter().zip(block_shares(stratum, looked));
            each.map(|(block, share)| of_block(block) * share).sum::<f64>() * stratum.share
        };
        strata.iter().zip(looked).map(of).sum()
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
        let bases = self.stratum_bases(&strata);
        let (mut mean, mut whole) = (vec![0.0; steps], 0.0);
        for ((stratum, base), looked) in strata.iter().zip(&bases).zip(self.group_looked(&strata, &bases).blocks) {
            if looked.is_empty() {
                continue;
            }
            whole += stratum.share;
            for &index in base.iter().flat_map(|base| &base.of) {
                let weight = stratum.share / f64::from(self.warp_count());
                mean.iter_mut().zip(values[index]).for_each(|(sum, count)| *sum += count * weight);
            }
            for (block, share) in looked.iter().zip(block_shares(stratum, &looked)) {
                let weight = stratum.share * share / block.of.len() as f64;
                for &index in &block.of {
                    let expected = base.as_ref().map(|base| values[base.of[self.samples[index].warp as usize]]);
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
        let works = |sample: &&WarpSample| sample.instructions > longest * IDLE;
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
        if idle > 1 && share >= FEW_IDLE && after <= before * IDLE_TOGETHER { share } else { 0.0 }
    }

    /// Instructions of the longest warp of the average block; `None` where no warp was run to
    /// its end.
    pub fn longest_of_block(&self) -> Option<f64> {
        let strata = self.find_strata();
        let (mut sum, mut whole) = (0.0, 0.0);
        let bases = self.stratum_bases(&strata);
        for ((stratum, base), looked) in strata.iter().zip(&bases).zip(self.group_looked(&strata, &bases).blocks) {
            let shares = block_shares(stratum, &looked);
            let supposed = match base {
                // What the base's warps do, and as much besides as those of these blocks that were
                // run.
                Some(base) => {
                    let beyond: f64 = looked.iter().zip(&shares).map(|(block, share)| block.instructions * share).sum();
                    let of_base = self.sample_lengths(&base.of).fold(0.0, f64::max);
                    // Where others are longer than any of the base's, as every 64th row of a sparse
                    // matrix is, it has none of their kind.
                    let lacks_some =
                        looked.iter().flat_map(|block| self.sample_lengths(&block.of)).any(|length| length > of_base);
                    let by_chance = if lacks_some { self.longest_by_chance(&looked, &shares) } else { 0.0 };
                    by_chance.max(of_base + beyond)
                }
                None => self.longest_by_chance(&looked, &shares),
            };
            for (block, share) in looked.iter().zip(&shares) {
                let known = self.is_whole(block).then(|| self.sample_lengths(&block.of).fold(0.0, f64::max));
                sum += stratum.share * share * known.unwrap_or(supposed);
                whole += stratum.share * share;
            }
        }
        (whole > 0.0).then(|| sum / whole)
    }

    /// That of a block whose warps are any of these blocks' warps, but no farther apart than
    /// those of blocks that were run as a whole.
    fn longest_by_chance(&self, looked: &[SampledBlock], shares: &[f64]) -> f64 {
        let each = looked.iter().zip(shares).flat_map(|(block, share)| {
            self.sample_lengths(&block.of).map(move |length| (length, share / block.of.len() as f64))
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
        for block in looked.iter().filter(|block| self.is_whole(block)) {
            within += self.sample_lengths(&block.of).map(|length| (length - block.instructions).powi(2)).sum::<f64>();
            number += block.of.len() as f64;
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
        block.of.len() == self.warp_count() as usize
    }

    fn warp_count(&self) -> u32 {
        self.launch.block_threads().div_ceil(32)
    }

    /// What the warps of a block do, by stratum: by those of its middle block where all of
    /// these were run, else by those of the stratum that lies most like it, or of the
    /// grid's middle; none where that tells less of the other blocks' warps than their mean
    /// does.
    fn stratum_bases(&self, strata: &[Stratum]) -> Vec<Option<Base>> {
        let own = |stratum: &Stratum| {
            let block = stratum.middle_block(self.launch.grid);
            let is_whole =
                self.samples.iter().filter(|sample| sample.block == block).count() == self.warp_count() as usize;
            self.base_at(block).filter(|_| is_whole)
        };
        let known: Vec<(&Stratum, Base)> = strata.iter().filter_map(|stratum| Some((stratum, own(stratum)?))).collect();
        let centre = self.base_at(middle_index(self.launch.grid));
        let of = |stratum: &Stratum| {
            let alike = known.iter().max_by_key(|(other, _)| stratum.likeness(other)).map(|(_, base)| base.clone());
            alike.or_else(|| centre.clone())
        };
        let bases: Vec<Option<Base>> = strata.iter().map(of).collect();
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
        if left <= raw * WORSE || count < 2.0 { bases } else { vec![None; strata.len()] }
    }

    /// For each warp, the sample of a block that is most like it; none where no warp of the
    /// block was run.
    fn base_at(&self, block: u64) -> Option<Base> {
        let known: Vec<usize> = (0..self.samples.len()).filter(|&index| self.samples[index].block == block).collect();
        let nearest = |warp: u32| known.iter().copied().min_by_key(|&index| self.samples[index].warp.abs_diff(warp));
        let of: Vec<usize> = (0..self.warp_count()).map(nearest).collect::<Option<_>>()?;
        Some(Base { block, of })
    }

    /// Instructions of a warp, less those of its like in the middle block.
    fn distance_from_base(&self, sample: &WarpSample, base: Option<&Base>) -> f64 {
        sample.instructions - base.map_or(0.0, |base| self.samples[base.of[sample.warp as usize]].instructions)
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

    /// The blocks of which warps were run and that count, by stratum.
    fn group_looked(&self, strata: &[Stratum], bases: &[Option<Base>]) -> Looks {
        let of_all = |counts: &dyn Fn(&WarpSample) -> bool| -> Vec<Vec<SampledBlock>> {
            let each = strata.iter().zip(bases);
            each.map(|(stratum, base)| self.of_stratum(stratum, base.as_ref(), counts)).collect()
        };
        // Of what was sought nothing is to be learnt about how blocks differ: it lies next to what
        // it is like.
        let drawn = of_all(&|sample| !self.sought.contains(&sample.block));
        if !neighbours_agree(&drawn) {
            return Looks { blocks: drawn, agree: false };
        }
        let all = of_all(&|_| true);
        let agree = count_borders(&all) <= MOST_BORDERS;
        Looks { blocks: if agree { all } else { drawn }, agree }
    }

    /// The blocks of a stratum of which warps were run, in their order.
    fn of_stratum(
        &self,
        stratum: &Stratum,
        base: Option<&Base>,
        counts: &dyn Fn(&WarpSample) -> bool,
    ) -> Vec<SampledBlock> {
        let mut looked: Vec<SampledBlock> = Vec::new();
        for (index, sample) in self.samples.iter().enumerate().filter(|(_, sample)| counts(sample)) {
            let Some(rank) = stratum.rank_of(unravel_index(sample.block, self.launch.grid)) else { continue };
            match looked.iter_mut().find(|block| block.rank == rank) {
                Some(block) => block.of.push(index),
                None => looked.push(SampledBlock { rank, instructions: 0.0, of: vec![index] }),
            }
        }
        for block in &mut looked {
            let sum: f64 = block.of.iter().map(|&index| self.distance_from_base(&self.samples[index], base)).sum();
            block.instructions = sum / block.of.len() as f64;
        }
        looked.sort_unstable_by_key(|block| block.rank);
        looked
    }
}

/// For each warp of a block, the sample of one block that is most like it.
#[derive(Clone)]
struct Base {
    block: u64,
    of: Vec<usize>,
}

fn scale_count(part: f64, count: u32) -> u32 {
    ((part * f64::from(count)) as u32).min(count.saturating_sub(1))
}
