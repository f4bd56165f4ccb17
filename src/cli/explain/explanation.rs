//! A compiled kernel -> what there is to say of it.

use super::compiled::ExplainedCall;
use super::source_lines::{Place, SourceLines};
use crate::analysis::ptx_facts;
use crate::cli::wrap::wrapped;
use crate::gpu::{Architecture, Machine};
use crate::launch::{Launch, shape};
use crate::model::occupancy::{Demand, Occupancy, compute_occupancy};
use crate::model::{Analysis, Bottleneck, Inputs, Limiter, score_configuration};
use crate::ptx::{AccessKind, MemorySpace, Module};
use crate::sass::instruction::MemoryOperand;
use crate::sass::{Class, CubinKernel, Pipe};
use crate::sim::{self, Profile};
use crate::tune::BaselineRun;
use crate::workload::demangled_name;
use serde::Serialize;
use std::collections::BTreeMap;

/// Threads of a block if no comment and no launch bound gives any.
const ASSUMED_BLOCK: u32 = 256;

/// An access is uncoalesced if it touches this many times the sectors that its bytes fill ...
const MANY_TIMES: f64 = 2.0;
/// ... and at least this many: one or two more come from an address that begins within a sector.
const LEAST_SECTORS: f64 = 4.0;

const SECTOR_BYTES: f64 = 32.0;

/// Blanks before what follows a line break within a line that is too long.
const INDENT: usize = 14;
const FINDING_INDENT: usize = 4;

/// What is said of one kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    pub kernel: String,
    pub symbol: String,
    pub architecture: String,
    pub registers: u32,
    pub static_shared: u32,
    pub dynamic_shared: u32,
    pub stack: u32,
    pub barriers: u32,
    pub block: String,
    /// Absent if no comment says how the kernel is launched.
    pub grid: Option<String>,
    pub occupancy: f64,
    pub blocks_per_sm: u32,
    pub limiter: Limiter,
    /// What bounds the predicted time; absent without a launch.
    pub bottleneck: Option<Bottleneck>,
    pub predicted_us: Option<f64>,
    /// Share of the instructions of each execution unit, the greatest first.
    pub mix: Vec<Share>,
    /// Whether the mix counts executions by the average warp; else instructions of the code.
    pub is_executed: bool,
    pub spill_loads: u32,
    pub spill_stores: u32,
    /// Why there is no profile; absent if there is one.
    pub unknown: Option<String>,
    pub findings: Vec<Finding>,
}

/// An execution unit's part of the instructions.
#[derive(Clone, Debug, Serialize)]
pub struct Share {
    pub unit: &'static str,
    pub share: f64,
}

/// What is wrong at a place of the source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub rule: Rule,
    pub message: String,
    /// Absent if the code has no line of the source there.
    pub place: Option<Place>,
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    Uncoalesced,
    Spill,
    LocalArray,
    VoidRegisterCap,
}

impl Rule {
    pub const ALL: [Rule; 4] = [Rule::Uncoalesced, Rule::Spill, Rule::LocalArray, Rule::VoidRegisterCap];

    /// The name in JSON and SARIF.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Uncoalesced => "uncoalesced",
            Rule::Spill => "spill",
            Rule::LocalArray => "local-array",
            Rule::VoidRegisterCap => "void-register-cap",
        }
    }

    /// What it is about, in a sentence.
    pub fn description(self) -> &'static str {
        match self {
            Rule::Uncoalesced => "The threads of a warp access more sectors of 32 bytes than their bytes fill.",
            Rule::Spill => "Registers are spilled to local memory.",
            Rule::LocalArray => "An array of a thread is in local memory.",
            Rule::VoidRegisterCap => "Launch bounds make a register cap of the command line void.",
        }
    }
}

/// A kernel and what its findings are drawn from.
pub struct KernelView<'a> {
    pub call: &'a ExplainedCall,
    pub module: &'a Module,
    pub lines: &'a SourceLines,
    /// How the kernel is launched, or why that is not known.
    pub run: Result<&'a BaselineRun, String>,
}

