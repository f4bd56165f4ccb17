//! The buffers of a workload at several addresses, for samples with warm caches.
//!
//! In: a workload and the number of a set. Out: the places of its buffers in that set, with the same
//! contents as in the first. Invariant: only the first set is checked, and others are freed where
//! memory is short, and before samples with cold caches.

use super::Gpu;
use super::pool::buffer_size;
use crate::measure::bench::JobError;
use crate::workload::Workload;

impl Gpu {
    /// Returns the places of one buffer set, and which set that is: the first where there is no room
    /// for another, or the L2 cache does not hold the buffers. The addresses matter for what it holds.
    /// Of a GPU with two L2 partitions each may have a copy of a line, so that half of it counts.
    pub(super) fn places_in_set(
        &mut self,
        number: usize,
        workload: &Workload,
        buffer_set: u32,
    ) -> Result<(Vec<usize>, u32), JobError> {
        let bytes: u64 = workload.all_buffers().map(|buffer| buffer_size(buffer) as u64).sum();
        if buffer_set > 0 && !self.lacks_room && bytes <= self.context.device.l2_bytes / 2 {
            let written = self.written.get(&number).cloned().unwrap_or_default();
            let placed = self.pool.place_workload(&self.context, workload, (&written, buffer_set), &mut || {});
            if let Ok(Ok(places)) = placed {
                return Ok((places, buffer_set));
            }
            self.lacks_room = true;
            self.free_other_sets();
        }
        Ok((self.places(number, workload, &mut || {})?, 0))
    }

    /// Frees all buffer sets but the first, which other work may need the memory of.
    pub(super) fn free_other_sets(&mut self) {
        if self.pool.has_other_sets() {
            // Places of the first set may have other numbers then.
            self.graphs.clear();
            self.pool.keep_first_set();
        }
    }
}
