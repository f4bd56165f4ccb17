//! The machine code of one variant's kernel and its profile -> [`Analysis`]: cycles,
//! instructions, memory traffic and reuse of a warp. It holds for any block shape.

use super::access_defaults::AccessDefaults;
use super::block_frequency;
use super::block_frequency::{BlockCounts, Code};
use super::calibration::{CALIBRATION, Calibration};
use super::constant_cache::exposed_lines;
use super::latency::{ASYNC_TENSOR_STEPS, Latencies, Throughput};
use super::reuse;
use super::reuse::{Reuse, Touch};
use super::schedule_sim::{Cost, LoadService, Replay};
use crate::ptx::{AccessKind, MemorySpace};
use crate::sass::control_flow::Flow;
use crate::sass::instruction::Instruction;
use crate::sass::{Class, Pipe, instruction};
use crate::sass::{CubinKernel, Resources};
use crate::sim::Profile;
use crate::sim::profile::{Access, Spread};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Sectors of 32 bytes for each byte of a thread in a fully coalesced access of a warp.
const SECTORS_PER_BYTE: f64 = 1.0;
/// Bytes that a thread accesses in one pass of the memory pipe over shared memory's banks or the
/// level-1 cache.
const PASS_BYTES: u32 = 4;
/// Sectors of a store that leave the level-1 cache in a cycle.
const SECTORS_PER_CYCLE: f64 = 4.0;

/// A warp's cycles depend on which share of the data that others have brought into the level-2
/// cache is still there. They are computed for these shares (and for none), and interpolated
/// linearly.
pub const L2_HELD_SHARES: [f64; 2] = [0.9, 1.0];

/// All that scoring needs to know of the code of one variant's kernel.
#[derive(Clone, Debug)]
pub struct Analysis {
    pub resources: Resources,
    /// Local-memory instructions in the code (not executions).
    pub spills: Spills,
    /// Estimated cycles of a single thread (equation 1 of Liang et al.): C.
    pub cycles: f64,
    /// Of these, cycles waiting for global and local memory.
    pub memory_cycles: f64,
    /// Further cycles, if all that a warp reads again came from the level-2 cache instead of the
    /// level-1 cache.
    pub l2_reread_cycles: f64,
    /// Cycles saved if the level-2 cache still holds these shares (`L2_HELD_SHARES`) of what
    /// others have brought into it, compared with none.
    pub l2_saved_cycles: [f64; L2_HELD_SHARES.len()],
    /// Instructions that a thread executes.
    pub instructions: f64,
    /// Instructions that the average warp of the grid executes.
    pub mean_instructions: f64,
    /// Regions of a thread's instructions, which blocking instructions separate (Ryoo et al.).
    pub regions: f64,
    pub work: Work,
    /// Global-memory traffic of the average warp, by buffer.
    pub traffic: Vec<Traffic>,
    /// What the average warp touches again, by reuse distance.
    pub reuses: Vec<Reuse>,
    /// Bytes of the module's global variables.
    pub variables: u64,
    /// Whether block frequencies are those of an exact profile.
    pub exact: bool,
    /// The constants with which it was made, and with which its launches are predicted.
    pub calibration: Calibration,
    decoded: Arc<Decoded>,
    /// Executions of each basic block by the average warp of the grid.
    mean: Vec<f64>,
}

/// What one warp reads from and writes to one buffer, in sectors of 32 bytes unless noted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Index in the workload's buffers, or [`VARIABLES`](crate::sim::profile::VARIABLES); `None`
    /// for accesses to changing buffers.
    pub buffer: Option<u32>,
    /// Sectors read and written, without those that it has read before.
    pub sectors: f64,
    /// Lines of 128 bytes that they lie in.
    pub lines: f64,
    /// Those of the sectors that are written.
    pub stored: f64,
    /// Those of the written sectors that a store writes only partially.
    pub partial: f64,
    /// Sectors that a store completes after another has written a part of them.
    pub completed: f64,
    /// Lines with a sector of which its block writes some bytes, and neither writes nor reads
    /// the others.
    pub unfinished: f64,
    /// Those of the written sectors to which a warp of the block has stored before.
    pub rewritten: f64,
    /// Nanoseconds that lines of the level-2 cache are busy with its atomics, summed over lines.
    pub busy_ns: f64,
    /// Sectors that it reads and that no warp of its block has read before.
    pub fresh: f64,
    /// Those of the fresh sectors that other blocks have brought into the level-2 cache before.
    pub in_l2: f64,
    /// How the accesses of blocks are spread over the buffer.
    pub spread: Spread,
}

