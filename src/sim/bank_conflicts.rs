//! Estimates the cycles that shared memory or the level-1 cache takes for a warp's request, from
//! bank conflicts and tag look-ups.

use super::request::{Request, WORD, sorted_distinct};
use crate::ptx::AccessKind;

/// Parts of the level-1 cache's tags that are looked up at once, each for one line.
const TAG_BANKS: usize = 4;
/// What each bit of a line's number, from the lowest on, contributes to the number of its part:
/// the exclusive or of those that are set. Found on an H200 by lines that differ in one bit;
/// with it what loads from lines at random take is predicted to 1%, of all patterns to 5%
/// (`kernels/results/h200/lookups.txt`).
const TAG_BANK: [u8; 27] = [3, 2, 3, 2, 1, 3, 2, 1, 2, 3, 2, 3, 1, 3, 1, 2, 3, 1, 3, 1, 2, 1, 3, 1, 3, 2, 1];
/// Banks of shared memory, and of the level-1 cache, which is the same memory.
const BANKS: usize = 32;

/// Counts passes over the banks of shared memory, averaged over the parts of the warp
/// that are served together. Twice as many lanes are served together if neighbouring
/// lanes, or every second ones, load from one address in pairs. A pass counts half then
/// (Greg Smith of NVIDIA, forums.developer.nvidia.com, "Unexpected shared memory bank
/// conflict").
pub(super) fn shared_passes(request: &Request) -> f64 {
    let parts = parts_of_warp(request.width);
    let packed = if parts > 1 && request.kind == AccessKind::Load && is_in_pairs(request) { 2 } else { 1 };
    let served: Vec<u32> = passes_by_part(request, parts / packed).filter(|&passes| passes > 0).collect();
    f64::from(served.iter().sum::<u32>()) / served.len().max(1) as f64 / packed as f64
}

/// Estimates the cycles of the level-1 cache for a request in these lines: its look-ups
/// or the words of a load, whichever are more.
pub(super) fn global_cycles(request: &Request, lines: &[u64]) -> f64 {
    let looked_up = busiest_bank::<TAG_BANKS>(lines.iter().map(|&line| tag_bank(line)));
    let words =
        if request.kind == AccessKind::Load { passes_by_part(request, parts_of_warp(request.width)).sum() } else { 0 };
    f64::from(looked_up.max(words))
}

/// Parts of a warp that are served one after the other where each lane accesses this many bytes:
/// all lanes together up to 4, halves for 8, quarters for 16.
fn parts_of_warp(width: u32) -> u64 {
    match width {
        0..=4 => 1,
        5..=8 => 2,
        _ => 4,
    }
}

/// Returns the passes over the banks that each of `parts` parts of the warp takes.
fn passes_by_part(request: &Request, parts: u64) -> impl Iterator<Item = u32> {
    (0..parts).map(move |part| {
        let within = request.each_touch().filter(|(lane, _)| lane * parts / 32 == part);
        let words = within.flat_map(|(_, address)| address / WORD..=request.last_byte(address) / WORD);
        busiest_bank::<BANKS>(sorted_distinct(words.collect()).into_iter().map(|word| (word % BANKS as u64) as usize))
    })
}

/// Whether each lane has the address of its neighbour, or each that of the next but one; lanes
/// that take no part have any.
fn is_in_pairs(request: &Request) -> bool {
    let taking_part = |lane: u64| request.lanes >> lane & 1 != 0;
    [1, 2].into_iter().any(|apart| {
        request.each_touch().all(|(lane, address)| {
            let other = lane ^ apart;
            !taking_part(other) || request.addresses[other as usize] == address
        })
    })
}

/// Returns the maximum number of accesses to one of `COUNT` banks.
fn busiest_bank<const COUNT: usize>(banks: impl Iterator<Item = usize>) -> u32 {
    let mut counts = [0u32; COUNT];
    banks.for_each(|bank| counts[bank] += 1);
    counts.into_iter().max().unwrap_or(0)
}

fn tag_bank(line: u64) -> usize {
    let set = TAG_BANK.iter().enumerate().filter(|(bit, _)| line >> bit & 1 != 0);
    usize::from(set.fold(0, |all, (_, one)| all ^ one))
}

#[cfg(test)]
mod tests {
    use super::super::access::tests::{request, seen};
    use super::*;
    use crate::ptx::MemorySpace;

    #[test]
    fn a_load_takes_what_its_lines_or_its_words_take() {
        // Rows of `lookups.txt`: cycles of an SM that are not those of the loop around.
        type Address = fn(u64) -> u64;
        let rows: [(&str, u32, Address, f64, f64); 13] = [
            ("side by side", 4, |lane| lane * 4, 1.0, 1.0),
            ("every second word", 4, |lane| lane * 8, 2.0, 2.0),
            ("every third word", 4, |lane| lane * 12, 3.0, 1.0),
            ("every eighth word", 4, |lane| lane * 32, 8.0, 8.0),
            ("a word of each line", 4, |lane| lane * 128, 32.0, 32.0),
            ("a line for each lane, another word of each", 4, |lane| lane * 132, 32.0, 8.0),
            ("every sixteenth line, another word of each", 4, |lane| lane * 2052, 32.0, 8.0),
            ("rows of eight", 4, |lane| lane / 8 * 1536 + lane % 8 * 4, 4.0, 4.0),
            ("8 bytes each", 8, |lane| lane * 8, 2.0, 2.0),
            ("every third 8 bytes", 8, |lane| lane * 24, 6.0, 2.0),
            ("16 bytes each", 16, |lane| lane * 16, 4.0, 4.0),
            ("every third 16 bytes", 16, |lane| lane * 48, 12.0, 4.0),
            ("16 bytes, all the same", 16, |_| 0, 1.0, 4.0),
        ];
        for (what, width, address, lines, passes) in rows {
            let access = seen(&request(MemorySpace::Global, width, address));
            assert_eq!((access.lines, access.passes), (lines, passes), "{what}");
        }
        // Lines that differ in one bit fall into another part, whichever it is; those whose bits
        // cancel out into the same.
        assert!((0..27).all(|bit| tag_bank(1 << bit) != tag_bank(0)));
        assert_eq!(tag_bank(0b101), tag_bank(0));
    }

    #[test]
    fn wide_loads_of_pairs_of_lanes_take_half_as_many_passes() {
        type Address = fn(u64) -> u64;
        let rows: [(&str, u32, Address, f64); 8] = [
            ("one word for all", 4, |_| 0, 1.0),
            ("two words of a bank", 4, |lane| lane % 2 * 128, 2.0),
            ("16 bytes, all the same", 16, |_| 0, 0.5),
            ("16 bytes, neighbours alike", 16, |lane| lane / 2 * 16, 0.5),
            ("16 bytes, every second lane alike", 16, |lane| lane % 2 * 16, 0.5),
            ("16 bytes, every fourth lane alike", 16, |lane| lane % 4 * 16, 1.0),
            ("16 bytes each", 16, |lane| lane * 16, 1.0),
            ("8 bytes, neighbours alike", 8, |lane| lane / 2 * 8, 0.5),
        ];
        for (what, width, address, passes) in rows {
            assert_eq!(seen(&request(MemorySpace::Shared, width, address)).passes, passes, "{what}");
        }
        // Stores are not packed.
        let store = Request { kind: AccessKind::Store, ..request(MemorySpace::Shared, 16, |lane| lane / 2 * 16) };
        assert_eq!(seen(&store).passes, 1.0);
    }
}
