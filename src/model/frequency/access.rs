//! What the lanes of a few warps touched -> how each memory line looks to the memory system.

use super::memory::region;
use super::program::Program;
use super::thread::Touch;
use crate::model::profile::{Access, Space};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Bytes of a sector, the unit of traffic between caches and memory.
const SECTOR: u64 = 32;
const SECTORS_PER_LINE: u64 = 4;
/// Banks of shared memory and bytes of a bank's word.
const BANKS: u64 = 32;
const WORD: u64 = 4;

/// The touches of one lane.
pub(super) struct Lane {
    pub warp: u32,
    pub lane: u32,
    pub touches: Vec<Touch>,
    /// Executions of each step in the whole run.
    pub counts: Vec<u64>,
}

/// One execution of a memory step by one warp.
struct Group {
    step: u32,
    warp: u32,
    time: u64,
    lanes: Vec<(u32, Touch)>,
}

/// The accesses by PTX line; `buffers` is the number of buffers of the workload.
pub(super) fn accesses(program: &Program, lanes: &[Lane], buffers: usize) -> BTreeMap<u32, Access> {
    let mut groups: BTreeMap<(u32, u32, u64), Group> = BTreeMap::new();
    let mut most = vec![0u64; program.steps.len()];
    for lane in lanes {
        for (most, &count) in most.iter_mut().zip(&lane.counts) {
            *most = count.max(*most);
        }
        for &touch in &lane.touches {
            let key = (touch.step, lane.warp, touch.execution);
            let group = groups.entry(key).or_insert_with(|| Group {
                step: touch.step,
                warp: lane.warp,
                time: touch.time,
                lanes: Vec::new(),
            });
            group.time = group.time.min(touch.time);
            group.lanes.push((lane.lane, touch));
        }
    }
    let mut recorded: BTreeMap<u32, u64> = BTreeMap::new();
    for &(step, _, execution) in groups.keys() {
        let last = recorded.entry(step).or_default();
        *last = execution.max(*last);
    }
    let mut ordered: Vec<((u32, u32, u64), Group)> = groups.into_iter().collect();
    ordered.sort_by_key(|(key, group)| (group.time, group.warp, key.0));

    let mut touched_by_warp: HashMap<(u32, u64), u64> = HashMap::new();
    let mut touched: HashSet<u64> = HashSet::new();
    let mut sums: BTreeMap<u32, Sum> = BTreeMap::new();
    for ((step, _, execution), group) in &ordered {
        let Some((_, first)) = group.lanes.first() else {
            continue;
        };
        let sum = sums.entry(program.steps[group.step as usize].line).or_insert_with(|| Sum::new(first));
        let last = recorded.get(step).copied().unwrap_or(0);
        let steady = most[*step as usize] <= last || *execution > last / 2;
        sum.add(group, steady, buffers, &mut touched_by_warp, &mut touched);
    }
    sums.into_iter().map(|(line, sum)| (line, sum.mean())).collect()
}

struct Sum {
    access: Access,
    groups: f64,
    sectors: f64,
    passes: f64,
    lanes: f64,
    /// Sectors in the part of the record that counts for reuse, and those of them that were touched before.
    judged: f64,
    again: f64,
    /// Instructions since then, summed.
    after: f64,
    again_in_block: f64,
    distinct: HashSet<u64>,
    buffer: Option<u64>,
    one_buffer: bool,
}

impl Sum {
    fn new(first: &Touch) -> Self {
        let access =
            Access { space: first.space, kind: first.kind, width: first.width, broadcast: true, ..Access::default() };
        Self {
            access,
            groups: 0.0,
            sectors: 0.0,
            passes: 0.0,
            lanes: 0.0,
            judged: 0.0,
            again: 0.0,
            after: 0.0,
            again_in_block: 0.0,
            distinct: HashSet::new(),
            buffer: None,
            one_buffer: true,
        }
    }

