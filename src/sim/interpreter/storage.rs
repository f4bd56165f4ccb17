//! Loads, stores and atomics of a warp, lane by lane, and the record of their accesses.

use super::lanes::{Lanes, each_lane};
use super::state::State;
use super::warp::{Policy, Warp};
use crate::ptx::{AccessKind, MemorySpace};
use crate::sim::arithmetic::{sign_extend, update_value};
use crate::sim::memory::{MemoryPlace, accessed_place};
use crate::sim::operation::is_signed;
use crate::sim::program::{MemoryAccess, ProgramStep, Update, Window};
use crate::sim::request::Request;

/// Returns the offset of a lane's address in a memory that holds the parts of all lanes one after
/// the other; `u64::MAX` outside the lane's part.
fn lane_offset(lane: usize, size: u64, address: u64) -> u64 {
    if address < size { (lane as u64).saturating_mul(size).saturating_add(address) } else { u64::MAX }
}

impl<'p, const N: usize, P: Policy<'p, N>> Warp<'p, N, P> {
    pub(super) fn read_place(
        &self,
        state: &State<'p>,
        lane: usize,
        place: MemoryPlace,
        offset: u64,
        size: u32,
    ) -> (u64, bool) {
        let program = self.context.program;
        match place {
            MemoryPlace::Global(address) => state.read_global(address.wrapping_add(offset), size),
            MemoryPlace::Shared(address) => state.shared.read_bits(address.wrapping_add(offset), size),
            MemoryPlace::Local(address) => {
                self.local.read_bits(lane_offset(lane, program.local, address.wrapping_add(offset)), size)
            }
            MemoryPlace::Const(address) => self.context.initial.read_constant(address.wrapping_add(offset), size),
            MemoryPlace::Param(address) => {
                let first = address.wrapping_add(offset);
                let end = first.saturating_add(u64::from(size));
                let given = self.context.arguments;
                if end <= given.len() as u64 {
                    let bytes = &given[first as usize..end as usize];
                    return (bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte)), false);
                }
                self.parameters.read_bits(lane_offset(lane, program.parameters, first), size)
            }
        }
    }

    pub(super) fn write_place(
        &mut self,
        state: &mut State<'p>,
        lane: usize,
        (place, offset): (MemoryPlace, u64),
        size: u32,
        (value, unknown): (u64, bool),
    ) {
        let program = self.context.program;
        match place {
            MemoryPlace::Global(address) => state.set_global(address.wrapping_add(offset), size, value, unknown),
            MemoryPlace::Shared(address) => state.shared.write_bits(address.wrapping_add(offset), size, value, unknown),
            MemoryPlace::Local(address) => {
                self.local.write_bits(
                    lane_offset(lane, program.local, address.wrapping_add(offset)),
                    size,
                    value,
                    unknown,
                );
            }
            MemoryPlace::Const(_) => {}
            MemoryPlace::Param(address) => {
                let at = lane_offset(lane, program.parameters, address.wrapping_add(offset));
                self.parameters.write_bits(at, size, value, unknown);
            }
        }
    }

    pub(super) fn load_lanes(
        &mut self,
        step: &'p ProgramStep,
        memory: MemoryAccess,
        at: u32,
        on: u32,
        state: &mut State<'p>,
    ) {
        let program = self.context.program;
        let size = memory.scalar.size();
        let (base, unknown_base) = self.registers.read(step.sources[0]);
        for (index, &slot) in program.slot_list(memory.list, memory.count).iter().enumerate() {
            if slot == 0 {
                continue;
            }
            let (mut results, mut unknown) = ([0; N], unknown_base);
            let mut last: Option<(u64, (u64, bool))> = None;
            for lane in each_lane(on) {
                let place = accessed_place(&memory, base[lane]);
                // What is in a place of all lanes is read once.
                let (value, is_unknown) = match last {
                    Some((address, found)) if address == base[lane] => found,
                    _ => {
                        if let (MemoryPlace::Shared(address), Some(races)) = (place, &mut state.races)
                            && unknown_base >> lane & 1 == 0
                        {
                            races.read(self.number, address.wrapping_add(u64::from(size) * index as u64), size);
                        }
                        let found = self.read_place(state, lane, place, u64::from(size) * index as u64, size);
                        (found.0, found.1 || P::may_differ(self, state, place))
                    }
                };
                let of_all = !matches!(place, MemoryPlace::Local(_) | MemoryPlace::Param(_))
                    || memory.window == Window::Param && !self.passed;
                last = of_all.then_some((base[lane], (value, is_unknown)));
                results[lane] = if is_signed(memory.scalar) { sign_extend(value, size * 8) as u64 } else { value };
                unknown |= u32::from(is_unknown) << lane;
            }
            self.registers.set_lanes(slot, on, &results, unknown);
        }
        self.touch_places(step, at, &memory, (AccessKind::Load, size * memory.count), on, (&base, unknown_base));
    }

    pub(super) fn store_lanes(
        &mut self,
        step: &'p ProgramStep,
        memory: MemoryAccess,
        at: u32,
        on: u32,
        state: &mut State<'p>,
    ) {
        let program = self.context.program;
        let size = memory.scalar.size();
        let (base, unknown_base) = self.registers.read(step.sources[0]);
        for (index, &slot) in program.slot_list(memory.list, memory.count).iter().enumerate() {
            let (values, unknown) = self.registers.read(slot);
            let unknown = unknown | unknown_base;
            for lane in each_lane(on) {
                let to = (accessed_place(&memory, base[lane]), u64::from(size) * index as u64);
                if let ((MemoryPlace::Shared(address), offset), Some(races)) = (to, &mut state.races)
                    && unknown_base >> lane & 1 == 0
                {
                    let value = (unknown >> lane & 1 == 0).then_some(values[lane]);
                    races.write(self.number, address.wrapping_add(offset), size, value, &state.shared);
                }
                self.write_place(state, lane, to, size, (values[lane], unknown >> lane & 1 != 0));
            }
        }
        if memory.window == Window::Param {
            self.passed = true;
        }
        self.touch_places(step, at, &memory, (AccessKind::Store, size * memory.count), on, (&base, unknown_base));
    }

    pub(super) fn update_atomically(
        &mut self,
        step: &'p ProgramStep,
        memory: MemoryAccess,
        update: Update,
        at: u32,
        on: u32,
        state: &mut State<'p>,
    ) {
        let (kind, size) = (memory.scalar, memory.scalar.size());
        let [base, a, b, _] = step.sources.map(|slot| *self.registers.lanes(slot));
        let unknown_base = self.registers.unknown_lanes(step.sources[0]);
        let given = self.registers.unknown_lanes(step.sources[1]) | self.registers.unknown_lanes(step.sources[2]);
        let (mut results, mut unknown) = ([0; N], unknown_base);
        for lane in each_lane(on) {
            let place = accessed_place(&memory, base[lane]);
            if let (MemoryPlace::Shared(address), Some(races)) = (place, &mut state.races) {
                races.update_atomically(address, size);
            }
            let (old, is_unknown) = self.read_place(state, lane, place, 0, size);
            let new = update_value(update, kind, old, a[lane], b[lane]);
            let is_unknown = is_unknown || P::is_updated_by_others(place) || unknown_base >> lane & 1 != 0;
            self.write_place(state, lane, (place, 0), size, (new, is_unknown || given >> lane & 1 != 0));
            results[lane] = old;
            unknown |= u32::from(is_unknown) << lane;
        }
        self.registers.set_lanes(step.target, on, &results, unknown);
        self.touch_places(step, at, &memory, (AccessKind::Atomic, size), on, (&base, unknown_base));
    }

    fn touch_places(
        &mut self,
        step: &ProgramStep,
        at: u32,
        memory: &MemoryAccess,
        (kind, width): (AccessKind, u32),
        on: u32,
        (base, unknown_base): (&Lanes<N>, u32),
    ) {
        let Some(first) = each_lane(on).next() else { return };
        let place = accessed_place(memory, base[first]);
        self.unknown_address |= unknown_base & on != 0;
        P::observe_access(self, step, (place, unknown_base >> first & 1 != 0), kind, width);
        let Some((space, _)) = place_address(place) else { return };
        let address = |lane: usize| place_address(accessed_place(memory, base[lane])).map_or(0, |(_, address)| address);
        self.record_touch(at, (space, kind, width), on, address);
    }

    pub(super) fn record_touch(
        &mut self,
        step: u32,
        (space, kind, width): (MemorySpace, AccessKind, u32),
        lanes: u32,
        address: impl Fn(usize) -> u64,
    ) {
        if lanes != 0 && self.recording.count_execution(step, lanes) {
            let (warp, execution) = (self.number, self.counts[step as usize]);
            let (time, addresses) = (self.steps + self.extrapolated, std::array::from_fn(address));
            self.recording.requests.push(Request { step, warp, execution, time, space, kind, width, lanes, addresses });
        }
    }
}

fn place_address(place: MemoryPlace) -> Option<(MemorySpace, u64)> {
    match place {
        MemoryPlace::Global(address) => Some((MemorySpace::Global, address)),
        MemoryPlace::Shared(address) => Some((MemorySpace::Shared, address)),
        MemoryPlace::Local(address) => Some((MemorySpace::Local, address)),
        MemoryPlace::Const(address) => Some((MemorySpace::Constant, address)),
        MemoryPlace::Param(_) => None,
    }
}
