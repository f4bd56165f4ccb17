//! The warps that are looked at: their accesses, how often they execute each step, and how far
//! they differ.
//!
//! Warps are run as such, their lanes together (see `sim::block`). First a few neighbours of
//! the middle block, or of another where that has nothing to do. Where they, or the threads
//! that were counted, turn out to need what other warps provide, all of the block, if the
//! allowance suffices; then others. Where a warp is too long for that, its lanes are run one by
//! one, for a lone thread's loops can be skipped.

use super::access::{Turns, Whole, collect_requests};
use super::aggregate::{Tally, WarpLanes};
use super::block;
use super::block::{BlockOutcome, WarpOutcome};
use super::grid_sampling::ENOUGH;
use super::limits::LANE;
use super::limits::Limits;
use super::place::{middle_index, unravel_index};
use super::program::{Operation, Window};
use super::request::Request;
use super::thread::{Allowance, LaunchContext, Place3, Thread};
use crate::launch::Launch;
use std::ops::Range;

/// What a step of a warp costs, in instructions of a lone thread.
const STEP: u64 = 8;
/// How much longer than the busiest thread that was counted a warp is taken to be, for it goes
/// all ways of its lanes.
const MARGIN: f64 = 1.5;

/// How much longer than taken to be a warp may become whose lanes part all the time.
const PARTING: f64 = 8.0;
/// Of what is left, the part for the beginnings of warps that cannot be run to their end.
const PARTIAL_SHARE: u64 = 16;
/// The part that they may take where that does not suffice to bring each once to every step.
const MOST_PARTIAL_SHARE: u64 = 4;
/// The lanes of a warp do the same where the busiest does at most this many times what the least
/// busy one does.
const SAME_LANES: f64 = 1.02;
/// Lanes of a warp that are run for what all of it executes, where they are run alone.
const LANES_OF_WARP: usize = 3;

/// What is run at a time.
#[derive(Clone, Copy)]
enum Granularity {
    Warps,
    /// With all of their block.
    Blocks,
    /// A few of their lanes, each alone.
    Lanes,
}

/// The warp whose neighbourhood is looked at first: one that works.
#[derive(Clone, Copy)]
pub(super) struct Home {
    /// The linear index of its block.
    block: u64,
    /// Its number within the block.
    warp: u32,
}

impl Home {
    /// Returns the first and the last thread of the warp.
    pub fn end_threads(&self, launch: &Launch) -> Vec<Place3> {
        let places = warp_places(launch, self.block, self.warp);
        places.first().into_iter().chain(places.last()).map(|(_, at)| *at).collect()
    }

    /// Returns the warp of a thread.
    pub fn of_thread(at: Place3, launch: &Launch) -> Self {
        let linear = |index: [u32; 3], [x, y, _]: [u32; 3]| {
            let [a, b, c] = index.map(u64::from);
            a + u64::from(x) * (b + u64::from(y) * c)
        };
        Self { block: linear(at.block, launch.grid), warp: (linear(at.thread, launch.block) / 32) as u32 }
    }
}

pub(super) struct Sampled<'g, 'p> {
    pub ground: &'g LaunchContext<'p>,
    pub limits: &'g Limits,
    pub home: Home,
    /// Instructions that are left.
    pub budget: u64,
    pub tally: Tally<'p>,
    /// What is recorded of the accesses of the warps that were looked at, and of what it is a
    /// part.
    pub requests: Vec<Request>,
    pub whole: Whole,
    /// A thread that was counted used an address that it did not know, or branched on what it
    /// did not.
    pub vague: bool,
    /// Instructions of the dearest of them that were interpreted.
    pub interpreted: u64,
    /// Steps of a whole block.
    pub block_cost: u64,
}

impl Sampled<'_, '_> {
    /// Runs what the allowance suffices for.
    pub fn run_samples(&mut self) {
        let way = self.run_together().unwrap_or_else(|| {
            let alike = self.run_apart();
            // Of lanes that differ, and take a course that was estimated, a few do not tell what
            // all execute together.
            if self.vague || !(self.tally.exact || alike) {
                self.tally.cut_off();
            }
            Granularity::Lanes
        });
        self.run_further(way);
    }

