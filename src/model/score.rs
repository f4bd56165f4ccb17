//! One configuration's kernel, launch and machine -> its score.

use super::analysis::Analysis;
use super::bottleneck::Bottleneck;
use super::breakdown::Terms;
use super::occupancy::{Demand, Limiter, Occupancy, compute_occupancy};
use super::time;
use super::{liang, ryoo};
use crate::gpu::{Machine, WARP};
use crate::launch::Launch;
use crate::space::{MAX_BLOCK, MAX_BLOCK_THREADS, MAX_GRID};
use serde::{Deserialize, Serialize};

/// The configuration to be scored, and the machine.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    pub machine: &'a Machine,
    /// The variant's kernel, analysed once for all its block shapes.
    pub kernel: &'a Analysis,
    pub launch: &'a Launch,
    /// Bytes of each of the workload's buffers, where it is known.
    pub buffers: Option<&'a [u64]>,
}

/// The model's metrics and prediction for a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Resident warps over the most that an SM holds.
    pub occupancy: f64,
    /// Resident blocks of an SM.
    pub blocks_per_sm: u32,
    /// The resource that allows no further block.
    pub limiter: Limiter,
    /// Registers of a thread.
    pub registers: u32,
    /// Occupancy x register ratio (Liang et al.).
    pub ro: f64,
    /// Threads that an SM could hold in addition (Liang et al.).
    pub t: f64,
    /// Estimated cycles of a single thread (Liang et al., equation 1).
    pub c: f64,
    /// Ryoo et al., equation 1.
    pub efficiency: f64,
    /// Ryoo et al., equation 2.
    pub utilization: f64,
    pub predicted_us: f64,
    /// The terms of the predicted time.
    #[serde(skip)]
    pub terms: Terms,
    /// Threads that are resident on an SM in this launch, over the most that it holds: less than
    /// the occupancy if warps are not full or the grid is small.
    #[serde(skip)]
    pub in_flight: f64,
    pub bottleneck: Bottleneck,
    /// Whether the kernel can be launched with this configuration.
    pub feasible: bool,
    /// Whether `c` and what follows from it rest on an exact profile.
    pub exact: bool,
}

/// Scores one configuration.
pub fn score_configuration(inputs: &Inputs<'_>) -> Score {
    let Inputs { machine, kernel, launch, buffers } = *inputs;
    let (threads, resources) = (launch.block_threads(), &kernel.resources);
    let demand = Demand::new(resources, launch);
    let occupancy = compute_occupancy(&machine.architecture, &demand);
    let feasible = occupancy.blocks > 0 && may_launch(kernel, launch);
    let ryoo = ryoo::compute_metrics(&ryoo::Counts {
        instructions: kernel.instructions,
        regions: kernel.regions,
        threads: launch.grid.iter().map(|&n| f64::from(n)).product::<f64>() * f64::from(threads),
        block_warps: threads.div_ceil(WARP),
        blocks: occupancy.blocks,
    });
    let prediction = if feasible {
        time::predict_time(machine, kernel, launch, &occupancy, buffers)
    } else {
        time::Prediction::impossible(kernel)
    };
    let po = liang::parallelism_pair(&machine.architecture, occupancy.fraction, prediction.cycles);
    Score {
        occupancy: occupancy.fraction,
        blocks_per_sm: occupancy.blocks,
        limiter: occupancy.limiter,
        registers: resources.registers,
        ro: liang::register_occupancy(occupancy.fraction, resources.registers),
        t: po.t,
        c: po.c,
        efficiency: ryoo.efficiency,
        utilization: ryoo.utilization,
        predicted_us: prediction.us,
        terms: prediction.terms,
        in_flight: in_flight(machine, launch, &occupancy),
        bottleneck: prediction.bottleneck,
        feasible,
        exact: kernel.exact,
    }
}

fn in_flight(machine: &Machine, launch: &Launch, occupancy: &Occupancy) -> f64 {
    let blocks = f64::from(occupancy.blocks).min(launch.blocks() as f64 / f64::from(machine.sms.max(1)));
    blocks * f64::from(launch.block_threads()) / f64::from(machine.architecture.max_threads)
}

/// Whether the shape is one that the hardware and the kernel's launch bounds allow.
fn may_launch(kernel: &Analysis, launch: &Launch) -> bool {
    let within = |shape: &[u32; 3], most: &[u32; 3]| shape.iter().zip(most).all(|(n, most)| (1..=*most).contains(n));
    let threads = launch.block_threads();
    let resources = &kernel.resources;
    let bound = resources
        .max_threads
        .map_or(MAX_BLOCK_THREADS, |shape| shape.iter().fold(1, |all: u32, &n| all.saturating_mul(n)));
    within(&launch.grid, &MAX_GRID)
        && within(&launch.block, &MAX_BLOCK)
        && threads <= bound
        && resources.required_threads.is_none_or(|shape| shape == launch.block)
        && resources.cluster.is_none_or(|shape| {
            launch.grid.iter().zip(shape).all(|(blocks, of_cluster)| blocks.is_multiple_of(of_cluster.max(1)))
        })
}
