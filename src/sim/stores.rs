//! Estimates the sectors that stores send from the SM to the level-2 cache, and how many of them
//! are partial.
//!
//! Stores of a warp to one sector are merged if little else is stored in between, as for the words
//! of a structure stored one after another. A sector of which not all bytes are written costs the
//! level-2 cache more than a whole one.

use super::address_map::AddressMap;
use super::request::{Request, SECTOR, SECTORS_PER_LINE, in_local};
use crate::ptx::{AccessKind, MemorySpace};
use std::collections::{BTreeMap, HashMap};

/// Lines that a warp has stored to since its last store to a sector, including that one: up to
/// `MERGED_LINES` both stores are nearly always merged, from `SEPARATE_LINES` on nearly never, as
/// other warps store meanwhile. On an H200 copies of structures, a float after the other,
/// send at most 1.1 sectors for each of a structure of 3 floats, 1.0 to 1.8 with 4, 1.1 to 2.2
/// with 6, 3.2 to 5.4 with 8, 5.8 to 6.2 with 12 and 7.4 to 7.6 with 16, where 8 would be none
/// together (`kernels/results/h200/stores.txt`).
const MERGED_LINES: f64 = 3.0;
const SEPARATE_LINES: f64 = 16.0;

/// Sectors that are sent to the level-2 cache for a store.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct StoreSectors {
    pub sectors: f64,
    /// Those of which not all bytes are written.
    pub partial: f64,
    /// Those that a warp of the block has stored to before.
    pub again: f64,
    /// Those of which a part has left before, for the first time.
    pub completed: f64,
    /// Those of which some bytes are never stored, nor any loaded, where none has left before.
    pub unfinished: f64,
}

impl StoreSectors {
    pub fn add(&mut self, other: Self) {
        self.sectors += other.sectors;
        self.partial += other.partial;
        self.again += other.again;
        self.completed += other.completed;
        self.unfinished += other.unfinished;
    }
}

/// A sector that a warp has stored to.
#[derive(Clone, Copy)]
struct Stored {
    /// The request that sends it.
    by: usize,
    /// A bit for each byte that is written.
    bytes: u32,
    /// Lines that the warp had stored to before it last stored to the sector.
    at: u64,
    /// Whether a part of it has left before another.
    in_parts: bool,
}

/// The stores of a warp so far.
#[derive(Default)]
struct WarpStores {
    lines: u64,
    sectors: AddressMap<Stored>,
}

/// Returns the sectors that each request sends. `requests` are ordered by time.
pub(super) fn store_traffic(requests: &[Request]) -> Vec<StoreSectors> {
    let mut leaving = vec![StoreSectors::default(); requests.len()];
    let mut warps: HashMap<u32, WarpStores> = HashMap::new();
    let mut by_block: AddressMap<()> = AddressMap::default();
    let stores: Vec<(usize, BTreeMap<u64, u32>)> = requests
        .iter()
        .enumerate()
        .filter(|(_, of)| is_written_through(of))
        .map(|(by, of)| (by, sector_bytes(of)))
        .collect();
    let unfinished = unfinished_sectors(requests, &stores);
    for (by, stored) in stores {
        let request = &requests[by];
        let warp = warps.entry(request.warp).or_default();
        let at = warp.lines;
        warp.lines +=
            1 + stored.keys().zip(stored.keys().skip(1)).filter(|(a, b)| line_of(**a) != line_of(**b)).count() as u64;
        for (sector, bytes) in stored {
            let before = warp.sectors.get(&sector).copied().filter(|before| before.bytes & bytes == 0);
            let before = before.filter(|_| request.space == MemorySpace::Global);
            let lines = before.map_or(f64::INFINITY, |before| (at - before.at) as f64);
            let apart = ((lines - MERGED_LINES) / (SEPARATE_LINES - MERGED_LINES)).clamp(0.0, 1.0);
            let of = &mut leaving[by];
            of.sectors += apart;
            of.partial += if bytes == u32::MAX { 0.0 } else { apart };
            let again = by_block.insert(sector, ()).is_some();
            of.again += if again { apart } else { 0.0 };
            if !again && unfinished.contains_key(&sector) {
                of.unfinished += 1.0;
            }
            if before.is_some_and(|before| !before.in_parts) {
                of.completed += apart;
            }
            let in_parts = before.is_some_and(|before| before.in_parts || apart > 0.5);
            let mut all = Stored { by, bytes, at, in_parts };
            if let Some(before) = before.filter(|_| apart < 1.0) {
                all = Stored { by: before.by, bytes: before.bytes | bytes, ..all };
                // What was a part is whole now, as far as it has not left before.
                if all.bytes == u32::MAX {
                    leaving[before.by].partial -= 1.0 - apart;
                }
            }
            warp.sectors.insert(sector, all);
        }
    }
    leaving
}

