//! The constants of the predicted time: each with its unit, its source and what it was fitted to.

// Level-2 cache and stores.

/// Bytes that an SM and the level-2 cache exchange in a cycle when all SMs do. Measured: 5.5 to
/// 5.7 TB/s for the 114 SMs of an H100 at 1.755 GHz (chipsandcheese.com, "Nvidia's H100: Funny
/// L2, and Tons of Bandwidth", 2023), 1794 bytes a cycle for the 80 SMs of a V100 (accel-sim's
/// `l2_bw`).
pub(super) const L2_BYTES_PER_CYCLE: f64 = 28.0;

/// The same of an SM when few others do: what the recorded space of `reduction_adaptive` takes
/// on an H200 in 16 blocks.
pub(super) const L2_PORT_BYTES_PER_CYCLE: f64 = 64.0;

/// Cycles of an SM for a line of which anything misses its level-1 cache, when all SMs ask for
/// such: the level-2 cache looks up one after another, which binds lone sectors. `ncu` counts
/// at most 132,000 to 141,000 look-ups in a microsecond on an H200 (`lts__t_requests` of
/// `hash_lookup`, `spmv`, `fdtd`, `cfd` and an unseen breadth-first search): 1.9 to 2 cycles of
/// each of its 132 SMs, what its two parts ask of each other included. A little less, for where
/// bounds meet none is reached.
pub(super) const L2_LINE_CYCLES: f64 = 1.8;

/// Cycles of the memory pipe for such a line when it arrives. `ncu` counts half a pass for it
/// (`l1tex__data_pipe_lsu_wavefronts` beyond the requests, over the lines, of `spmv`, `cfd` and
/// `hash_lookup` on an H200); part of it is among the look-ups that are counted already, and
/// 0.3 orders the recorded spaces no worse than 0 or 0.5.
pub(super) const FILL_CYCLES: f64 = 0.3;

/// Lines of the level-2 cache that are updated atomically at once: at most this many, and one of
/// this many where few are updated, for neighbours share the unit that does it
/// (`kernels/results/h200/atomics.txt`: 8 lines 2.1 at once, 32 lines 7, 64 lines 12, many 54).
pub(super) const MAX_ATOMIC_LINES: f64 = 54.0;
pub(super) const ATOMIC_UNIT_LINES: f64 = 4.0;

/// Cycles of an SM for a sector of which a store writes only a part, besides those for its
/// line, when all SMs store such. On an H200, structures stored word by word take 10.4 cycles
/// for each line of 4 such sectors, 5.8 for one of 2 and 4.1 for a lone one
/// (`kernels/results/h200/stores.txt`).
pub(super) const PARTIAL_STORE_CYCLES: f64 = 2.05;

/// Cycles of an SM more for a sector that is written in parts, if as many lines were open
/// meanwhile as the level-2 cache holds, and so much less as there are fewer: it has to let
/// more and more of them go before they are whole. On an H200, structures of 128 bytes that are
/// stored 16 at a time take 582 us with 8 warps on an SM, 759 with 32 and 936 with 64 (half of
/// whose 2, 9 and 17 MB are open at any time), those of 64 bytes 372 and 518 with 8 and 64
/// (`kernels/results/h200/stores.txt`).
pub(super) const SPLIT_STORE_CYCLES: f64 = 13.5;

/// Cycles of an SM for a line with a sector that leaves the level-2 cache before it is whole,
/// as those do of which some bytes are never written: the rest has to be fetched first. On an
/// H200, launches that store to structures with and without holes take 8.5 of them for a sector
/// that is fetched so (32 us for a million, besides 13 us for a million requests:
/// `kernels/results/h200/stores.txt`); a little less, for where the device memory's own time
/// comes on top.
pub(super) const UNFINISHED_CYCLES: f64 = 7.0;

// Constants.

/// Cycles of an SM for a line that misses its first constant cache
/// (`kernels/results/h200/constants.txt`).
pub(super) const CONSTANT_CYCLES: f64 = 5.5;

/// The same where a loop has nothing else that its warps wait for: what one of them brings the
/// others have not come to or are beyond, unless they keep step. What the recorded space of
/// `cp` takes on an H200 where little is computed for a line; loops like it take 12 to 260.
pub(super) const CONSTANT_CYCLES_ALONE: f64 = 160.0;

/// Cycles that a warp waits for such a line if it is alone.
pub(super) const CONSTANT_LATENCY: f64 = 80.0;

// Launches and blocks.

/// Assumed: microseconds of a launch.
pub(super) const LAUNCH_US: f64 = 2.0;

/// Assumed: cycles from a block's start to its first instruction.
pub(super) const BLOCK_LATENCY: f64 = 300.0;

/// Cycles between the starts of two blocks anywhere on the GPU. In the recorded spaces of an
/// H200, eight kernels whose blocks are short take 157 to 162 cycles of each of its 132 SMs for
/// a block, whatever else they do.
pub(super) const BLOCK_INTERVAL: f64 = 1.2;

/// Part of what a block asks for at once that its warps wait for: the first is served at once
/// and the last after all others. Half of it would be the average warp's wait; a block's place
/// is free when its last warp is done. In the recorded spaces of an H200 the time over the
/// prediction grows with the share of an SM that a block takes for nearly all kernels whose
/// blocks are short, with half of it still and with all of it no longer; the order within the
/// spaces is alike from three quarters on.
pub(super) const QUEUE_SHARE: f64 = 0.75;

/// Blocks of the fullest SM over those of the average one, when the first blocks of a grid that
/// fits at once have their places: eight of the SMs get theirs sooner than the others
/// (`kernels/results/h200/placement.txt`; rounded up, this gives what is seen there in every
/// row).
pub(super) const PLACEMENT_IMBALANCE: f64 = 1.375;

/// Of that by which the longest warp of a block exceeds the average one, the power to which it
/// lengthens the block's stay: the longer it lasts, the more of an SM it has to itself, and the
/// less it waits. The recorded spaces of an H200 are ordered about as well with any power up to
/// a half as with none, and worse with all of it; choices among blocks of irregular kernels
/// (`spmv`) are better with it.
pub(super) const STRAGGLER_POWER: f64 = 0.5;

// How parts of a prediction meet.

/// The exponent of the power mean that a corner is. Loads wait in queues long before a bound is
/// reached, so that the corner is a wide one: of exponents of 1 to 8, that of 2 orders the
/// recorded spaces best as a whole.
pub const CORNER_EXPONENT: f64 = 2.0;

/// Accesses to local memory that a warp overlaps, assumed: reloads are scheduled ahead and in
/// groups, and nothing waits for a store.
pub(super) const LOCAL_OVERLAP: f64 = 16.0;