    /// Runs warps all over the grid for what the average one executes.
    fn run_further(&mut self, way: Granularity) {
        let cost = match way {
            Granularity::Lanes => self.interpreted * LANES_OF_WARP as u64,
            Granularity::Warps => self.tally.longest_thread() as u64 * STEP,
            Granularity::Blocks => self.block_cost * STEP,
        };
        if let Granularity::Warps | Granularity::Lanes = way {
            // The warps of one block tell what part each has in any that lies like it.
            let centre = middle_index(self.ground.launch.grid);
            for (block, warp) in self.tally.grid.rest_of_middles() {
                if cost > self.budget / 2 {
                    break;
                }
                let found = self.run_placed(way, block, warp, block == centre);
                self.record_what_is_new(found);
            }
        }
        while cost <= self.budget
            && let Some((block, warp)) = self.tally.grid.next_warp()
        {
            let before = self.budget;
            self.run_placed(way, block, warp, false);
            if self.budget == before {
                break;
            }
        }
    }

    /// Runs a warp, or the block that it is in; gives what was recorded of it.
    fn run_placed(&mut self, way: Granularity, block: u64, warp: u32, recorded: bool) -> Vec<WarpOutcome> {
        let launch = self.ground.launch;
        if let Granularity::Lanes = way {
            let places = warp_places(launch, block, warp);
            let mut most = vec![0; self.ground.program.steps.len()];
            for index in [0, places.len() / 2, places.len().saturating_sub(1)] {
                let Some(&(_, at)) = places.get(index) else { return Vec::new() };
                let allowance =
                    Allowance { steps: self.budget, window: 0, warmup: 1, path: false, watch: false, doubt: false };
                let outcome = Thread::new(self.ground, at, allowance).run_to_end();
                self.budget = self.budget.saturating_sub(outcome.interpreted);
                if outcome.cut {
                    self.tally.cut_off();
                    return Vec::new();
                }
                most.iter_mut().zip(outcome.counts).for_each(|(most, count)| *most = count.max(*most));
            }
            if let Some(&(_, at)) = places.last() {
                self.tally.further_lanes(at, &most);
            }
            return Vec::new();
        }
        let warps = if let Granularity::Blocks = way { 0..launch.block_threads().div_ceil(32) } else { warp..warp + 1 };
        let recorded = if recorded { warps.clone() } else { 0..0 };
        let outcome = self.run_block(block, warps, recorded, self.budget / STEP);
        self.tally.exact &= outcome.exact;
        for ran in &outcome.warps {
            if let Some(&(_, at)) = warp_places(launch, block, ran.number).last() {
                self.tally.add_further(at, ran);
            }
        }
        outcome.warps
    }

    /// Records the accesses of steps that none of the first warps came to: a few warps of a
    /// block may load its rim.
    fn record_what_is_new(&mut self, warps: Vec<WarpOutcome>) {
        let mut is_known = vec![false; self.ground.program.steps.len()];
        self.requests.iter().for_each(|request| is_known[request.step as usize] = true);
        for ran in warps.into_iter().filter(|ran| ran.recorded) {
            self.requests.extend(ran.requests.into_iter().filter(|request| !is_known[request.step as usize]));
            let turns = ran.turns.iter().zip(&is_known);
            self.whole.add_warp(turns.map(|(&turns, known)| if *known { Turns::default() } else { turns }));
        }
    }

