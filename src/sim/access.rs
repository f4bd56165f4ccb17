//! Summarizes the recorded requests of a few warps: one [`Access`] for each PTX line that accesses
//! memory.

use super::address_map::AddressMap;
use super::atomics::busy_ns;
use super::bank_conflicts;
use super::l2_sharing::NeighbourBlocks;
use super::memory::{MODULE_REGION, in_buffer, region_of};
use super::profile::{Access, Spread, VARIABLES};
use super::program::Program;
use super::request::{Request, SECTOR, SECTORS_PER_LINE, StepExecutions, WORD, in_local, sorted_distinct};
use super::stores::{StoreSectors, store_traffic};
use crate::ptx::MemorySpace;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Device memory returns sectors in pairs whose numbers differ in this bit. On an H200 4.2 million
/// single sectors are 268 MB (`dram__bytes_read.sum` of `scattered`,
/// `kernels/results/h200/traffic.json`).
const PAIRED_SECTOR_BIT: u64 = 1;
/// Bytes of a line of the constant cache (Jia et al., "Dissecting the NVIDIA Volta GPU
/// Architecture via Microbenchmarking", 2018, table 3.1).
const CONSTANT_LINE: u64 = 64;
/// Instructions after which a sector that another warp of the block requested is taken to have
/// arrived in the level-1 cache. The searches of the recorded spaces of an H200 find the same
/// with 224 to 384. Without this rule, variants that load in many small groups (`stencil3d` in 40
/// registers) would be modelled to wait for the level-2 cache in each group.
const ARRIVAL_INSTRUCTIONS: u64 = 256;

/// Combines the accesses of a warp's lanes into requests: lanes share a request if it is the same
/// execution of the same step.
pub(crate) fn collect_requests(warp: u32, lanes: &[(u32, Vec<Request<1>>)]) -> Vec<Request> {
    let mut found: Vec<Request> = Vec::new();
    let mut index: HashMap<(u32, u64), usize> = HashMap::new();
    for (lane, touches) in lanes {
        for touch in touches {
            let Request { step, execution, time, space, kind, width, addresses: [address], .. } = *touch;
            let at = *index.entry((step, execution)).or_insert_with(|| {
                found.push(Request { step, warp, execution, time, space, kind, width, lanes: 0, addresses: [0; 32] });
                found.len() - 1
            });
            let request = &mut found[at];
            request.time = time.min(request.time);
            request.lanes |= 1 << (lane & 31);
            request.addresses[(lane & 31) as usize] = address;
        }
    }
    found
}

/// The executions of all memory steps, of which the recorded requests are a part.
#[derive(Debug)]
pub(crate) struct ExecutionTotals {
    /// Executions by the busiest sampled warp, by step.
    most: Vec<f64>,
    executions_by_step: Vec<StepExecutions>,
    /// Whether `executions_by_step` is of the grid's average warp.
    is_average: bool,
}

impl ExecutionTotals {
    /// Replaces the sums over the sampled warps by the executions of the grid's average warp.
    pub fn set_grid_average(&mut self, executions_by_step: Vec<StepExecutions>) {
        self.is_average = true;
        let pairs = self.executions_by_step.iter_mut().zip(executions_by_step);
        pairs.filter(|(_, of_grid)| of_grid.count > 0.0).for_each(|(known, of_grid)| *known = of_grid);
    }

    /// Creates totals of 0 for a program of `steps` steps.
    pub fn new(steps: usize) -> Self {
        Self { most: vec![0.0; steps], executions_by_step: vec![StepExecutions::default(); steps], is_average: false }
    }

    /// Adds the executions of one more warp.
    pub fn add_warp(&mut self, warp: impl IntoIterator<Item = StepExecutions>) {
        for ((most, sum), executions) in self.most.iter_mut().zip(&mut self.executions_by_step).zip(warp) {
            *most = executions.count.max(*most);
            sum.accumulate(executions);
        }
    }
}

