//! Runs one thread of a launch alone: a warp of one lane.
//!
//! Values of other threads (shared memory after a barrier, results of atomics and of warp-wide
//! operations, memory outside the workload) are replaced by zero or the thread's own value, and
//! unknown. Long loops are extrapolated (see [`loops`](crate::sim::loops)).

use super::context::{LaunchContext, ThreadPosition};
use super::registers::UniformRegisters;
use super::state::{Recording, State};
use super::warp::{Policy, Stop, Warp};
use crate::ptx::AccessKind;
use crate::sim::branch_trace::LaneTrace;
use crate::sim::loops::{Analyses, Event, LoopState, Loops};
use crate::sim::memory::{MemoryPlace, Overlay, in_region, region_of};
use crate::sim::place::linear_index;
use crate::sim::program::{Operation, Program, ProgramStep};
use crate::sim::request::Request;
use std::cell::RefMut;

/// A forbidden action that a thread certainly performs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchViolation {
    /// It ends in a trap, or in an assertion that does not hold.
    Failure,
    /// It reaches beyond the shared memory of its block, which has this many bytes.
    Shared { has: u64 },
    /// It accesses this byte of a buffer of the workload, behind its end or, where negative,
    /// before its beginning.
    Buffer { index: usize, byte: i64, kind: AccessKind },
}

/// Limits and options for running a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadAllowance {
    /// Instructions to interpret.
    pub steps: u64,
    /// Executions of each memory instruction to record.
    pub window: u32,
    /// Iterations of a loop to run before it is extrapolated.
    pub warmup: u64,
    /// Whether to record its branch trace.
    pub record_trace: bool,
    /// Whether to stop at the first [`LaunchViolation`].
    pub detect_violations: bool,
    /// Whether the contents of buffers count as unknown because other threads may have written
    /// them.
    pub buffers_unknown: bool,
}

/// The result of running a thread.
pub(crate) struct ThreadOutcome {
    /// Executions of each step.
    pub counts: Vec<u64>,
    pub exact: bool,
    /// The rest of a loop was estimated.
    pub estimated: bool,
    /// The allowance ended before the thread did.
    pub cut: bool,
    /// Whether an address was not known, or a branch depended on an unknown value.
    pub unknown_address: bool,
    /// Instructions that were interpreted (not extrapolated).
    pub interpreted: u64,
    pub touches: Vec<Request<1>>,
    pub trace: LaneTrace,
    /// What it wrote to global memory.
    pub global: Overlay,
    /// The violation, if one was found.
    pub violation: Option<LaunchViolation>,
}

/// Runs a thread to its end or to the end of its allowance.
pub(crate) fn run_thread(context: &LaunchContext<'_>, at: ThreadPosition, allowance: ThreadAllowance) -> ThreadOutcome {
    let steps = context.program.steps.len();
    let mut state = State::new(context);
    let policy = Alone {
        allowance,
        loops: Loops::new(steps, allowance.warmup),
        trace: LaneTrace::default(),
        estimated: false,
        skipped: 0,
        skipped_stores: false,
        violation: None,
    };
    let thread = linear_index(at.thread, context.launch.block) as u32;
    let recording = Recording::new(allowance.window, if allowance.window > 0 { steps } else { 0 });
    let place = (at.block, thread..thread + 1);
    let mut warp = Warp::new(context, UniformRegisters::default(), place, recording, policy);
    let cut = warp.run_until(&mut state, allowance.steps) == Stop::Spent;
    let Alone { mut trace, estimated, violation, .. } = warp.policy;
    trace.cut |= cut;
    ThreadOutcome {
        counts: warp.counts,
        exact: warp.exact && !cut,
        estimated,
        cut,
        unknown_address: warp.unknown_address || !warp.unknown_branches.is_empty(),
        interpreted: warp.steps,
        touches: warp.recording.requests,
        trace,
        global: state.global,
        violation,
    }
}

/// The policy of a thread that is run alone.
struct Alone {
    allowance: ThreadAllowance,
    loops: Loops,
    trace: LaneTrace,
    estimated: bool,
    /// Iterations of a loop that were skipped just now.
    skipped: u64,
    /// Whether iterations were skipped that may have written memory.
    skipped_stores: bool,
    violation: Option<LaunchViolation>,
}

type LoneWarp<'p> = Warp<'p, 1, Alone>;

impl<'p> Policy<'p, 1> for Alone {
    fn arrive_at_barrier(warp: &mut LoneWarp<'p>, state: &mut State<'p>, step: &ProgramStep, lanes: u32) -> bool {
        if lanes != 0 && warp.context.launch.block_threads() > 1 {
            state.shared.mark_overwritable();
        }
        if matches!(step.operation, Operation::Barrier { reduction: Some(_), .. }) {
            warp.registers.mark_unknown(step.target, lanes);
        }
        false
    }

    fn join_collective(_: &mut LoneWarp<'p>, _: &ProgramStep, _: u32, _: u32, _: bool) -> Option<u32> {
        Some(0)
    }

    fn execute_collective(warp: &mut LoneWarp<'p>, step: &ProgramStep, on: u32) {
        for slot in warp.context.program.written_slots(step) {
            warp.registers.mark_unknown(slot, on);
        }
    }

