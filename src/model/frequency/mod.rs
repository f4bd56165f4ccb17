//! How often each PTX line is executed, and how each memory access looks: found by running a few threads.
//!
//! Module + entry + launch + workload -> [`Profile`]. The PTX of the kernel is interpreted on the workload's own data, which
//! is read lazily. First the *counting threads*: first, middle and last thread of the first, middle and last block. Then
//! every lane of up to four warps of the middle block, whose addresses are laid side by side. A thread runs alone: what
//! others would have provided is unknown to it (see [`thread`]). Long loops are extrapolated (see [`loops`]), exactly
//! where their course is certain. The result is deterministic, and no input makes it fail or run on: unknown
//! instructions give unknown values, and [`Limits`] bounds the work.

mod access;
mod arithmetic;
mod decode;
mod half;
mod loops;
mod memory;
mod operation;
mod path;
mod program;
mod thread;

use super::profile::Profile;
use crate::ptx::Module;
use crate::space::Launch;
use crate::workload::Workload;
use access::Lane;
use memory::Initial;
use path::Path;
use program::{Passing, Program};
use std::cell::RefCell;
use std::collections::BTreeMap;
use thread::{Allowance, Ground, Outcome, Place3, Thread};

/// Instructions that a lane of a further warp may take: enough to fill the record of its accesses.
const LANE: u64 = 1 << 14;

/// What the interpreter may spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions interpreted in all.
    pub instructions: u64,
    /// Executions of each memory instruction that are recorded for a thread.
    pub window: u32,
    /// Warps whose accesses are looked at (as far as the instructions suffice).
    pub warps: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { instructions: 3_000_000, window: 32, warps: 4 }
    }
}

/// Why there is no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
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

/// The profile of `entry` under a launch and workload.
///
/// # Errors
/// [`Error`] where the entry does not exist, or the launch or the workload does not fit it.
pub fn profile(
    module: &Module,
    entry: &str,
    launch: &Launch,
    workload: &Workload,
    limits: &Limits,
) -> Result<Profile, Error> {
    let function = module.entry(entry).ok_or_else(|| Error::NoEntry { name: entry.to_owned() })?;
    check(launch)?;
    let program = decode::decode(module, function);
    let arguments = arguments(&program, workload)?;
    let given = memory::given(&program.variables, &workload.symbols);
    let initial =
        Initial { buffers: &workload.buffers, given: &given, globals: &program.globals, constants: &program.constants };
    let mut tally = Tally::new(&program, launch);
    let analyses = RefCell::default();
    let ground = Ground { program: &program, initial: &initial, arguments: &arguments, launch, analyses: &analyses };
    let run = |at: Place3, allowance: Allowance| Thread::new(&ground, at, allowance).run();

    let places = counting_places(launch);
    let mut budget = limits.instructions / 2;
    for (index, &at) in places.iter().enumerate() {
        let steps = budget / (places.len() - index) as u64;
        let outcome = run(at, Allowance { steps, window: 0, warmup: 1, path: false });
        budget = budget.saturating_sub(outcome.interpreted);
        tally.most(&outcome);
        tally.thread(at, &outcome);
    }

    budget += limits.instructions - limits.instructions / 2;
    let warmup = u64::from(limits.window / 4).max(1);
    let mut lanes: Vec<Lane> = Vec::new();
    let mut dearest = 0;
    for (number, (warp, threads)) in sampled_warps(launch, limits.warps).into_iter().enumerate() {
        // A further warp must be affordable, judging by the dearest lane so far.
        if number > 0 && dearest * 32 > budget {
            break;
        }
        // The first warp may take half of what is left: it is there for the counts too.
        let share = if number == 0 { budget / 2 } else { budget.min(LANE.max(dearest + dearest / 4) * 32) };
        let mut left = share;
        let window = if warp.is_some() { limits.window } else { 0 };
        let mut together = Together::default();
        for (index, &(lane, at)) in threads.iter().enumerate() {
            let steps = left / (threads.len() - index) as u64;
            let outcome = run(at, Allowance { steps, window, warmup, path: true });
            budget = budget.saturating_sub(outcome.interpreted);
            left = left.saturating_sub(outcome.interpreted);
            dearest = dearest.max(outcome.interpreted);
            // A lane is cut short sooner than a counting thread; its estimate is no better than their counts.
            if !outcome.estimated || !tally.exact {
                tally.most(&outcome);
            }
            together.at = Some(at);
            together.ended &= !outcome.cut;
            if let Some(warp) = warp {
                lanes.push(Lane { warp, lane, touches: outcome.touches, counts: outcome.counts.clone() });
            }
            together.counts.push(outcome.counts);
            together.paths.push(outcome.path);
        }
        tally.warp(together);
    }
    let accesses = access::accesses(&program, &lanes, workload.buffers.len());
    Ok(Profile { accesses, ..tally.profile() })
}