/// Returns the mean access of each PTX line, from requests ordered by time. `buffers` is the
/// number of buffers of the workload; `neighbours` models the blocks next to this one.
pub(crate) fn accesses(
    program: &Program,
    requests: &[Request],
    ExecutionTotals { most, executions_by_step, is_average }: &ExecutionTotals,
    buffers: usize,
    mut neighbours: NeighbourBlocks,
) -> BTreeMap<u32, Access> {
    let recorded = record_requests(requests);
    let mut touched_by_warp: HashMap<u32, AddressMap<u64>> = HashMap::new();
    let mut touched = AddressMap::default();
    let mut sums: BTreeMap<u32, AccessSums> = BTreeMap::new();
    let store_sectors = store_traffic(requests);
    for (request, store_sectors) in requests.iter().zip(store_sectors) {
        let sum = sums.entry(program.steps[request.step as usize].line).or_insert_with(|| AccessSums::new(request));
        let RecordedRange { last, most_warps } = recorded.get(&request.step).copied().unwrap_or_default();
        let complete = |last: u64| most.get(request.step as usize).is_none_or(|&most| most <= last as f64);
        let counted_for = CountedFor {
            warp_reuse: complete(last) || request.execution > last / 2,
            block_reuse: complete(most_warps)
                || (request.execution > most_warps / 2 && request.execution <= most_warps),
        };
        let by_warp = touched_by_warp.entry(request.warp).or_default();
        sum.add_request(request, counted_for, buffers, by_warp, &mut touched, &mut neighbours);
        sum.add_stored(store_sectors, counted_for);
        sum.busy += busy_ns(request, &program.steps[request.step as usize].operation);
    }
    let mut totals: BTreeMap<u32, StepExecutions> = BTreeMap::new();
    for (step, executions) in program.steps.iter().zip(executions_by_step) {
        totals.entry(step.line).or_default().accumulate(*executions);
    }
    sums.into_iter()
        .map(|(line, sum)| (line, sum.mean_access(totals.get(&line).copied().unwrap_or_default(), *is_average)))
        .collect()
}

/// How many executions of a step were recorded.
#[derive(Clone, Copy, Debug, Default)]
struct RecordedRange {
    /// The last execution by any warp.
    last: u64,
    /// The last execution that at least half of the warps have recorded: the others may be
    /// recorded at their beginning only.
    most_warps: u64,
}

fn record_requests(requests: &[Request]) -> HashMap<u32, RecordedRange> {
    let mut by_warp: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for request in requests {
        let last = by_warp.entry((request.step, request.warp)).or_default();
        *last = request.execution.max(*last);
    }
    let mut by_step: HashMap<u32, Vec<u64>> = HashMap::new();
    by_warp.into_iter().for_each(|((step, _), last)| by_step.entry(step).or_default().push(last));
    let of = |mut lasts: Vec<u64>| {
        lasts.sort_unstable();
        RecordedRange { last: lasts.last().copied().unwrap_or(0), most_warps: lasts[(lasts.len() - 1) / 2] }
    };
    by_step.into_iter().map(|(step, lasts)| (step, of(lasts))).collect()
}

/// Which statistics an execution counts for. Reuse is judged in the second half of the record,
/// unless the record is complete.
#[derive(Clone, Copy)]
struct CountedFor {
    /// Reuse by the same warp.
    warp_reuse: bool,
    /// Reuse by any warp of the block.
    block_reuse: bool,
}

/// Number of equal parts of a buffer for which it is recorded whether a warp touches them.
const BUFFER_PARTS: u64 = 1024;