    fn is_updated_by_others(_: MemoryPlace) -> bool {
        true
    }

    fn may_differ(warp: &LoneWarp<'p>, state: &State<'p>, place: MemoryPlace) -> bool {
        let Self { allowance, skipped_stores, .. } = warp.policy;
        match place {
            MemoryPlace::Global(address) => {
                skipped_stores && state.regions.contains(&region_of(address))
                    || allowance.detect_violations && may_be_overwritten(warp, address)
            }
            MemoryPlace::Shared(_) | MemoryPlace::Local(_) => skipped_stores,
            MemoryPlace::Const(_) | MemoryPlace::Param(_) => false,
        }
    }

    fn enter_step(&mut self, program: &Program, at: u32) {
        if self.allowance.record_trace && program.leaders[at as usize] {
            self.trace.enter_block(at, program.outermost[at as usize]);
        }
    }

    fn observe_comparison(&mut self, step: u32, [a, b]: [u64; 2], holds: impl FnOnce() -> bool) {
        if self.loops.is_recording() {
            self.loops.log_event(Event { step, a, b, holds: holds() });
        }
    }

    fn observe_branch(warp: &mut LoneWarp<'p>, at: u32, target: u32, taken: bool) {
        let (program, depth) = (warp.context.program, warp.stacks[0].len());
        match (taken, target <= at) {
            (true, true) => {
                let mut loops = std::mem::take(&mut warp.policy.loops);
                loops.branch_back(warp, program, at, target);
                warp.policy.loops = loops;
                let skipped = std::mem::take(&mut warp.policy.skipped);
                warp.policy.trace.loop_back(target, at, skipped, depth);
            }
            (true, false) => warp.policy.trace.continue_at(target, depth),
            (false, true) => {
                warp.policy.loops.leave_loop(at);
                warp.policy.trace.continue_at(at + 1, depth);
            }
            (false, false) => {}
        }
    }

    /// Checks an access for a violation, if it is certain that the thread makes it and the address
    /// is known.
    fn observe_access(
        warp: &mut LoneWarp<'p>,
        step: &ProgramStep,
        (place, is_unknown): (MemoryPlace, bool),
        kind: AccessKind,
        width: u32,
    ) {
        let guard_unknown = step.guard != 0 && warp.registers.unknown_lanes(step.guard) != 0;
        if !warp.policy.allowance.detect_violations || is_unknown || !warp.exact || guard_unknown {
            return;
        }
        let width = u64::from(width);
        let violation = match place {
            MemoryPlace::Shared(address) => {
                let has = warp.context.shared_bytes();
                address.checked_add(width).is_none_or(|end| end > has).then_some(LaunchViolation::Shared { has })
            }
            MemoryPlace::Global(address) => in_region(address).and_then(|(index, byte)| {
                let bytes = warp.context.initial.buffers.get(index)?.bytes();
                let lies_in = u64::try_from(byte).is_ok_and(|byte| byte.saturating_add(width) <= bytes);
                (!lies_in).then_some(LaunchViolation::Buffer { index, byte, kind })
            }),
            MemoryPlace::Local(_) | MemoryPlace::Const(_) | MemoryPlace::Param(_) => None,
        };
        if violation.is_some() {
            warp.policy.violation = violation;
            warp.alive = 0;
        }
    }

    fn observe_failure(warp: &mut LoneWarp<'p>) {
        if warp.policy.allowance.detect_violations && warp.exact {
            warp.policy.violation = Some(LaunchViolation::Failure);
            warp.alive = 0;
        }
    }
}

/// Tells whether other threads may have written what this one reads from global memory.
fn may_be_overwritten(warp: &LoneWarp<'_>, address: u64) -> bool {
    let buffer = in_region(address).and_then(|(index, _)| warp.context.initial.buffers.get(index));
    warp.policy.allowance.buffers_unknown || buffer.is_none_or(|buffer| buffer.fill.is_only_written())
}

impl LoopState for LoneWarp<'_> {
    fn values(&self) -> &[u64] {
        self.registers.slots()
    }

    fn values_mut(&mut self) -> &mut [u64] {
        self.registers.slots_mut()
    }

    fn set_unknown(&mut self, slot: usize) {
        self.registers.mark_unknown(slot as u32, 1);
    }

    fn counts(&self) -> &[u64] {
        &self.counts
    }

    fn count_more(&mut self, more: impl Iterator<Item = u64>) {
        for (count, more) in self.counts.iter_mut().zip(more) {
            *count = count.saturating_add(more);
            self.extrapolated = self.extrapolated.saturating_add(more);
        }
    }

    fn is_expensive(&self) -> bool {
        self.steps > self.policy.allowance.steps / 3
    }

    fn set_estimated(&mut self) {
        self.policy.estimated = true;
    }

    fn set_skipped(&mut self, iterations: u64, stores: bool) {
        self.policy.skipped = iterations;
        self.policy.skipped_stores |= stores;
    }

    fn analyses(&self) -> RefMut<'_, Analyses> {
        self.context.analyses.borrow_mut()
    }
}
