//! Efficiency and utilization, the metrics of Ryoo et al. (CGO 2008), section 4.

use serde::{Deserialize, Serialize};

/// The counts that the metrics depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    /// Instructions that a thread executes.
    pub instructions: f64,
    /// Regions of a thread's instructions, which blocking instructions separate.
    pub regions: f64,
    /// Threads of the grid.
    pub threads: f64,
    /// Warps of a block.
    pub block_warps: u32,
    /// Resident blocks of an SM.
    pub blocks: u32,
}

/// The two metrics; more is better in both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// 1 / (instructions of all threads): equation 1.
    pub efficiency: f64,
    /// How much other work an SM has while a warp is blocked: equation 2.
    pub utilization: f64,
}

/// Computes equations 1 and 2.
pub fn compute_metrics(counts: &Counts) -> Metrics {
    let warps = f64::from(counts.block_warps);
    let others = (warps - 1.0) / 2.0 + (f64::from(counts.blocks) - 1.0) * warps;
    Metrics {
        efficiency: 1.0 / (counts.instructions * counts.threads),
        utilization: counts.instructions / counts.regions * others.max(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::Architecture;
    use crate::model::occupancy::{Demand, Limiter, Occupancy, compute_occupancy};

    /// The GeForce 8800 (table 2 of the paper). It gives registers to whole blocks, so without
    /// rounding for a warp.
    const G80: Architecture = Architecture {
        capability: 10,
        max_threads: 768,
        max_blocks: 8,
        registers: 8192,
        register_unit: 32,
        sub_cores: 1,
        shared: 16_384,
        shared_per_block: 16_384,
        shared_unit: 512,
        shared_reserved: 0,
        barriers: None,
        virtual_resources: None,
        unified_cache: 16_384,
    };

    fn on_g80(threads: u32, registers: u32, shared: u32) -> Occupancy {
        compute_occupancy(&G80, &Demand { threads, registers, shared, ..Demand::default() })
    }

    /// Section 2.2: 256 threads of 10 registers with 4 KB of shared memory; a register more
    /// costs a block of three, 1 KB more nothing.
    #[test]
    fn occupancy_of_the_paper() {
        let of = |registers: u32, kilobytes: u32| {
            let found = on_g80(256, registers, kilobytes * 1024);
            (found.blocks, found.warps * 32, found.limiter)
        };
        assert_eq!(of(10, 4), (3, 768, Limiter::Warps));
        assert_eq!(of(11, 4), (2, 512, Limiter::Registers), "3 x 256 x 11 = 8,448 registers");
        assert_eq!(of(10, 5), (3, 768, Limiter::Warps));
        // Section 3.2: blocks of 8 x 8 threads could be eight of an SM, those of 16 x 16 three.
        assert_eq!((on_g80(64, 10, 0).blocks, on_g80(256, 10, 0).blocks), (8, 3));
    }

    /// The matrix multiplication that the paper works through in section 4: 4096 x 4096, tiles
    /// of 16 x 16.
    #[test]
    fn matrix_multiplication_of_the_paper() {
        let (barriers, pairs_of_loads) = (512.0, 256.0);
        let resident = on_g80(256, 13, 2088);
        let counts = Counts {
            instructions: 15_150.0,
            regions: barriers + pairs_of_loads + 1.0,
            threads: f64::from(1 << 24),
            block_warps: 256 / 32,
            blocks: resident.blocks,
        };
        assert_eq!((counts.blocks, counts.block_warps), (2, 8));
        assert_eq!(counts.regions, 769.0);
        let Metrics { efficiency, utilization } = compute_metrics(&counts);
        assert_eq!(format!("{efficiency:.2e}"), "3.93e-12");
        assert_eq!(utilization.round(), 227.0);
    }
}