/// Returns the share of each buffer's parts that the warps touch. `buffers` are sizes in
/// bytes.
pub(crate) fn buffer_spread(requests: &[Request], buffers: &[u64]) -> BTreeMap<u32, Spread> {
    let mut touched: HashMap<(u32, usize), BTreeSet<u64>> = HashMap::new();
    for request in requests.iter().filter(|request| request.space == MemorySpace::Global) {
        for (_, address) in request.each_touch() {
            let Some((buffer, offset)) = in_buffer(address) else { continue };
            let Some(&bytes) = buffers.get(buffer).filter(|bytes| **bytes > 0) else { continue };
            let part = (u128::from(offset) * u128::from(BUFFER_PARTS) / u128::from(bytes)) as u64;
            touched.entry((request.warp, buffer)).or_default().insert(part.min(BUFFER_PARTS - 1));
        }
    }
    let mut sums: BTreeMap<u32, (f64, f64, BTreeSet<u64>)> = BTreeMap::new();
    for ((_, buffer), parts) in touched {
        let (sum, warps, all) = sums.entry(buffer as u32).or_default();
        *sum += parts.len() as f64 / BUFFER_PARTS as f64;
        *warps += 1.0;
        all.extend(parts);
    }
    let share = |(buffer, (sum, warps, all)): (u32, (f64, f64, BTreeSet<u64>))| {
        (buffer, Spread { alone: sum / warps, together: all.len() as f64 / BUFFER_PARTS as f64 })
    };
    sums.into_iter().map(share).collect()
}

struct AccessSums {
    access: Access,
    groups: f64,
    sectors: f64,
    lines: f64,
    passes: f64,
    lanes: f64,
    /// Sectors that count for warp reuse; of these, those that the warp touched before, and those
    /// in the level-1 cache.
    counted: f64,
    again: f64,
    in_l1: f64,
    /// Sectors that count for block reuse and are not in the level-1 cache; of these, those in the
    /// level-2 cache, and those of which it is not known whether other blocks have fetched them.
    waited: f64,
    in_l2: f64,
    in_l2_unknown: f64,
    /// Accesses that count for warp reuse; of these, those with every sector in the level-1 cache.
    decided: f64,
    hits: f64,
    /// Nanoseconds that lines of the level-2 cache are busy with atomic updates.
    busy: f64,
    store_sectors: StoreSectors,
    /// The same for executions that count for block reuse.
    counted_stores: StoreSectors,
    /// Sum of the instructions between an access and the previous access to the sector.
    after: f64,
    /// Sectors that count for block reuse; of these, those that any warp of the block touched
    /// before.
    counted_in_block: f64,
    again_in_block: f64,
    distinct: AddressMap<()>,
    buffer: Option<u64>,
    one_buffer: bool,
}

impl AccessSums {
    fn new(first: &Request) -> Self {
        let access =
            Access { space: first.space, kind: first.kind, width: first.width, broadcast: true, ..Access::default() };
        Self {
            access,
            groups: 0.0,
            sectors: 0.0,
            lines: 0.0,
            passes: 0.0,
            lanes: 0.0,
            counted: 0.0,
            again: 0.0,
            in_l1: 0.0,
            waited: 0.0,
            in_l2: 0.0,
            in_l2_unknown: 0.0,
            decided: 0.0,
            hits: 0.0,
            busy: 0.0,
            store_sectors: StoreSectors::default(),
            counted_stores: StoreSectors::default(),
            after: 0.0,
            counted_in_block: 0.0,
            again_in_block: 0.0,
            distinct: AddressMap::default(),
            buffer: None,
            one_buffer: true,
        }
    }

