//! What was counted of threads and warps -> executions of each PTX line, and the mean over the
//! grid.

use super::access::Turns;
use super::block::WarpOutcome;
use super::branch_trace;
use super::branch_trace::Path;
use super::grid_sampling::Grid;
use super::profile::Profile;
use super::program::{Operation, Program};
use super::thread::{Place3, ThreadOutcome};
use crate::launch::Launch;

/// Lone threads whose instructions differ by no more than this factor do about the same.
const ALIKE: f64 = 1.1;
/// One that does no more than this part of what its like does leaves at once.
const LEAVES: f64 = 0.1;

/// The lanes of a warp, each run alone.
pub(super) struct WarpLanes {
    /// The last of them.
    pub at: Option<Place3>,
    pub counts: Vec<Vec<u64>>,
    pub paths: Vec<Path>,
    /// No lane was cut off.
    pub ended: bool,
}

impl Default for WarpLanes {
    fn default() -> Self {
        Self { at: None, counts: Vec::new(), paths: Vec::new(), ended: true }
    }
}

impl WarpLanes {
    /// How often the warp executed each step, and with how many lanes: as often as the lane
    /// that did so most.
    pub fn turns(&self) -> impl Iterator<Item = Turns> {
        let steps = self.counts.first().map_or(0, Vec::len);
        (0..steps).map(|step| {
            let counts = || self.counts.iter().map(|lane| lane[step]);
            Turns { executions: counts().max().unwrap_or(0) as f64, lanes: counts().sum::<u64>() as f64 }
        })
    }
}

/// Counts gathered over threads.
pub(super) struct Tally<'p> {
    program: &'p Program,
    launch: Launch,
    /// Executions of each step by the busiest thread.
    most: Vec<u64>,
    /// How much oftener than its busiest lane a warp executes each step, summed over warps, and
    /// the number of these.
    shared: Vec<f64>,
    warps: f64,
    pub exact: bool,
    /// What was run did not come to its own end within its allowance.
    cut: bool,
    /// Instructions of the busiest thread or warp that was run.
    longest: f64,
    /// What lone threads executed that were run to their end.
    alone: Vec<(Place3, Vec<u64>)>,
    /// The allowance did not suffice for all lone threads.
    lone_left_out: bool,
    pub grid: Grid,
}

impl<'p> Tally<'p> {
    pub fn new(program: &'p Program, launch: &Launch) -> Self {
        let most = vec![0; program.steps.len()];
        let shared = vec![0.0; program.steps.len()];
        let grid = Grid::new(launch);
        let (exact, cut, alone, lone_left_out) = (true, false, Vec::new(), false);
        Self {
            program,
            launch: *launch,
            most,
            shared,
            warps: 0.0,
            exact,
            cut,
            longest: 0.0,
            alone,
            lone_left_out,
            grid,
        }
    }

    pub fn raise_most(&mut self, outcome: &ThreadOutcome) {
        for (most, &count) in self.most.iter_mut().zip(&outcome.counts) {
            *most = count.max(*most);
        }
        self.exact &= outcome.exact && !outcome.estimated;
    }

    pub fn add_thread(&mut self, at: Place3, outcome: &ThreadOutcome) {
        let instructions = self.count_instructions(outcome.counts.iter().map(|&count| count as f64));
        self.longest = instructions.max(self.longest);
        if outcome.cut {
            self.cut = true;
        } else {
            self.alone.push((at, outcome.counts.clone()));
        }
    }

    /// Further lone threads were too dear to be run.
    pub fn leave_out(&mut self) {
        self.lone_left_out = true;
    }

    /// Whether more would hardly change the mean. A few warps, or none, do not tell how far
    /// warps differ where their work depends on data; there lone threads must tell that.
    fn is_settled(&self) -> bool {
        !self.cut && self.grid.is_settled() && (self.grid.has_many() || self.lone_are_alike())
    }

    /// Whether lone threads did about what the one in their place in the middle block did, for
    /// which most blocks of the grid stand, or left at once, beyond the data.
    fn lone_are_alike(&self) -> bool {
        let Some((middle, _)) = self.alone.first() else { return true };
        let length = |counts: &[u64]| self.count_instructions(counts.iter().map(|&count| count as f64));
        let mut pairs = self.alone.iter().filter(|(at, _)| at.block != middle.block).filter_map(|(at, counts)| {
            let like = self.alone.iter().find(|(other, _)| (other.block, other.thread) == (middle.block, at.thread));
            Some((length(counts), length(&like?.1)))
        });
        // Where all were too dear, nothing says that others do the same.
        let is_told = !self.lone_left_out || self.grid.sampled_blocks() > 1 || pairs.clone().next().is_some();
        is_told && pairs.all(|(one, like)| one <= like * ALIKE && (one * ALIKE >= like || one <= like * LEAVES))
    }

