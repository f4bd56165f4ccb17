//! Estimates for how long a warp's atomic updates keep lines of the level-2 cache busy.
//!
//! The cache makes one update of a line at a time, from whatever block it comes: updates of few
//! words wait for each other. The times are of an H200 (`kernels/results/h200/atomics.txt`); they
//! depend on the clock of the cache, not on that of the SMs.

use super::program::{Operation, Update};
use super::request::{Request, SECTOR, SECTORS_PER_LINE};
use crate::ptx::MemorySpace;
use crate::ptx::Scalar;
use std::collections::{BTreeMap, HashMap};

/// Nanoseconds for one update of each word of a sector by a warp.
const SECTOR_UPDATE_NS: f64 = 0.64;
/// Nanoseconds between two floating-point additions to one word.
const FLOAT_UPDATE_NS: f64 = 1.76;

/// Estimates for how many nanoseconds lines are busy with a request, summed over the
/// lines.
pub(super) fn busy_ns(request: &Request, operation: &Operation) -> f64 {
    let Operation::Atomic { memory, update } = *operation else { return 0.0 };
    // Loops around a comparison mostly end where another thread has changed the word, of which a
    // warp that is run alone knows nothing.
    if update == Update::CompareSwap || request.space != MemorySpace::Global {
        return 0.0;
    }
    let is_float = is_float(memory.scalar);
    let places: Vec<u64> = request.each_touch().map(|(_, address)| address).collect();
    // What all lanes add to one word of 32 bits, one lane adds for them.
    let is_one = places.iter().all(|at| Some(at) == places.first());
    let is_joined = is_one && !is_float && request.width <= 4 && is_joined(update);
    let mut lines: BTreeMap<u64, UpdatedLine> = BTreeMap::new();
    for address in places {
        let line = lines.entry(address / SECTOR / SECTORS_PER_LINE).or_default();
        line.sectors |= 1 << (address / SECTOR % SECTORS_PER_LINE);
        *line.words.entry(address).or_default() += 1;
    }
    let of = |line: &UpdatedLine| {
        let again = if is_joined { 1 } else { line.words.values().copied().max().unwrap_or(0) };
        let passes = SECTOR_UPDATE_NS * f64::from(line.sectors.count_ones()) * f64::from(again);
        if is_float && again > 1 { passes.max(FLOAT_UPDATE_NS * f64::from(again)) } else { passes }
    };
    lines.values().map(of).sum()
}

/// Tells whether the compiler combines the updates of a warp to one address into one.
fn is_joined(update: Update) -> bool {
    !matches!(update, Update::Exchange | Update::Increment | Update::Decrement)
}

fn is_float(scalar: Scalar) -> bool {
    use crate::ptx::Scalar::{Bf16, Bf16x2, F16, F16x2, F32, F32x2, F64};
    matches!(scalar, F16 | F16x2 | Bf16 | Bf16x2 | F32 | F32x2 | F64)
}

/// The updates of one line by a request.
#[derive(Default)]
struct UpdatedLine {
    /// A bit for each.
    sectors: u8,
    /// How many lanes update a word.
    words: HashMap<u64, u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::AccessKind;
    use crate::sim::program::{MemoryAccess, Window};

    #[test]
    fn updates_take_about_what_an_h200_takes_for_them() {
        // Updates in a microsecond that an H200 makes where all warps do the same (`atomics.txt`);
        // one line is updated once at a time.
        type Place = fn(u64) -> u64;
        let rows: [(&str, Scalar, u32, Place, f64); 7] = [
            ("one 64-bit word", Scalar::U64, 8, |_| 0, 1358.0),
            ("one word, joined", Scalar::U32, 4, |_| 0, 38942.0),
            ("one float", Scalar::F32, 4, |_| 0, 568.0),
            ("one double", Scalar::F64, 8, |_| 0, 568.0),
            ("two words", Scalar::U32, 4, |lane| lane % 2 * 4, 2327.0),
            ("a line of words", Scalar::U32, 4, |lane| lane * 4, 12454.0),
            ("a line of floats", Scalar::F32, 4, |lane| lane * 4, 12425.0),
        ];
        for (what, scalar, width, place, measured) in rows {
            let memory = MemoryAccess { window: Window::Global, scalar, list: 0, count: 0, offset: 0 };
            let of = |update| Operation::Atomic { memory, update };
            let addresses = std::array::from_fn(|lane| place(lane as u64));
            let (space, kind, lanes) = (MemorySpace::Global, AccessKind::Atomic, u32::MAX);
            let request = Request { step: 0, warp: 0, execution: 1, time: 0, space, kind, width, lanes, addresses };
            let updates = 32.0 / busy_ns(&request, &of(Update::Add)) * 1e3;
            assert!((updates / measured - 1.0).abs() < 0.35, "{what}: {updates:.0} for {measured}");
            assert_eq!(busy_ns(&request, &of(Update::CompareSwap)), 0.0, "{what}");
        }
    }
}