    fn add_request(
        &mut self,
        request: &Request,
        counted_for: CountedFor,
        buffers: usize,
        by_warp: &mut AddressMap<u64>,
        by_block: &mut AddressMap<u64>,
        neighbours: &mut NeighbourBlocks,
    ) {
        self.groups += 1.0;
        self.lanes += f64::from(request.lanes.count_ones());
        let first = request.each_touch().next().map(|(_, address)| address);
        self.access.broadcast &= request.each_touch().all(|(_, address)| Some(address) == first);
        let sectors = match self.access.space {
            MemorySpace::Global | MemorySpace::Local => request_sectors(request),
            // Apart from global addresses.
            MemorySpace::Constant => sorted_distinct(
                request.each_touch().map(|(_, address)| (1 << 61) | (address / CONSTANT_LINE)).collect(),
            ),
            MemorySpace::Shared | MemorySpace::Texture => Vec::new(),
        };
        self.passes += match self.access.space {
            MemorySpace::Shared => bank_conflicts::shared_passes(request),
            MemorySpace::Constant => {
                self.lines += sectors.len() as f64;
                sorted_distinct(request.each_touch().map(|(_, address)| address / WORD).collect()).len() as f64
            }
            MemorySpace::Global | MemorySpace::Local => {
                let lines = sorted_distinct(sectors.iter().map(|sector| sector / SECTORS_PER_LINE).collect());
                self.lines += lines.len() as f64;
                if self.access.space == MemorySpace::Local {
                    lines.len() as f64
                } else {
                    bank_conflicts::global_cycles(request, &lines)
                }
            }
            MemorySpace::Texture => 1.0,
        };
        self.sectors += sectors.len() as f64;
        let mut hit = true;
        for &sector in &sectors {
            self.distinct.insert(sector, ());
            let before = by_warp.insert(sector, request.time);
            let again = before.is_some();
            let is_fetched = by_block.get(&(sector ^ PAIRED_SECTOR_BIT)).is_some_and(|&first| first < request.time);
            let is_new = self.access.space == MemorySpace::Global && !by_block.contains_key(&sector);
            let by_others = if is_new { neighbours.touched_before(sector, by_block) } else { None };
            // When a warp of the block touched it first.
            let first_in_block = match by_block.entry(sector) {
                Entry::Occupied(first) => Some(*first.get()),
                Entry::Vacant(place) => {
                    place.insert(request.time);
                    None
                }
            };
            let again_in_block = first_in_block.is_some();
            let in_l1 = again || first_in_block.is_some_and(|first| request.time >= first + ARRIVAL_INSTRUCTIONS);
            hit &= in_l1;
            if counted_for.warp_reuse {
                self.counted += 1.0;
                self.again += f64::from(u8::from(again));
                self.in_l1 += f64::from(u8::from(in_l1));
                self.after += before.map_or(0, |before| request.time.saturating_sub(before)) as f64;
            }
            if counted_for.block_reuse && !in_l1 {
                self.waited += 1.0;
                self.in_l2 += f64::from(u8::from(again_in_block || is_fetched || by_others == Some(true)));
                self.in_l2_unknown += f64::from(u8::from(!again_in_block && !is_fetched && by_others.is_none()));
            }
            if counted_for.block_reuse {
                self.counted_in_block += 1.0;
                self.again_in_block += f64::from(u8::from(again_in_block));
            }
        }
        if counted_for.warp_reuse {
            self.decided += 1.0;
            self.hits += f64::from(u8::from(hit));
        }
        if self.access.space == MemorySpace::Global {
            for (_, address) in request.each_touch() {
                let region = region_of(address);
                let known = (1..=buffers as u64).contains(&region) || region == MODULE_REGION;
                self.one_buffer &= known && self.buffer.is_none_or(|buffer| buffer == region);
                self.buffer = Some(region);
            }
        }
    }

    fn add_stored(&mut self, store_sectors: StoreSectors, counted_for: CountedFor) {
        self.store_sectors.add(store_sectors);
        if counted_for.block_reuse {
            self.counted_stores.add(store_sectors);
        }
    }

