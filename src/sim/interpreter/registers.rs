//! The registers of a warp: a value of each lane, and the lanes in which it is not known.

use super::context::{LaunchContext, ThreadPosition};
use super::lanes::{Lanes, all_lanes, each_lane, lanes_where};
use crate::sim::program::{Program, ProgramStep, Slot, SlotLocation};
use std::rc::Rc;

/// Registers that no step changes, and whether they are unknown; shared by all warps of a block.
pub(super) type UniformRegisters<const N: usize> = Rc<Vec<(Lanes<N>, bool)>>;

/// The values of the registers of a warp.
pub(super) struct WarpRegisters<'p, const N: usize> {
    program: &'p Program,
    uniform: UniformRegisters<N>,
    values: Vec<Lanes<N>>,
    unknown: Vec<u32>,
}

/// Returns the values that are constant within a block.
pub(super) fn uniform_registers<const N: usize>(context: &LaunchContext<'_>, block: [u32; 3]) -> UniformRegisters<N> {
    let program = context.program;
    let is_uniform = |location: &SlotLocation| matches!(location, SlotLocation::Uniform(_));
    let constants = program.slots.iter().zip(&program.locations).filter(|(_, location)| is_uniform(location));
    let mut values: Vec<(Lanes<N>, bool)> = constants.map(|(&value, _)| ([value; N], false)).collect();
    for &(slot, special) in &program.specials {
        if let SlotLocation::Uniform(at) = program.locations[slot as usize] {
            let value = context.special_value(special, ThreadPosition { block, thread: [0; 3] });
            values[at as usize] = ([value.unwrap_or(0); N], value.is_none());
        }
    }
    Rc::new(values)
}

impl<'p, const N: usize> WarpRegisters<'p, N> {
    pub fn new(program: &'p Program, uniform: UniformRegisters<N>) -> Self {
        let mut registers = Self { program, uniform, values: Vec::new(), unknown: Vec::new() };
        for (slot, &value) in (0..).zip(&program.slots) {
            if let SlotLocation::PerLane(at) = registers.location(slot) {
                let count = registers.values.len().max(at as usize + 1);
                registers.values.resize(count, [0; N]);
                registers.values[at as usize] = [value; N];
            }
        }
        registers.unknown = vec![0; registers.values.len()];
        registers
    }

    /// Returns where a slot is stored. A lone lane has a place for each slot, so that its loops can
    /// be sampled and what it does not know keeps its last value.
    fn location(&self, slot: Slot) -> SlotLocation {
        if N == 1 { SlotLocation::PerLane(slot) } else { self.program.locations[slot as usize] }
    }

    /// Returns the values of a slot, by lane.
    pub fn lanes(&self, slot: Slot) -> &Lanes<N> {
        match self.location(slot) {
            SlotLocation::Uniform(at) => &self.uniform[at as usize].0,
            SlotLocation::PerLane(at) => &self.values[at as usize],
        }
    }

    /// Returns the lanes in which a slot is not known.
    pub fn unknown_lanes(&self, slot: Slot) -> u32 {
        match self.location(slot) {
            SlotLocation::Uniform(at) => {
                if self.uniform[at as usize].1 {
                    u32::MAX
                } else {
                    0
                }
            }
            SlotLocation::PerLane(at) => self.unknown[at as usize],
        }
    }

    /// Returns the values of a slot, by lane, and the lanes in which it is not known.
    pub fn read(&self, slot: Slot) -> (Lanes<N>, u32) {
        (*self.lanes(slot), self.unknown_lanes(slot))
    }

    /// Returns the lanes in which an operand of a step is not known.
    pub fn any_unknown(&self, step: &ProgramStep) -> u32 {
        step.sources.iter().fold(0, |unknown, &slot| unknown | self.unknown_lanes(slot))
    }

    /// Returns the lanes in which a predicate is true.
    pub fn holding_lanes(&self, slot: Slot) -> u32 {
        let values = self.lanes(slot);
        lanes_where::<N>(|lane| values[lane] & 1 != 0)
    }

    /// Returns the value of a slot in a lane, and whether it is not known.
    pub fn lane_value(&self, slot: Slot, lane: usize) -> (u64, bool) {
        (self.lanes(slot)[lane], self.unknown_lanes(slot) >> lane & 1 != 0)
    }

    /// Sets a slot for the lanes that are `on`.
    pub fn set_lanes(&mut self, slot: Slot, on: u32, results: &Lanes<N>, unknown: u32) {
        let SlotLocation::PerLane(at) = self.location(slot) else { return };
        if slot == 0 {
            return;
        }
        let width = u32::from(self.program.widths[slot as usize]);
        let narrow = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
        let values = &mut self.values[at as usize];
        if on == all_lanes(N as u32) {
            *values = std::array::from_fn(|lane| results[lane] & narrow);
        } else {
            for lane in each_lane(on) {
                values[lane] = results[lane] & narrow;
            }
        }
        let known = &mut self.unknown[at as usize];
        *known = *known & !on | unknown & on;
    }

    /// Sets a slot for one lane to a value that may be unknown.
    pub fn set_lane(&mut self, slot: Slot, lane: usize, (value, unknown): (u64, bool)) {
        self.set_lanes(slot, 1 << lane, &[value; N], if unknown { u32::MAX } else { 0 });
    }

    /// Marks a slot as unknown in the lanes that are `on`. Their values are kept: nothing better is
    /// known.
    pub fn mark_unknown(&mut self, slot: Slot, on: u32) {
        if let SlotLocation::PerLane(at) = self.location(slot)
            && slot != 0
        {
            self.unknown[at as usize] |= on;
        }
    }
}

impl WarpRegisters<'_, 1> {
    /// Returns the values of all slots.
    pub fn slots(&self) -> &[u64] {
        self.values.as_flattened()
    }

    /// Returns the values of all slots, to be changed.
    pub fn slots_mut(&mut self) -> &mut [u64] {
        self.values.as_flattened_mut()
    }
}