/// Numbers of local-memory instructions in the code, of spilled registers or local arrays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spills {
    pub loads: u32,
    pub stores: u32,
}

/// What the average warp of the grid uses of an SM and its memory pipe, over its life.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Cycles that each pipe of an SM is busy for the warp.
    pub pipes: [f64; Pipe::COUNT],
    /// Those of the memory pipe's cycles that are for shared memory, and for shuffles and
    /// matches.
    pub shared_cycles: f64,
    pub exchange_cycles: f64,
    /// Sectors of local memory that are loaded, and their lines, each counted for each load.
    pub local_loaded: f64,
    pub local_loaded_lines: f64,
    /// The same for stores, and the sectors that a store writes only partially.
    pub local_stored: f64,
    pub local_stored_lines: f64,
    pub local_partial: f64,
    /// Lines of constants that miss the first constant cache and that nothing hides.
    pub exposed_constants: f64,
    pub barriers: f64,
    /// Average number of lines that it has stored to and will store to again.
    pub open_lines: f64,
    /// Cycles of the average warp over those of the busiest, each if it is alone.
    pub activity: f64,
    /// Instructions of the longest warp of a block over those of its average warp, on average; at
    /// least 1.
    pub straggling: f64,
    /// The share of the grid's blocks, its last ones, that have next to nothing to do.
    pub idle: f64,
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
    /// Decodes and analyses a kernel: the expensive part of scoring, done once for each variant.
    pub fn new(kernel: &CubinKernel<'_>, profile: Option<&Profile>) -> Self {
        Self::with_trips(kernel, profile, &[])
    }

    /// The same, with assumed `trips`, the iterations of loops that are not in the profile, from
    /// the outermost depth inwards.
    pub fn with_trips(kernel: &CubinKernel<'_>, profile: Option<&Profile>, trips: &[f64]) -> Self {
        Self::with_calibration(kernel, profile, trips, &CALIBRATION)
    }

    /// The same, with other constants of the model.
    pub fn with_calibration(
        kernel: &CubinKernel<'_>,
        profile: Option<&Profile>,
        trips: &[f64],
        calibration: &Calibration,
    ) -> Self {
        let instructions = instruction::decode_section(kernel.code, kernel.architecture);
        let flow = Flow::new(kernel, &instructions);
        let lines = instructions.iter().map(|instruction| kernel.lines.line_at(instruction.offset)).collect();
        let functions = kernel.functions.iter().map(|f| (f.name.to_owned(), f.offset, f.size)).collect();
        let decoded = Decoded { architecture: kernel.architecture, instructions, lines, flow, functions };
        Self::from_decoded(Arc::new(decoded), kernel.resources.clone(), profile, trips, calibration)
    }

    /// The decoded instructions.
    pub fn code(&self) -> &[Instruction] {
        &self.decoded.instructions
    }

    /// The control flow.
    pub fn flow(&self) -> &Flow {
        &self.decoded.flow
    }

    /// Returns the executions of each basic block by the average warp of the grid.
    pub fn block_counts(&self) -> &[f64] {
        &self.mean
    }

    fn from_decoded(
        decoded: Arc<Decoded>,
        resources: Resources,
        profile: Option<&Profile>,
        trips: &[f64],
        calibration: &Calibration,
    ) -> Self {
        let profile = profile.filter(|_| decoded.lines.iter().any(Option::is_some));
        let functions: Vec<_> = decoded
            .functions
            .iter()
            .map(|(name, offset, size)| crate::sass::DeviceFunction { name, offset: *offset, size: *size })
            .collect();
        let (instructions, flow) = (&decoded.instructions, &decoded.flow);
        let code = Code { instructions, lines: &decoded.lines, flow, functions: &functions, calibration };
        let BlockCounts { busiest: counts, mean, divergence_overhead } =
            block_frequency::block_counts(&code, profile, trips);
        let defaults = profile.map(AccessDefaults::from_profile).unwrap_or_default();
        let accesses: Vec<Option<Access>> = instructions
            .iter()
            .zip(&decoded.lines)
            .map(|(instruction, line)| access_of_instruction(instruction, *line, profile, &defaults))
            .collect();
        let executed = || executed_by(flow, &counts);
        let is_long = |class: Class| {
            matches!(
                class,
                Class::Load(MemorySpace::Global | MemorySpace::Local | MemorySpace::Texture)
                    | Class::Barrier
                    | Class::AsyncCopy
            )
        };
        let latencies = Latencies::for_capability(decoded.architecture);
        let special_blocks = !executed().any(|(at, _)| is_long(instructions[at].opcode.class));
        let replay = |reread_latency: f64, held: f64| {
            let service = LoadService { reread_latency, held };
            let (accesses, counts) = (accesses.as_slice(), counts.as_slice());
            Replay { instructions, accesses, flow, counts, calibration, latencies, service, special_blocks }
                .block_costs()
        };
        let total = |costs: &[Cost], part: fn(&Cost) -> f64| {
            costs.iter().zip(&counts).map(|(cost, count)| part(cost) * count).sum::<f64>()
        };
        let costs = replay(latencies.l1, 0.0);
        let cycles = total(&costs, |c| c.cycles);
        let (memory_cycles, blocking) = (total(&costs, |c| c.memory), total(&costs, |c| c.blocking));
        let l2_reread_cycles = total(&replay(latencies.l2, 0.0), |c| c.cycles) - cycles;
        let l2_saved_cycles = L2_HELD_SHARES.map(|held| cycles - total(&replay(latencies.l1, held), |c| c.cycles));

        let mut spills = Spills::default();
        for index in flow.blocks.iter().flat_map(|block| block.instructions.clone()) {
            match instructions[index].opcode.class {
                Class::Load(MemorySpace::Local) => spills.loads += 1,
                Class::Store(MemorySpace::Local) => spills.stores += 1,
                _ => {}
            }
        }
        let throughput = Throughput::for_capability(decoded.architecture);
        let issued = issued_by(flow, &counts);
        let of_mean = issued_by(flow, &mean);
        let of_mean_cycles: f64 = costs.iter().zip(&mean).map(|(cost, count)| cost.cycles * count).sum();
        let activity = if cycles > 0.0 && of_mean_cycles > 0.0 { (of_mean_cycles / cycles).min(1.0) } else { 1.0 };
        let exposed_constants = profile.map_or(0.0, |profile| exposed_lines(profile, calibration));
        let guard_shares = profile.map_or_else(GuardShares::default, |profile| GuardShares::new(&code, &mean, profile));
        let straggling = profile.map_or(1.0, |profile| profile.straggling.max(1.0));
        let idle = profile.map_or(0.0, |profile| profile.idle.clamp(0.0, 1.0));
        let open_lines = profile.map_or(0.0, |profile| profile.open_lines);
        let mut work = Work { open_lines, activity, straggling, idle, exposed_constants, ..Work::default() };
        let mut traffic: Vec<Traffic> = Vec::new();
        let blocks = flow.blocks.iter().enumerate();
        let instruction_blocks = blocks.flat_map(|(block, of)| of.instructions.clone().map(move |at| (at, block)));
        let touches: Vec<Touch> = instruction_blocks
            .filter(|(_, block)| mean[*block] > 0.0)
            .filter_map(|(at, block)| {
                let access = accesses[at].filter(|access| access.space == MemorySpace::Global)?;
                Some(Touch { block, count: mean[block] * guard_shares.executed_share(&code, at), access })
            })
            .collect();
        for (at, count) in executed_by(flow, &mean) {
            let count = count * guard_shares.executed_share(&code, at);
            if let Some(access) = accesses[at].as_ref().filter(|access| is_cached(access.space)) {
                let index = traffic.iter().position(|known| known.buffer == access.buffer).unwrap_or_else(|| {
                    let spread = access.buffer.and_then(|buffer| profile?.spread.get(&buffer).copied());
                    traffic.push(Traffic {
                        buffer: access.buffer,
                        spread: spread.unwrap_or_default(),
                        ..Traffic::default()
                    });
                    traffic.len() - 1
                });
                traffic[index].add_access(access, count);
            }
            work.add_instruction(&instructions[at], accesses[at].as_ref(), count, &throughput, calibration);
        }
        let exact = profile.is_some_and(|profile| profile.exact);
        let profiled = profile.map_or(0.0, |profile| profile.counts.values().sum::<f64>());
        let scale = if profiled > 0.0 { issued / profiled } else { 1.0 };
        let reuses = reuse::find_reuses(flow, &mean, &touches, scale);
        Self {
            resources,
            spills,
            cycles,
            memory_cycles,
            l2_reread_cycles,
            l2_saved_cycles,
            instructions: issued,
            mean_instructions: of_mean + divergence_overhead,
            regions: blocking + 1.0,
            work,
            traffic,
            reuses,
            variables: profile.map_or(0, |profile| profile.variables),
            exact,
            calibration: *calibration,
            decoded,
            mean,
        }
    }
}

