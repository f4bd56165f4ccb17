//! A recorded space -> how many instructions the model says that its baseline executes, block by block of its machine code; what a
//! profiler counts on the GPU can be held against it (`kernels/ncu.py`).

use nvtune::model::Analysis;
use nvtune::ptx::Module;
use nvtune::record::{RecordedSpace, SpaceError};
use nvtune::sass::Cubin;
use nvtune::sim;
use serde::Serialize;

/// Threads of a warp.
const WARP: u64 = 32;

/// What the model says of a baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Instructions {
    pub kernel: String,
    /// Its name in the machine code.
    pub symbol: String,
    /// Warps of the grid.
    pub warps: u64,
    /// Warp instructions of the whole grid: those of the average warp, times `warps`.
    pub instructions: f64,
    /// Whether all that the profile rests on was known; otherwise it holds estimates.
    pub exact: bool,
    pub blocks: Vec<Block>,
}

/// Instructions that are executed one after another.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Block {
    /// First byte, from the section's start.
    pub offset: u32,
    pub instructions: usize,
    /// How often the average warp executes them.
    pub count: f64,
}

/// What the model says of the baseline of a space.
///
/// # Errors
/// Where the record is broken.
pub fn instructions(space: &RecordedSpace) -> Result<Instructions, SpaceError> {
    let broken = |problem: &str| SpaceError::Inconsistent(problem.to_owned());
    let input = nvtune::tune::recorded_scoring_input(space)?;
    let index = input.baseline;
    let variant = *input.variants[index].as_ref().map_err(|problem| broken(problem))?;
    let (code, source, launch) =
        (&input.codes[variant], &input.sources[input.source_of[index]], &input.launches[index]);
    let ptx = source.ptx.as_deref().ok_or_else(|| broken("its baseline has no PTX"))?;
    let module = Module::parse(ptx).map_err(|error| broken(&error.to_string()))?;
    let workload = input.workloads[index].as_deref().ok_or_else(|| broken("its baseline has no workload"))?;
    let profile = sim::profile_entry(&module, &source.symbol, launch, workload, &sim::Limits::default())
        .map_err(|error| broken(&error.to_string()))?;
    let cubin = Cubin::parse(&code.cubin).map_err(|error| broken(&error.to_string()))?;
    let kernel = cubin.kernel(&code.symbol).ok_or_else(|| broken("its baseline is not in its cubin"))?;
    let analysis = Analysis::with_trips(kernel, Some(&profile), &input.trips[index]);
    let blocks = analysis.flow().blocks.iter().zip(analysis.block_counts());
    let blocks = blocks.map(|(block, &count)| Block {
        offset: analysis.code().get(block.instructions.start).map_or(0, |first| first.offset),
        instructions: block.instructions.len(),
        count,
    });
    let of_block: u64 = launch.block.iter().map(|&n| u64::from(n)).product();
    let warps = launch.blocks() * of_block.div_ceil(WARP);
    Ok(Instructions {
        kernel: space.kernel.clone(),
        symbol: code.symbol.clone(),
        warps,
        instructions: analysis.mean_instructions * warps as f64,
        exact: analysis.exact,
        blocks: blocks.collect(),
    })
}