/// What one thread, run alone, writes to the workload's buffers: known bytes by (buffer, byte offset).
///
/// With a block of one thread this is what the device would write, but for rounding of approximate instructions; it is
/// how the interpreter's arithmetic is checked.
///
/// # Errors
/// As [`profile`]; [`Error::Launch`] where the block or thread lies outside the launch.
pub fn written(
    module: &Module,
    entry: &str,
    launch: &Launch,
    workload: &Workload,
    (block, thread): ([u32; 3], [u32; 3]),
    limits: &Limits,
) -> Result<BTreeMap<(usize, u64), u8>, Error> {
    let function = module.entry(entry).ok_or_else(|| Error::NoEntry { name: entry.to_owned() })?;
    check(launch)?;
    let inside = |index: [u32; 3], extents: [u32; 3]| index.iter().zip(extents).all(|(&i, extent)| i < extent);
    if !inside(block, launch.grid) || !inside(thread, launch.block) {
        return Err(Error::Launch { grid: launch.grid, block: launch.block });
    }
    let program = decode::decode(module, function);
    let arguments = arguments(&program, workload)?;
    let given = memory::given(&program.variables, &workload.symbols);
    let initial =
        Initial { buffers: &workload.buffers, given: &given, globals: &program.globals, constants: &program.constants };
    // No loop is skipped: skipped stores would be missing.
    let allowance = Allowance { steps: limits.instructions, window: 0, warmup: u64::MAX, path: false };
    let analyses = RefCell::default();
    let ground = Ground { program: &program, initial: &initial, arguments: &arguments, launch, analyses: &analyses };
    let outcome = Thread::new(&ground, Place3 { block, thread }, allowance).run();
    Ok(outcome
        .global
        .bytes()
        .filter_map(|(address, byte)| memory::in_buffer(address).map(|place| (place, byte)))
        .collect())
}

fn check(launch: &Launch) -> Result<(), Error> {
    let threads = launch.block.iter().try_fold(1u32, |product, &n| product.checked_mul(n));
    let blocks = launch.grid.iter().try_fold(1u64, |product, &n| product.checked_mul(u64::from(n)));
    match (threads, blocks) {
        (Some(1..=1024), Some(1..)) => Ok(()),
        _ => Err(Error::Launch { grid: launch.grid, block: launch.block }),
    }
}

/// The bytes of the entry's parameters.
fn arguments(program: &Program, workload: &Workload) -> Result<Vec<u8>, Error> {
    let formals = program.routines.first().map_or(&[][..], |routine| &routine.formals);
    if formals.len() != workload.arguments.len() {
        return Err(Error::Arguments { expected: formals.len(), given: workload.arguments.len() });
    }
    let mut bytes = Vec::new();
    for (index, (formal, argument)) in formals.iter().zip(&workload.arguments).enumerate() {
        let Passing::Param(at, size) = *formal else {
            continue;
        };
        let address = |buffer: usize| (buffer < workload.buffers.len()).then(|| memory::buffer_base(buffer));
        let value = argument.bytes(address).map_err(|_| Error::Buffer { index })?;
        if value.len() as u64 != size {
            return Err(Error::Size { index, expected: size, given: value.len() as u64 });
        }
        bytes.resize(at as usize, 0);
        bytes.extend(value);
    }
    Ok(bytes)
}