    /// Runs warps as such; gives how the others are to be run, unless as lone lanes.
    fn run_together(&mut self) -> Option<Granularity> {
        let launch = self.ground.launch;
        let home = self.home.block;
        let length = self.tally.longest_thread() * MARGIN;
        if !self.vague {
            // Where loops could be skipped, lone lanes are cheaper; but they do not tell what lanes
            // do together, so that as many warps as are enough are run, where these are affordable.
            let cost = length * STEP as f64;
            if cost > self.interpreted as f64 * 32.0 && cost * ENOUGH as f64 > self.budget as f64 {
                return None;
            }
            let few = self.affordable_warps(length, self.budget)?;
            let (few, outcome) = self.at_home(few, length);
            if outcome.exact && !outcome.vague {
                if !self.tally.exact {
                    self.tally.forget_counts();
                }
                self.adopt_outcome(home, outcome);
                self.look_beside(&few);
                self.look_elsewhere(length as u64, None);
                return Some(Granularity::Warps);
            }
            if !came_to_their_end(&outcome) {
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
        let few = few.unwrap_or_else(|| neighbouring_warps(launch, self.home, 1));
        let all = if self.needs_block() { 0..count } else { few.clone() };
        let outcome = self.run_block(home, all, few, budget / STEP);
        if !came_to_their_end(&outcome) {
            self.record_warps(outcome.warps);
            return None;
        }
        // What lone threads did without the others is not what they do.
        self.tally.forget_counts();
        self.tally.exact = outcome.exact;
        let cost = outcome.steps;
        self.adopt_outcome(home, outcome);
        self.look_elsewhere(cost, self.needs_block().then_some(count));
        self.block_cost = cost;
        Some(if self.needs_block() { Granularity::Blocks } else { Granularity::Warps })
    }

    /// Runs these warps at home, of such a length, or those of them that turn out to be
    /// affordable; which these are.
    fn at_home(&mut self, few: Range<u32>, length: f64) -> (Range<u32>, BlockOutcome) {
        let home = self.home.block;
        let mut affordable = few;
        if affordable.len() > 1 && affordable.len() as f64 * length * PARTING * STEP as f64 > self.budget as f64 {
            // One tells how long warps are, before too many are begun to be run to their end.
            let one = neighbouring_warps(self.ground.launch, self.home, 1);
            let probe = self.run_block(home, one.clone(), one.clone(), self.budget / STEP / 2);
            affordable = self.affordable_warps(probe.steps as f64, self.budget / 2).unwrap_or_else(|| one.clone());
            if affordable.len() == 1 || !came_to_their_end(&probe) {
                return (one, probe);
            }
        }
        let outcome = self.run_block(home, affordable.clone(), affordable.clone(), self.budget / STEP);
        (affordable, outcome)
    }

    /// The beginnings of warps tell how their accesses lie next to each other, where only a few
    /// can be run to their end.
    fn look_beside(&mut self, few: &Range<u32>) {
        let all = neighbouring_warps(self.ground.launch, self.home, self.limits.warps);
        for others in [all.start..few.start, few.end..all.end].into_iter().filter(|others| !others.is_empty()) {
            // What the body of a loop loads last has no neighbour, if no other warp comes so
            // far.
            let once = self.tally.reached_steps() * others.len() as u64;
            let left = self.budget / STEP;
            let steps = once.clamp(left / PARTIAL_SHARE, left / MOST_PARTIAL_SHARE);
            let begun = self.run_block(self.home.block, others.clone(), others, steps);
            self.record_warps(begun.warps);
        }
    }

    /// Warps of other blocks, or all of these blocks' warps, if they cost no more than is left.
    fn look_elsewhere(&mut self, cost: u64, all: Option<u32>) {
        for (block, warp) in other_warps(self.ground.launch, self.home) {
            if cost.saturating_mul(STEP) < self.budget {
                let warps = all.map_or(warp..warp + 1, |count| 0..count);
                let other = self.run_block(block, warps, 0..0, self.budget / STEP);
                self.tally.exact &= other.exact;
                self.adopt_outcome(block, other);
            }
        }
    }

    /// As many neighbouring warps of this many instructions as can be run with a budget.
    fn affordable_warps(&self, length: f64, budget: u64) -> Option<Range<u32>> {
        let most = (budget / STEP) as f64 / length.max(1.0);
        (most >= 1.0).then(|| neighbouring_warps(self.ground.launch, self.home, self.limits.warps.min(most as u32)))
    }

    fn run_block(&mut self, block: u64, warps: Range<u32>, recorded: Range<u32>, steps: u64) -> BlockOutcome {
        // Where all cannot be run to their end, those that are recorded can, if that is not too
        // much to ask.
        let length = self.tally.longest_thread() * MARGIN;
        let (needed, all) =
            (f64::from(recorded.end - recorded.start) * length, f64::from(warps.end - warps.start) * length);
        let reserve = if needed <= steps as f64 && all > steps as f64 { needed.min(steps as f64 / 2.0) } else { 0.0 };
        let window = self.limits.window;
        let allowance = block::Allowance { steps, reserve: reserve as u64, warps, recorded, window };
        let outcome = block::run_block(self.ground, unravel_index(block, self.ground.launch.grid), &allowance);
        self.budget = self.budget.saturating_sub(outcome.steps.saturating_mul(STEP));
        outcome
    }

    fn adopt_outcome(&mut self, block: u64, outcome: BlockOutcome) {
        for ran in &outcome.warps {
            if let Some(&(_, at)) = warp_places(self.ground.launch, block, ran.number).last() {
                self.tally.add_together(at, ran);
            }
        }
        self.record_warps(outcome.warps);
    }

    fn record_warps(&mut self, warps: Vec<WarpOutcome>) {
        for mut ran in warps.into_iter().filter(|ran| ran.recorded) {
            self.requests.append(&mut ran.requests);
            self.whole.add_warp(ran.turns);
        }
    }

    /// Whether warps give each other what they load.
    fn needs_block(&self) -> bool {
        self.ground.program.steps.iter().any(|step| match step.operation {
            Operation::Load(memory) | Operation::Atomic { memory, .. } => {
                matches!(memory.window, Window::Shared | Window::Generic)
            }
            Operation::Barrier { reduction, .. } => reduction.is_some(),
            _ => false,
        })
    }

    /// Runs the lanes of warps one by one; whether those of a warp do as much as each other.
    fn run_apart(&mut self) -> bool {
        let mut alike = true;
        let warmup = u64::from(self.limits.window / 4).max(1);
        let mut dearest = 0;
        let known = !self.requests.is_empty();
        for (number, (warp, threads)) in
            sampled_warps(self.ground.launch, self.home, self.limits.warps).into_iter().enumerate()
        {
            // A further warp must be affordable, judging by the dearest lane so far.
            if number > 0 && dearest * 32 > self.budget {
                break;
            }
            // The first warp may take half of what is left: it is there for the counts too.
            let most = self.budget.min(LANE.max(dearest + dearest / 4) * 32);
            let mut left = if number == 0 { self.budget / 2 } else { most };
            let window = if warp.is_some() && !known { self.limits.window } else { 0 };
            let mut together = WarpLanes::default();
            let mut touched = Vec::new();
            for (index, &(lane, at)) in threads.iter().enumerate() {
                let steps = left / (threads.len() - index) as u64;
                let outcome = Thread::new(
                    self.ground,
                    at,
                    Allowance { steps, window, warmup, path: true, watch: false, doubt: false },
                )
                .run_to_end();
                self.budget = self.budget.saturating_sub(outcome.interpreted);
                left = left.saturating_sub(outcome.interpreted);
                dearest = dearest.max(outcome.interpreted);
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
                together.paths.push(outcome.path);
            }
            self.requests.append(&mut collect_requests(warp.unwrap_or(0), &touched));
            if warp.is_some() && !known {
                self.whole.add_warp(together.turns());
            }
            let lanes = together.counts.iter().map(|lane| lane.iter().sum::<u64>());
            let (least, most) = lanes.fold((u64::MAX, 0), |(least, most), lane| (lane.min(least), lane.max(most)));
            alike &= least as f64 * SAME_LANES >= most as f64;
            self.tally.add_warp(together);
        }
        alike
    }
}

/// Whether all warps whose accesses are recorded were run to their end.
fn came_to_their_end(outcome: &BlockOutcome) -> bool {
    outcome.warps.iter().filter(|ran| ran.recorded).all(|ran| ran.ended)
}

/// Up to `most` neighbouring warps of a block.
fn neighbouring_warps(launch: &Launch, home: Home, most: u32) -> Range<u32> {
    let count = launch.block_threads().div_ceil(32);
    let most = most.clamp(1, count);
    let first = home.warp.min(count - most);
    first..first + most
}

/// A warp's number, where its accesses are looked at, and its threads by lane.
type SampledWarp = (Option<u32>, Vec<(u32, Place3)>);

/// The warps that are run: neighbours in the block at home, and after the first of them one
/// each of a block from the first and the last quarter of the grid, for data may make blocks
/// differ; of those only the counts are looked at.
fn sampled_warps(launch: &Launch, home: Home, most: u32) -> Vec<SampledWarp> {
    let mut sampled: Vec<SampledWarp> = neighbouring_warps(launch, home, most)
        .map(|warp| (Some(warp), warp_places(launch, home.block, warp)))
        .collect();
    for (block, warp) in other_warps(launch, home).take(2) {
        sampled.insert(1.min(sampled.len()), (None, warp_places(launch, block, warp)));
    }
    sampled
}

/// A block of the first and of the last quarter of the grid, then the last block and the first;
/// each with a warp of it.
fn other_warps(launch: &Launch, home: Home) -> impl Iterator<Item = (u64, u32)> {
    let (blocks, warps) = (launch.blocks(), launch.block_threads().div_ceil(32));
    let fifth = blocks / 5;
    let mut others = vec![(fifth, warps / 3), (blocks - 1 - fifth, warps * 2 / 3), (blocks - 1, warps - 1), (0, 0)];
    others.retain(|(block, _)| *block != home.block);
    let mut seen = Vec::new();
    others.into_iter().filter(move |(block, _)| {
        !seen.contains(block) && {
            seen.push(*block);
            true
        }
    })
}

/// The threads of a warp, by lane.
fn warp_places(launch: &Launch, block: u64, warp: u32) -> Vec<(u32, Place3)> {
    let block = unravel_index(block, launch.grid);
    let threads = warp * 32..(warp * 32 + 32).min(launch.block_threads());
    threads
        .map(|thread| (thread % 32, Place3 { block, thread: unravel_index(u64::from(thread), launch.block) }))
        .collect()
}