    /// Returns the mean access over all executions (`total`), recorded or not. A loop may run on
    /// after the record has ended, with fewer active lanes and so fewer sectors. If `is_average`,
    /// `total` is of the grid's average warp, which may have more active lanes than the recorded
    /// warps.
    fn mean_access(self, total: StepExecutions, is_average: bool) -> Access {
        let per_group = |sum: f64| sum / self.groups.max(1.0);
        let lanes = per_group(self.lanes);
        let overall = if total.count > 0.0 { total.lanes / total.count } else { lanes };
        let most = if is_average { f64::INFINITY } else { 1.0 };
        let part = if self.access.broadcast || lanes <= 0.0 { 1.0 } else { (overall / lanes).min(most) };
        // What a single lane touches is there in every execution.
        let scaled = |sum: f64, part: f64| (per_group(sum) * part).max(per_group(sum).min(1.0));
        let of_part = |sum: f64| scaled(sum, part);
        // Whether more lanes meet in a bank depends on where they are.
        let passes_part = if self.access.space == MemorySpace::Shared { part.min(1.0) } else { part };
        let share = |sum: f64, of: f64| if of > 0.0 { sum / of } else { 0.0 };
        Access {
            sectors: of_part(self.sectors),
            lines: of_part(self.lines),
            store_sectors: per_group(self.store_sectors.sectors) * part,
            partial: per_group(self.store_sectors.partial) * part,
            completed: per_group(self.store_sectors.completed) * part,
            unfinished: per_group(self.store_sectors.unfinished) * part,
            stored_before: share(self.counted_stores.again, self.counted_stores.sectors),
            passes: scaled(self.passes, passes_part),
            busy_ns: per_group(self.busy) * part,
            lanes: overall,
            reuse: share(self.again, self.counted),
            in_l1: share(self.in_l1, self.counted),
            in_l2: share(self.in_l2, self.waited),
            in_l2_unknown: share(self.in_l2_unknown, self.waited),
            hits: share(self.hits, self.decided),
            reuse_after: self.after / self.again.max(1.0),
            block_reuse: share(self.again_in_block, self.counted_in_block),
            block_sectors: per_group(self.distinct.len() as f64) * part,
            buffer: self.buffer.filter(|_| self.one_buffer).and_then(|region| match region {
                MODULE_REGION => Some(VARIABLES),
                region => u32::try_from(region - 1).ok(),
            }),
            ..self.access
        }
    }
}

