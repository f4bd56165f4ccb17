//! One variant's kernel and its profile -> what a warp of it does, for any block shape.

use super::counts::{self, Code};
use super::latency::{ASYNC_TENSOR_STEPS, Latencies, Throughput};
use super::profile::{Access, Kind, Profile, Space};
use super::replay::{Cost, Replay};
use crate::cubin::flow::Flow;
use crate::cubin::sass::{self, Class, Instruction, Pipe};
use crate::cubin::{Kernel, Resources};
use std::sync::Arc;

/// Sectors of 32 bytes for each byte that the 32 threads of a warp access side by side.
const SECTORS_PER_BYTE: f64 = 1.0;
/// Bytes that a thread accesses in one pass over shared memory's banks, or through the level-1 cache.
const PASS_BYTES: u32 = 4;
/// Sectors that the level-1 cache delivers in a cycle.
const SECTORS_PER_CYCLE: f64 = 4.0;

/// Intervals between reuses that are told apart, in powers of two; the last is for all longer ones.
pub const INTERVALS: usize = 24;

/// A kernel of one variant: all that scoring needs to know of its code.
#[derive(Clone, Debug)]
pub struct Analysis {
    pub resources: Resources,
    /// Local-memory instructions in the code.
    pub spills: Spills,
    /// Estimated cycles of a single thread (equation 1 of Liang et al.): C.
    pub cycles: f64,
    /// Of these, cycles waiting for global and local memory.
    pub memory_cycles: f64,
    /// Instructions that a thread executes.
    pub instructions: f64,
    /// Stretches of them between blocking ones, as Ryoo et al. count them.
    pub regions: f64,
    pub work: Work,
    /// Of a warp, by buffer.
    pub traffic: Vec<Traffic>,
    /// Whether block frequencies are those of an exact profile.
    pub exact: bool,
    decoded: Arc<Decoded>,
    /// Executions of each block of the flow by one thread.
    counts: Vec<f64>,
}

/// What one warp moves to and from one buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Index in the workload's buffers; none where it is not known or not always the same.
    pub buffer: Option<u32>,
    /// Sectors that it moves.
    pub sectors: f64,
    /// Lines of 128 bytes that they lie in.
    pub lines: f64,
    /// Of the sectors, those written.
    pub stored: f64,
}

/// Local-memory instructions, by spilled registers or local arrays, in the code (not executions).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spills {
    pub loads: u32,
    pub stores: u32,
}

/// What one warp asks of an SM and of the memory behind it, over its life.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Cycles of an SM that each pipe is busy for the warp.
    pub pipes: [f64; Pipe::COUNT],
    /// Of the memory pipe's cycles, those for shared memory.
    pub shared_cycles: f64,
    /// Sectors of global memory read that the warp or its block has not read before.
    pub sectors_loaded: f64,
    /// Sectors written, atomics included.
    pub sectors_stored: f64,
    /// Sectors read again by the same warp, by the binary logarithm of the instructions between.
    pub reused: [f64; INTERVALS],
    /// Sectors of local memory accessed.
    pub local_sectors: f64,
    pub barriers: f64,
    /// Share of the instructions that the average thread executes of those that the busiest does.
    pub activity: f64,
}

#[derive(Debug)]
struct Decoded {
    architecture: u32,
    instructions: Vec<Instruction>,
    lines: Vec<Option<u32>>,
    flow: Flow,
    /// Subroutines: offset and name.
    functions: Vec<(String, u32, u32)>,
}

impl Analysis {
    /// Decodes a kernel and finds what a warp of it does; the expensive part of scoring, once for each variant.
    pub fn new(kernel: &Kernel<'_>, profile: Option<&Profile>) -> Self {
        Self::assuming(kernel, profile, &[])
    }