/// For guarded (predicated) memory instructions: for which share of the warps that reach them the
/// guard holds.
#[derive(Default)]
struct GuardShares {
    /// By PTX line: its executions in the profile over the executions of its machine
    /// instructions' blocks.
    shares: BTreeMap<u32, f64>,
}

impl GuardShares {
    fn new(code: &Code<'_>, mean: &[f64], profile: &Profile) -> Self {
        let mut reached: BTreeMap<(u32, &'static str), f64> = BTreeMap::new();
        for (at, count) in executed_by(code.flow, mean) {
            let Some(line) = code.lines[at].filter(|_| code.instructions[at].memory.is_some()) else { continue };
            *reached.entry((line, code.instructions[at].opcode.mnemonic)).or_default() += count;
        }
        let mut shares: BTreeMap<u32, f64> = BTreeMap::new();
        for ((line, _), reached) in reached {
            let executed = profile.mean.get(&line).copied().unwrap_or(0.0);
            let share = shares.entry(line).or_insert(0.0);
            *share = share.max((executed / reached).min(1.0));
        }
        Self { shares }
    }

    /// The share of the warps that reach an instruction for which its guard holds.
    fn executed_share(&self, code: &Code<'_>, at: usize) -> f64 {
        if code.instructions[at].guard.is_always() {
            return 1.0;
        }
        code.lines[at].and_then(|line| self.shares.get(&line)).copied().unwrap_or(1.0)
    }
}

/// Instructions that are issued if blocks are executed this often.
fn issued_by(flow: &Flow, counts: &[f64]) -> f64 {
    flow.blocks.iter().zip(counts).map(|(block, count)| block.instructions.len() as f64 * count).sum()
}

/// The indices of the instructions that are executed, with the number of executions.
fn executed_by<'a>(flow: &'a Flow, counts: &'a [f64]) -> impl Iterator<Item = (usize, f64)> + 'a {
    flow.blocks
        .iter()
        .zip(counts)
        .filter(|(_, count)| **count > 0.0)
        .flat_map(|(block, &count)| block.instructions.clone().map(move |at| (at, count)))
}

/// The access of a memory instruction: from the profile; if it has none for its line, the
/// default of its kind; if there is none either, a fully coalesced access.
fn access_of_instruction(
    instruction: &Instruction,
    line: Option<u32>,
    profile: Option<&Profile>,
    defaults: &AccessDefaults,
) -> Option<Access> {
    let memory = instruction.memory?;
    let seen = line.zip(profile).and_then(|(line, profile)| profile.accesses.get(&line));
    // The line's access is this instruction's only if it is to the same space: ptxas gives spills
    // the line of another instruction.
    let seen = seen.filter(|access| access.space == memory.space).copied();
    let (space, kind, width) = (memory.space, memory.kind, memory.width);
    Some(seen.or_else(|| defaults.default_access(space, kind, width)).unwrap_or(Access {
        space,
        kind,
        width,
        sectors: f64::from(width) * SECTORS_PER_BYTE,
        lines: f64::from(width.div_ceil(PASS_BYTES)),
        store_sectors: f64::from(width) * SECTORS_PER_BYTE,
        passes: if space == MemorySpace::Global { f64::from(width.div_ceil(PASS_BYTES).max(1)) } else { 1.0 },
        block_sectors: f64::from(width) * SECTORS_PER_BYTE,
        lanes: 32.0,
        ..Access::default()
    }))
}

fn is_cached(space: MemorySpace) -> bool {
    matches!(space, MemorySpace::Global | MemorySpace::Texture)
}

impl Traffic {
    fn add_access(&mut self, access: &Access, count: f64) {
        let new = match access.kind {
            AccessKind::Load => 1.0 - access.reuse.clamp(0.0, 1.0),
            AccessKind::Store if access.sectors > 0.0 => (access.store_sectors / access.sectors).min(1.0),
            AccessKind::Store | AccessKind::Atomic => 1.0,
        };
        let sectors = count * access.sectors * new;
        self.busy_ns += count * access.busy_ns;
        self.sectors += sectors;
        self.lines += count * access.lines.min(access.sectors) * new;
        match access.kind {
            AccessKind::Load => {
                let fresh = count * access.fresh_sectors();
                self.fresh += fresh;
                self.in_l2 += fresh * access.in_l2.clamp(0.0, 1.0);
            }
            AccessKind::Store | AccessKind::Atomic => {
                self.stored += sectors;
                self.partial += count * access.partial;
                self.completed += count * access.completed;
                if access.sectors > 0.0 {
                    self.unfinished += count * access.unfinished * access.lines / access.sectors;
                }
                self.rewritten += sectors * access.stored_before;
            }
        }
    }
}

impl Work {
    fn add_instruction(
        &mut self,
        instruction: &Instruction,
        access: Option<&Access>,
        count: f64,
        throughput: &Throughput,
        calibration: &Calibration,
    ) {
        let pipe = instruction.opcode.pipe;
        let mut cycles = throughput.pipe_interval(pipe);
        match instruction.opcode.class {
            Class::AsyncTensor => cycles *= ASYNC_TENSOR_STEPS,
            Class::Match => cycles = calibration.match_cycles,
            _ => {}
        }
        if let Some(access) = access {
            match access.space {
                MemorySpace::Shared => {
                    let words = f64::from(access.width.div_ceil(PASS_BYTES).max(1));
                    cycles = cycles.max(access.passes * words);
                    self.shared_cycles += count * cycles;
                }
                MemorySpace::Global => {
                    cycles = cycles.max(access.passes);
                    if access.kind != AccessKind::Load {
                        cycles = cycles.max(access.sectors / SECTORS_PER_CYCLE);
                    }
                }
                MemorySpace::Local => {
                    cycles = cycles.max(access.lines);
                    match access.kind {
                        AccessKind::Store => {
                            self.local_stored += count * access.store_sectors;
                            self.local_stored_lines += count * access.lines.min(access.store_sectors);
                            self.local_partial += count * access.partial;
                        }
                        AccessKind::Load | AccessKind::Atomic => {
                            self.local_loaded += count * access.sectors;
                            self.local_loaded_lines += count * access.lines.min(access.sectors);
                        }
                    }
                }
                MemorySpace::Texture | MemorySpace::Constant => {}
            }
        }
        if matches!(instruction.opcode.class, Class::Match | Class::Shuffle) {
            self.exchange_cycles += count * cycles;
        }
        if pipe == Pipe::IntegerMultiply {
            self.pipes[Pipe::Fma as usize] += count * throughput.pipe_interval(Pipe::Fma);
        }
        self.pipes[pipe as usize] += count * cycles;
        if instruction.opcode.class == Class::Barrier {
            self.barriers += count;
        }
    }
}
