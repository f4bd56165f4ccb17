//! Profiles a kernel by interpreting the PTX of a few threads, warps and blocks: how often each
//! line is executed, and what each memory access looks like.
//!
//! In: module, entry, launch, workload. Out: [`Profile`]. The interpreter reads the workload's own
//! data, lazily. First it runs the *counting threads*: middle, first and last thread of the
//! middle, first and last block. They run alone: values of other threads are unknown to them (see
//! `interpreter`), and their long loops are extrapolated, exactly if the outcome is certain (see
//! `loops`). Then it runs a few warps of the middle block, whose accesses are recorded, and some of
//! other blocks (see `sampling`); whole blocks if threads need each other's data.
//! The result is deterministic. No input makes it fail or run forever: unknown instructions give
//! unknown values, and [`Limits`] bounds the work.

mod access;
mod address_map;
mod aggregate;
mod arithmetic;
mod atomics;
mod bank_conflicts;
mod branch_trace;
mod decode;
mod float16;
mod grid_sampling;
mod interpreter;
mod l2_sharing;
mod limits;
mod loops;
mod masked_memory;
mod memory;
mod operation;
mod place;
pub mod profile;
mod program;
mod reconvergence;
mod register_slots;
mod request;
mod sampling;
mod stores;
mod stratum;

pub use interpreter::LaunchViolation;
pub use limits::Limits;
pub use profile::Profile;

use crate::launch::Launch;
use crate::ptx::Module;
use crate::ptx::opcode::{Class, Semantics};
use crate::workload::Workload;
use access::ExecutionTotals;
use aggregate::Tally;
use interpreter::{BlockAllowance, LaunchContext, ThreadAllowance, ThreadOutcome, ThreadPosition};
use interpreter::{run_block, run_thread};
use l2_sharing::NeighbourBlocks;
use memory::{Initial, Overlay};
use place::{middle_and_ends, unravel_index};
use program::{ParameterLocation, Program};
use sampling::{ReferenceWarp, Sampler};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Factor by which another thread must execute more than the middle one for its warp to become the
/// reference warp: the middle may lie beyond the data.
const BUSIER_FACTOR: f64 = 2.0;

/// A thread by the indices of its block and of the thread in it.
pub type BlockAndThread = ([u32; 3], [u32; 3]);

/// Why there is no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    #[error("the PTX has no entry `{name}`")]
    NoEntry { name: String },
    /// The grid or block has an empty dimension, or more threads than a launch takes.
    #[error("a launch of {grid:?} blocks of {block:?} threads is impossible")]
    Launch { grid: [u32; 3], block: [u32; 3] },
    #[error("the kernel takes {expected} arguments, the workload gives {given}")]
    Arguments { expected: usize, given: usize },
    #[error("argument {index} has {given} bytes, its parameter {expected}")]
    Size { index: usize, expected: u64, given: u64 },
    #[error("argument {index} names a buffer that the workload does not have")]
    Buffer { index: usize },
}

/// Profiles `entry` under a launch and workload.
///
/// # Errors
/// [`SimError`] where the entry does not exist, or the launch or the workload does not fit it.
pub fn profile_entry(
    module: &Module,
    entry: &str,
    launch: &Launch,
    workload: &Workload,
    limits: &Limits,
) -> Result<Profile, SimError> {
    with_context(module, entry, launch, workload, |context| profile_context(context, workload, limits))
}