    fn add(
        &mut self,
        group: &Group,
        steady: bool,
        buffers: usize,
        by_warp: &mut HashMap<(u32, u64), u64>,
        by_block: &mut HashSet<u64>,
    ) {
        self.groups += 1.0;
        self.lanes += group.lanes.len() as f64;
        let address = group.lanes.first().map(|(_, touch)| touch.address);
        self.access.broadcast &= group.lanes.iter().all(|(_, touch)| Some(touch.address) == address);
        let sectors = match self.access.space {
            Space::Global | Space::Local => sectors(&group.lanes),
            Space::Shared | Space::Constant | Space::Texture => HashSet::new(),
        };
        self.passes += match self.access.space {
            Space::Shared => shared_passes(&group.lanes),
            Space::Constant => {
                group.lanes.iter().map(|(_, touch)| touch.address / WORD).collect::<HashSet<_>>().len() as f64
            }
            Space::Global | Space::Local => {
                sectors.iter().map(|sector| sector / SECTORS_PER_LINE).collect::<HashSet<_>>().len() as f64
            }
            Space::Texture => 1.0,
        };
        self.sectors += sectors.len() as f64;
        for &sector in &sectors {
            self.distinct.insert(sector);
            let before = by_warp.insert((group.warp, sector), group.time);
            let again = before.is_some();
            let again_in_block = !by_block.insert(sector);
            if steady {
                self.judged += 1.0;
                self.again += f64::from(u8::from(again));
                self.after += before.map_or(0, |before| group.time.saturating_sub(before)) as f64;
                self.again_in_block += f64::from(u8::from(again_in_block));
            }
        }
        if self.access.space == Space::Global {
            for (_, touch) in &group.lanes {
                let region = region(touch.address);
                let known = (1..=buffers as u64).contains(&region);
                self.one_buffer &= known && self.buffer.is_none_or(|buffer| buffer == region);
                self.buffer = Some(region);
            }
        }
    }

    fn mean(self) -> Access {
        let per_group = |sum: f64| sum / self.groups.max(1.0);
        let share = |sum: f64| {
            if self.judged > 0.0 { sum / self.judged } else { 0.0 }
        };
        Access {
            sectors: per_group(self.sectors),
            passes: per_group(self.passes),
            lanes: per_group(self.lanes),
            reuse: share(self.again),
            reuse_after: self.after / self.again.max(1.0),
            block_reuse: share(self.again_in_block),
            block_sectors: per_group(self.distinct.len() as f64),
            buffer: self.buffer.filter(|_| self.one_buffer).and_then(|region| u32::try_from(region - 1).ok()),
            ..self.access
        }
    }
}

fn sectors(lanes: &[(u32, Touch)]) -> HashSet<u64> {
    let mut sectors = HashSet::new();
    for &(lane, touch) in lanes {
        if touch.space == Space::Local {
            // Local memory is interleaved: the same word of neighbouring lanes lies side by side.
            for word in touch.address / WORD..=last(&touch) / WORD {
                let physical = word.wrapping_mul(BANKS).wrapping_add(u64::from(lane)).wrapping_mul(WORD);
                // Apart from global addresses.
                sectors.insert((1 << 62) | (physical / SECTOR));
            }
        } else {
            sectors.extend(touch.address / SECTOR..=last(&touch) / SECTOR);
        }
    }
    sectors
}

fn last(touch: &Touch) -> u64 {
    touch.address.saturating_add(u64::from(touch.width.max(1)) - 1)
}

/// Passes over the banks, averaged over the parts of the warp that are served together: all lanes up to 4 bytes each,
/// halves for 8 bytes, quarters for 16.
fn shared_passes(lanes: &[(u32, Touch)]) -> f64 {
    let width = lanes.iter().map(|(_, touch)| touch.width).max().unwrap_or(4);
    let together = match width {
        0..=4 => 32,
        5..=8 => 16,
        _ => 8,
    };
    let mut parts: BTreeMap<u32, HashSet<u64>> = BTreeMap::new();
    for (lane, touch) in lanes {
        parts.entry(lane / together).or_default().extend(touch.address / WORD..=last(touch) / WORD);
    }
    let passes = |words: &HashSet<u64>| {
        let mut banks = [0u32; BANKS as usize];
        for word in words {
            banks[(word % BANKS) as usize] += 1;
        }
        banks.into_iter().max().unwrap_or(1)
    };
    let total: u32 = parts.values().map(passes).sum();
    f64::from(total) / (parts.len().max(1) as f64)
}
