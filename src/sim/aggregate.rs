//! Aggregates the execution counts of sampled threads and warps into executions of each PTX line,
//! and into the mean over the grid.

use super::branch_trace;
use super::branch_trace::LaneTrace;
use super::grid_sampling::Grid;
use super::interpreter::{ThreadOutcome, ThreadPosition, WarpOutcome};
use super::profile::Profile;
use super::program::{Operation, Program};
use super::request::StepExecutions;
use crate::launch::Launch;

/// Maximum factor between the instruction counts of threads that are considered alike.
const SIMILAR_FACTOR: f64 = 1.1;
/// A thread that executes at most this share of its counterpart's instructions exits early.
const EARLY_EXIT_SHARE: f64 = 0.1;

/// The lanes of a warp, each run alone.
pub(super) struct WarpLanes {
    /// The position of the last lane.
    pub at: Option<ThreadPosition>,
    pub counts: Vec<Vec<u64>>,
    pub traces: Vec<LaneTrace>,
    /// Whether every lane ran to its end.
    pub ended: bool,
}

impl Default for WarpLanes {
    fn default() -> Self {
        Self { at: None, counts: Vec::new(), traces: Vec::new(), ended: true }
    }
}

impl WarpLanes {
    /// Returns how often the warp executed each step (the maximum over its lanes), and the number
    /// of lanes over all executions.
    pub fn executions(&self) -> impl Iterator<Item = StepExecutions> {
        let steps = self.counts.first().map_or(0, Vec::len);
        (0..steps).map(|step| {
            let counts = || self.counts.iter().map(|lane| lane[step]);
            StepExecutions { count: counts().max().unwrap_or(0) as f64, lanes: counts().sum::<u64>() as f64 }
        })
    }
}

/// Counts gathered over threads.
pub(super) struct Tally<'p> {
    program: &'p Program,
    launch: Launch,
    /// Executions of each step by the busiest thread.
    most: Vec<u64>,
    /// The divergence factor of each step: how many times as often as its busiest lane a warp
    /// executes it, summed over `warps` warps.
    divergence: Vec<f64>,
    warps: f64,
    pub exact: bool,
    /// Whether a thread or warp exceeded its allowance.
    cut: bool,
    /// Instructions of the busiest thread or warp that was run.
    longest: f64,
    /// Execution counts of the threads that ran alone to their end.
    alone: Vec<(ThreadPosition, Vec<u64>)>,
    /// Whether the allowance did not suffice for all lone threads.
    lone_skipped: bool,
    pub grid: Grid,
}

impl<'p> Tally<'p> {
    pub fn new(program: &'p Program, launch: &Launch) -> Self {
        let most = vec![0; program.steps.len()];
        let divergence = vec![0.0; program.steps.len()];
        let grid = Grid::new(launch);
        let (exact, cut, alone, lone_skipped) = (true, false, Vec::new(), false);
        Self {
            program,
            launch: *launch,
            most,
            divergence,
            warps: 0.0,
            exact,
            cut,
            longest: 0.0,
            alone,
            lone_skipped,
            grid,
        }
    }

    pub fn raise_most(&mut self, outcome: &ThreadOutcome) {
        for (most, &count) in self.most.iter_mut().zip(&outcome.counts) {
            *most = count.max(*most);
        }
        self.exact &= outcome.exact && !outcome.estimated;
    }

    pub fn add_thread(&mut self, at: ThreadPosition, outcome: &ThreadOutcome) {
        let instructions = self.count_instructions(outcome.counts.iter().map(|&count| count as f64));
        self.longest = instructions.max(self.longest);
        if outcome.cut {
            self.cut = true;
        } else {
            self.alone.push((at, outcome.counts.clone()));
        }
    }

    /// Notes that further lone threads were too expensive to run.
    pub fn skip_further_threads(&mut self) {
        self.lone_skipped = true;
    }

    /// Tells whether more samples would hardly change the mean. If few warps were run, the lone
    /// threads must show how far warps differ.
    fn is_settled(&self) -> bool {
        !self.cut && self.grid.is_settled() && (self.grid.has_many() || self.lone_threads_agree())
    }