    /// Adds a warp, which executes whatever any of its lanes does.
    pub fn add_warp(&mut self, warp: WarpLanes) {
        let Some(at) = warp.at else { return };
        let by_block = branch_trace::shared_blocks(&warp.paths);
        let mut now = 1.0;
        let mut counts = vec![0.0; self.program.steps.len()];
        for (step, count) in counts.iter_mut().enumerate() {
            if self.program.leaders[step] {
                now = by_block.get(&(step as u32)).copied().unwrap_or(1.0);
            }
            self.shared[step] += now;
            *count = warp.counts.iter().map(|lane| lane[step]).max().unwrap_or(0) as f64 * now;
        }
        self.warps += 1.0;
        self.longest = self.count_instructions(counts.iter().copied()).max(self.longest);
        // Lanes that were cut off at different places are no measure of each other.
        if warp.ended {
            self.add_to_mean(at, counts, None);
        }
    }

    /// Whether a step was executed whose accesses are recorded.
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
    pub fn add_together(&mut self, at: Place3, ran: &WarpOutcome) {
        let instructions = self.count_instructions(ran.counts.iter().map(|&count| count as f64));
        if ran.ended {
            for (most, &count) in self.most.iter_mut().zip(&ran.counts) {
                *most = count.max(*most);
            }
            for shared in &mut self.shared {
                *shared += 1.0;
            }
            self.warps += 1.0;
        }
        self.longest = instructions.max(self.longest);
        self.add_further(at, ran);
    }

    /// Sums executions over all steps except the implicit return at the end of a body,
    /// which is no instruction.
    pub fn count_instructions(&self, counts: impl Iterator<Item = f64>) -> f64 {
        counts.zip(&self.program.steps).filter(|(_, step)| step.line > 0).map(|(count, _)| count).sum()
    }

    /// Executions of each step by the busiest warp, as far as is known.
    fn warp_counts(&self) -> impl Iterator<Item = f64> {
        self.most.iter().zip(self.shared_counts()).map(|(&most, shared)| most as f64 * shared)
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

    fn add_sample(&self, grid: &mut Grid, at: Place3, counts: Vec<f64>, lanes: Option<Vec<f64>>) {
        let [bx, by, _] = self.launch.block.map(u64::from);
        let [gx, gy, _] = self.launch.grid.map(u64::from);
        let ([x, y, z], [tx, ty, tz]) = (at.block.map(u64::from), at.thread.map(u64::from));
        let warp = (tx + bx * (ty + by * tz)) / 32;
        let instructions = self.count_instructions(counts.iter().copied());
        grid.add_sample(x + gx * (y + gy * z), warp as u32, counts, lanes, instructions);
    }

    /// What a warp executes of which a lane, or the most of some lanes, executes this.
    fn widen_counts(&self, counts: &[u64]) -> Vec<f64> {
        counts.iter().zip(self.shared_counts()).map(|(&count, shared)| count as f64 * shared).collect()
    }

    fn shared_counts(&self) -> impl Iterator<Item = f64> {
        self.shared.iter().map(|sum| if self.warps > 0.0 { sum / self.warps } else { 1.0 })
    }

    /// Adds a warp whose execution counts enter the mean and nothing else. `at` is the
    /// place of its last thread.
    pub fn add_further(&mut self, at: Place3, ran: &WarpOutcome) {
        if ran.ended {
            let lanes = ran.turns.iter().map(|turns| turns.lanes).collect();
            self.add_to_mean(at, ran.counts.iter().map(|&count| count as f64).collect(), Some(lanes));
        } else {
            self.cut = true;
        }
    }

    /// What was run says too little: it did not come to its end, or took a course that depends on
    /// what only other warps know.
    pub fn cut_off(&mut self) {
        self.cut = true;
    }

    /// The same, of a warp of which some lanes were run alone: the most executions of each step
    /// by one of them.
    pub fn further_lanes(&mut self, at: Place3, counts: &[u64]) {
        self.add_to_mean(at, self.widen_counts(counts), None);
    }

    fn add_to_mean(&mut self, at: Place3, counts: Vec<f64>, lanes: Option<Vec<f64>>) {
        let mut grid = std::mem::replace(&mut self.grid, Grid::new(&self.launch));
        self.add_sample(&mut grid, at, counts, lanes);
        self.grid = grid;
    }

    /// Returns how often the average warp executes each memory step, and with how many
    /// lanes. `mean` are its executions of all steps. Returns `None` if the lanes were
    /// not counted.
    pub fn mean_turns(&self, mean: &[f64]) -> Option<Vec<Turns>> {
        let turns = |(&executions, lanes)| Turns { executions, lanes };
        Some(mean.iter().zip(self.grid.mean_lanes()?).map(turns).collect())
    }

    /// The profile of a grid whose average warp executes this.
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
