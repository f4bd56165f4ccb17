//! Selects and runs the sampled warps: their accesses, how often they execute each step, and how
//! far they differ.
//!
//! Normally the lanes of a warp are run together (see `sim::interpreter`). First a few neighbouring
//! warps of the middle block, or of another block if that is idle. If they, or the counting
//! threads, need values of other warps, the whole block is run, if the allowance suffices. Then
//! warps all over the grid. If a warp is too long, its lanes are run one by one, because loops
//! of a lone thread can be skipped.

use super::access::{ExecutionTotals, collect_requests};
use super::aggregate::{Tally, WarpLanes};
use super::grid_sampling::MIN_DRAWN_BLOCKS;
use super::interpreter::{BlockAllowance, BlockOutcome, WarpOutcome, run_block};
use super::interpreter::{LaunchContext, ThreadAllowance, ThreadPosition, run_thread};
use super::limits::LANE_INSTRUCTIONS;
use super::limits::Limits;
use super::place::{linear_index, middle_index, unravel_index};
use super::program::{Operation, Window};
use super::request::{Request, StepExecutions};
use crate::launch::Launch;
use std::ops::Range;

/// The cost of a step of a warp, in instructions of a lone thread.
const WARP_STEP_COST: u64 = 8;
/// Assumed length of a warp relative to the busiest counting thread, as it executes the branches
/// of all its lanes.
const WARP_LENGTH_MARGIN: f64 = 1.5;

/// How many times the assumed length a warp with much divergence may take.
const DIVERGENCE_MARGIN: f64 = 8.0;
/// Divisor of the remaining budget for the beginnings of warps that cannot be run to their end.
const MIN_PARTIAL_DIVISOR: u64 = 16;
/// The divisor if that does not suffice to bring each warp once to every step.
const MAX_PARTIAL_DIVISOR: u64 = 4;
/// Maximum factor between the busiest and the least busy lane of a warp whose lanes do equal work.
const SAME_LANES: f64 = 1.02;
/// Number of lanes that represent a warp if lanes are run alone.
const LANES_OF_WARP: usize = 3;

/// What is run at a time.
#[derive(Clone, Copy)]
enum Granularity {
    Warps,
    /// Whole blocks.
    Blocks,
    /// A few lanes of a warp, each alone.
    Lanes,
}

/// The warp that is sampled first, with its neighbours: one that is not idle.
#[derive(Clone, Copy)]
pub(super) struct ReferenceWarp {
    /// The linear index of its block.
    block: u64,
    /// Its number within the block.
    warp: u32,
}

impl ReferenceWarp {
    /// Returns the first and the last thread of the warp.
    pub fn end_threads(&self, launch: &Launch) -> Vec<ThreadPosition> {
        let places = warp_places(launch, self.block, self.warp);
        places.first().into_iter().chain(places.last()).map(|(_, at)| *at).collect()
    }

    /// Returns the warp of a thread.
    pub fn of_thread(at: ThreadPosition, launch: &Launch) -> Self {
        let thread = linear_index(at.thread, launch.block);
        Self { block: linear_index(at.block, launch.grid), warp: (thread / 32) as u32 }
    }
}

pub(super) struct Sampler<'g, 'p> {
    pub context: &'g LaunchContext<'p>,
    pub limits: &'g Limits,
    pub reference: ReferenceWarp,
    /// Instructions that remain of the allowance.
    pub budget: u64,
    pub tally: Tally<'p>,
    /// The recorded accesses of the sampled warps, and the executions that they are a part of.
    pub requests: Vec<Request>,
    pub totals: ExecutionTotals,
    /// Whether a counting thread used an unknown address, or branched on an unknown value.
    pub unknown_address: bool,
    /// Maximum number of instructions interpreted for one of these threads.
    pub interpreted: u64,
    /// Steps of a whole block.
    pub block_cost: u64,
}