    /// Tells whether the lone threads executed about as much as the thread at the same place of
    /// the middle block, or exited early, beyond the data.
    fn lone_threads_agree(&self) -> bool {
        let Some((middle, _)) = self.alone.first() else { return true };
        let length = |counts: &[u64]| self.count_instructions(counts.iter().map(|&count| count as f64));
        let mut pairs = self.alone.iter().filter(|(at, _)| at.block != middle.block).filter_map(|(at, counts)| {
            let like = self.alone.iter().find(|(other, _)| (other.block, other.thread) == (middle.block, at.thread));
            Some((length(counts), length(&like?.1)))
        });
        // Where all were too dear, nothing says that others do the same.
        let is_told = !self.lone_skipped || self.grid.sampled_blocks() > 1 || pairs.clone().next().is_some();
        is_told
            && pairs.all(|(one, like)| {
                one <= like * SIMILAR_FACTOR && (one * SIMILAR_FACTOR >= like || one <= like * EARLY_EXIT_SHARE)
            })
    }

    /// Adds a warp, which executes whatever any of its lanes does.
    pub fn add_warp(&mut self, warp: WarpLanes) {
        let Some(at) = warp.at else { return };
        let by_block = branch_trace::divergence_factors(&warp.traces);
        let mut now = 1.0;
        let mut counts = vec![0.0; self.program.steps.len()];
        for (step, count) in counts.iter_mut().enumerate() {
            if self.program.leaders[step] {
                now = by_block.get(&(step as u32)).copied().unwrap_or(1.0);
            }
            self.divergence[step] += now;
            *count = warp.counts.iter().map(|lane| lane[step]).max().unwrap_or(0) as f64 * now;
        }
        self.warps += 1.0;
        self.longest = self.count_instructions(counts.iter().copied()).max(self.longest);
        // Lanes that were cut off at different places are no measure of each other.
        if warp.ended {
            self.add_to_mean(at, counts, None);
        }
    }

    /// Tells whether a load or store was executed.
    pub fn accesses_memory(&self) -> bool {
        let accesses = |operation: &Operation| matches!(operation, Operation::Load(_) | Operation::Store(_));
        self.program.steps.iter().zip(&self.most).any(|(step, &count)| count > 0 && accesses(&step.operation))
    }

    /// Returns the instructions of the busiest thread so far.
    pub fn longest_thread(&self) -> f64 {
        self.longest
    }

    /// Counts the distinct steps that were executed.
    pub fn reached_steps(&self) -> u64 {
        self.most.iter().filter(|count| **count > 0).count() as u64
    }

    /// Forgets what was counted.
    pub fn forget_counts(&mut self) {
        *self = Self::new(self.program, &self.launch);
    }

    /// Adds a warp that was run as one. `at` is the place of its last thread.
    pub fn add_warp_outcome(&mut self, at: ThreadPosition, ran: &WarpOutcome) {
        let instructions = self.count_instructions(ran.counts.iter().map(|&count| count as f64));
        if ran.ended {
            for (most, &count) in self.most.iter_mut().zip(&ran.counts) {
                *most = count.max(*most);
            }
            for factor in &mut self.divergence {
                *factor += 1.0;
            }
            self.warps += 1.0;
        }
        self.longest = instructions.max(self.longest);
        self.add_mean_sample(at, ran);
    }

    /// Sums executions over all steps except the implicit return at the end of a body,
    /// which is no instruction.
    pub fn count_instructions(&self, counts: impl Iterator<Item = f64>) -> f64 {
        counts.zip(&self.program.steps).filter(|(_, step)| step.line > 0).map(|(count, _)| count).sum()
    }

    /// Executions of each step by the busiest warp, as far as is known.
    fn warp_counts(&self) -> impl Iterator<Item = f64> {
        self.most.iter().zip(self.divergence_by_step()).map(|(&most, factor)| most as f64 * factor)
    }

    /// Returns executions of each step by the average warp of the grid. If no warp was
    /// run to its end, lone threads represent their warps. Without lone threads, every
    /// warp counts as the busiest.
    pub fn mean_counts(&self) -> Vec<f64> {
        let alone = || {
            let mut grid = Grid::new(&self.launch);
            for (at, counts) in &self.alone {
                self.add_sample(&mut grid, *at, self.widen_counts(counts), None);
            }
            grid.mean_counts()
        };
        self.grid.mean_counts().or_else(alone).unwrap_or_else(|| self.warp_counts().collect())
    }

