//! What was counted of threads and warps -> executions of each PTX line, and the mean over the grid.

use super::block::Ran;
use super::path::{self, Path};
use super::program::Program;
use super::thread::{Outcome, Place3};
use super::unravel;
use crate::model::profile::Profile;
use crate::space::Launch;

/// The lanes of a warp that was run.
pub(super) struct Together {
    /// The last of them.
    pub at: Option<Place3>,
    pub counts: Vec<Vec<u64>>,
    pub paths: Vec<Path>,
    /// No lane was cut off.
    pub ended: bool,
}

impl Default for Together {
    fn default() -> Self {
        Self { at: None, counts: Vec::new(), paths: Vec::new(), ended: true }
    }
}

/// Counts gathered over threads.
pub(super) struct Tally<'p> {
    program: &'p Program,
    launch: Launch,
    /// Executions of each step by the busiest thread.
    most: Vec<u64>,
    /// How much oftener than its busiest lane a warp executes each step, summed over warps, and the number of these.
    shared: Vec<f64>,
    warps: f64,
    /// Instructions of a warp over those of its average lane, summed.
    gain: f64,
    pub exact: bool,
    /// Instructions of each thread or warp that was run, whether it was run to its end, and whether it is a warp.
    threads: Vec<(Place3, f64, bool, bool)>,
}

impl<'p> Tally<'p> {
    pub fn new(program: &'p Program, launch: &Launch) -> Self {
        let most = vec![0; program.steps.len()];
        let shared = vec![0.0; program.steps.len()];
        Self { program, launch: *launch, most, shared, warps: 0.0, gain: 0.0, exact: true, threads: Vec::new() }
    }

    pub fn most(&mut self, outcome: &Outcome) {
        for (most, &count) in self.most.iter_mut().zip(&outcome.counts) {
            *most = count.max(*most);
        }
        self.exact &= outcome.exact && !outcome.estimated;
    }

    pub fn thread(&mut self, at: Place3, outcome: &Outcome) {
        let instructions = self.instructions(outcome.counts.iter().map(|&count| count as f64));
        self.threads.push((at, instructions, !outcome.cut, false));
    }

    /// A warp executes what any of its lanes does.
    pub fn warp(&mut self, warp: Together) {
        let Some(at) = warp.at else { return };
        let by_block = path::shared(&warp.paths);
        let mut now = 1.0;
        let mut counts = vec![0.0; self.program.steps.len()];
        for (step, count) in counts.iter_mut().enumerate() {
            if self.program.leaders[step] {
                now = by_block.get(&(step as u32)).copied().unwrap_or(1.0);
            }
            self.shared[step] += now;
            *count = warp.counts.iter().map(|lane| lane[step]).max().unwrap_or(0) as f64 * now;
        }
        let of_lane = |lane: &Vec<u64>| self.instructions(lane.iter().map(|&count| count as f64));
        let lanes: Vec<f64> = warp.counts.iter().map(of_lane).collect();
        let instructions = self.instructions(counts.into_iter());
        // Lanes that were cut off at different places are no measure of each other.
        let lane = match warp.ended {
            true => lanes.iter().sum::<f64>() / lanes.len() as f64,
            false => lanes.iter().copied().fold(0.0, f64::max),
        };
        self.warps += 1.0;
        self.gain += if lane > 0.0 { instructions / lane } else { 1.0 };
        self.threads.push((at, instructions, warp.ended, true));
    }

    /// Instructions of the busiest thread so far.
    pub fn longest(&self) -> f64 {
        self.threads.iter().map(|(_, instructions, ..)| *instructions).fold(0.0, f64::max)
    }

    /// Forgets what was counted.
    pub fn forget(&mut self) {
        *self = Self::new(self.program, &self.launch);
    }

