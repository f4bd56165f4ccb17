//! How often each PTX line of a kernel is executed by a thread, and what its memory accesses look like.
//!
//! Found once on the PTX, it holds for every variant that ptxas makes of it: ptxas's line table
//! (`.nv_debug_line_sass`, written with `-lineinfo`, which leaves the code unchanged) maps each SASS instruction to a PTX line.

use std::collections::BTreeMap;

/// The execution profile of one kernel under one launch and workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// By PTX line (1-based): how often the instruction there is executed, the maximum over the threads looked at
    /// (divergence as Liang et al. treat it). A line that is absent is never executed.
    pub counts: BTreeMap<u32, f64>,
    /// By PTX line of a memory instruction: what a warp's access looks like.
    pub accesses: BTreeMap<u32, Access>,
    /// Instructions executed by one thread on average over the threads looked at (some threads leave at once).
    pub mean_instructions: f64,
    /// False where a limit was reached, an instruction was unknown or control depended on data that was not
    /// known; the counts are then estimates.
    pub exact: bool,
}

/// A warp-wide memory access, averaged over the executions looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Access {
    pub space: Space,
    pub kind: Kind,
    /// Bytes accessed by one thread.
    pub width: u32,
    /// Global memory: distinct 32-byte sectors that one warp's access touches (1 to 128).
    pub sectors: f64,
    /// Shared memory: passes needed for bank conflicts (1 is none).
    pub passes: f64,
    /// Share of the sectors that the same warp (or its block) touched before: 0 is streaming, towards 1 is reuse in cache.
    pub reuse: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    Global,
    Shared,
    Local,
    Constant,
    Texture,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Load,
    Store,
    Atomic,
}