    fn add_sample(&self, grid: &mut Grid, at: ThreadPosition, counts: Vec<f64>, lanes: Option<Vec<f64>>) {
        let [bx, by, _] = self.launch.block.map(u64::from);
        let [gx, gy, _] = self.launch.grid.map(u64::from);
        let ([x, y, z], [tx, ty, tz]) = (at.block.map(u64::from), at.thread.map(u64::from));
        let warp = (tx + bx * (ty + by * tz)) / 32;
        let instructions = self.count_instructions(counts.iter().copied());
        grid.add_sample(x + gx * (y + gy * z), warp as u32, counts, lanes, instructions);
    }

    /// Estimates the executions of a warp from those of its busiest lane.
    fn widen_counts(&self, counts: &[u64]) -> Vec<f64> {
        counts.iter().zip(self.divergence_by_step()).map(|(&count, factor)| count as f64 * factor).collect()
    }

    fn divergence_by_step(&self) -> impl Iterator<Item = f64> {
        self.divergence.iter().map(|sum| if self.warps > 0.0 { sum / self.warps } else { 1.0 })
    }

    /// Adds a warp whose execution counts enter the mean and nothing else. `at` is the
    /// place of its last thread.
    pub fn add_mean_sample(&mut self, at: ThreadPosition, ran: &WarpOutcome) {
        if ran.ended {
            let lanes = ran.executions.iter().map(|executions| executions.lanes).collect();
            self.add_to_mean(at, ran.counts.iter().map(|&count| count as f64).collect(), Some(lanes));
        } else {
            self.cut = true;
        }
    }

    /// Notes that a sample is incomplete: it did not run to its end, or it depends on values of
    /// other warps.
    pub fn cut_off(&mut self) {
        self.cut = true;
    }

    /// Adds a warp of which some lanes were run alone. `counts` are the maximum executions of each
    /// step by one of them.
    pub fn add_lanes(&mut self, at: ThreadPosition, counts: &[u64]) {
        self.add_to_mean(at, self.widen_counts(counts), None);
    }

    fn add_to_mean(&mut self, at: ThreadPosition, counts: Vec<f64>, lanes: Option<Vec<f64>>) {
        let mut grid = std::mem::replace(&mut self.grid, Grid::new(&self.launch));
        self.add_sample(&mut grid, at, counts, lanes);
        self.grid = grid;
    }

    /// Returns how often the average warp executes each memory step, and with how many
    /// lanes. `mean` are its executions of all steps. Returns `None` if the lanes were
    /// not counted.
    pub fn mean_executions(&self, mean: &[f64]) -> Option<Vec<StepExecutions>> {
        let executions = |(&count, lanes)| StepExecutions { count, lanes };
        Some(mean.iter().zip(self.grid.mean_lanes()?).map(executions).collect())
    }

    /// Builds the profile of a grid whose average warp executes each step `mean` times.
    pub fn build_profile(&self, mean: &[f64]) -> Profile {
        let mean_instructions = self.count_instructions(mean.iter().copied());
        let longest = self.grid.longest_of_block().unwrap_or(mean_instructions);
        let straggling = if longest > mean_instructions { longest / mean_instructions } else { 1.0 };
        let (exact, settled) = (self.exact, self.is_settled());
        let mut profile = Profile {
            exact,
            settled,
            mean_instructions,
            straggling,
            idle: self.grid.idle_share(),
            ..Profile::default()
        };
        for ((step, most), mean) in self.program.steps.iter().zip(self.warp_counts()).zip(mean.iter().copied()) {
            // Of further warps some may have been busier.
            for (count, counts) in [(most.max(mean), &mut profile.counts), (mean, &mut profile.mean)] {
                if step.line > 0 && count > 0.0 {
                    let entry = counts.entry(step.line).or_insert(0.0);
                    *entry = entry.max(count);
                }
            }
        }
        profile
    }
}