    /// A warp that was run as one; its last thread is at this place.
    pub fn together(&mut self, at: Place3, ran: &Ran) {
        let instructions = self.instructions(ran.counts.iter().map(|&count| count as f64));
        if ran.ended {
            for (most, &count) in self.most.iter_mut().zip(&ran.counts) {
                *most = count.max(*most);
            }
            for shared in &mut self.shared {
                *shared += 1.0;
            }
            self.warps += 1.0;
            self.gain += ran.gain;
        }
        self.threads.push((at, instructions, ran.ended, true));
    }

    /// The implicit return at the end of a body has no line and is no instruction.
    pub fn instructions(&self, counts: impl Iterator<Item = f64>) -> f64 {
        counts.zip(&self.program.steps).filter(|(_, step)| step.line > 0).map(|(count, _)| count).sum()
    }

    /// Executions of each step by the busiest warp, as far as is known.
    fn counts(&self) -> impl Iterator<Item = f64> {
        let shared = self.shared.iter().map(|sum| if self.warps > 0.0 { sum / self.warps } else { 1.0 });
        self.most.iter().zip(shared).map(|(&most, shared)| most as f64 * shared)
    }

    /// The mean over the grid, of a warp: the first and last of blocks and of a block's warps or threads stand for themselves, the
    /// others that were looked at for all between. Of blocks of which warps were run only these count. What was cut off says
    /// nothing; where none was run to its end, all are taken for as busy as the busiest.
    fn mean(&self) -> f64 {
        let last_block = unravel(self.launch.blocks() - 1, self.launch.grid);
        let last_thread = unravel(u64::from(self.launch.block_threads()) - 1, self.launch.block);
        let class = |index: [u32; 3], last: [u32; 3]| {
            if index == [0; 3] {
                0
            } else if index == last {
                2
            } else {
                1
            }
        };
        let weights = |count: f64| [1.0, (count - 2.0).max(0.0), 1.0];
        let blocks = weights(self.launch.blocks() as f64);
        let threads = weights(f64::from(self.launch.block_threads()));
        let warps = [0.0, f64::from(self.launch.block_threads().div_ceil(32)) - 1.0, 1.0];
        let gain = if self.warps > 0.0 { self.gain / self.warps } else { 1.0 };
        let (mut sum, mut weight) = (0.0, 0.0);
        for (block, of_block) in blocks.into_iter().enumerate() {
            let within =
                || self.threads.iter().filter(|(at, _, ended, _)| *ended && class(at.block, last_block) == block);
            let as_warps = within().any(|(.., is_warp)| *is_warp);
            let mut groups = [(0.0f64, 0.0f64); 3];
            for (at, instructions, _, is_warp) in within().filter(|(.., is_warp)| *is_warp == as_warps) {
                // A block may have but one warp, which begins with its first thread.
                let place = class(at.thread, last_thread).max(usize::from(*is_warp));
                groups[place].0 += instructions * if *is_warp { 1.0 } else { gain };
                groups[place].1 += 1.0;
            }
            let (mut in_block, mut whole) = (0.0, 0.0);
            for ((instructions, number), share) in groups.iter().zip(if as_warps { warps } else { threads }) {
                if *number > 0.0 {
                    in_block += instructions / number * share;
                    whole += share;
                }
            }
            if whole > 0.0 {
                sum += in_block / whole * of_block;
                weight += of_block;
            }
        }
        if weight > 0.0 { (sum / weight).min(self.busiest()) } else { self.busiest() }
    }

    fn busiest(&self) -> f64 {
        self.instructions(self.counts())
    }

    pub fn profile(&self) -> Profile {
        let mut profile = Profile { exact: self.exact, mean_instructions: self.mean(), ..Profile::default() };
        for (step, count) in
            self.program.steps.iter().zip(self.counts()).filter(|(step, count)| step.line > 0 && *count > 0.0)
        {
            let entry = profile.counts.entry(step.line).or_insert(0.0);
            *entry = entry.max(count);
        }
        profile
    }
}
