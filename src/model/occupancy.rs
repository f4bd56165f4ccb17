//! The resources that a block takes of an SM -> how many blocks are resident, and what limits
//! them.
//!
//! The formula of NVIDIA's `cuda_occupancy.h` (CUDA 13.0) for compute capability 7.0 and later,
//! with shared memory opted in.

use crate::gpu::{Architecture, MAX_REGISTERS, WARP};
use crate::launch::Launch;
use crate::sass::Resources;
use crate::space::MAX_BLOCK_THREADS;
use serde::{Deserialize, Serialize};

/// The resources that a block takes of an SM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Threads of a block.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory of a block, static and dynamic, without the driver's reserve, in bytes.
    pub shared: u32,
    /// Named barriers of a block.
    pub barriers: u32,
    /// Virtual resources of a block.
    pub virtual_resources: u32,
    /// Preferred shared-memory carve-out in percent; `None` leaves it to the driver, which
    /// gives what the blocks need.
    pub carveout: Option<u8>,
}

impl Demand {
    /// What a block of a launch takes.
    pub fn new(resources: &Resources, launch: &Launch) -> Self {
        Self {
            threads: launch.block_threads(),
            registers: resources.registers,
            shared: resources.static_shared.saturating_add(launch.shared),
            barriers: resources.barriers,
            virtual_resources: resources.virtual_resources,
            carveout: launch.carveout,
        }
    }
}

/// The occupancy of an SM.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Occupancy {
    /// Resident blocks of an SM; 0 where a block cannot be resident at all.
    pub blocks: u32,
    /// Resident warps of an SM.
    pub warps: u32,
    /// Resident warps over the most that the SM holds.
    pub fraction: f64,
    /// The resource that allows no further block; of several the first in the order of
    /// [`Limiter`].
    pub limiter: Limiter,
}

/// A resource of an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limiter {
    Warps,
    Registers,
    SharedMemory,
    Blocks,
    Barriers,
    VirtualResources,
}

/// Computes the occupancy of an SM under blocks of one kind.
pub fn compute_occupancy(architecture: &Architecture, demand: &Demand) -> Occupancy {
    let warps = demand.threads.div_ceil(WARP);
    let limits = [
        (Limiter::Warps, by_warps(architecture, demand.threads, warps)),
        (Limiter::Registers, by_registers(architecture, demand.registers, warps)),
        (Limiter::SharedMemory, by_shared(architecture, demand.shared, demand.carveout)),
        (Limiter::Blocks, architecture.max_blocks),
        (Limiter::Barriers, by_share(architecture.barriers, demand.barriers)),
        (Limiter::VirtualResources, by_share(architecture.virtual_resources, demand.virtual_resources)),
    ];
    let (mut limiter, mut blocks) = limits[0];
    for (resource, limit) in limits {
        if limit < blocks {
            (limiter, blocks) = (resource, limit);
        }
    }
    let resident = blocks * warps;
    Occupancy { blocks, warps: resident, fraction: f64::from(resident) / f64::from(architecture.max_warps()), limiter }
}

fn by_warps(architecture: &Architecture, threads: u32, warps: u32) -> u32 {
    if threads == 0 || threads > MAX_BLOCK_THREADS { 0 } else { architecture.max_warps() / warps }
}

fn by_registers(architecture: &Architecture, registers: u32, warps: u32) -> u32 {
    if registers == 0 {
        return u32::MAX;
    }
    // `cuda_occupancy.h` allows 256, although no instruction can name that many.
    if registers > MAX_REGISTERS + 1 || warps == 0 {
        return 0;
    }
    let &Architecture { registers: all, register_unit, sub_cores, .. } = architecture;
    let per_warp = (registers * WARP).next_multiple_of(register_unit);
    // The hardware checks a block as if it took registers in all sub-cores.
    let assumed = per_warp.saturating_mul(warps.next_multiple_of(sub_cores));
    if assumed > all { 0 } else { all / sub_cores / per_warp * sub_cores / warps }
}

fn by_shared(architecture: &Architecture, shared: u32, carveout: Option<u8>) -> u32 {
    let asked = u64::from(shared) + u64::from(architecture.shared_reserved);
    let allocated = asked.next_multiple_of(u64::from(architecture.shared_unit));
    if allocated > u64::from(architecture.shared_per_block + architecture.shared_reserved) {
        return 0;
    }
    let capacity = carveout.map_or(architecture.shared, |percent| {
        let preferred = architecture.preferred_shared(percent);
        // A preference that is too small for one block is raised to what it takes.
        if u64::from(preferred) < allocated { architecture.shared_capacity(allocated) } else { preferred }
    });
    u64::from(capacity).checked_div(allocated).map_or(u32::MAX, |blocks| blocks as u32)
}

fn by_share(budget: Option<u32>, of_block: u32) -> u32 {
    budget.and_then(|budget| budget.checked_div(of_block)).unwrap_or(u32::MAX)
}