impl Sampler<'_, '_> {
    /// Runs as many samples as the allowance permits.
    pub fn run_samples(&mut self) {
        let granularity = self.run_warps().unwrap_or_else(|| {
            let alike = self.run_lanes();
            // Of lanes that differ, and take a course that was estimated, a few do not tell what
            // all execute together.
            if self.unknown_address || !(self.tally.exact || alike) {
                self.tally.cut_off();
            }
            Granularity::Lanes
        });
        self.run_grid_samples(granularity);
    }

    /// Runs warps all over the grid to find what the average one executes.
    fn run_grid_samples(&mut self, granularity: Granularity) {
        let cost = match granularity {
            Granularity::Lanes => self.interpreted * LANES_OF_WARP as u64,
            Granularity::Warps => self.tally.longest_thread() as u64 * WARP_STEP_COST,
            Granularity::Blocks => self.block_cost * WARP_STEP_COST,
        };
        if let Granularity::Warps | Granularity::Lanes = granularity {
            // The warps of one block tell what part each has in any that lies like it.
            let centre = middle_index(self.context.launch.grid);
            for (block, warp) in self.tally.grid.middle_block_warps() {
                if cost > self.budget / 2 {
                    break;
                }
                let found = self.run_at(granularity, block, warp, block == centre);
                self.record_new_steps(found);
            }
        }
        while cost <= self.budget
            && let Some((block, warp)) = self.tally.grid.next_warp()
        {
            let before = self.budget;
            self.run_at(granularity, block, warp, false);
            if self.budget == before {
                break;
            }
        }
    }

    /// Runs a warp, its block or a few of its lanes; returns the outcomes of the warps.
    fn run_at(&mut self, granularity: Granularity, block: u64, warp: u32, recorded: bool) -> Vec<WarpOutcome> {
        let launch = self.context.launch;
        if let Granularity::Lanes = granularity {
            let places = warp_places(launch, block, warp);
            let mut most = vec![0; self.context.program.steps.len()];
            for index in [0, places.len() / 2, places.len().saturating_sub(1)] {
                let Some(&(_, at)) = places.get(index) else { return Vec::new() };
                let allowance =
                    ThreadAllowance { steps: self.budget, window: 0, warmup: 1, ..ThreadAllowance::default() };
                let outcome = run_thread(self.context, at, allowance);
                self.budget = self.budget.saturating_sub(outcome.interpreted);
                if outcome.cut {
                    self.tally.cut_off();
                    return Vec::new();
                }
                most.iter_mut().zip(outcome.counts).for_each(|(most, count)| *most = count.max(*most));
            }
            if let Some(&(_, at)) = places.last() {
                self.tally.add_lanes(at, &most);
            }
            return Vec::new();
        }
        let warps =
            if let Granularity::Blocks = granularity { 0..launch.block_threads().div_ceil(32) } else { warp..warp + 1 };
        let recorded = if recorded { warps.clone() } else { 0..0 };
        let outcome = self.run_block(block, warps, recorded, self.budget / WARP_STEP_COST);
        self.tally.exact &= outcome.exact;
        for ran in &outcome.warps {
            if let Some(&(_, at)) = warp_places(launch, block, ran.number).last() {
                self.tally.add_mean_sample(at, ran);
            }
        }
        outcome.warps
    }

    /// Records the accesses of steps that none of the first warps executed: only a few warps of a
    /// block may load its rim.
    fn record_new_steps(&mut self, warps: Vec<WarpOutcome>) {
        let mut is_known = vec![false; self.context.program.steps.len()];
        self.requests.iter().for_each(|request| is_known[request.step as usize] = true);
        for ran in warps.into_iter().filter(|ran| ran.recorded) {
            self.requests.extend(ran.requests.into_iter().filter(|request| !is_known[request.step as usize]));
            let executions = ran.executions.iter().zip(&is_known);
            self.totals.add_warp(
                executions.map(|(&executions, known)| if *known { StepExecutions::default() } else { executions }),
            );
        }
    }