/// Splits a linear index into x, y and z.
fn unravel(index: u64, extents: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = extents.map(u64::from);
    [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]
}

/// First, middle and last of `count`, without repetition.
fn ends_and_middle(count: u64) -> Vec<u64> {
    let mut indices = vec![0, count / 2, count - 1];
    indices.dedup();
    indices
}

fn counting_places(launch: &Launch) -> Vec<Place3> {
    let threads = ends_and_middle(u64::from(launch.block_threads()));
    let mut places = Vec::new();
    for block in ends_and_middle(launch.blocks()) {
        for &thread in &threads {
            places.push(Place3 { block: unravel(block, launch.grid), thread: unravel(thread, launch.block) });
        }
    }
    places
}

/// Up to `most` neighbouring warps in the middle of a block.
fn warps(launch: &Launch, most: u32) -> Vec<u32> {
    let count = launch.block_threads().div_ceil(32);
    let most = most.clamp(1, count);
    let first = (count / 2).min(count - most);
    (first..first + most).collect()
}

/// A warp's number, where its accesses are looked at, and its threads by lane.
type SampledWarp = (Option<u32>, Vec<(u32, Place3)>);

/// The warps that are run: neighbours in the middle block, and after the first of them one each of a block from the first and the
/// last quarter of the grid, for data may make blocks differ; of those only the counts are looked at.
fn sampled_warps(launch: &Launch, most: u32) -> Vec<SampledWarp> {
    let middle = launch.blocks() / 2;
    let mut sampled: Vec<SampledWarp> =
        warps(launch, most).into_iter().map(|warp| (Some(warp), warp_places(launch, middle, warp))).collect();
    let count = launch.block_threads().div_ceil(32);
    for (block, warp) in [(launch.blocks() / 5, count / 3), (launch.blocks() - 1 - launch.blocks() / 5, count * 2 / 3)]
    {
        if block != middle {
            sampled.insert(1.min(sampled.len()), (None, warp_places(launch, block, warp)));
        }
    }
    sampled
}

/// The threads of a warp, by lane.
fn warp_places(launch: &Launch, block: u64, warp: u32) -> Vec<(u32, Place3)> {
    let block = unravel(block, launch.grid);
    let threads = warp * 32..(warp * 32 + 32).min(launch.block_threads());
    threads.map(|thread| (thread % 32, Place3 { block, thread: unravel(u64::from(thread), launch.block) })).collect()
}

/// The lanes of a warp that was run.
struct Together {
    /// The last of them.
    at: Option<Place3>,
    counts: Vec<Vec<u64>>,
    paths: Vec<Path>,
    /// No lane was cut off.
    ended: bool,
}

impl Default for Together {
    fn default() -> Self {
        Self { at: None, counts: Vec::new(), paths: Vec::new(), ended: true }
    }
}

/// Counts gathered over threads.
struct Tally<'p> {
    program: &'p Program,
    launch: Launch,
    /// Executions of each step by the busiest thread.
    most: Vec<u64>,
    /// How much oftener than its busiest lane a warp executes each step, summed over warps, and the number of these.
    shared: Vec<f64>,
    warps: f64,
    /// Instructions of a warp over those of its average lane, summed.
    gain: f64,
    exact: bool,
    /// Instructions of each thread or warp that was run, whether it was run to its end, and whether it is a warp.
    threads: Vec<(Place3, f64, bool, bool)>,
}

impl<'p> Tally<'p> {
    fn new(program: &'p Program, launch: &Launch) -> Self {
        let most = vec![0; program.steps.len()];
        let shared = vec![0.0; program.steps.len()];
        Self { program, launch: *launch, most, shared, warps: 0.0, gain: 0.0, exact: true, threads: Vec::new() }
    }

    fn most(&mut self, outcome: &Outcome) {
        for (most, &count) in self.most.iter_mut().zip(&outcome.counts) {
            *most = count.max(*most);
        }
        self.exact &= outcome.exact && !outcome.estimated;
    }

