//! Where a warp keeps each register: registers that live within one basic block only take
//! turns, so that a warp's values stay in the cache.

use super::program::{Home, Operation, Passing, Program, ProgramStep, Slot, Special};

/// The steps of one block that name a slot.
#[derive(Clone, Copy)]
struct Life {
    block: u32,
    last: u32,
    /// All its places are in that block, the first of which always sets it.
    local: bool,
}

/// A home that is not given out yet.
const LATER: u32 = u32::MAX;

/// Returns the home of each slot. A slot that no step writes is equal in all lanes of a
/// warp, except registers that identify the lane.
pub(super) fn find_homes(program: &Program) -> Vec<Home> {
    let apart: Vec<Slot> = program
        .specials
        .iter()
        .filter(|(_, special)| matches!(special, Special::Thread(_) | Special::Lane | Special::LaneMask(_)))
        .map(|&(slot, _)| slot)
        .collect();
    let lives = find_lives(program, &apart);
    let is_local = |slot: Slot| lives[slot as usize].is_some_and(|life| life.local);
    let (mut same, mut own) = (0, 0);
    let mut homes: Vec<Home> = Vec::with_capacity(program.slots.len());
    for (slot, definitions) in (0..).zip(&program.definitions) {
        let constant = definitions.is_empty() && !apart.contains(&slot);
        let next = if constant { &mut same } else { &mut own };
        // Those that take turns come behind all others.
        if !constant && is_local(slot) {
            homes.push(Home::Lanes(LATER));
            continue;
        }
        homes.push(if constant { Home::Same(*next) } else { Home::Lanes(*next) });
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
                ends.extend(ends_at(&lives, slot, at).and(turn_of(&homes, slot, own)));
            }
        });
        ends.sort_unstable();
        ends.dedup();
        free.append(&mut ends);
        for slot in program.written_slots(step).filter(|&slot| is_local(slot)) {
            // The first time that it is set.
            if turn_of(&homes, slot, own).is_none() {
                let place = free.pop().unwrap_or_else(|| {
                    taken += 1;
                    taken - 1
                });
                homes[slot as usize] = Home::Lanes(own + place);
            }
        }
        for slot in program.written_slots(step) {
            ends.extend(ends_at(&lives, slot, at).and(turn_of(&homes, slot, own)));
        }
        ends.sort_unstable();
        ends.dedup();
        free.append(&mut ends);
    }
    homes
}

/// Whether a slot that lives in one block is named for the last time.
fn ends_at(lives: &[Option<Life>], slot: Slot, at: u32) -> Option<()> {
    lives[slot as usize].filter(|life| life.local && life.last == at).map(|_| ())
}

/// Which of the places that are taken in turns a slot has.
fn turn_of(homes: &[Home], slot: Slot, own: u32) -> Option<u32> {
    match homes[slot as usize] {
        Home::Lanes(home) if home != LATER => home.checked_sub(own),
        _ => None,
    }
}

fn find_lives(program: &Program, apart: &[Slot]) -> Vec<Option<Life>> {
    let mut lives: Vec<Option<Life>> = vec![None; program.slots.len()];
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
        each_source(program, step, |slot| match &mut lives[slot as usize] {
            Some(life) => {
                life.local &= life.block == block;
                life.last = at;
            }
            none => *none = Some(Life { block, last: at, local: false }),
        });
        for slot in program.written_slots(step) {
            match &mut lives[slot as usize] {
                Some(life) => {
                    life.local &= life.block == block;
                    life.last = at;
                }
                none => *none = Some(Life { block, last: at, local: step.guard == 0 && !calls }),
            }
        }
    }
    let passed = program.calls.iter().flat_map(|call| call.results.iter().chain(&call.arguments));
    let formal = program.routines.iter().flat_map(|routine| routine.formals.iter().chain(&routine.returns));
    let passed = passed.chain(formal).filter_map(|passing| match passing {
        Passing::Slot(slot) => Some(*slot),
        Passing::Param(..) => None,
    });
    for slot in passed.chain(apart.iter().copied()) {
        lives[slot as usize] = None;
    }
    lives
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