    /// Runs the reference warps with their lanes together; returns how further warps are run, or
    /// `None` if they must be run as lone lanes.
    fn run_warps(&mut self) -> Option<Granularity> {
        let launch = self.context.launch;
        let reference = self.reference.block;
        let length = self.tally.longest_thread() * WARP_LENGTH_MARGIN;
        if !self.unknown_address {
            // Where loops could be skipped, lone lanes are cheaper; but they do not tell what lanes
            // do together, so that as many warps as are enough are run, where these are affordable.
            let cost = length * WARP_STEP_COST as f64;
            if cost > self.interpreted as f64 * 32.0 && cost * MIN_DRAWN_BLOCKS as f64 > self.budget as f64 {
                return None;
            }
            let few = self.affordable_warps(length, self.budget)?;
            let (few, outcome) = self.run_reference_warps(few, length);
            if outcome.exact && !outcome.unknown_address {
                if !self.tally.exact {
                    self.tally.forget_counts();
                }
                self.adopt_outcome(reference, outcome);
                self.record_neighbour_starts(&few);
                self.run_other_blocks(length as u64, None);
                return Some(Granularity::Warps);
            }
            if !recorded_warps_ended(&outcome) {
                // Its lanes part more than was allowed for: there is nothing left to run it again.
                self.tally.cut_off();
                self.record_warps(outcome.warps);
                return None;
            }
        }
        let count = launch.block_threads().div_ceil(32);
        let few = self.affordable_warps(length, self.budget);
        // Of what is too long, the accesses are looked at as far as it goes.
        let budget = if few.is_some() { self.budget } else { self.budget / 2 };
        let few = few.unwrap_or_else(|| neighbouring_warps(launch, self.reference, 1));
        let all = if self.needs_block() { 0..count } else { few.clone() };
        let outcome = self.run_block(reference, all, few, budget / WARP_STEP_COST);
        if !recorded_warps_ended(&outcome) {
            self.record_warps(outcome.warps);
            return None;
        }
        // What lone threads did without the others is not what they do.
        self.tally.forget_counts();
        self.tally.exact = outcome.exact;
        let cost = outcome.steps;
        self.adopt_outcome(reference, outcome);
        self.run_other_blocks(cost, self.needs_block().then_some(count));
        self.block_cost = cost;
        Some(if self.needs_block() { Granularity::Blocks } else { Granularity::Warps })
    }

    /// Runs the warps `few` of the reference block, of assumed `length`, or as many of them as turn
    /// out to be affordable; returns which.
    fn run_reference_warps(&mut self, few: Range<u32>, length: f64) -> (Range<u32>, BlockOutcome) {
        let reference = self.reference.block;
        let mut affordable = few;
        if affordable.len() > 1
            && affordable.len() as f64 * length * DIVERGENCE_MARGIN * WARP_STEP_COST as f64 > self.budget as f64
        {
            // One tells how long warps are, before too many are begun to be run to their end.
            let one = neighbouring_warps(self.context.launch, self.reference, 1);
            let probe = self.run_block(reference, one.clone(), one.clone(), self.budget / WARP_STEP_COST / 2);
            affordable = self.affordable_warps(probe.steps as f64, self.budget / 2).unwrap_or_else(|| one.clone());
            if affordable.len() == 1 || !recorded_warps_ended(&probe) {
                return (one, probe);
            }
        }
        let outcome = self.run_block(reference, affordable.clone(), affordable.clone(), self.budget / WARP_STEP_COST);
        (affordable, outcome)
    }

    /// Records the beginnings of warps next to those that were run to their end, to see how the
    /// accesses of neighbouring warps relate.
    fn record_neighbour_starts(&mut self, few: &Range<u32>) {
        let all = neighbouring_warps(self.context.launch, self.reference, self.limits.warps);
        for others in [all.start..few.start, few.end..all.end].into_iter().filter(|others| !others.is_empty()) {
            // What the body of a loop loads last has no neighbour, if no other warp comes so
            // far.
            let once = self.tally.reached_steps() * others.len() as u64;
            let left = self.budget / WARP_STEP_COST;
            let steps = once.clamp(left / MIN_PARTIAL_DIVISOR, left / MAX_PARTIAL_DIVISOR);
            let begun = self.run_block(self.reference.block, others.clone(), others, steps);
            self.record_warps(begun.warps);
        }
    }