/// The sectors of global memory of which some bytes are stored, not all of them, and none
/// loaded: to load one brings all of it. `stores` are those of the requests that store, by
/// their index, with what they store.
fn unfinished_sectors(requests: &[Request], stores: &[(usize, BTreeMap<u64, u32>)]) -> AddressMap<u32> {
    let mut unfinished: AddressMap<u32> = AddressMap::default();
    for (_, stored) in stores.iter().filter(|(by, _)| requests[*by].space == MemorySpace::Global) {
        for (&sector, bytes) in stored {
            *unfinished.entry(sector).or_default() |= bytes;
        }
    }
    unfinished.retain(|_, bytes| *bytes != u32::MAX);
    if unfinished.is_empty() {
        return unfinished;
    }
    for request in requests.iter().filter(|of| of.space == MemorySpace::Global && of.kind != AccessKind::Store) {
        for (_, address) in request.each_touch() {
            for sector in address / SECTOR..=request.last_byte(address) / SECTOR {
                unfinished.remove(&sector);
            }
        }
    }
    unfinished
}

/// Lines that the average warp has stored to and will store other bytes of, at any time: they
/// are not yet whole. The requests are in the order of their time.
pub(super) fn open_lines(requests: &[Request]) -> f64 {
    struct OpenLine {
        first: u64,
        last: u64,
        written: [u32; SECTORS_PER_LINE as usize],
    }
    let mut warps: BTreeMap<u32, (u64, AddressMap<OpenLine>)> = BTreeMap::new();
    for request in requests {
        let (life, lines) = warps.entry(request.warp).or_default();
        *life = request.time.max(*life);
        if request.space != MemorySpace::Global || request.kind != AccessKind::Store {
            continue;
        }
        for (sector, bytes) in sector_bytes(request) {
            let new = || OpenLine { first: request.time, last: request.time, written: [0; SECTORS_PER_LINE as usize] };
            let line = lines.entry(line_of(sector)).or_insert_with(new);
            let written = &mut line.written[(sector % SECTORS_PER_LINE) as usize];
            // What is written once more was whole before.
            if *written & bytes == 0 {
                line.last = request.time;
            }
            *written |= bytes;
        }
    }
    let open = warps.values().map(|(life, lines)| {
        let sum: u64 = lines.values().map(|line| line.last - line.first).sum();
        sum as f64 / (*life).max(1) as f64
    });
    let number = warps.len().max(1) as f64;
    open.sum::<f64>() / number
}

/// Local memory is written through the level-1 cache as global memory is, and each store alone:
/// of `attention`, `gemm_wmma` and `pns`, `ncu` counts as many sectors on their way to the
/// level-2 cache as are stored (`kernels/results/h200/traffic.json`).
fn is_written_through(request: &Request) -> bool {
    matches!(request.space, MemorySpace::Global | MemorySpace::Local) && request.kind == AccessKind::Store
}

fn line_of(sector: u64) -> u64 {
    sector / SECTORS_PER_LINE
}

