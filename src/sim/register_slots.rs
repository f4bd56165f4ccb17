//! Assigns storage to the registers of a warp. Registers that live within one basic block share
//! storage, so that a warp's values stay in the cache.

use super::program::{Operation, ParameterLocation, Program, ProgramStep, Slot, SlotLocation, Special};

/// The live range of a slot.
#[derive(Clone, Copy)]
struct LiveRange {
    block: u32,
    last: u32,
    /// Whether all its uses are in that block, and the first one always sets it.
    local: bool,
}

/// A location that is not assigned yet.
const UNASSIGNED: u32 = u32::MAX;

/// Returns the location of each slot. A slot that no step writes is equal in all lanes of a
/// warp, except registers that identify the lane.
pub(super) fn assign_locations(program: &Program) -> Vec<SlotLocation> {
    let apart: Vec<Slot> = program
        .specials
        .iter()
        .filter(|(_, special)| matches!(special, Special::Thread(_) | Special::Lane | Special::LaneMask(_)))
        .map(|&(slot, _)| slot)
        .collect();
    let live_ranges = find_live_ranges(program, &apart);
    let is_local = |slot: Slot| live_ranges[slot as usize].is_some_and(|range| range.local);
    let (mut same, mut own) = (0, 0);
    let mut locations: Vec<SlotLocation> = Vec::with_capacity(program.slots.len());
    for (slot, definitions) in (0..).zip(&program.definitions) {
        let constant = definitions.is_empty() && !apart.contains(&slot);
        let next = if constant { &mut same } else { &mut own };
        // Those that take turns come behind all others.
        if !constant && is_local(slot) {
            locations.push(SlotLocation::PerLane(UNASSIGNED));
            continue;
        }
        locations.push(if constant { SlotLocation::Uniform(*next) } else { SlotLocation::PerLane(*next) });
        *next += 1;
    }
    let mut free: Vec<u32> = Vec::new();
    let mut taken = 0;
    let mut block = u32::MAX;
    for (at, step) in (0..).zip(&program.steps) {
        if program.leaders[at as usize] || block == u32::MAX {
            block = at;
            free = (0..taken).rev().collect();
        }
        let mut ends: Vec<u32> = Vec::new();
        each_source(program, step, |slot| {
            if program.written_slots(step).all(|target| target != slot) {
                ends.extend(ends_at(&live_ranges, slot, at).and(shared_location(&locations, slot, own)));
            }
        });
        ends.sort_unstable();
        ends.dedup();
        free.append(&mut ends);
        for slot in program.written_slots(step).filter(|&slot| is_local(slot)) {
            // The first time that it is set.
            if shared_location(&locations, slot, own).is_none() {
                let place = free.pop().unwrap_or_else(|| {
                    taken += 1;
                    taken - 1
                });
                locations[slot as usize] = SlotLocation::PerLane(own + place);
            }
        }
        for slot in program.written_slots(step) {
            ends.extend(ends_at(&live_ranges, slot, at).and(shared_location(&locations, slot, own)));
        }
        ends.sort_unstable();
        ends.dedup();
        free.append(&mut ends);
    }
    locations
}

/// Returns `Some` if the live range of a block-local slot ends at this step.
fn ends_at(live_ranges: &[Option<LiveRange>], slot: Slot, at: u32) -> Option<()> {
    live_ranges[slot as usize].filter(|range| range.local && range.last == at).map(|_| ())
}

/// Returns the number of the shared location that a slot has.
fn shared_location(locations: &[SlotLocation], slot: Slot, own: u32) -> Option<u32> {
    match locations[slot as usize] {
        SlotLocation::PerLane(home) if home != UNASSIGNED => home.checked_sub(own),
        _ => None,
    }
}

fn find_live_ranges(program: &Program, apart: &[Slot]) -> Vec<Option<LiveRange>> {
    let mut live_ranges: Vec<Option<LiveRange>> = vec![None; program.slots.len()];
    let mut block = 0;
    let mut calls = false;
    for (at, step) in (0..).zip(&program.steps) {
        if program.leaders[at as usize] || at == 0 {
            block = at;
            calls = program.steps[at as usize..]
                .iter()
                .enumerate()
                .take_while(|(index, _)| *index == 0 || !program.leaders[at as usize + index])
                .any(|(_, step)| matches!(step.operation, Operation::Call(_)));
        }
        each_source(program, step, |slot| match &mut live_ranges[slot as usize] {
            Some(range) => {
                range.local &= range.block == block;
                range.last = at;
            }
            none => *none = Some(LiveRange { block, last: at, local: false }),
        });
        for slot in program.written_slots(step) {
            match &mut live_ranges[slot as usize] {
                Some(range) => {
                    range.local &= range.block == block;
                    range.last = at;
                }
                none => *none = Some(LiveRange { block, last: at, local: step.guard == 0 && !calls }),
            }
        }
    }
    let passed = program.calls.iter().flat_map(|call| call.results.iter().chain(&call.arguments));
    let formal = program.routines.iter().flat_map(|routine| routine.formals.iter().chain(&routine.returns));
    let passed = passed.chain(formal).filter_map(|passing| match passing {
        ParameterLocation::Slot(slot) => Some(*slot),
        ParameterLocation::Param(..) => None,
    });
    for slot in passed.chain(apart.iter().copied()) {
        live_ranges[slot as usize] = None;
    }
    live_ranges
}

/// The slots that a step reads, besides those that a call passes.
fn each_source(program: &Program, step: &ProgramStep, mut each: impl FnMut(Slot)) {
    let list = match step.operation {
        Operation::Store(memory) => program.slot_list(memory.list, memory.count),
        Operation::Pack { list, count, .. } => program.slot_list(list, count),
        // What it does not give stays as it was.
        Operation::Opaque { list, count, .. } => program.slot_list(list, count),
        _ => &[],
    };
    for &slot in step.sources.iter().chain(&[step.guard]).chain(list) {
        each(slot);
    }
}