    /// Runs a warp of some other blocks, or all warps of these (`all`), if the budget suffices.
    fn run_other_blocks(&mut self, cost: u64, all: Option<u32>) {
        for (block, warp) in other_warps(self.context.launch, self.reference) {
            if cost.saturating_mul(WARP_STEP_COST) < self.budget {
                let warps = all.map_or(warp..warp + 1, |count| 0..count);
                let other = self.run_block(block, warps, 0..0, self.budget / WARP_STEP_COST);
                self.tally.exact &= other.exact;
                self.adopt_outcome(block, other);
            }
        }
    }

    /// Returns as many neighbouring warps of `length` instructions as the budget permits.
    fn affordable_warps(&self, length: f64, budget: u64) -> Option<Range<u32>> {
        let most = (budget / WARP_STEP_COST) as f64 / length.max(1.0);
        (most >= 1.0)
            .then(|| neighbouring_warps(self.context.launch, self.reference, self.limits.warps.min(most as u32)))
    }

    fn run_block(&mut self, block: u64, warps: Range<u32>, recorded: Range<u32>, steps: u64) -> BlockOutcome {
        // Where all cannot be run to their end, those that are recorded can, if that is not too
        // much to ask.
        let length = self.tally.longest_thread() * WARP_LENGTH_MARGIN;
        let (needed, all) =
            (f64::from(recorded.end - recorded.start) * length, f64::from(warps.end - warps.start) * length);
        let reserved_steps =
            if needed <= steps as f64 && all > steps as f64 { needed.min(steps as f64 / 2.0) } else { 0.0 };
        let window = self.limits.window;
        let reserved_steps = reserved_steps as u64;
        let allowance = BlockAllowance { steps, reserved_steps, warps, recorded, window, detects_races: false };
        let outcome = run_block(self.context, unravel_index(block, self.context.launch.grid), &allowance);
        self.budget = self.budget.saturating_sub(outcome.steps.saturating_mul(WARP_STEP_COST));
        outcome
    }

    fn adopt_outcome(&mut self, block: u64, outcome: BlockOutcome) {
        for ran in &outcome.warps {
            if let Some(&(_, at)) = warp_places(self.context.launch, block, ran.number).last() {
                self.tally.add_warp_outcome(at, ran);
            }
        }
        self.record_warps(outcome.warps);
    }

    fn record_warps(&mut self, warps: Vec<WarpOutcome>) {
        for mut ran in warps.into_iter().filter(|ran| ran.recorded) {
            self.requests.append(&mut ran.requests);
            self.totals.add_warp(ran.executions);
        }
    }

    /// Tells whether warps may load what other warps of the block have stored.
    fn needs_block(&self) -> bool {
        self.context.program.steps.iter().any(|step| match step.operation {
            Operation::Load(memory) | Operation::Atomic { memory, .. } => {
                matches!(memory.window, Window::Shared | Window::Generic)
            }
            Operation::Barrier { reduction, .. } => reduction.is_some(),
            _ => false,
        })
    }

