//! A block of a launch, or some of its warps, run together: what threads give each other is
//! real.
//!
//! Warps run one after the other, each until it waits at a barrier, ends, or has had its share
//! of steps. Warps that are to be looked at closely are run to their end as far as the
//! allowance suffices; the others are dropped where they take too long, and those that remain
//! go on without them. Shared memory and what the block writes to global memory are storage;
//! atomics on shared memory are done in the order in which they come. No kernel makes this fail
//! or run on: who waits in vain is let go on, and the block says that it is not exact.

mod calls;
mod collective;
mod lanes;
mod state;
mod storage;
mod warp;

use super::access::Turns;
use super::masked_memory::MaskedMemory;
use super::memory::Overlay;
use super::program::Reduction;
use super::request::Request;
use super::thread::LaunchContext;
use state::{Barrier, Recording, State};
use std::ops::Range;
use warp::{Stop, Warp};

/// What a block is allowed.
#[derive(Clone, Debug)]
pub(super) struct Allowance {
    /// Steps of all warps together, and those of them that only warps which are recorded may
    /// take.
    pub steps: u64,
    pub reserve: u64,
    /// Warps that are run at all, and of them those whose accesses are recorded.
    pub warps: Range<u32>,
    pub recorded: Range<u32>,
    /// Executions of each memory instruction to record.
    pub window: u32,
}

/// What came of a block.
pub(super) struct BlockOutcome {
    pub warps: Vec<WarpOutcome>,
    /// Control never hung on what is not known, nobody waited in vain and nobody was dropped.
    pub exact: bool,
    /// An address was not known.
    pub vague: bool,
    pub steps: u64,
    /// What the block wrote to global memory.
    pub global: Overlay,
}

/// What one warp of a block did.
pub(super) struct WarpOutcome {
    pub number: u32,
    /// Executions of each step by any of its lanes.
    pub counts: Vec<u64>,
    pub ended: bool,
    pub recorded: bool,
    pub requests: Vec<Request>,
    /// Of memory steps.
    pub turns: Vec<Turns>,
}

/// Runs warps of a block.
pub(super) fn run_block(ground: &LaunchContext<'_>, block: [u32; 3], allowance: &Allowance) -> BlockOutcome {
    let program = ground.program;
    let shared = program.dynamic_shared.saturating_add(u64::from(ground.launch.shared));
    let mut state = State {
        initial: ground.initial,
        shared: MaskedMemory::new(shared),
        global: Overlay::default(),
        regions: Vec::new(),
        barriers: Default::default(),
    };
    let same = warp::fixed_lanes(ground, block);
    let recorded = |number: u32| allowance.recorded.contains(&number);
    // Those that are looked at come first.
    let mut numbers: Vec<u32> = allowance.warps.clone().collect();
    numbers.sort_by_key(|&number| !recorded(number));
    let mut warps: Vec<Warp<'_>> = numbers
        .into_iter()
        .map(|number| {
            let window = if recorded(number) { allowance.window } else { 0 };
            let turns = vec![Turns::default(); program.steps.len()];
            let recording = Recording { window, requests: Vec::new(), turns };
            Warp::new(ground, same.clone(), block, number, recording)
        })
        .collect();
    let looked_at = warps.iter().filter(|warp| recorded(warp.number)).count() as u64;
    let reserve = if looked_at > 0 { allowance.reserve.min(allowance.steps) } else { 0 };
    let fair = ((allowance.steps - reserve) / warps.len().max(1) as u64).max(1);
    let own = fair + reserve / looked_at.max(1);
    let mut until: Vec<u64> = warps.iter().map(|warp| if recorded(warp.number) { own } else { fair }).collect();
    let mut dropped = vec![false; warps.len()];
    let mut exact = true;
    loop {
        let mut spent = false;
        let mut ran = true;
        // Until all of them have ended, wait in vain, or have had their share.
        while ran {
            ran = false;
            spent = false;
            for (index, warp) in warps.iter_mut().enumerate().filter(|(index, _)| !dropped[*index]) {
                let before = warp.steps;
                let runnable = warp.alive & !warp.held != 0;
                if runnable {
                    spent |= warp.run_until(&mut state, until[index]) == Stop::Spent;
                }
                ran |= warp.steps > before;
            }
            ran |= release_waiting(&mut state, &mut warps, &dropped, false);
        }
        if warps.iter().zip(&dropped).all(|(warp, dropped)| *dropped || warp.alive == 0) {
            break;
        }
        let taken: u64 = warps.iter().map(|warp| warp.steps).sum();
        let left = allowance.steps.saturating_sub(taken);
        if spent {
            let late = |warp: &Warp<'_>| warp.alive & !warp.held != 0;
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
            if !release_waiting(&mut state, &mut warps, &dropped, true) {
                break;
            }
        }
    }
    let steps = warps.iter().map(|warp| warp.steps).sum();
    let exact = exact && warps.iter().all(|warp| warp.exact && warp.alive == 0);
    let vague = warps.iter().any(|warp| warp.vague);
    let warps = warps.into_iter().map(|warp| WarpOutcome {
        number: warp.number,
        ended: warp.alive == 0,
        recorded: recorded(warp.number),
        counts: warp.counts,
        requests: warp.recording.requests,
        turns: warp.recording.turns,
    });
    BlockOutcome { warps: warps.collect(), exact, vague, steps, global: state.global }
}

/// Lets those go on who wait at a barrier that all have come to, or, by `force`, at the first
/// where anybody waits; tells whether somebody does.
fn release_waiting(state: &mut State<'_>, warps: &mut [Warp<'_>], dropped: &[bool], force: bool) -> bool {
    let there = |(warp, dropped): (&Warp<'_>, &bool)| if *dropped { 0 } else { warp.alive.count_ones() };
    let everybody: u32 = warps.iter().zip(dropped).map(there).sum();
    let mut freed = false;
    for barrier in &mut state.barriers {
        let expected = barrier.expected.map_or(everybody, |expected| expected.min(everybody));
        if barrier.waiting.is_empty() || (freed || !force) && barrier.arrived < expected {
            continue;
        }
        let Barrier { waiting, reduction, holding, unknown, arrived, .. } = std::mem::take(barrier);
        for (number, lanes, target) in waiting {
            let Some(warp) = warps.iter_mut().find(|warp| warp.number == number) else { continue };
            freed |= warp.held & lanes != 0;
            warp.held &= !lanes;
            if let Some(reduction) = reduction {
                let value = match reduction {
                    Reduction::Count => u64::from(holding),
                    Reduction::All => u64::from(holding == arrived),
                    Reduction::Any => u64::from(holding > 0),
                };
                warp.put_lanes(target, lanes, &[value; 32], if unknown { u32::MAX } else { 0 });
            }
        }
    }
    freed
}
