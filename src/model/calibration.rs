//! The constants of the predicted time that were measured or fitted, in one table.
//!
//! Each row has the value, its unit, its source and its neutral value: the one with which the
//! term that it belongs to vanishes. `nvtune-eval constants` sets each constant to its neutral
//! value in turn and shows what that changes on the recorded spaces
//! (`kernels/results/CALIBRATION.md`). Properties of an architecture are not here: its latencies
//! and throughputs are in `latency.rs`, its limits in `gpu/architecture.rs`.

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    pub name: &'static str,
    pub unit: &'static str,
    /// The measurement or the document that it is from, or what it was fitted to.
    pub source: &'static str,
    pub value: f64,
    /// The value with which its term vanishes.
    pub neutral: f64,
    field: fn(&mut Calibration) -> &mut f64,
}

impl Constant {
    /// Returns the calibration with the neutral value of this constant.
    pub fn neutralized(&self) -> Calibration {
        let mut calibration = CALIBRATION;
        *(self.field)(&mut calibration) = self.neutral;
        calibration
    }
}

/// Makes the type, its value and the rows from one table.
macro_rules! calibration {
    ($($(#[$doc:meta])* $name:ident: $value:expr, $unit:literal, $source:literal, neutral $neutral:expr;)*) => {
        /// The value of each constant.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct Calibration {
            $($(#[$doc])* pub $name: f64,)*
        }

        /// The values that nvtune uses.
        pub const CALIBRATION: Calibration = Calibration { $($name: $value),* };

        /// The table's rows.
        pub const CONSTANTS: &[Constant] = &[$(Constant {
            name: stringify!($name),
            unit: $unit,
            source: $source,
            value: $value,
            neutral: $neutral,
            field: |calibration| &mut calibration.$name,
        }),*];
    };
}

calibration! {
    // Level-2 cache and stores.

    /// Bytes between an SM and the level-2 cache in a cycle when all SMs use it. Measured: 5.5 to
    /// 5.7 TB/s for the 114 SMs of an H100 at 1.755 GHz (chipsandcheese.com, "Nvidia's H100: Funny
    /// L2, and Tons of Bandwidth", 2023), 1794 bytes a cycle for the 80 SMs of a V100 (accel-sim's
    /// `l2_bw`).
    l2_bytes_per_cycle: 28.0, "bytes/cycle of an SM", "chipsandcheese.com 2023, accel-sim", neutral f64::INFINITY;

    /// Cycles of an SM for a line that misses its level-1 cache at least in part, when all SMs have
    /// such misses: the level-2 cache looks up one line after another, which bounds accesses to
    /// lone sectors. `ncu` counts at most 132,000 to 141,000 look-ups in a microsecond on an H200
    /// (`lts__t_requests` of `hash_lookup`, `spmv`, `fdtd`, `cfd` and an unseen breadth-first
    /// search): 1.9 to 2 cycles of each of its 132 SMs, including the requests between its two
    /// partitions. The value is a little less, because near the corner of two bounds neither is
    /// reached.
    l2_line_cycles: 1.8, "cycles/line", "ncu: lts__t_requests on an H200", neutral 0.0;

    /// Cycles of the memory pipe to fill such a line. `ncu` counts half a pass for it
    /// (`l1tex__data_pipe_lsu_wavefronts` beyond the requests, over the lines, of `spmv`, `cfd` and
    /// `hash_lookup` on an H200); part of it is among the look-ups that are counted already, and
    /// 0.3 orders the recorded spaces no worse than 0 or 0.5.
    fill_cycles: 0.3, "cycles/line", "ncu: l1tex__data_pipe_lsu_wavefronts on an H200", neutral 0.0;

    /// Copies of a warp's data in a level-2 cache of two partitions, on average: half of the data
    /// belongs to the other partition's memory, and is in both.
    l2_copies: 1.5, "copies", "NVIDIA's A100 white paper", neutral 1.0;

    /// Cycles of an SM for a sector that a store writes only partially, besides those for its line,
    /// when all SMs do so. On an H200, structures stored word by word take 10.4 cycles for each
    /// line of 4 such sectors, 5.8 for one of 2 and 4.1 for a lone one. Without it, such a sector
    /// costs its bytes.
    partial_store_cycles: 2.05, "cycles/sector", "h200/stores.txt", neutral 32.0 / 28.0;

    /// Further cycles of an SM for a sector that is completed by several stores, if the lines that
    /// are incomplete at the same time would fill the level-2 cache; proportionally less if they
    /// are fewer. The cache has to evict more and more of them before they are complete. On an
    /// H200, structures of 128 bytes that are stored 16 at a time take 582 us with 8 warps on an
    /// SM, 759 with 32 and 936 with 64 (half of whose 2, 9 and 17 MB are incomplete at any time),
    /// those of 64 bytes 372 and 518 with 8 and 64.
    split_store_cycles: 13.5, "cycles/sector", "h200/stores.txt", neutral 0.0;

    /// Cycles of an SM for a line with a sector that the level-2 cache evicts incomplete, for
    /// example because some of its bytes are never written: its other bytes have to be fetched
    /// first. On an H200, launches that store to structures with and without holes take 8.5 cycles
    /// for a sector that is fetched for this reason (32 us for a million, besides 13 us for a
    /// million requests). The value is a little less, because the time of device memory is added.
    unfinished_cycles: 7.0, "cycles/line", "h200/stores.txt", neutral 0.0;

    /// Lines of the level-2 cache that are updated atomically at the same time: at most
    /// this many (of 8 lines 2.1 at the same time, of 32 lines 7, of 64 lines 12, of many 54).
    max_atomic_lines: 54.0, "lines", "h200/atomics.txt; no recorded kernel is bound by atomics", neutral f64::INFINITY;

    /// Of few lines, one in this many is updated at a time, because neighbouring lines share the
    /// unit that updates them.
    atomic_unit_lines: 4.0, "lines", "h200/atomics.txt; no recorded kernel is bound by atomics", neutral 1.0;

    // What the caches hold.

    /// A cache begins to evict data that is used again when this share of its capacity has been
    /// fetched since, and has evicted all of it after one capacity more: sets fill unevenly, and
    /// warps do not keep step.
    eviction_start: 0.5, "share of the cache", "fitted", neutral 0.0;

    /// Bytes of the level-1 cache that a byte of a lone sector takes: more than 1, because the
    /// sector takes a line, and less than a line's 4, because other sectors of it may be read soon.
    /// With it the requests of `spmv` to the level-2 cache are known to 16% on average, and to 27%
    /// without.
    gather_footprint: 2.0, "bytes/byte", "ncu: h200/traffic.json, requests of `spmv`", neutral 1.0;

    // Constants.

    /// Loads from memory hide a loop's misses of the constant cache if they are executed in at
    /// least this share of its iterations.
    min_load_share: 0.5, "share of iterations", "h200/constants.txt", neutral f64::INFINITY;

    /// Cycles of an SM for a line that misses its first constant cache in a loop that waits for no
    /// other memory: its warps do not keep step, so that they do not use the lines that others
    /// have fetched. It is what the recorded space of `cp` takes on an H200 where little is
    /// computed for a line; loops like it take 12 to 260 (`h200/constants.txt`).
    constant_cycles: 160.0, "cycles/line", "fitted to `cp`", neutral 0.0;

    // Waits of a warp.

    /// By how much a load from device memory takes longer if it waits for twice as many sectors,
    /// as a share of the latency.
    dram_doubling: 0.17, "share of the latency", "h200/latency.txt", neutral 0.0;

    /// The same for lines of the level-2 cache.
    l2_doubling: 0.05, "share of the latency", "h200/latency.txt", neutral 0.0;

    /// An access to more lines than this is a gather, whose lanes access unrelated addresses: it
    /// hits the level-1 cache only if all of them do.
    max_coalesced_lines: 3.0, "lines", "fitted", neutral f64::INFINITY;

    /// Cycles of a barrier in a block of one warp.
    barrier_cycles: 22.0, "cycles", "measured at compute capability 10.3, with the next", neutral 0.0;

    /// Cycles of a barrier for each further warp of the block.
    barrier_cycles_per_warp: 2.0, "cycles/warp", "measured at compute capability 10.3", neutral 0.0;

    /// Cycles of an SM's memory pipe for `MATCH.ANY`: one for each lane. With this value, the
    /// points of `radix_pass` (recorded on an H200) that use it are predicted as well as those that
    /// vote on each bit instead.
    match_cycles: 32.0, "cycles", "fitted to `radix_pass`", neutral 1.0;

    /// Accesses to local memory of one warp that overlap. Reloads are scheduled ahead and in
    /// groups, and nothing waits for a store.
    local_overlap: 16.0, "accesses", "assumed", neutral f64::INFINITY;

    // Launches and blocks.

    /// Constant overhead of a launch.
    launch_us: 2.0, "us", "assumed; no recorded kernel is shorter than 60 us", neutral 0.0;

    /// Cycles between the starts of two blocks anywhere on the GPU. In the recorded spaces of an
    /// H200, eight kernels whose blocks are short take 157 to 162 cycles of each of its 132 SMs for
    /// a block, whatever else they do.
    block_interval: 1.2, "cycles/block", "fitted to eight kernels of short blocks", neutral 0.0;

    /// The warps of a block request memory at the same time, and are served one after another: this
    /// share of the time of all their requests is added to the latency of the block. Half would be
    /// the wait of the average warp; but a block ends with its last warp. In the recorded spaces of
    /// an H200, with a share of a half the measured time over the prediction still grows with the
    /// share of an SM that a block takes, for nearly all kernels with short blocks, and with a
    /// share of one it no longer does; from three quarters on the order within the spaces is the
    /// same.
    queue_share: 0.75, "share of the memory's time", "fitted to the kernels of short blocks", neutral 0.0;

    /// Blocks of the fullest SM over those of the average one, after the first blocks of a grid
    /// that fits at once are placed: eight of the SMs get theirs earlier than the others (rounded
    /// up, this gives what was observed in every row).
    placement_imbalance: 1.375, "ratio", "h200/placement.txt", neutral 1.0;

    /// A block is resident until its longest warp ends: its residence grows with this power of the
    /// ratio of its longest warp to its average one. The power is less than 1, because a warp that
    /// outlasts the others has more of an SM to itself and waits less. The recorded spaces of an
    /// H200 are ordered about as well with any power up to a half as with zero, and worse with 1;
    /// choices among blocks of irregular kernels (`spmv`) are better with a half.
    straggler_power: 0.5, "exponent", "fitted to `spmv`", neutral 0.0;

    // How the terms of a prediction are combined.

    /// The exponent of the power mean that combines two terms: it rounds the corner of their
    /// maximum (as of a roofline). Loads wait in queues long before a bound is reached, so that the
    /// corner is a wide one: of exponents of 1 to 8, that of 2 orders the recorded spaces best as a
    /// whole. The search's samples of possible errors spread it around this value.
    corner_exponent: 2.0, "exponent", "fitted to all spaces", neutral f64::INFINITY;

    // How often the blocks of the machine code are executed (see `block_frequency.rs`).

    /// Weight of the vote of a memory or floating-point instruction's line: ptxas seldom duplicates
    /// those within a block.
    reliable_weight: 4.0, "votes", "fitted", neutral 1.0;

    /// Factor of the weight if the instruction is guarded (predicated): so small that a few
    /// instructions without a guard outvote all with one.
    guarded_factor: 0.0625, "votes/vote", "fitted", neutral 1.0;

    /// Votes that a block is executed more often than its loop is entered win over the others if
    /// they have at least this share of the others' weight.
    min_vote_share: 0.25, "share of votes", "fitted", neutral 0.0;

    /// Two loops are copies of one PTX loop if they share at least this part of the lines of the
    /// one with fewer lines. Different PTX loops share a few lines, too, of values that ptxas
    /// recomputes in each rather than keep them in a register.
    copy_share: 0.25, "share of lines", "fitted; test of the fixture `lookups`", neutral 0.0;

    /// A block with at least this share of a loop's essential lines is a copy of its body; one with
    /// fewer has only code hoisted from it.
    min_essential_share: 0.7, "share of lines", "fitted", neutral f64::INFINITY;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_changes_a_field_of_its_own() {
        let changed: Vec<_> = CONSTANTS.iter().map(Constant::neutralized).collect();
        for (constant, calibration) in CONSTANTS.iter().zip(&changed) {
            assert!(!constant.unit.is_empty() && !constant.source.is_empty(), "{}", constant.name);
            assert_eq!(changed.iter().filter(|other| *other == calibration).count(), 1, "{}", constant.name);
            assert_ne!(*calibration, CALIBRATION, "{}", constant.name);
        }
    }
}
