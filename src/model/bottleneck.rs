//! What bounds a kernel's time, and its name in messages.

use crate::sass::Pipe;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a kernel's time is bound by, in the terms of Ryoo et al. (PPoPP'08, table 3), and those
/// that newer hardware adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// Instructions issued: one a cycle for each sub-core.
    Issue,
    /// An execution unit; for the memory pipe look-ups in the level-1 cache.
    Pipe(Pipe),
    /// Bandwidth of shared memory, bank conflicts included.
    SharedMemory,
    /// Matches and shuffles, which the memory pipe executes too.
    Exchange,
    /// Sectors that move between the level-2 cache and the SMs.
    CacheBandwidth,
    /// Bytes that move to and from device memory.
    GlobalBandwidth,
    /// Atomic updates of few addresses, one after another.
    Atomics,
    /// Waiting for loads, with too few warps to hide it.
    GlobalLatency,
    /// Waiting, for loads or for dependent instructions, with too few warps to hide it because
    /// registers allow no more.
    RegisterCapacity,
    /// The same, because shared memory allows no more.
    SharedCapacity,
    /// Waiting at barriers.
    Barrier,
    /// Waiting for dependent instructions, with too few warps to hide it.
    Latency,
    /// Constants that the constant cache does not hold.
    ConstantCache,
    /// Starting blocks.
    Launch,
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Issue => "instruction issue",
            Self::Pipe(Pipe::Memory) => "level-1 cache bandwidth",
            Self::Pipe(pipe) => return write!(formatter, "execution units ({})", pipe.name()),
            Self::SharedMemory => "shared memory bandwidth",
            Self::Exchange => "exchange within warps (match, shuffle)",
            Self::CacheBandwidth => "level-2 cache bandwidth",
            Self::GlobalBandwidth => "global memory bandwidth",
            Self::Atomics => "atomics on few addresses",
            Self::GlobalLatency => "global memory latency",
            Self::RegisterCapacity => "register file capacity",
            Self::SharedCapacity => "shared memory capacity",
            Self::Barrier => "barriers",
            Self::Latency => "instruction latency",
            Self::ConstantCache => "constant cache misses",
            Self::Launch => "starting blocks",
        })
    }
}