/// The sectors of a request, with a bit for each byte.
fn sector_bytes(request: &Request) -> BTreeMap<u64, u32> {
    let mut sectors: BTreeMap<u64, u32> = BTreeMap::new();
    for (lane, address) in request.each_touch() {
        let last = request.last_byte(address);
        if request.space == MemorySpace::Local {
            for byte in address..=last {
                let at = in_local(request.warp, lane, byte);
                *sectors.entry(at / SECTOR).or_default() |= 1 << (at % SECTOR);
            }
            continue;
        }
        for sector in address / SECTOR..=last / SECTOR {
            let from = address.max(sector * SECTOR) % SECTOR;
            let to = last.min(sector * SECTOR + SECTOR - 1) % SECTOR;
            *sectors.entry(sector).or_default() |= (u32::MAX >> (SECTOR - 1 - to)) & (u32::MAX << from);
        }
    }
    sectors
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The structures of a warp's lanes, of this many words each, stored this many words at a time.
    fn structures(words: u64, at_once: u64) -> Vec<Request> {
        let of = |word: u64| Request {
            step: word as u32,
            warp: 0,
            execution: 1,
            time: word,
            space: MemorySpace::Global,
            kind: AccessKind::Store,
            width: at_once as u32 * 4,
            lanes: u32::MAX,
            addresses: std::array::from_fn(|lane| (lane as u64 * words + word) * 4),
        };
        (0..words).step_by(at_once as usize).map(of).collect()
    }

    /// What leaves for these, over the sectors that they write.
    fn share(requests: &[Request], part: fn(&StoreSectors) -> f64) -> f64 {
        let written: std::collections::BTreeSet<u64> =
            requests.iter().flat_map(|of| sector_bytes(of).into_keys()).collect();
        store_traffic(requests).iter().map(part).sum::<f64>() / written.len() as f64
    }

    #[test]
    fn words_of_a_structure_leave_together_where_few_lines_are_between() {
        // Words and words at a time; the least and most sectors that `ncu` counts between an SM and
        // the level-2 cache for each of the structures, at 12 to 55 warps of an SM.
        let rows: [(u64, u64, f64, f64); 11] = [
            (1, 1, 1.0, 1.0),
            (2, 1, 1.0, 1.03),
            (3, 1, 1.0, 1.05),
            (4, 1, 1.0, 1.80),
            (6, 1, 1.15, 2.2),
            (8, 1, 3.15, 5.45),
            (12, 1, 5.8, 6.3),
            (16, 1, 7.4, 8.0),
            (4, 4, 1.0, 1.0),
            (8, 4, 1.0, 1.66),
            (16, 4, 1.86, 2.0),
        ];
        for (words, at_once, least, most) in rows {
            let sectors = share(&structures(words, at_once), |of| of.sectors);
            assert!((least..=most).contains(&sectors), "{words} by {at_once}: {sectors}");
        }
    }

    #[test]
    fn a_sector_is_whole_once_all_of_its_bytes_have_left_together() {
        for (words, at_once, expected) in [(1, 1, 0.0), (3, 1, 0.0), (16, 1, 8.0), (16, 4, 2.0), (4, 4, 0.0)] {
            assert_eq!(share(&structures(words, at_once), |of| of.partial), expected, "{words} by {at_once}");
        }
        // A word of every other one never makes a whole.
        let sparse = Request { addresses: std::array::from_fn(|lane| lane as u64 * 8), ..structures(1, 1)[0].clone() };
        assert_eq!(share(&[sparse], |of| of.partial), 1.0);
    }

    #[test]
    fn what_completes_a_sector_that_has_left_in_part_is_counted_once() {
        for (words, at_once, completed) in [(1, 1, 0.0), (4, 4, 0.0), (16, 4, 1.0), (32, 4, 1.0), (32, 1, 1.0)] {
            assert_eq!(share(&structures(words, at_once), |of| of.completed), completed, "{words} by {at_once}");
        }
    }

    #[test]
    fn what_is_neither_stored_nor_loaded_leaves_a_sector_unfinished() {
        let unfinished = |requests: &[Request]| share(requests, |of| of.unfinished);
        assert_eq!(unfinished(&structures(12, 4)), 0.0);
        // Three quarters of structures of 16 words: the last sector of each is half full.
        let holes = &structures(16, 4)[..3];
        assert_eq!(unfinished(holes), 0.5);
        let load = Request { kind: AccessKind::Load, time: 0, ..structures(16, 4)[3].clone() };
        assert_eq!(store_traffic(&[&[load], holes].concat()).iter().map(|of| of.unfinished).sum::<f64>(), 0.0);
    }

    #[test]
    fn lines_are_open_between_their_first_store_and_their_last() {
        // Structures that begin after this many instructions; the lines that are open in the mean
        // over all of them.
        for (words, at_once, from, open) in
            [(1, 1, 0, 0.0), (32, 1, 0, 32.0), (32, 4, 28, 16.0), (16, 4, 0, 16.0), (16, 4, 36, 4.0)]
        {
            let mut requests = structures(words, at_once);
            requests.iter_mut().for_each(|request| request.time += from);
            assert_eq!(open_lines(&requests), open, "{words} by {at_once}, from {from}");
        }
        let again = [structures(1, 1), structures(1, 1)].concat();
        assert_eq!(open_lines(&again), 0.0, "stored twice");
    }

    #[test]
    fn each_store_to_local_memory_leaves_alone() {
        let store = |width: u32, address: fn(u64) -> u64| Request {
            space: MemorySpace::Local,
            width,
            addresses: std::array::from_fn(|lane| address(lane as u64)),
            ..structures(1, 1)[0].clone()
        };
        for (what, request, sectors, partial) in [
            ("a word of every lane, side by side", store(4, |_| 8), 4.0, 0.0),
            ("two words, a line each", store(8, |_| 8), 8.0, 0.0),
            ("a byte of every lane", store(1, |_| 8), 4.0, 4.0),
            ("words of an array at the lane's index, a sector for each", store(4, |lane| lane * 4), 32.0, 32.0),
        ] {
            let again = Request { time: 1, ..request.clone() };
            let by_another = Request { warp: 1, time: 2, ..request.clone() };
            for left in store_traffic(&[request, again, by_another]) {
                assert_eq!((left.sectors, left.partial), (sectors, partial), "{what}");
            }
        }
    }

    #[test]
    fn what_is_stored_twice_leaves_twice() {
        let [once] = &structures(1, 1)[..] else { panic!("one store") };
        let by_another = Request { warp: 1, ..once.clone() };
        for (what, again) in [("by the same warp", once), ("by another", &by_another)] {
            let leaving = store_traffic(&[once.clone(), again.clone()]);
            assert_eq!(leaving[1], StoreSectors { sectors: 4.0, again: 4.0, ..StoreSectors::default() }, "{what}");
        }
    }
}