    /// Runs the lanes of warps one by one; returns whether the lanes of each warp do equal work.
    fn run_lanes(&mut self) -> bool {
        let mut alike = true;
        let warmup = u64::from(self.limits.window / 4).max(1);
        let mut costliest = 0;
        let known = !self.requests.is_empty();
        for (number, (warp, threads)) in
            sampled_warps(self.context.launch, self.reference, self.limits.warps).into_iter().enumerate()
        {
            // A further warp must be affordable, judging by the dearest lane so far.
            if number > 0 && costliest * 32 > self.budget {
                break;
            }
            // The first warp may take half of what is left: it is there for the counts too.
            let most = self.budget.min(LANE_INSTRUCTIONS.max(costliest + costliest / 4) * 32);
            let mut left = if number == 0 { self.budget / 2 } else { most };
            let window = if warp.is_some() && !known { self.limits.window } else { 0 };
            let mut together = WarpLanes::default();
            let mut touched = Vec::new();
            for (index, &(lane, at)) in threads.iter().enumerate() {
                let steps = left / (threads.len() - index) as u64;
                let outcome = run_thread(
                    self.context,
                    at,
                    ThreadAllowance { steps, window, warmup, record_trace: true, ..ThreadAllowance::default() },
                );
                self.budget = self.budget.saturating_sub(outcome.interpreted);
                left = left.saturating_sub(outcome.interpreted);
                costliest = costliest.max(outcome.interpreted);
                // A lane is cut short sooner than a counting thread; its estimate is no better than
                // their counts or estimates.
                if !outcome.estimated {
                    self.tally.raise_most(&outcome);
                }
                together.at = Some(at);
                together.ended &= !outcome.cut;
                if warp.is_some() && !known {
                    touched.push((lane, outcome.touches));
                }
                together.counts.push(outcome.counts);
                together.traces.push(outcome.trace);
            }
            self.requests.append(&mut collect_requests(warp.unwrap_or(0), &touched));
            if warp.is_some() && !known {
                self.totals.add_warp(together.executions());
            }
            let lanes = together.counts.iter().map(|lane| lane.iter().sum::<u64>());
            let (least, most) = lanes.fold((u64::MAX, 0), |(least, most), lane| (lane.min(least), lane.max(most)));
            alike &= least as f64 * SAME_LANES >= most as f64;
            self.tally.add_warp(together);
        }
        alike
    }
}

/// Tells whether all recorded warps ran to their end.
fn recorded_warps_ended(outcome: &BlockOutcome) -> bool {
    outcome.warps.iter().filter(|ran| ran.recorded).all(|ran| ran.ended)
}

/// Up to `most` neighbouring warps of a block.
fn neighbouring_warps(launch: &Launch, reference: ReferenceWarp, most: u32) -> Range<u32> {
    let count = launch.block_threads().div_ceil(32);
    let most = most.clamp(1, count);
    let first = reference.warp.min(count - most);
    first..first + most
}

/// A warp's number if its accesses are recorded, and its threads by lane.
type SampledWarp = (Option<u32>, Vec<(u32, ThreadPosition)>);

/// Returns the warps that are run lane by lane: neighbours of the reference warp and, after the
/// first of them, one warp each of two other blocks, of which only the counts are used.
fn sampled_warps(launch: &Launch, reference: ReferenceWarp, most: u32) -> Vec<SampledWarp> {
    let mut sampled: Vec<SampledWarp> = neighbouring_warps(launch, reference, most)
        .map(|warp| (Some(warp), warp_places(launch, reference.block, warp)))
        .collect();
    for (block, warp) in other_warps(launch, reference).take(2) {
        sampled.insert(1.min(sampled.len()), (None, warp_places(launch, block, warp)));
    }
    sampled
}

/// Returns a warp each of a block in the first and in the last quarter of the grid, of the last
/// block and of the first.
fn other_warps(launch: &Launch, reference: ReferenceWarp) -> impl Iterator<Item = (u64, u32)> {
    let (blocks, warps) = (launch.blocks(), launch.block_threads().div_ceil(32));
    let fifth = blocks / 5;
    let mut others = vec![(fifth, warps / 3), (blocks - 1 - fifth, warps * 2 / 3), (blocks - 1, warps - 1), (0, 0)];
    others.retain(|(block, _)| *block != reference.block);
    let mut seen = Vec::new();
    others.into_iter().filter(move |(block, _)| {
        !seen.contains(block) && {
            seen.push(*block);
            true
        }
    })
}

/// The threads of a warp, by lane.
fn warp_places(launch: &Launch, block: u64, warp: u32) -> Vec<(u32, ThreadPosition)> {
    let block = unravel_index(block, launch.grid);
    let threads = warp * 32..(warp * 32 + 32).min(launch.block_threads());
    threads
        .map(|thread| (thread % 32, ThreadPosition { block, thread: unravel_index(u64::from(thread), launch.block) }))
        .collect()
}