    fn thread(&mut self, at: Place3, outcome: &Outcome) {
        let instructions = self.instructions(outcome.counts.iter().map(|&count| count as f64));
        self.threads.push((at, instructions, !outcome.cut, false));
    }

    /// A warp executes what any of its lanes does.
    fn warp(&mut self, warp: Together) {
        let Some(at) = warp.at else { return };
        let by_block = path::shared(&warp.paths);
        let mut now = 1.0;
        let mut counts = vec![0.0; self.program.steps.len()];
        for (step, count) in counts.iter_mut().enumerate() {
            if self.program.leaders[step] {
                now = by_block.get(&(step as u32)).copied().unwrap_or(1.0);
            }
            self.shared[step] += now;
            *count = warp.counts.iter().map(|lane| lane[step]).max().unwrap_or(0) as f64 * now;
        }
        let lanes: f64 = warp.counts.iter().map(|lane| self.instructions(lane.iter().map(|&count| count as f64))).sum();
        let instructions = self.instructions(counts.into_iter());
        self.warps += 1.0;
        self.gain += if lanes > 0.0 { instructions / (lanes / warp.counts.len() as f64) } else { 1.0 };
        self.threads.push((at, instructions, warp.ended, true));
    }

    /// The implicit return at the end of a body has no line and is no instruction.
    fn instructions(&self, counts: impl Iterator<Item = f64>) -> f64 {
        counts.zip(&self.program.steps).filter(|(_, step)| step.line > 0).map(|(count, _)| count).sum()
    }

    /// Executions of each step by the busiest warp, as far as is known.
    fn counts(&self) -> impl Iterator<Item = f64> {
        let shared = self.shared.iter().map(|sum| if self.warps > 0.0 { sum / self.warps } else { 1.0 });
        self.most.iter().zip(shared).map(|(&most, shared)| most as f64 * shared)
    }

    /// The mean over the grid: the first and last of blocks and threads stand for themselves, the others that were
    /// looked at for all between. Threads that were cut off say nothing; where none was run to its end, all are taken
    /// for as busy as the busiest.
    fn mean(&self) -> f64 {
        let last_block = unravel(self.launch.blocks() - 1, self.launch.grid);
        let last_thread = unravel(u64::from(self.launch.block_threads()) - 1, self.launch.block);
        let class = |index: [u32; 3], last: [u32; 3]| {
            if index == [0; 3] {
                0
            } else if index == last {
                2
            } else {
                1
            }
        };
        let weights = |count: f64| [1.0, (count - 2.0).max(0.0), 1.0];
        let blocks = weights(self.launch.blocks() as f64);
        let threads = weights(f64::from(self.launch.block_threads()));
        let mut groups = [[(0.0f64, 0.0f64); 3]; 3];
        let gain = if self.warps > 0.0 { self.gain / self.warps } else { 1.0 };
        for (at, instructions, _, is_warp) in self.threads.iter().filter(|(_, _, ended, _)| *ended) {
            let group = &mut groups[class(at.block, last_block)][class(at.thread, last_thread)];
            group.0 += instructions * if *is_warp { 1.0 } else { gain };
            group.1 += 1.0;
        }
        let (mut sum, mut weight) = (0.0, 0.0);
        for (row, block) in groups.iter().zip(blocks) {
            for ((instructions, number), thread) in row.iter().zip(threads) {
                if *number > 0.0 {
                    sum += instructions / number * block * thread;
                    weight += block * thread;
                }
            }
        }
        if weight > 0.0 { sum / weight } else { self.busiest() }
    }

    fn busiest(&self) -> f64 {
        self.instructions(self.counts())
    }

    fn profile(&self) -> Profile {
        let mut profile = Profile { exact: self.exact, mean_instructions: self.mean(), ..Profile::default() };
        for (step, count) in
            self.program.steps.iter().zip(self.counts()).filter(|(step, count)| step.line > 0 && *count > 0.0)
        {
            let entry = profile.counts.entry(step.line).or_insert(0.0);
            *entry = entry.max(count);
        }
        profile
    }
}
