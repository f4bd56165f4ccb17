//! Calls of functions: how arguments and results get there and back.

use super::{Frame, LaunchViolation, MAX_CALL_DEPTH, Thread};
use crate::sim::memory::{FUNCTION_BASE, MemoryPlace};
use crate::sim::program::{Callee, ParameterLocation, RoutineCall};

impl<'p> Thread<'p> {
    fn pass_values(&mut self, from: ParameterLocation, to: ParameterLocation) {
        match (from, to) {
            (ParameterLocation::Slot(from), ParameterLocation::Slot(to)) => {
                let (value, unknown) = self.slot_value(from);
                self.set_slot(to, value, unknown);
            }
            (ParameterLocation::Slot(from), ParameterLocation::Param(to, size)) => {
                let (value, unknown) = self.slot_value(from);
                self.write_place(MemoryPlace::Param(to), 0, size.min(8) as u32, value, unknown);
            }
            (ParameterLocation::Param(from, size), ParameterLocation::Slot(to)) => {
                let (value, unknown) = self.read_place(MemoryPlace::Param(from), 0, size.min(8) as u32);
                self.set_slot(to, value, unknown);
            }
            (ParameterLocation::Param(from, from_size), ParameterLocation::Param(to, to_size)) => {
                for byte in 0..from_size.min(to_size).min(1 << 16) {
                    let (value, unknown) = self.read_place(MemoryPlace::Param(from), byte, 1);
                    self.write_place(MemoryPlace::Param(to), byte, 1, value, unknown);
                }
            }
        }
    }

    fn forget_values(&mut self, passing: ParameterLocation) {
        match passing {
            ParameterLocation::Slot(slot) => self.set_slot(slot, 0, true),
            ParameterLocation::Param(at, size) => {
                for byte in 0..size.min(1 << 16) {
                    self.write_place(MemoryPlace::Param(at), byte, 1, 0, true);
                }
            }
        }
    }

    pub(super) fn call_routine(&mut self, call: &'p RoutineCall, index: u32) {
        let callee = match call.callee {
            Callee::Function(function) => Some(function),
            Callee::Indirect(slot) => {
                let (address, unknown) = self.slot_value(slot);
                self.exact &= !unknown;
                address.checked_sub(FUNCTION_BASE).map(|offset| (offset / 16) as usize)
            }
            Callee::Assertion if self.allowance.detect_violations && self.exact => {
                self.violation = Some(LaunchViolation::Failure);
                self.pc = self.program.steps.len() as u32;
                return;
            }
            Callee::Assertion | Callee::Unknown => None,
        };
        let program = self.program;
        let routine = callee.and_then(|callee| Some((callee, program.routines.get(callee)?)));
        let Some((number, routine)) = routine.filter(|_| self.stack.len() < MAX_CALL_DEPTH) else {
            // What an external function returns is unknown; what it costs is not counted.
            self.exact &= matches!(call.callee, Callee::Assertion | Callee::Unknown);
            call.results.iter().for_each(|&result| self.forget_values(result));
            return;
        };
        let active = self.stack.iter().any(|frame| frame.routine == number);
        let slots = routine.slots.start as usize..routine.slots.end as usize;
        let saved =
            if active { slots.map(|slot| (self.values[slot], self.unknown[slot])).collect() } else { Vec::new() };
        for (&from, &to) in call.arguments.iter().zip(&routine.formals) {
            self.pass_values(from, to);
        }
        self.stack.push(Frame { routine: number, back: self.pc, call: index, saved });
        self.pc = routine.steps.start;
    }

    pub(super) fn return_from(&mut self, frame: Frame) {
        let program = self.program;
        let routine = &program.routines[frame.routine];
        self.pc = frame.back;
        // Results first: registers of a recursive caller are put back around them.
        let results: Vec<(ParameterLocation, ParameterLocation)> = match program.calls.get(frame.call as usize) {
            Some(call) => routine.returns.iter().copied().zip(call.results.iter().copied()).collect(),
            None => Vec::new(),
        };
        let kept: Vec<_> = results
            .iter()
            .map(|&(from, _)| match from {
                ParameterLocation::Slot(slot) => Some(self.slot_value(slot)),
                ParameterLocation::Param(..) => None,
            })
            .collect();
        for (slot, (value, unknown)) in (routine.slots.start as usize..).zip(frame.saved) {
            // Constants that were met later lie among the slots too, but never change.
            self.values[slot] = value;
            self.unknown[slot] = unknown;
        }
        for ((from, to), kept) in results.into_iter().zip(kept) {
            match (kept, to) {
                (Some((value, unknown)), ParameterLocation::Slot(slot)) => self.set_slot(slot, value, unknown),
                (Some((value, unknown)), ParameterLocation::Param(at, size)) => {
                    self.write_place(MemoryPlace::Param(at), 0, size.min(8) as u32, value, unknown);
                }
                (None, to) => self.pass_values(from, to),
            }
        }
    }
}