    /// The same, with iterations of the loops that the profile does not know, from the outermost depth inwards.
    pub fn assuming(kernel: &Kernel<'_>, profile: Option<&Profile>, trips: &[f64]) -> Self {
        let instructions = sass::decode(kernel.code, kernel.architecture);
        let flow = Flow::new(kernel, &instructions);
        let lines = instructions.iter().map(|instruction| kernel.lines.get(instruction.offset)).collect();
        let functions = kernel.functions.iter().map(|f| (f.name.to_owned(), f.offset, f.size)).collect();
        let decoded = Decoded { architecture: kernel.architecture, instructions, lines, flow, functions };
        Self::of(Arc::new(decoded), kernel.resources.clone(), profile, trips)
    }

    /// The decoded instructions.
    pub fn code(&self) -> &[Instruction] {
        &self.decoded.instructions
    }

    /// The control flow.
    pub fn flow(&self) -> &Flow {
        &self.decoded.flow
    }

    /// Executions of each block of the flow by one thread.
    pub fn block_counts(&self) -> &[f64] {
        &self.counts
    }

    fn of(decoded: Arc<Decoded>, resources: Resources, profile: Option<&Profile>, trips: &[f64]) -> Self {
        let profile = profile.filter(|_| decoded.lines.iter().any(Option::is_some));
        let functions: Vec<_> = decoded
            .functions
            .iter()
            .map(|(name, offset, size)| crate::cubin::Function { name, offset: *offset, size: *size })
            .collect();
        let (instructions, flow) = (&decoded.instructions, &decoded.flow);
        let code = Code { instructions, lines: &decoded.lines, flow, functions: &functions };
        let counts = counts::block_counts(&code, profile, trips);
        let accesses: Vec<Option<Access>> = instructions
            .iter()
            .zip(&decoded.lines)
            .map(|(instruction, line)| access(instruction, *line, profile))
            .collect();
        let executed = || executed(flow, &counts);
        let is_long = |class: Class| {
            matches!(
                class,
                Class::Load(Space::Global | Space::Local | Space::Texture) | Class::Barrier | Class::AsyncCopy
            )
        };
        let replay = Replay {
            instructions,
            accesses: &accesses,
            flow,
            counts: &counts,
            latencies: Latencies::of(decoded.architecture),
            special_blocks: !executed().any(|(at, _)| is_long(instructions[at].opcode.class)),
        };
        let costs = replay.run();
        let total =
            |part: fn(&Cost) -> f64| costs.iter().zip(&counts).map(|(cost, count)| part(cost) * count).sum::<f64>();
        let (cycles, memory_cycles, blocking) = (total(|c| c.cycles), total(|c| c.memory), total(|c| c.blocking));

        let mut spills = Spills::default();
        for index in flow.blocks.iter().flat_map(|block| block.instructions.clone()) {
            match instructions[index].opcode.class {
                Class::Load(Space::Local) => spills.loads += 1,
                Class::Store(Space::Local) => spills.stores += 1,
                _ => {}
            }
        }
        let throughput = Throughput::of(decoded.architecture);
        let mut work = Work { activity: activity(profile), ..Work::default() };
        let mut issued = 0.0;
        let mut traffic: Vec<Traffic> = Vec::new();
        for (at, count) in executed() {
            issued += count;
            if let Some(access) = accesses[at].as_ref().filter(|access| is_cached(access.space)) {
                let place = traffic.iter().position(|known| known.buffer == access.buffer).unwrap_or_else(|| {
                    traffic.push(Traffic { buffer: access.buffer, ..Traffic::default() });
                    traffic.len() - 1
                });
                traffic[place].add(access, count);
            }
            work.add(&instructions[at], accesses[at].as_ref(), count, &throughput);
        }
        let exact = profile.is_some_and(|profile| profile.exact);
        Self {
            resources,
            spills,
            cycles,
            memory_cycles,
            instructions: issued,
            regions: blocking + 1.0,
            work,
            traffic,
            exact,
            decoded,
            counts,
        }
    }
}

/// The instructions that are executed, with how often.
fn executed<'a>(flow: &'a Flow, counts: &'a [f64]) -> impl Iterator<Item = (usize, f64)> + 'a {
    flow.blocks
        .iter()
        .zip(counts)
        .filter(|(_, count)| **count > 0.0)
        .flat_map(|(block, &count)| block.instructions.clone().map(move |at| (at, count)))
}

