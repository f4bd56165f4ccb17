//! Warp-wide operations: shuffles, votes, matches and reductions.

use super::block::Together;
use super::lanes::{Lanes, each_lane, lanes_where, predicate_lanes};
use super::warp::Warp;
use crate::sim::arithmetic::{mask_bits, update_value};
use crate::sim::operation::bit_count;
use crate::sim::program::{Collective, Operation, ProgramStep, Shuffle, Vote};

impl Warp<'_, 32, Together> {
    /// See [`Policy::join_collective`](super::warp::Policy::join_collective).
    pub(super) fn wait_for_members(&mut self, step: &ProgramStep, at: u32, on: u32, forced: bool) -> Option<u32> {
        if matches!(step.operation, Operation::Collective { collective: Collective::Active, .. }) || on == 0 {
            return Some(0);
        }
        let waiting = lanes_where::<32>(|lane| self.pc[lane] == at) & self.at_collective;
        let members = self.registers.lanes(step.sources[3]);
        let unknown = self.registers.unknown_lanes(step.sources[3]);
        let named = each_lane((on | waiting) & !unknown).fold(0, |named, lane| named | members[lane] as u32);
        if !forced && named & self.alive & !on & !waiting != 0 {
            return None;
        }
        self.at_collective &= !waiting;
        Some(waiting)
    }

    /// Computes what the lanes `on` get from each other.
    pub(super) fn exchange_values(&mut self, step: &ProgramStep, on: u32) {
        let Operation::Collective { collective, second, invert } = step.operation else { return };
        let own = *self.registers.lanes(step.sources[0]);
        let unknown = self.registers.unknown_lanes(step.sources[0]);
        let named = *self.registers.lanes(step.sources[3]);
        let with = |lane: usize| named[lane] as u32 & on;
        // Lanes whose result depends on an unknown value.
        let mut unknown_results =
            lanes_where::<32>(|lane| with(lane) & unknown != 0) | self.registers.unknown_lanes(step.sources[3]);
        let mut results: Lanes<32> = [0; 32];
        let mut predicate = 0;
        match collective {
            Collective::SyncWarp => return,
            Collective::Active => {
                results = [u64::from(on); 32];
                unknown_results = 0;
            }
            Collective::Elect => {
                for lane in each_lane(on) {
                    let leader = with(lane).trailing_zeros();
                    results[lane] = u64::from(leader);
                    predicate |= u32::from(leader == lane as u32) << lane;
                }
                unknown_results = 0;
            }
            Collective::Vote(vote) => {
                let holds = lanes_where::<32>(|lane| own[lane] & 1 != 0) ^ if invert { u32::MAX } else { 0 };
                for lane in each_lane(on) {
                    let with = with(lane);
                    results[lane] = match vote {
                        Vote::All => u64::from(holds & with == with),
                        Vote::Any => u64::from(holds & with != 0),
                        Vote::Uniform => u64::from(holds & with == with || holds & with == 0),
                        Vote::Ballot => u64::from(holds & with),
                    };
                }
            }
            Collective::Match { all, width } => {
                for lane in each_lane(on) {
                    let with = with(lane);
                    let equal =
                        lanes_where::<32>(|other| mask_bits(own[other], width) == mask_bits(own[lane], width)) & with;
                    let agreed = equal == with;
                    results[lane] = u64::from(if all && !agreed { 0 } else { equal });
                    predicate |= u32::from(agreed) << lane;
                }
            }
            Collective::Reduce { update, kind } => {
                for lane in each_lane(on) {
                    let mut members = each_lane(with(lane));
                    let first = members.next().map_or(0, |first| own[first]);
                    let sum = members.fold(first, |sum, other| update_value(update, kind, sum, own[other], 0));
                    results[lane] = mask_bits(sum, bit_count(kind));
                }
            }
            Collective::Shuffle(shuffle) => {
                let (distance, limits) =
                    (*self.registers.lanes(step.sources[1]), *self.registers.lanes(step.sources[2]));
                let unknown_operands =
                    self.registers.unknown_lanes(step.sources[1]) | self.registers.unknown_lanes(step.sources[2]);
                unknown_results = 0;
                for lane in each_lane(on) {
                    let (from, inside) = source_lane(shuffle, lane as u32, distance[lane] as u32, limits[lane] as u32);
                    let from = (from & 31) as usize;
                    results[lane] = own[from];
                    predicate |= u32::from(inside) << lane;
                    // A lane that does not take part gives nothing.
                    let lost = (unknown | unknown_operands) >> from & 1 != 0 || on >> from & 1 == 0;
                    unknown_results |= u32::from(lost) << lane;
                }
                unknown_results |= unknown_operands;
            }
        }
        self.registers.set_lanes(step.target, on, &results, unknown_results);
        if second != 0 {
            self.registers.set_lanes(second, on, &predicate_lanes(predicate), unknown_results);
        }
    }
}

/// The lane that a shuffle reads, and whether that is the one asked for (PTX ISA, `shfl.sync`).
fn source_lane(shuffle: Shuffle, lane: u32, distance: u32, limits: u32) -> (u32, bool) {
    let (distance, clamp, segment) = (distance & 0x1f, limits & 0x1f, limits >> 8 & 0x1f);
    let most = lane & segment | clamp & !segment;
    let least = lane & segment;
    let (from, inside) = match shuffle {
        Shuffle::Up => {
            let from = lane.wrapping_sub(distance);
            (from, from as i32 >= most as i32)
        }
        Shuffle::Down => (lane + distance, lane + distance <= most),
        Shuffle::Butterfly => (lane ^ distance, lane ^ distance <= most),
        Shuffle::Index => {
            let from = least | distance & !segment;
            (from, from <= most)
        }
    };
    if inside { (from, true) } else { (lane, false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_read_the_lane_that_the_instruction_set_names() {
        // (kind, lane, distance, limits, lane that is read, asked for): __shfl_up_sync and the like
        // with widths of 32 and 8.
        let cases = [
            (Shuffle::Up, 5, 2, 0, 3, true),
            (Shuffle::Up, 1, 2, 0, 1, false),
            (Shuffle::Down, 5, 4, 0x1f, 9, true),
            (Shuffle::Down, 30, 4, 0x1f, 30, false),
            (Shuffle::Down, 6, 4, 0x181f, 6, false),
            (Shuffle::Down, 3, 4, 0x181f, 7, true),
            (Shuffle::Butterfly, 6, 16, 0x1f, 22, true),
            (Shuffle::Index, 21, 3, 0x181f, 19, true),
            (Shuffle::Index, 21, 31, 0x1f, 31, true),
        ];
        for (shuffle, lane, distance, limits, from, inside) in cases {
            assert_eq!(source_lane(shuffle, lane, distance, limits), (from, inside), "{shuffle:?} {lane} {distance}");
        }
    }
}