fn profile_context(context: &LaunchContext<'_>, workload: &Workload, limits: &Limits) -> Profile {
    let (program, launch) = (context.program, context.launch);
    let mut tally = Tally::new(program, launch);

    let places = counting_places(launch);
    let mut budget = limits.instructions / 2;
    let (mut unknown_address, mut interpreted) = (false, 0);
    let (mut reference, mut longest) = (ReferenceWarp::of_thread(places[0], launch), 0.0);
    for (index, &at) in places.iter().enumerate() {
        // One thread to its end says more than many that are cut off: the first may take all, and
        // where the others do not fit into what is left, fewer are run.
        let share = if index == 0 { budget } else { budget / (places.len() - index) as u64 };
        let steps = share.max(interpreted + interpreted / 4);
        if steps > budget {
            tally.skip_further_threads();
            break;
        }
        let allowance = ThreadAllowance { steps, window: 0, warmup: 1, ..ThreadAllowance::default() };
        let outcome = run_thread(context, at, allowance);
        budget = budget.saturating_sub(outcome.interpreted);
        tally.raise_most(&outcome);
        tally.add_thread(at, &outcome);
        unknown_address |= outcome.unknown_address;
        interpreted = interpreted.max(outcome.interpreted);
        let instructions = tally.count_instructions(outcome.counts.iter().map(|&count| count as f64));
        if longest == 0.0 || instructions > longest * BUSIER_FACTOR {
            (reference, longest) = (ReferenceWarp::of_thread(at, launch), instructions);
        }
    }

    budget += limits.instructions - limits.instructions / 2;
    let (requests, totals) = (Vec::new(), ExecutionTotals::new(program.steps.len()));
    let mut sampler = Sampler {
        context,
        limits,
        reference,
        budget,
        tally,
        requests,
        totals,
        unknown_address,
        interpreted,
        block_cost: 0,
    };
    sampler.run_samples();
    let neighbours = NeighbourBlocks::new(context, &reference.end_threads(launch), limits.window);
    let Sampler { tally, mut requests, mut totals, .. } = sampler;
    let mean = tally.mean_counts();
    if let Some(executions) = tally.mean_executions(&mean) {
        totals.set_grid_average(executions);
    }
    requests.sort_by_key(|request| (request.time, request.warp, request.step));
    let profile = tally.build_profile(&mean);
    let settled = profile.settled && (!requests.is_empty() || !tally.accesses_memory());
    let sizes = workload.sizes();
    let spread = access::buffer_spread(&requests, &sizes);
    let open_lines = stores::open_lines(&requests);
    let accesses = access::accesses(program, &requests, &totals, workload.buffers.len(), neighbours);
    let warps = launch.blocks().saturating_mul(u64::from(launch.block_threads().div_ceil(32)));
    let variables = program.variables.iter().filter(|variable| !variable.constant).map(|variable| variable.size).sum();
    Profile { accesses, spread, open_lines, settled, variables, ..profile }
        .within_buffers(&sizes)
        .with_shared(&sizes, warps as f64)
}

/// What one thread, run alone, writes to the workload's buffers: known bytes by (buffer, byte
/// offset).
///
/// With a block of one thread this is what the device would write, but for rounding of
/// approximate instructions; it is how the interpreter's arithmetic is checked.
///
/// # Errors
/// As [`profile_entry`]; [`SimError::Launch`] where the block or thread lies outside the
/// launch.
pub fn written_by_thread(
    module: &Module,
    entry: &str,
    launch: &Launch,
    workload: &Workload,
    (block, thread): ([u32; 3], [u32; 3]),
    limits: &Limits,
) -> Result<BTreeMap<(usize, u64), u8>, SimError> {
    check_inside(thread, launch.block, launch)?;
    let run = |context: &LaunchContext<'_>| {
        // No loop is skipped: skipped stores would be missing.
        let allowance =
            ThreadAllowance { steps: limits.instructions, window: 0, warmup: u64::MAX, ..ThreadAllowance::default() };
        run_thread(context, ThreadPosition { block, thread }, allowance).global
    };
    writes_of_block(module, entry, launch, workload, block, run)
}

/// Returns the lines of PTX that each of these threads (its block, its place in the
/// block) executes when it runs alone. A thread has `None` if it does not end within
/// `instructions`, or if its path depends on unknown values.
///
/// # Errors
/// As [`profile_entry`]; [`SimError::Launch`] where a block or thread lies outside the launch.
pub fn executed_lines(
    module: &Module,
    entry: &str,
    launch: &Launch,
    workload: &Workload,
    places: &[BlockAndThread],
    instructions: u64,
) -> Result<Vec<Option<BTreeSet<u32>>>, SimError> {
    let allowance = ThreadAllowance { steps: instructions, window: 0, warmup: u64::MAX, ..ThreadAllowance::default() };
    run_alone(module, entry, launch, workload, (places, allowance), |context, outcome| {
        let run = outcome.counts.iter().zip(&context.program.steps).filter(|(count, _)| **count > 0);
        (outcome.exact && !outcome.cut).then(|| run.map(|(_, step)| step.line).collect())
    })
}

