//! Loads, stores and atomics of a thread, and the record of their accesses.

use super::{LaunchViolation, Thread, Touch};
use crate::ptx::{AccessKind, MemorySpace};
use crate::sim::arithmetic::{sign_extend, update_value};
use crate::sim::memory::{MemoryPlace, accessed_place, in_region, region_of};
use crate::sim::operation::is_signed;
use crate::sim::program::{MemoryAccess, ProgramStep, Update};

impl Thread<'_> {
    fn address_of(&mut self, step: &ProgramStep, memory: &MemoryAccess) -> (MemoryPlace, bool) {
        let (base, unknown) = self.slot_value(step.sources[0]);
        self.unknown_address |= unknown;
        (accessed_place(memory, base), unknown)
    }

    /// Tells whether other threads may have written what this one reads.
    fn may_be_overwritten(&self, place: MemoryPlace) -> bool {
        let MemoryPlace::Global(address) = place else { return false };
        let buffer = in_region(address).and_then(|(index, _)| self.initial.buffers.get(index));
        self.allowance.buffers_unknown || buffer.is_none_or(|buffer| buffer.fill.is_only_written())
    }

    /// Checks an access for a violation, if it is certain that the thread makes it and the address
    /// is known.
    fn check_access(
        &mut self,
        step: &ProgramStep,
        (place, is_unknown): (MemoryPlace, bool),
        kind: AccessKind,
        width: u32,
    ) {
        if !self.allowance.detect_violations || is_unknown || !self.exact {
            return;
        }
        if step.guard != 0 && self.unknown[step.guard as usize] {
            return;
        }
        let width = u64::from(width);
        self.violation = match place {
            MemoryPlace::Shared(address) => {
                let has = self.block_memory;
                address.checked_add(width).is_none_or(|end| end > has).then_some(LaunchViolation::Shared { has })
            }
            MemoryPlace::Global(address) => in_region(address).and_then(|(index, byte)| {
                let bytes = self.initial.buffers.get(index)?.bytes();
                let lies_in = u64::try_from(byte).is_ok_and(|byte| byte.saturating_add(width) <= bytes);
                (!lies_in).then_some(LaunchViolation::Buffer { index, byte, kind })
            }),
            MemoryPlace::Local(_) | MemoryPlace::Const(_) | MemoryPlace::Param(_) => None,
        };
        if self.violation.is_some() {
            self.pc = self.program.steps.len() as u32;
        }
    }

    fn touch_place(&mut self, at: u32, place: MemoryPlace, kind: AccessKind, width: u32) {
        let (space, address) = match place {
            MemoryPlace::Global(address) => (MemorySpace::Global, address),
            MemoryPlace::Shared(address) => (MemorySpace::Shared, address),
            MemoryPlace::Local(address) => (MemorySpace::Local, address),
            MemoryPlace::Const(address) => (MemorySpace::Constant, address),
            MemoryPlace::Param(_) => return,
        };
        self.record_touch(at, space, kind, width, address);
    }

    pub(super) fn record_touch(&mut self, step: u32, space: MemorySpace, kind: AccessKind, width: u32, address: u64) {
        let Some(recorded) = self.recorded.get_mut(step as usize) else {
            return;
        };
        if *recorded < self.allowance.window {
            *recorded += 1;
            let execution = self.counts[step as usize];
            let time = self.interpreted + self.extrapolated;
            self.touches.push(Touch { step, execution, time, space, kind, width, address });
        }
    }

    pub(super) fn read_place(&self, place: MemoryPlace, offset: u64, size: u32) -> (u64, bool) {
        match place {
            MemoryPlace::Global(address) => {
                let address = address.wrapping_add(offset);
                let (below, below_unknown) = self.initial.read_global(address, size);
                let (value, whole, unknown) = self.global.read_over(address, size, below);
                let dirty = self.skipped_stores && self.regions.contains(&region_of(address));
                (value, unknown || dirty || (below_unknown && !whole))
            }
            MemoryPlace::Shared(address) => {
                let (value, whole, unknown) = self.shared.read_over(address.wrapping_add(offset), size, 0);
                (value, unknown || !whole || self.skipped_stores)
            }
            MemoryPlace::Local(address) => {
                let (value, whole, unknown) = self.local.read_over(address.wrapping_add(offset), size, 0);
                (value, unknown || !whole || self.skipped_stores)
            }
            MemoryPlace::Const(address) => self.initial.read_constant(address.wrapping_add(offset), size),
            MemoryPlace::Param(address) => {
                let first = address.wrapping_add(offset);
                let mut value = 0;
                let mut unknown = false;
                for byte in 0..u64::from(size) {
                    let index = first.wrapping_add(byte) as usize;
                    value |= u64::from(self.parameters.get(index).copied().unwrap_or(0)) << (8 * byte);
                    unknown |= self.parameters_unknown.get(index).copied().unwrap_or(true);
                }
                (value, unknown)
            }
        }
    }

    pub(super) fn write_place(&mut self, place: MemoryPlace, offset: u64, size: u32, value: u64, unknown: bool) {
        match place {
            MemoryPlace::Global(address) => {
                let address = address.wrapping_add(offset);
                if !self.regions.contains(&region_of(address)) {
                    self.regions.push(region_of(address));
                }
                self.global.write_bits(address, size, value, unknown);
            }
            MemoryPlace::Shared(address) => self.shared.write_bits(address.wrapping_add(offset), size, value, unknown),
            MemoryPlace::Local(address) => self.local.write_bits(address.wrapping_add(offset), size, value, unknown),
            MemoryPlace::Const(_) => {}
            MemoryPlace::Param(address) => {
                let first = address.wrapping_add(offset);
                for byte in 0..u64::from(size) {
                    let index = first.wrapping_add(byte) as usize;
                    if let (Some(to), Some(to_unknown)) =
                        (self.parameters.get_mut(index), self.parameters_unknown.get_mut(index))
                    {
                        *to = (value >> (8 * byte)) as u8;
                        *to_unknown = unknown;
                    }
                }
            }
        }
    }

    pub(super) fn load_value(&mut self, step: &ProgramStep, memory: MemoryAccess, at: u32) {
        let program = self.program;
        let size = memory.scalar.size();
        let (place, address_unknown) = self.address_of(step, &memory);
        let may_be_overwritten = self.allowance.detect_violations && self.may_be_overwritten(place);
        for (index, &slot) in program.slot_list(memory.list, memory.count).iter().enumerate() {
            if slot == 0 {
                continue;
            }
            let (value, unknown) = self.read_place(place, u64::from(size) * index as u64, size);
            let unknown = unknown || may_be_overwritten;
            let value = if is_signed(memory.scalar) { sign_extend(value, size * 8) as u64 } else { value };
            self.set_slot(slot, value, unknown || address_unknown);
        }
        self.touch_place(at, place, AccessKind::Load, size * memory.count);
        self.check_access(step, (place, address_unknown), AccessKind::Load, size * memory.count);
    }

    pub(super) fn store_value(&mut self, step: &ProgramStep, memory: MemoryAccess, at: u32) {
        let program = self.program;
        let size = memory.scalar.size();
        let (place, address_unknown) = self.address_of(step, &memory);
        for (index, &slot) in program.slot_list(memory.list, memory.count).iter().enumerate() {
            let (value, unknown) = self.slot_value(slot);
            self.write_place(place, u64::from(size) * index as u64, size, value, unknown || address_unknown);
        }
        self.touch_place(at, place, AccessKind::Store, size * memory.count);
        self.check_access(step, (place, address_unknown), AccessKind::Store, size * memory.count);
    }

    pub(super) fn update_atomically(&mut self, step: &ProgramStep, memory: MemoryAccess, update: Update, at: u32) {
        let (kind, size) = (memory.scalar, memory.scalar.size());
        let (place, address_unknown) = self.address_of(step, &memory);
        let (old, _) = self.read_place(place, 0, size);
        let (a, b) = (self.slot_value(step.sources[1]).0, self.slot_value(step.sources[2]).0);
        let new = update_value(update, kind, old, a, b);
        // Other threads may have come first.
        self.write_place(place, 0, size, new, true);
        self.set_slot(step.target, old, true);
        self.touch_place(at, place, AccessKind::Atomic, size);
        self.check_access(step, (place, address_unknown), AccessKind::Atomic, size);
    }
}
