//! Scores of kernels, compared with NVIDIA's occupancy header, with papers and with measured times.

mod block_counts;
mod cycles;
mod occupancy;
mod prediction;
mod stores;

use super::support::{fixtures, toolkit};
use nvtune::cuda::{Element, Scalar};
use nvtune::gpu::{Architecture, Machine, auto_caps};
use nvtune::launch::Launch;
use nvtune::model::Limiter;
use nvtune::model::occupancy::{Demand, compute_occupancy};
use nvtune::model::{Analysis, Bottleneck, Inputs, Score, Terms, Traffic, score_configuration};
use nvtune::ptx::Module;
use nvtune::ptx::{AccessKind, MemorySpace};
use nvtune::sass::{Cubin, CubinKernel};
use nvtune::sim;
use nvtune::sim::Profile;
use nvtune::sim::profile::{Access, Spread};
use nvtune::workload::{Argument, Buffer, Fill, Workload};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn architecture(capability: u32) -> Architecture {
    Architecture::find(capability).expect("an architecture of the table")
}

fn counts(lines: impl IntoIterator<Item = (u32, f64)>) -> Profile {
    let counts: BTreeMap<u32, f64> = lines.into_iter().collect();
    let mean_instructions = counts.values().sum();
    Profile { mean: counts.clone(), counts, mean_instructions, exact: true, ..Profile::default() }
}

const CUDA12_SM90: &[u8] = include_bytes!("cubin/cuda12.sm_90.cubin");

/// The profile of `cuda12.ptx` with `n` iterations of its loop, whose load (line 38) is as `access` says.
fn total(n: f64, access: Access) -> Profile {
    let once = (26..=33).chain(46..=62).chain(9..=14);
    let mut profile = counts(once.map(|line| (line, 1.0)).chain((34..=41).map(|line| (line, n))));
    profile.accesses.insert(38, access);
    profile
}

fn coalesced() -> Access {
    Access {
        space: MemorySpace::Global,
        kind: AccessKind::Load,
        width: 4,
        sectors: 4.0,
        passes: 1.0,
        lanes: 32.0,
        ..Access::default()
    }
}

fn scored(analysis: &Analysis, grid: u32, block: u32) -> Score {
    let machine = Machine::flagship_of(architecture(90));
    let launch = Launch { grid: [grid, 1, 1], block: [block, 1, 1], shared: 0, carveout: None, coarsening: None };
    score_configuration(&Inputs { machine: &machine, kernel: analysis, launch: &launch, buffers: None })
}
