//! Efficiency and utilization, the metrics of Ryoo et al. (CGO 2008), section 4.

use serde::{Deserialize, Serialize};

/// What the metrics depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    /// Instructions that a thread executes.
    pub instructions: f64,
    /// Stretches of a thread's instructions between blocking ones.
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

/// Equations 1 and 2.
pub fn metrics(counts: &Counts) -> Metrics {
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

    /// The matrix multiplication that the paper works through in section 4: 4096 x 4096, tiles of 16 x 16.
    #[test]
    fn matrix_multiplication_of_the_paper() {
        let (barriers, pairs_of_loads) = (512.0, 256.0);
        let counts = Counts {
            instructions: 15_150.0,
            regions: barriers + pairs_of_loads + 1.0,
            threads: f64::from(1 << 24),
            block_warps: 8,
            blocks: 8192 / (13 * 256),
        };
        assert_eq!(counts.regions, 769.0);
        let Metrics { efficiency, utilization } = metrics(&counts);
        assert_eq!(format!("{efficiency:.2e}"), "3.93e-12");
        assert_eq!(utilization.round(), 227.0);
    }
}
