//! The constants of the predicted time: each with its unit, its source and what it was fitted to.

// Level-2 cache and stores.

/// Bytes between an SM and the level-2 cache in a cycle when all SMs use it. Measured: 5.5 to
/// 5.7 TB/s for the 114 SMs of an H100 at 1.755 GHz (chipsandcheese.com, "Nvidia's H100: Funny
/// L2, and Tons of Bandwidth", 2023), 1794 bytes a cycle for the 80 SMs of a V100 (accel-sim's
/// `l2_bw`).
pub(super) const L2_BYTES_PER_CYCLE: f64 = 28.0;

/// The same when few SMs use it: what the recorded space of `reduction_adaptive` takes on an
/// H200 in 16 blocks.
pub(super) const L2_PORT_BYTES_PER_CYCLE: f64 = 64.0;

/// Cycles of an SM for a line that misses its level-1 cache at least in part, when all SMs have
/// such misses: the level-2 cache looks up one line after another, which bounds accesses to lone
/// sectors. `ncu` counts at most 132,000 to 141,000 look-ups in a microsecond on an H200
/// (`lts__t_requests` of `hash_lookup`, `spmv`, `fdtd`, `cfd` and an unseen breadth-first
/// search): 1.9 to 2 cycles of each of its 132 SMs, including the requests between its two
/// partitions. The value is a little less, because near the corner of two bounds neither is
/// reached.
pub(super) const L2_LINE_CYCLES: f64 = 1.8;

/// Cycles of the memory pipe to fill such a line. `ncu` counts half a pass for it
/// (`l1tex__data_pipe_lsu_wavefronts` beyond the requests, over the lines, of `spmv`, `cfd` and
/// `hash_lookup` on an H200); part of it is among the look-ups that are counted already, and
/// 0.3 orders the recorded spaces no worse than 0 or 0.5.
pub(super) const FILL_CYCLES: f64 = 0.3;

/// Lines of the level-2 cache that are updated atomically at the same time: at most
/// [`MAX_ATOMIC_LINES`], and of few lines one in [`ATOMIC_UNIT_LINES`], because neighbouring
/// lines share the unit that updates them (`kernels/results/h200/atomics.txt`: of 8 lines 2.1 at
/// the same time, of 32 lines 7, of 64 lines 12, of many 54).
pub(super) const MAX_ATOMIC_LINES: f64 = 54.0;
pub(super) const ATOMIC_UNIT_LINES: f64 = 4.0;

/// Cycles of an SM for a sector that a store writes only partially, besides those for its line,
/// when all SMs do so. On an H200, structures stored word by word take 10.4 cycles
/// for each line of 4 such sectors, 5.8 for one of 2 and 4.1 for a lone one
/// (`kernels/results/h200/stores.txt`).
pub(super) const PARTIAL_STORE_CYCLES: f64 = 2.05;

/// Further cycles of an SM for a sector that is completed by several stores, if the lines that
/// are incomplete at the same time would fill the level-2 cache; proportionally less if they are
/// fewer. The cache has to evict more and more of them before they are complete. On an H200,
/// structures of 128 bytes that are stored 16 at a time take 582 us with 8 warps on an SM, 759
/// with 32 and 936 with 64 (half of whose 2, 9 and 17 MB are incomplete at any time), those of 64
/// bytes 372 and 518 with 8 and 64 (`kernels/results/h200/stores.txt`).
pub(super) const SPLIT_STORE_CYCLES: f64 = 13.5;

/// Cycles of an SM for a line with a sector that the level-2 cache evicts incomplete, for example
/// because some of its bytes are never written: its other bytes have to be fetched first. On an
/// H200, launches that store to structures with and without holes take 8.5 cycles for a sector
/// that is fetched for this reason (32 us for a million, besides 13 us for a million requests:
/// `kernels/results/h200/stores.txt`). The value is a little less, because the time of device
/// memory is added.
pub(super) const UNFINISHED_CYCLES: f64 = 7.0;

// Constants.

/// Cycles of an SM for a line that misses its first constant cache
/// (`kernels/results/h200/constants.txt`).
pub(super) const CONSTANT_CYCLES: f64 = 5.5;

/// The same in a loop that waits for no other memory: its warps do not keep step, so that they
/// do not use the lines that others have fetched. It is what the recorded space of `cp` takes
/// on an H200 where little is computed for a line; loops like it take 12 to 260.
pub(super) const CONSTANT_CYCLES_ALONE: f64 = 160.0;

/// Cycles that a warp waits for such a line if it is alone.
pub(super) const CONSTANT_LATENCY: f64 = 80.0;

// Launches and blocks.

/// Assumed: constant overhead of a launch in microseconds.
pub(super) const LAUNCH_US: f64 = 2.0;

/// Assumed: cycles from a block's start to its first instruction.
pub(super) const BLOCK_LATENCY: f64 = 300.0;

/// Cycles between the starts of two blocks anywhere on the GPU. In the recorded spaces of an
/// H200, eight kernels whose blocks are short take 157 to 162 cycles of each of its 132 SMs for
/// a block, whatever else they do.
pub(super) const BLOCK_INTERVAL: f64 = 1.2;

/// The warps of a block request memory at the same time, and are served one after another: this
/// share of the time of all their requests is added to the latency of the block. Half would be
/// the wait of the average warp; but a block ends with its last warp. In the recorded spaces of
/// an H200, with a share of a half the measured time over the prediction still grows with the
/// share of an SM that a block takes, for nearly all kernels with short blocks, and with a share
/// of one it no longer does; from three quarters on the order within the spaces is the same.
pub(super) const QUEUE_SHARE: f64 = 0.75;

/// Blocks of the fullest SM over those of the average one, after the first blocks of a grid that
/// fits at once are placed: eight of the SMs get theirs earlier than the others
/// (`kernels/results/h200/placement.txt`; rounded up, this gives what was observed in every row).
pub(super) const PLACEMENT_IMBALANCE: f64 = 1.375;

/// A block is resident until its longest warp ends: its residence grows with this power of the
/// ratio of its longest warp to its average one. The power is less than 1, because a warp that
/// outlasts the others has more of an SM to itself and waits less. The recorded spaces of an H200
/// are ordered about as well with any power up to a half as with zero, and worse with 1; choices
/// among blocks of irregular kernels (`spmv`) are better with a half.
pub(super) const STRAGGLER_POWER: f64 = 0.5;

// How the terms of a prediction are combined.

/// The exponent of the power mean that combines two terms: it rounds the corner of their maximum
/// (as of a roofline). Loads wait in queues long before a bound is reached, so that the corner is
/// a wide one: of exponents of 1 to 8, that of 2 orders the recorded spaces best as a whole.
pub const CORNER_EXPONENT: f64 = 2.0;

/// Assumed: accesses to local memory of one warp that overlap. Reloads are scheduled ahead and
/// in groups, and nothing waits for a store.
pub(super) const LOCAL_OVERLAP: f64 = 16.0;