impl Explanation {
    /// Looks at a kernel of the compiled code.
    pub fn new(kernel: &CubinKernel<'_>, looked: &KernelView<'_>) -> Self {
        let run = looked.run.as_ref().ok().copied();
        let profile = run.and_then(|run| baseline_profile(looked.module, kernel.name, run));
        let unknown = match &looked.run {
            Err(reason) => Some(reason.clone()),
            Ok(_) if profile.is_none() => {
                Some("its comment has no args(...), so that no thread can be followed".to_owned())
            }
            Ok(_) => None,
        };
        let trips = run.map(|run| run.trips.as_slice()).unwrap_or_default();
        let analysis = Analysis::with_trips(kernel, profile.as_ref(), trips);
        let launch = run.map_or_else(|| assumed_launch(kernel), |run| run.launch);
        let architecture = Architecture::nearest(kernel.architecture);
        let score = run.map(|run| {
            let buffers = run.workload.as_ref().map(|workload| workload.sizes());
            let machine = Machine { ..run.machine };
            score_configuration(&Inputs {
                machine: &machine,
                kernel: &analysis,
                launch: &launch,
                buffers: buffers.as_deref(),
            })
        });
        let score = score.filter(|score| score.feasible && score.predicted_us.is_finite());
        let Occupancy { blocks, fraction, limiter, .. } = kernel_occupancy(&architecture, kernel, &launch);
        let mut findings = void_cap(looked, kernel);
        findings.extend(profile.iter().flat_map(|profile| find_uncoalesced(profile, looked.lines)));
        findings.extend(local_accesses(&analysis, kernel, looked.lines));
        findings.sort_by(|a, b| (a.rule, &a.place).cmp(&(b.rule, &b.place)));
        Self {
            kernel: demangled_name(kernel.name),
            symbol: kernel.name.to_owned(),
            architecture: format!("sm_{}", kernel.architecture),
            registers: kernel.resources.registers,
            static_shared: kernel.resources.static_shared,
            dynamic_shared: launch.shared,
            stack: kernel.resources.stack_frame,
            barriers: kernel.resources.barriers,
            block: shape(launch.block),
            grid: run.map(|run| shape(run.launch.grid)),
            occupancy: fraction,
            blocks_per_sm: blocks,
            limiter,
            bottleneck: score.map(|score| score.bottleneck),
            predicted_us: score.map(|score| score.predicted_us),
            mix: instruction_mix(&analysis, profile.is_some()),
            is_executed: profile.is_some(),
            spill_loads: analysis.spills.loads,
            spill_stores: analysis.spills.stores,
            unknown,
            findings,
        }
    }
}

/// A launch of one block: what launch bounds require or allow, else a usual size.
fn assumed_launch(kernel: &CubinKernel<'_>) -> Launch {
    let most = kernel.resources.max_threads.map(|bound| bound.iter().product::<u32>()).filter(|&most| most > 0);
    let block =
        kernel.resources.required_threads.unwrap_or([most.map_or(ASSUMED_BLOCK, |most| most.min(ASSUMED_BLOCK)), 1, 1]);
    Launch { grid: [1, 1, 1], block, shared: 0, carveout: None, coarsening: None }
}

fn baseline_profile(module: &Module, symbol: &str, run: &BaselineRun) -> Option<Profile> {
    let workload = run.workload.as_ref()?;
    sim::profile_entry(module, symbol, &run.launch, workload, &sim::Limits::default()).ok()
}

fn kernel_occupancy(architecture: &Architecture, kernel: &CubinKernel<'_>, launch: &Launch) -> Occupancy {
    compute_occupancy(architecture, &Demand::new(&kernel.resources, launch))
}

/// Shares of the execution units, by executions of the average warp or by the code.
fn instruction_mix(analysis: &Analysis, by_executions: bool) -> Vec<Share> {
    let mut counts: BTreeMap<Pipe, f64> = BTreeMap::new();
    let blocks = &analysis.flow().blocks;
    for (block, executions) in blocks.iter().zip(analysis.block_counts()) {
        for instruction in analysis.code().get(block.instructions.clone()).unwrap_or_default() {
            if instruction.opcode.class != Class::Nop {
                *counts.entry(instruction.opcode.pipe).or_default() += if by_executions { *executions } else { 1.0 };
            }
        }
    }
    let all: f64 = counts.values().sum();
    let shares = counts.into_iter().filter(|(_, count)| *count > 0.0);
    let mut shares: Vec<Share> = shares.map(|(pipe, count)| Share { unit: pipe.name(), share: count / all }).collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.unit.cmp(b.unit)));
    shares
}

/// Accesses to global memory that touch many more sectors than their bytes fill.
fn find_uncoalesced(profile: &Profile, lines: &SourceLines) -> Vec<Finding> {
    let mut found: BTreeMap<Option<Place>, (f64, f64, AccessKind)> = BTreeMap::new();
    for (line, access) in &profile.accesses {
        let least = (access.lanes * f64::from(access.width) / SECTOR_BYTES).ceil().max(1.0);
        let is_wide = access.sectors >= MANY_TIMES * least && access.sectors >= LEAST_SECTORS;
        let is_executed = profile.mean.get(line).is_some_and(|count| *count > 0.0);
        if access.space == MemorySpace::Global && is_wide && is_executed && !access.broadcast {
            let worst = found.entry(lines.place(*line)).or_insert((0.0, 1.0, access.kind));
            if access.sectors / least > worst.0 / worst.1 {
                *worst = (access.sectors, least, access.kind);
            }
        }
    }
    let finding = |(place, (sectors, least, kind)): (Option<Place>, (f64, f64, AccessKind))| {
        let access = match kind {
            AccessKind::Load => "load",
            AccessKind::Store => "store",
            AccessKind::Atomic => "atomic",
        };
        let message = format!(
            "uncoalesced {access}: a warp touches {sectors:.0} sectors of 32 bytes, and its bytes fill {least:.0}"
        );
        Finding { rule: Rule::Uncoalesced, message, place }
    };
    found.into_iter().map(finding).collect()
}

