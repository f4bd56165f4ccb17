//! Calls of functions by the lanes of a warp, one lane after the other: how arguments and results
//! get there and back.

use super::lanes::each_lane;
use super::warp::{Frame, Policy, Warp};
use crate::sim::memory::FUNCTION_BASE;
use crate::sim::program::{Callee, ParameterLocation};

/// Deepest call stack that is followed.
const MAX_CALL_DEPTH: usize = 64;

impl<'p, const N: usize, P: Policy<'p, N>> Warp<'p, N, P> {
    fn read_parameter(&self, lane: usize, at: u64, size: u32) -> (u64, bool) {
        let stride = self.context.program.parameters;
        self.parameters.read_bits((lane as u64).saturating_mul(stride).saturating_add(at), size)
    }

    fn set_parameter(&mut self, lane: usize, at: u64, size: u32, (value, unknown): (u64, bool)) {
        let stride = self.context.program.parameters;
        self.passed = true;
        self.parameters.write_bits((lane as u64).saturating_mul(stride).saturating_add(at), size, value, unknown);
    }

    fn pass_values(&mut self, lane: usize, from: ParameterLocation, to: ParameterLocation) {
        match (from, to) {
            (ParameterLocation::Slot(from), ParameterLocation::Slot(to)) => {
                self.registers.set_lane(to, lane, self.registers.lane_value(from, lane));
            }
            (ParameterLocation::Slot(from), ParameterLocation::Param(to, size)) => {
                let given = self.registers.lane_value(from, lane);
                self.set_parameter(lane, to, size.min(8) as u32, given);
            }
            (ParameterLocation::Param(from, size), ParameterLocation::Slot(to)) => {
                let given = self.read_parameter(lane, from, size.min(8) as u32);
                self.registers.set_lane(to, lane, given);
            }
            (ParameterLocation::Param(from, from_size), ParameterLocation::Param(to, to_size)) => {
                for byte in 0..from_size.min(to_size).min(1 << 16) {
                    let given = self.read_parameter(lane, from + byte, 1);
                    self.set_parameter(lane, to + byte, 1, given);
                }
            }
        }
    }

    fn forget_values(&mut self, lane: usize, passing: ParameterLocation) {
        match passing {
            ParameterLocation::Slot(slot) => self.registers.set_lane(slot, lane, (0, true)),
            ParameterLocation::Param(at, size) => {
                for byte in 0..size.min(1 << 16) {
                    self.set_parameter(lane, at + byte, 1, (0, true));
                }
            }
        }
    }

    /// Calls for each of the lanes, whose next step is the one after the call.
    pub(super) fn call_lanes(&mut self, index: u32, on: u32) {
        let program = self.context.program;
        let Some(call) = program.calls.get(index as usize) else { return };
        for lane in each_lane(on) {
            let callee = match call.callee {
                Callee::Function(function) => Some(function),
                Callee::Indirect(slot) => {
                    let (address, unknown) = self.registers.lane_value(slot, lane);
                    self.exact &= !unknown;
                    address.checked_sub(FUNCTION_BASE).map(|offset| (offset / 16) as usize)
                }
                Callee::Assertion => {
                    P::observe_failure(self);
                    None
                }
                Callee::Unknown => None,
            };
            let routine = callee.and_then(|callee| Some((callee, program.routines.get(callee)?)));
            let Some((number, routine)) = routine.filter(|_| self.stacks[lane].len() < MAX_CALL_DEPTH) else {
                // What an external function returns is unknown; what it costs is not counted.
                self.exact &= matches!(call.callee, Callee::Assertion | Callee::Unknown);
                call.results.iter().for_each(|&result| self.forget_values(lane, result));
                continue;
            };
            let active = self.stacks[lane].iter().any(|frame| frame.routine == number);
            let saved = if active {
                routine.slots.clone().map(|slot| self.registers.lane_value(slot, lane)).collect()
            } else {
                Vec::new()
            };
            for (&from, &to) in call.arguments.iter().zip(&routine.formals) {
                self.pass_values(lane, from, to);
            }
            self.stacks[lane].push(Frame { routine: number, back: self.pc[lane], call: index, saved });
            self.pc[lane] = routine.steps.start;
        }
    }

    /// Goes back to the caller, or ends.
    pub(super) fn return_lane(&mut self, lane: usize) {
        let program = self.context.program;
        let Some(frame) = self.stacks[lane].pop() else {
            self.alive &= !(1 << lane);
            return;
        };
        let routine = &program.routines[frame.routine];
        self.pc[lane] = frame.back;
        // Results first: registers of a recursive caller are put back around them.
        let results: Vec<(ParameterLocation, ParameterLocation)> = match program.calls.get(frame.call as usize) {
            Some(call) => routine.returns.iter().copied().zip(call.results.iter().copied()).collect(),
            None => Vec::new(),
        };
        let kept: Vec<_> = results
            .iter()
            .map(|&(from, _)| match from {
                ParameterLocation::Slot(slot) => Some(self.registers.lane_value(slot, lane)),
                ParameterLocation::Param(..) => None,
            })
            .collect();
        for (slot, saved) in (routine.slots.start..).zip(frame.saved) {
            self.registers.set_lane(slot, lane, saved);
        }
        for ((from, to), kept) in results.into_iter().zip(kept) {
            match (kept, to) {
                (Some(given), ParameterLocation::Slot(slot)) => self.registers.set_lane(slot, lane, given),
                (Some(given), ParameterLocation::Param(at, size)) => {
                    self.set_parameter(lane, at, size.min(8) as u32, given)
                }
                (None, to) => self.pass_values(lane, from, to),
            }
        }
    }
}
