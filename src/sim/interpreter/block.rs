//! Interprets a block of a launch, or some of its warps, together, so that values which threads
//! exchange are exact.
//!
//! Warps run in turn, each until it waits at a barrier, ends, or has used its share of steps.
//! Recorded warps are run to their end if the allowance suffices; other warps that take too long
//! are dropped, and the rest continues without them. Shared memory and the block's writes to
//! global memory are stored; atomics on shared memory are executed in the order of the
//! interpreter. No kernel makes this fail or run forever: in a deadlock the waiting warps
//! continue, and the outcome is marked as not exact.

use super::context::LaunchContext;
use super::lanes::each_lane;
use super::race_watch::RaceWatch;
use super::registers::uniform_registers;
use super::state::{BARRIERS, Barrier, Recording, State};
use super::warp::{Policy, Stop, Warp};
use crate::sim::masked_memory::MAX_BYTES;
use crate::sim::memory::{MemoryPlace, Overlay};
use crate::sim::program::{Operation, ProgramStep, Reduction};
use crate::sim::request::{Request, StepExecutions};
use std::ops::Range;

/// Limits on the interpretation of a block.
#[derive(Clone, Debug)]
pub(crate) struct BlockAllowance {
    /// Steps of all warps together, and how many of them are reserved for recorded warps.
    pub steps: u64,
    pub reserved_steps: u64,
    /// Warps that are run, and those of them whose accesses are recorded.
    pub warps: Range<u32>,
    pub recorded: Range<u32>,
    /// Executions of each memory instruction to record.
    pub window: u32,
    /// Looks for races in shared memory, and ends with the first one or with the first warp that
    /// has used its share of steps.
    pub detects_races: bool,
}

/// The result of running a block.
pub(crate) struct BlockOutcome {
    pub warps: Vec<WarpOutcome>,
    /// Whether no branch depended on an unknown value, no warp deadlocked and none was dropped.
    pub exact: bool,
    /// Whether an address was not known.
    pub unknown_address: bool,
    pub steps: u64,
    /// The block's writes to global memory.
    pub global: Overlay,
    /// The offset in shared memory of a byte that is part of a race, if no branch before depended on
    /// an unknown value.
    pub race: Option<u64>,
}

/// The result of running one warp of a block.
pub(crate) struct WarpOutcome {
    pub number: u32,
    /// Executions of each step by any of its lanes.
    pub counts: Vec<u64>,
    pub ended: bool,
    pub recorded: bool,
    pub requests: Vec<Request>,
    /// Executions of each memory step.
    pub executions: Vec<StepExecutions>,
}

/// The policy of a block's warps, which are run together.
pub(super) struct Together;

type BlockWarp<'p> = Warp<'p, 32, Together>;

impl<'p> Policy<'p, 32> for Together {
    fn arrive_at_barrier(warp: &mut BlockWarp<'p>, state: &mut State<'p>, step: &ProgramStep, lanes: u32) -> bool {
        let Operation::Barrier { waits, reduction, invert } = step.operation else { return false };
        let Some(first) = each_lane(lanes).next() else { return waits };
        let [id, threads, predicate, _] = step.sources;
        let ((id, unknown), (threads, _)) =
            (warp.registers.lane_value(id, first), warp.registers.lane_value(threads, first));
        warp.exact &= !unknown;
        let barrier = &mut state.barriers[id as usize % BARRIERS];
        barrier.arrived += lanes.count_ones();
        barrier.expected = u32::try_from(threads).ok().filter(|&threads| threads > 0).or(barrier.expected);
        if let Some(reduction) = reduction {
            let holds = warp.registers.holding_lanes(predicate) ^ if invert { u32::MAX } else { 0 };
            barrier.reduction = Some(reduction);
            barrier.holding += (holds & lanes).count_ones();
            barrier.unknown |= warp.registers.unknown_lanes(predicate) & lanes != 0;
        }
        barrier.waiting.push((warp.number, lanes, step.target));
        if waits {
            warp.at_barrier |= lanes;
        } else {
            // Who arrives without waiting orders what no period tells.
            state.races = None;
        }
        waits
    }

    fn join_collective(warp: &mut BlockWarp<'p>, step: &ProgramStep, at: u32, on: u32, forced: bool) -> Option<u32> {
        warp.wait_for_members(step, at, on, forced)
    }

    fn execute_collective(warp: &mut BlockWarp<'p>, step: &ProgramStep, on: u32) {
        warp.exchange_values(step, on);
    }

    fn is_updated_by_others(place: MemoryPlace) -> bool {
        // Other blocks may have come first.
        matches!(place, MemoryPlace::Global(_))
    }
}