/// Returns the first invalid access of each of these threads (block, place in the block),
/// run alone for at most `instructions`. An access is invalid if it certainly leaves the
/// workload's buffers or the block's shared memory.
///
/// # Errors
/// As [`profile_entry`]; [`SimError::Launch`] where a block or thread lies outside the launch.
pub fn find_violations(
    module: &Module,
    entry: &str,
    launch: &Launch,
    workload: &Workload,
    places: &[BlockAndThread],
    instructions: u64,
) -> Result<Vec<LaunchViolation>, SimError> {
    let buffers_unknown = waits_for_others(module);
    let allowance = ThreadAllowance {
        steps: instructions,
        window: 0,
        warmup: u64::MAX,
        detect_violations: true,
        buffers_unknown,
        ..ThreadAllowance::default()
    };
    let found = run_alone(module, entry, launch, workload, (places, allowance), |_, outcome| outcome.violation)?;
    Ok(found.into_iter().flatten().collect())
}

/// Runs each of these threads alone and collects what `take` makes of the outcome.
fn run_alone<T>(
    module: &Module,
    entry: &str,
    launch: &Launch,
    workload: &Workload,
    (places, allowance): (&[BlockAndThread], ThreadAllowance),
    take: impl Fn(&LaunchContext<'_>, ThreadOutcome) -> T,
) -> Result<Vec<T>, SimError> {
    for &(block, thread) in places {
        check_inside(block, launch.grid, launch)?;
        check_inside(thread, launch.block, launch)?;
    }
    with_context(module, entry, launch, workload, |context| {
        let run =
            |&(block, thread): &_| take(context, run_thread(context, ThreadPosition { block, thread }, allowance));
        places.iter().map(run).collect()
    })
}

/// Tells whether threads of the module may read from global memory what others of the same launch
/// have written there.
fn waits_for_others(module: &Module) -> bool {
    let bodies = module.functions.iter().filter_map(|function| function.body.as_ref());
    bodies.flat_map(|body| body.instructions()).any(|instruction| match instruction.opcode.class() {
        Class::Barrier | Class::Fence | Class::Atomic | Class::Reduction => true,
        Class::Load => matches!(instruction.opcode.semantics(), Some(Semantics::Volatile | Semantics::Acquire)),
        _ => false,
    })
}

/// What all threads of a block, run together, write to the workload's buffers: known bytes by
/// (buffer, byte offset). `limits` counts the instructions of a warp as one.
///
/// # Errors
/// As [`profile_entry`]; [`SimError::Launch`] where the block lies outside the launch.
pub fn written_together(
    module: &Module,
    entry: &str,
    launch: &Launch,
    workload: &Workload,
    block: [u32; 3],
    limits: &Limits,
) -> Result<BTreeMap<(usize, u64), u8>, SimError> {
    let run = |context: &LaunchContext<'_>| {
        let warps = 0..launch.block_threads().div_ceil(32);
        let allowance = BlockAllowance {
            steps: limits.instructions,
            reserved_steps: 0,
            warps: warps.clone(),
            recorded: warps,
            window: 0,
            detects_races: false,
        };
        run_block(context, block, &allowance).global
    };
    writes_of_block(module, entry, launch, workload, block, run)
}

/// Returns the name of a variable in shared memory that warps of a block access without a barrier
/// between them, one of them writing it, within their first `steps` instructions together; empty
/// where no variable of the module lies there. `None`: no such access was found, or a branch
/// before it depends on an unknown value.
///
/// Barriers of the whole block are the only order between warps that is known: other order makes
/// races of accesses that are none.
///
/// # Errors
/// As [`profile_entry`]; [`SimError::Launch`] where the block lies outside the launch.
pub fn find_shared_race(
    module: &Module,
    entry: &str,
    launch: &Launch,
    workload: &Workload,
    block: [u32; 3],
    steps: u64,
) -> Result<Option<String>, SimError> {
    check_inside(block, launch.grid, launch)?;
    with_context(module, entry, launch, workload, |context| {
        let warps = 0..launch.block_threads().div_ceil(32);
        let allowance =
            BlockAllowance { steps, reserved_steps: 0, warps, recorded: 0..0, window: 0, detects_races: true };
        let offset = run_block(context, block, &allowance).race?;
        Some(context.program.shared_variable(offset).unwrap_or_default().to_owned())
    })
}