/// Accesses to local memory, by line of the source.
fn local_accesses(analysis: &Analysis, kernel: &CubinKernel<'_>, lines: &SourceLines) -> Vec<Finding> {
    let mut found: BTreeMap<(Rule, Option<Place>), (u32, u32)> = BTreeMap::new();
    let local = |operand: &MemoryOperand| operand.space == MemorySpace::Local;
    for instruction in analysis.code() {
        let Some(operand) = instruction.memory.filter(local) else { continue };
        let line = kernel.lines.line_at(instruction.offset);
        let is_array = line.is_some_and(|line| lines.is_local_array(line));
        let rule = if is_array { Rule::LocalArray } else { Rule::Spill };
        let (loads, stores) = found.entry((rule, line.and_then(|line| lines.place(line)))).or_default();
        match operand.kind {
            AccessKind::Load => *loads += 1,
            AccessKind::Store | AccessKind::Atomic => *stores += 1,
        }
    }
    let finding = |((rule, place), (loads, stores)): ((Rule, Option<Place>), (u32, u32))| {
        let what = if rule == Rule::Spill { "spilled registers" } else { "an array of the thread in local memory" };
        Finding { rule, message: format!("{what}: {loads} loads and {stores} stores in the code"), place }
    };
    found.into_iter().map(finding).collect()
}

/// The register cap of the command line, if launch bounds of the kernel make it void.
fn void_cap(looked: &KernelView<'_>, kernel: &CubinKernel<'_>) -> Vec<Finding> {
    let cap = looked.call.register_cap().filter(|_| ptx_facts::has_launch_bounds(looked.module, kernel.name));
    let finding = |cap: u32| Finding {
        rule: Rule::VoidRegisterCap,
        message: format!(
            "-maxrregcount={cap} has no effect: the kernel has launch bounds, and takes {} registers",
            kernel.resources.registers
        ),
        place: looked.lines.first_of(looked.module, kernel.name),
    };
    cap.map(finding).into_iter().collect()
}

impl Explanation {
    /// Lines of at most `columns`.
    pub fn text(&self, columns: Option<usize>) -> String {
        let mut text = format!("{} ({})\n", self.kernel, self.architecture);
        let mut line = |name: &str, rest: String| {
            text.push_str(&wrapped(&format!("  {name:10}  {rest}\n"), INDENT, columns));
        };
        let shared = self.static_shared + self.dynamic_shared;
        line(
            "resources",
            format!(
                "{} registers, {shared} bytes of shared memory, {} bytes of stack, {} barriers",
                self.registers, self.stack, self.barriers
            ),
        );
        match &self.grid {
            Some(grid) => line("launch", format!("block {}, grid {grid}: the baseline of its comment", self.block)),
            None => line("launch", format!("not known; blocks of {} are assumed", self.block)),
        }
        let blocks = if self.blocks_per_sm == 1 { "block" } else { "blocks" };
        line(
            "occupancy",
            format!(
                "{:.0}%: {} {blocks} on an SM, limited by {}",
                self.occupancy * 100.0,
                self.blocks_per_sm,
                limiter_name(self.limiter)
            ),
        );
        if let (Some(bottleneck), Some(us)) = (self.bottleneck, self.predicted_us) {
            line("bottleneck", format!("{bottleneck}; predicted to take {us:.2} us"));
        }
        let mix: Vec<String> = self
            .mix
            .iter()
            .filter(|share| share.share >= 0.005)
            .map(|share| format!("{} {:.0}%", share.unit, share.share * 100.0))
            .collect();
        let of = if self.is_executed { "of what the average warp executes" } else { "of the code" };
        line("mix", format!("{} ({of})", mix.join(", ")));
        line("local", format!("{} loads and {} stores of local memory", self.spill_loads, self.spill_stores));
        if let Some(unknown) = &self.unknown {
            line("unknown", format!("coalescing: {unknown}"));
        }
        for Finding { rule, message, place } in &self.findings {
            let place = place.as_ref().map(|place| format!("{}({}): ", place.file, place.line)).unwrap_or_default();
            text.push_str(&wrapped(&format!("  {place}{message} [{}]\n", rule.name()), FINDING_INDENT, columns));
        }
        text
    }
}

fn limiter_name(limiter: Limiter) -> &'static str {
    match limiter {
        Limiter::Warps => "the warps of an SM",
        Limiter::Registers => "registers",
        Limiter::SharedMemory => "shared memory",
        Limiter::Blocks => "the blocks of an SM",
        Limiter::Barriers => "barriers",
        Limiter::VirtualResources => "virtual resources",
    }
}