/// What the profile says of an instruction's access; without one, threads side by side.
fn access(instruction: &Instruction, line: Option<u32>, profile: Option<&Profile>) -> Option<Access> {
    let memory = instruction.memory?;
    let seen = line.zip(profile).and_then(|(line, profile)| profile.accesses.get(&line));
    // A line's access is this instruction's only where the space agrees: the line of a store to a parameter is not that of a spill.
    let seen = seen.filter(|access| access.space == memory.space).copied();
    let (space, kind, width) = (memory.space, memory.kind, memory.width);
    Some(seen.unwrap_or(Access {
        space,
        kind,
        width,
        sectors: f64::from(width) * SECTORS_PER_BYTE,
        passes: 1.0,
        block_sectors: f64::from(width) * SECTORS_PER_BYTE,
        lanes: 32.0,
        ..Access::default()
    }))
}

fn activity(profile: Option<&Profile>) -> f64 {
    let Some(profile) = profile else { return 1.0 };
    let most: f64 = profile.counts.values().sum();
    if profile.mean_instructions > 0.0 && most > 0.0 { (profile.mean_instructions / most).min(1.0) } else { 1.0 }
}

fn is_cached(space: Space) -> bool {
    matches!(space, Space::Global | Space::Texture)
}

impl Traffic {
    fn add(&mut self, access: &Access, count: f64) {
        let new = match access.kind {
            Kind::Load => 1.0 - access.reuse.clamp(0.0, 1.0),
            Kind::Store | Kind::Atomic => 1.0,
        };
        let sectors = count * access.sectors * new;
        self.sectors += sectors;
        self.lines += count * access.passes.min(access.sectors) * new;
        if access.kind != Kind::Load {
            self.stored += sectors;
        }
    }
}

impl Work {
    fn add(&mut self, instruction: &Instruction, access: Option<&Access>, count: f64, throughput: &Throughput) {
        let pipe = instruction.opcode.pipe;
        let mut cycles = throughput.interval(pipe);
        if instruction.opcode.class == Class::AsyncTensor {
            cycles *= ASYNC_TENSOR_STEPS;
        }
        if let Some(access) = access {
            let passes = access.passes.max(1.0) * f64::from(access.width.div_ceil(PASS_BYTES).max(1));
            match access.space {
                Space::Shared => {
                    cycles = cycles.max(passes);
                    self.shared_cycles += count * cycles;
                }
                Space::Global => {
                    // One tag look-up in a cycle: 8x8, 16x16 and 32x8 blocks of a naive matrix multiplication, with 2.5,
                    // 1.5 and 1 lines for a load, take 5.2, 3.2 and 2.5 ms on an H200.
                    cycles = cycles.max(access.sectors / SECTORS_PER_CYCLE).max(access.passes);
                    match access.kind {
                        Kind::Load => {
                            let reuse = access.reuse.clamp(0.0, 1.0);
                            self.sectors_loaded += count * access.sectors * (1.0 - reuse);
                            let interval = (access.reuse_after.max(1.0).log2() as usize).min(INTERVALS - 1);
                            self.reused[interval] += count * access.sectors * reuse;
                        }
                        Kind::Store | Kind::Atomic => self.sectors_stored += count * access.sectors,
                    }
                }
                Space::Local => {
                    cycles = cycles.max(passes);
                    self.local_sectors += count * passes * SECTORS_PER_CYCLE;
                }
                Space::Texture => self.sectors_loaded += count * access.sectors * (1.0 - access.reuse.clamp(0.0, 1.0)),
                Space::Constant => {}
            }
        }
        if pipe == Pipe::IntegerMultiply {
            self.pipes[Pipe::Fma as usize] += count * throughput.interval(Pipe::Fma);
        }
        self.pipes[pipe as usize] += count * cycles;
        if instruction.opcode.class == Class::Barrier {
            self.barriers += count;
        }
    }
}