/// Runs warps of a block.
pub(crate) fn run_block(context: &LaunchContext<'_>, block: [u32; 3], allowance: &BlockAllowance) -> BlockOutcome {
    let program = context.program;
    let mut state = State::new(context);
    state.races = allowance.detects_races.then(|| RaceWatch::new(context.shared_bytes().min(MAX_BYTES)));
    let uniform = uniform_registers(context, block);
    let recorded = |number: u32| allowance.recorded.contains(&number);
    // Those that are looked at come first.
    let mut numbers: Vec<u32> = allowance.warps.clone().collect();
    numbers.sort_by_key(|&number| !recorded(number));
    let mut warps: Vec<BlockWarp<'_>> = numbers
        .into_iter()
        .map(|number| {
            let window = if recorded(number) { allowance.window } else { 0 };
            let recording = Recording::new(window, program.steps.len());
            let threads = number * 32..(number * 32 + 32).min(context.launch.block_threads());
            Warp::new(context, uniform.clone(), (block, threads), recording, Together)
        })
        .collect();
    let looked_at = warps.iter().filter(|warp| recorded(warp.number)).count() as u64;
    let reserved_steps = if looked_at > 0 { allowance.reserved_steps.min(allowance.steps) } else { 0 };
    let fair = ((allowance.steps - reserved_steps) / warps.len().max(1) as u64).max(1);
    let own = fair + reserved_steps / looked_at.max(1);
    let mut until: Vec<u64> = warps.iter().map(|warp| if recorded(warp.number) { own } else { fair }).collect();
    let mut dropped = vec![false; warps.len()];
    let mut exact = true;
    'run: loop {
        let mut spent = false;
        let mut ran = true;
        // Until all of them have ended, wait in vain, or have had their share.
        while ran {
            ran = false;
            spent = false;
            for (index, warp) in warps.iter_mut().enumerate().filter(|(index, _)| !dropped[*index]) {
                let before = warp.steps;
                let runnable = warp.alive & !warp.at_barrier != 0;
                if runnable {
                    spent |= warp.run_until(&mut state, until[index]) == Stop::Spent;
                }
                ran |= warp.steps > before;
            }
            let is_done =
                allowance.detects_races && (spent || state.races.as_ref().is_none_or(|races| races.found.is_some()));
            if is_done {
                break 'run;
            }
            ran |= release_barriers(&mut state, &mut warps, &dropped, false);
        }
        if warps.iter().zip(&dropped).all(|(warp, dropped)| *dropped || warp.alive == 0) {
            break;
        }
        let taken: u64 = warps.iter().map(|warp| warp.steps).sum();
        let left = allowance.steps.saturating_sub(taken);
        if spent {
            let late = |warp: &BlockWarp<'_>| warp.alive & !warp.at_barrier != 0;
            let others: Vec<usize> = (0..warps.len())
                .filter(|&at| late(&warps[at]) && !recorded(warps[at].number) && !dropped[at])
                .collect();
            let looked_at: Vec<usize> =
                (0..warps.len()).filter(|&at| recorded(warps[at].number) && warps[at].alive != 0).collect();
            // What some did not need goes to those that are looked at, who wait for the others no
            // longer.
            if others.is_empty() && (left == 0 || looked_at.is_empty()) {
                break;
            }
            others.iter().for_each(|&at| dropped[at] = true);
            for &at in &looked_at {
                until[at] = warps[at].steps + left / looked_at.len() as u64;
            }
            if left < warps.len() as u64 {
                break;
            }
        } else {
            // Everybody waits for somebody who does not come.
            exact = false;
            if !release_barriers(&mut state, &mut warps, &dropped, true) {
                break;
            }
        }
    }
    let steps = warps.iter().map(|warp| warp.steps).sum();
    let exact = exact && warps.iter().all(|warp| warp.exact && warp.alive == 0);
    let race = state.races.and_then(|races| races.found).filter(|_| warps.iter().all(|warp| warp.exact));
    let unknown_address = warps.iter().any(|warp| warp.unknown_address);
    let warps = warps.into_iter().map(|warp| WarpOutcome {
        number: warp.number,
        ended: warp.alive == 0,
        recorded: recorded(warp.number),
        counts: warp.counts,
        requests: warp.recording.requests,
        executions: warp.recording.executions,
    });
    BlockOutcome { warps: warps.collect(), exact, unknown_address, steps, global: state.global, race }
}

/// Releases the warps at each complete barrier; with `force`, also those at the first incomplete
/// one. Returns whether any lane was released.
fn release_barriers(state: &mut State<'_>, warps: &mut [BlockWarp<'_>], dropped: &[bool], force: bool) -> bool {
    let there = |(warp, dropped): (&BlockWarp<'_>, &bool)| if *dropped { 0 } else { warp.alive.count_ones() };
    if force {
        state.races = None;
    }
    let everybody: u32 = warps.iter().zip(dropped).map(there).sum();
    let mut freed = false;
    for barrier in &mut state.barriers {
        let expected = barrier.expected.map_or(everybody, |expected| expected.min(everybody));
        if barrier.waiting.is_empty() || (freed || !force) && barrier.arrived < expected {
            continue;
        }
        match &mut state.races {
            Some(races) if barrier.arrived >= everybody => races.pass_barrier(),
            // Only some of the block's warps are ordered by it.
            races => *races = None,
        }
        let Barrier { waiting, reduction, holding, unknown, arrived, .. } = std::mem::take(barrier);
        for (number, lanes, target) in waiting {
            let Some(warp) = warps.iter_mut().find(|warp| warp.number == number) else { continue };
            freed |= warp.at_barrier & lanes != 0;
            warp.at_barrier &= !lanes;
            if let Some(reduction) = reduction {
                let value = match reduction {
                    Reduction::Count => u64::from(holding),
                    Reduction::All => u64::from(holding == arrived),
                    Reduction::Any => u64::from(holding > 0),
                };
                warp.registers.set_lanes(target, lanes, &[value; 32], if unknown { u32::MAX } else { 0 });
            }
        }
    }
    freed
}