fn request_sectors(request: &Request) -> Vec<u64> {
    let mut sectors = Vec::with_capacity(64);
    for (lane, address) in request.each_touch() {
        let last = request.last_byte(address);
        if request.space == MemorySpace::Local {
            for word in address / WORD..=last / WORD {
                sectors.push(in_local(request.warp, lane, word.wrapping_mul(WORD)) / SECTOR);
            }
        } else {
            sectors.extend(address / SECTOR..=last / SECTOR);
        }
    }
    sorted_distinct(sectors)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ptx::AccessKind;

    pub fn request(space: MemorySpace, width: u32, address: impl Fn(u64) -> u64) -> Request {
        let addresses = std::array::from_fn(|lane| address(lane as u64));
        let kind = AccessKind::Load;
        Request { step: 0, warp: 0, execution: 1, time: 0, space, kind, width, lanes: u32::MAX, addresses }
    }

    const ALL: CountedFor = CountedFor { warp_reuse: true, block_reuse: true };

    pub fn seen(request: &Request) -> Access {
        let mut sum = AccessSums::new(request);
        let (mut by_warp, mut by_block) = Default::default();
        sum.add_request(request, ALL, 0, &mut by_warp, &mut by_block, &mut NeighbourBlocks::default());
        sum.mean_access(StepExecutions::default(), false)
    }

    #[test]
    fn what_lanes_that_drop_out_would_have_touched_is_not_counted() {
        // Sectors, lines, passes and lanes where this many lanes took part on average, of which the
        // record knows the first execution alone.
        let rows: [(&str, u64, f64, [f64; 4]); 3] = [
            ("a line for each lane", 128, 4.0, [4.0, 4.0, 4.0, 4.0]),
            ("side by side", 4, 8.0, [1.0, 1.0, 1.0, 8.0]),
            ("one address for all", 0, 4.0, [1.0, 1.0, 1.0, 4.0]),
        ];
        for (what, stride, lanes, expected) in rows {
            let request = request(MemorySpace::Global, 4, |lane| lane * stride);
            let mut sum = AccessSums::new(&request);
            let (mut by_warp, mut by_block) = Default::default();
            sum.add_request(&request, ALL, 0, &mut by_warp, &mut by_block, &mut NeighbourBlocks::default());
            let access = sum.mean_access(StepExecutions { count: 100.0, lanes: 100.0 * lanes }, false);
            assert_eq!([access.sectors, access.lines, access.passes, access.lanes], expected, "{what}");
        }
    }

    #[test]
    fn an_access_hits_where_all_of_its_sectors_were_touched_before() {
        let first = request(MemorySpace::Global, 4, |lane| lane * 128);
        let one_is_new = request(MemorySpace::Global, 4, |lane| if lane == 31 { 1 << 20 } else { lane * 128 });
        let (mut by_warp, mut by_block) = (AddressMap::default(), AddressMap::default());
        let mut sum = AccessSums::new(&first);
        for request in [&first, &first, &one_is_new, &first] {
            sum.add_request(request, ALL, 0, &mut by_warp, &mut by_block, &mut NeighbourBlocks::default());
        }
        let access = sum.mean_access(StepExecutions::default(), false);
        assert_eq!((access.hits, access.reuse), (0.5, 95.0 / 128.0));
    }

    #[test]
    fn what_a_block_shares_is_judged_where_most_warps_are_recorded() {
        // Eight executions of the first warp, each of a sector of its own, the first two of which
        // two neighbours touch, too.
        let of = |warp: u32, count: u64| {
            (1..=count).map(move |execution| Request {
                warp,
                execution,
                time: execution * 10 + u64::from(warp),
                ..request(MemorySpace::Global, 4, |_| execution * 32)
            })
        };
        let requests: Vec<Request> = of(0, 8).chain(of(1, 2)).chain(of(2, 2)).collect();
        let recorded = record_requests(&requests)[&0];
        assert_eq!((recorded.last, recorded.most_warps), (8, 2));
    }

    #[test]
    fn what_another_warp_brought_long_before_is_at_hand() {
        let of = |warp: u32, time: u64| Request { warp, time, ..request(MemorySpace::Global, 4, |lane| lane * 4) };
        for (after, in_l1) in [(0, 0.0), (ARRIVAL_INSTRUCTIONS - 1, 0.0), (ARRIVAL_INSTRUCTIONS, 1.0)] {
            let mut by_block = AddressMap::default();
            let (first, second) = (of(0, 10), of(1, 10 + after));
            let neighbours = &mut NeighbourBlocks::default();
            AccessSums::new(&first).add_request(&first, ALL, 0, &mut AddressMap::default(), &mut by_block, neighbours);
            let mut sum = AccessSums::new(&second);
            sum.add_request(&second, ALL, 0, &mut AddressMap::default(), &mut by_block, neighbours);
            let access = sum.mean_access(StepExecutions::default(), false);
            assert_eq!((access.in_l1, access.hits, access.reuse), (in_l1, in_l1, 0.0), "{after}");
            assert_eq!(access.in_l2, 1.0 - in_l1, "{after}: until then it is in the level-2 cache");
        }
    }

    #[test]
    fn sectors_come_from_device_memory_in_pairs() {
        // The second of four accesses asks for what the first one's sectors were fetched with, the
        // others for what nobody has asked for.
        let sectors = |from: u64| request(MemorySpace::Global, 4, move |lane| (from + 2 * (lane / 8)) * SECTOR);
        let (mut by_warp, mut by_block) = Default::default();
        let in_l2 = [0, 1, 8, 17].map(|from| {
            let at = Request { time: from + 1, ..sectors(from) };
            let mut sum = AccessSums::new(&at);
            sum.add_request(&at, ALL, 1, &mut by_warp, &mut by_block, &mut NeighbourBlocks::default());
            let access = sum.mean_access(StepExecutions::default(), false);
            (access.in_l2, access.in_l2_unknown)
        });
        assert_eq!(in_l2, [(0.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.0, 1.0)]);
    }

    #[test]
    fn constants_are_lines_of_64_bytes_and_words_one_after_another() {
        let access = seen(&request(MemorySpace::Constant, 4, |lane| lane * 8));
        assert_eq!((access.lines, access.passes, access.reuse), (4.0, 32.0, 0.0));
    }
}