fn writes_of_block(
    module: &Module,
    entry: &str,
    launch: &Launch,
    workload: &Workload,
    block: [u32; 3],
    run: impl Fn(&LaunchContext<'_>) -> Overlay,
) -> Result<BTreeMap<(usize, u64), u8>, SimError> {
    check_inside(block, launch.grid, launch)?;
    let written = with_context(module, entry, launch, workload, run)?;
    Ok(written
        .known_bytes()
        .filter_map(|(address, byte)| memory::in_buffer(address).map(|place| (place, byte)))
        .collect())
}

/// Decodes the kernel, checks launch and arguments, and calls `run` with their context.
fn with_context<T>(
    module: &Module,
    entry: &str,
    launch: &Launch,
    workload: &Workload,
    run: impl FnOnce(&LaunchContext<'_>) -> T,
) -> Result<T, SimError> {
    let function = module.entry(entry).ok_or_else(|| SimError::NoEntry { name: entry.to_owned() })?;
    check_launch(launch)?;
    let program = decode::decode_entry(module, function);
    let arguments = argument_bytes(&program, workload)?;
    let given = memory::given_variables(&program.variables, &workload.symbols);
    let initial =
        Initial { buffers: &workload.buffers, given: &given, globals: &program.globals, constants: &program.constants };
    let analyses = RefCell::default();
    Ok(run(&LaunchContext { program: &program, initial: &initial, arguments: &arguments, launch, analyses: &analyses }))
}

fn check_inside(index: [u32; 3], extents: [u32; 3], launch: &Launch) -> Result<(), SimError> {
    let inside = index.iter().zip(extents).all(|(&i, extent)| i < extent);
    if inside { Ok(()) } else { Err(SimError::Launch { grid: launch.grid, block: launch.block }) }
}

fn check_launch(launch: &Launch) -> Result<(), SimError> {
    let threads = launch.block.iter().try_fold(1u32, |product, &n| product.checked_mul(n));
    let blocks = launch.grid.iter().try_fold(1u64, |product, &n| product.checked_mul(u64::from(n)));
    match (threads, blocks) {
        (Some(1..=1024), Some(1..)) => Ok(()),
        _ => Err(SimError::Launch { grid: launch.grid, block: launch.block }),
    }
}

/// The bytes of the entry's parameters.
fn argument_bytes(program: &Program, workload: &Workload) -> Result<Vec<u8>, SimError> {
    let formals = program.routines.first().map_or(&[][..], |routine| &routine.formals);
    if formals.len() != workload.arguments.len() {
        return Err(SimError::Arguments { expected: formals.len(), given: workload.arguments.len() });
    }
    let mut bytes = Vec::new();
    for (index, (formal, argument)) in formals.iter().zip(&workload.arguments).enumerate() {
        let ParameterLocation::Param(at, size) = *formal else {
            continue;
        };
        let address = |buffer: usize| (buffer < workload.buffers.len()).then(|| memory::buffer_base(buffer));
        let value = argument.bytes(address).map_err(|_| SimError::Buffer { index })?;
        if value.len() as u64 != size {
            return Err(SimError::Size { index, expected: size, given: value.len() as u64 });
        }
        bytes.resize(at as usize, 0);
        bytes.extend(value);
    }
    Ok(bytes)
}

/// The threads that are counted, the most common kind first.
fn counting_places(launch: &Launch) -> Vec<ThreadPosition> {
    let threads = middle_and_ends(launch.block);
    let mut places = Vec::new();
    for block in middle_and_ends(launch.grid) {
        for &thread in &threads {
            places.push(ThreadPosition {
                block: unravel_index(block, launch.grid),
                thread: unravel_index(thread, launch.block),
            });
        }
    }
    places
}
