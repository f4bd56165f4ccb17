//! How the launches of a program select a kernel's winner, and which configurations that
//! allows.
//!
//! In: the comment, what the compiler made of the kernel, what is built. Out: [`LaunchPath`].
//! Invariants:
//!
//! - The launch stub compares a launch with the comment's own expressions. A launch that is not
//!   the baseline's (or a winner's, where the program launches by the header) runs the kernel
//!   that nvcc made, in its own shape. Host code is not read to decide this.
//! - A winner is launched in the grid that the comment gives for the actual arguments.
//!   Divisions of that grid which leave a remainder give it threads or elements beyond the
//!   problem: it is used for such arguments only if they were seen to be harmless.
//! - What may run in another shape at all is `analysis::shape_invariance`; which variables
//!   entries share is `ptx::transplant`; what the output check compares is `measure::compare`.

use super::argument_conditions::is_exact;
use crate::analysis::work_coverage::{Shares, threads_by_dimension};
use crate::analysis::{grid_sync, ptx_facts, shape_invariance};
use crate::comment::{Annotation, Expr, GivenFill, GivenValue, Grid, Launching};
use crate::launch::{Configuration, DIMENSIONS, Launch};
use crate::ptx::{Destination, Linkage, Module};
use crate::space::{Facts, MAX_GRID, Space};
use crate::workload::{Entry, WrittenVariable};
use std::collections::BTreeSet;

/// Why launches cannot reach a winner if the output has no launch stubs; with the remedy.
const WITHOUT_STUBS: &str = "a cubin or fatbin has no launch stubs: write launch(header), and launch by the header";

/// The same for kernels that are launched cooperatively.
const COOPERATIVE: &str = "cooperative launches reach no launch stub: write launch(header), and launch by the header";

/// The same for weak kernels, of which several objects may hold a copy.
const WEAK: &str = "with -rdc=true the linker keeps one copy of a template or inline kernel: leave out launch(header)";

/// Why a winner is not compiled for exactly its block.
const NO_STUB_GUARANTEES: &str = "launches reach it without a stub that guarantees its block (reqntid)";

/// Why the model alone does not choose a block that leaves a part of the last one without work;
/// with the remedy.
pub const MUST_DIVIDE: &str = "untimed, block and macros must divide the problem";

/// Threads of a block that every kernel can be launched with on every GPU: a thread has at most
/// 255 registers, and a block may have 65,536 (CUDA programming guide, technical specifications
/// by compute capability).
const THREADS_OF_ANY_KERNEL: u32 = 256;

/// The beginning of a note that says why the kernel has no winner entries.
pub const LAUNCHES_STAY: &str = "its launches stay as they are: ";

/// Threads of a block that a kernel without launch bounds can be launched with on every GPU, if
/// its baseline can.
fn threads_anywhere(space: &Space) -> u32 {
    THREADS_OF_ANY_KERNEL.max(space.baseline().block_threads())
}

/// The properties of a build that decide how launches select a winner.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// Whether what is built holds launch stubs.
    pub has_stubs: bool,
    /// Whether the code is linked later (`-rdc=true`).
    pub is_relocatable: bool,
    /// Whether the source includes the header that nvtune writes for it.
    pub includes_header: bool,
}

/// Where the winner is in the object, and which launches run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WinnerPlacement {
    /// In the place of nvcc's kernel: the comment says that every launch follows the header.
    InPlace,
    /// Next to nvcc's kernel; the launch stub selects.
    Entries {
        /// Launches of the baseline are given to the winner in its own shape.
        reshapes: bool,
        /// Launches of the winner's shape run the winner.
        accepts: bool,
    },
    /// Out of reach, for this reason.
    Unreachable(String),
}

/// How launches of one kernel select its winner.
#[derive(Clone, Debug)]
pub struct LaunchPath {
    pub placement: WinnerPlacement,
    /// The block and the grid must stay the baseline's, for this reason.
    fixed_shape: Option<String>,
    /// The register cap must stay the baseline's, for this reason.
    fixed_registers: Option<&'static str>,
    /// The block must stay the baseline's, for this reason.
    fixed_block: Option<&'static str>,
    /// Threads of a block that nvcc's own kernel can be launched with on every GPU.
    threads_anywhere: u32,
    /// By dimension: the code needs the baseline's extent, for this reason.
    fixed_extent: [Option<String>; 3],
    /// The kernel does the same in every shape of the block, as long as the threads are as
    /// many.
    is_invariant: bool,
    /// The comment promises that it works in other shapes.
    is_promised: bool,
    /// A `__device__` variable that the kernel may write and that is not compared.
    uncompared_variable: Option<String>,
    shares: Shares,
    /// The block's size is an argument of the kernel.
    takes_block_as_argument: bool,
    /// Scalars and buffer sizes of the workload that depend on the block or the grid.
    launch_dependent: Vec<(String, Expr)>,
    /// Sizes of output buffers that do not depend on them.
    elements: Vec<(String, Expr)>,
}

impl LaunchPath {
    /// Describes a program that launches every configuration of a space as the header says.
    pub fn in_place(space: &Space) -> Self {
        Self {
            placement: WinnerPlacement::InPlace,
            threads_anywhere: threads_anywhere(space),
            fixed_shape: None,
            fixed_registers: None,
            fixed_block: None,
            fixed_extent: Default::default(),
            is_invariant: false,
            is_promised: true,
            uncompared_variable: None,
            shares: Shares::default(),
            takes_block_as_argument: false,
            launch_dependent: Vec::new(),
            elements: Vec::new(),
        }
    }

    /// Finds how launches select the winners of a kernel; `module` is the PTX of its baseline.
    pub fn new(space: &Space, module: &Module, entry: &Entry, build: Build) -> Self {
        let annotation = space.annotation();
        let symbol = entry.symbol.as_str();
        let Facts { fixed, unread, .. } = ptx_facts::collect_facts(module, symbol, None, None);
        let varies = space.varying_extents();
        let block = space.baseline().block;
        let same_extents = std::array::from_fn(|at| (!varies[at]).then_some(block[at]));
        let is_invariant = shape_invariance::is_all(module, symbol, same_extents);
        let launch_dependent = launch_dependent(annotation);
        let shares = if is_invariant && launch_dependent.is_empty() {
            Shares::of_kernel(module, symbol)
        } else {
            Shares::default()
        };
        let is_cooperative = annotation.clauses.cooperative || grid_sync::waits_for_grid(module, symbol);
        let placement = match annotation.clauses.launch {
            Some(Launching::Header) if build.is_relocatable && is_weak(module, symbol) => {
                WinnerPlacement::Unreachable(WEAK.to_owned())
            }
            Some(Launching::Header) => WinnerPlacement::InPlace,
            _ if !build.has_stubs => WinnerPlacement::Unreachable(WITHOUT_STUBS.to_owned()),
            _ if is_cooperative => WinnerPlacement::Unreachable(COOPERATIVE.to_owned()),
            _ if entry.mangled.is_none() => {
                WinnerPlacement::Unreachable("the compiler makes no launch stub of it that is known".to_owned())
            }
            // Host code that launches by the header makes its buffers for the winner.
            _ => WinnerPlacement::Entries {
                reshapes: !build.includes_header || launch_dependent.is_empty(),
                accepts: build.includes_header,
            },
        };
        let fixed_registers = ptx_facts::fixed_registers(module, symbol);
        let is_promised = annotation.clauses.launch.is_some();
        let block_scope = ptx_facts::block_scope(module, symbol).filter(|_| !is_promised);
        Self {
            placement,
            threads_anywhere: ptx_facts::most_threads(module, symbol).unwrap_or_else(|| threads_anywhere(space)),
            fixed_shape: fixed_shape(annotation, module, symbol),
            fixed_registers,
            fixed_block: fixed_registers.or(block_scope),
            fixed_extent: std::array::from_fn(|at| fixed_extent_reason(at, fixed[at], unread[at])),
            is_invariant,
            is_promised,
            uncompared_variable: None,
            shares,
            takes_block_as_argument: annotation.tells_block(),
            elements: elements(annotation, &launch_dependent),
            launch_dependent,
        }
    }

    /// Sets the variables that the kernel may write.
    pub fn with_written(self, written: &[WrittenVariable]) -> Self {
        let uncompared = written.iter().find(|variable| variable.check.is_none());
        Self { uncompared_variable: uncompared.map(|variable| variable.name.clone()), ..self }
    }

    /// Returns why the kernel can have no winner; with the remedy.
    pub fn pinned(&self) -> Option<&str> {
        match &self.placement {
            WinnerPlacement::Unreachable(reason) => Some(reason),
            WinnerPlacement::InPlace | WinnerPlacement::Entries { .. } => None,
        }
    }

    /// Tells whether launches of the baseline are given to the winner in its own shape.
    pub fn reshapes(&self) -> bool {
        matches!(self.placement, WinnerPlacement::Entries { reshapes: true, .. })
    }

    /// Tells whether a launch by the header runs the winner.
    pub fn accepts(&self) -> bool {
        matches!(self.placement, WinnerPlacement::InPlace | WinnerPlacement::Entries { accepts: true, .. })
    }

    /// Tells whether nvcc's own kernel can be launched with the winner's launch on every GPU. All
    /// architectures but the winner's run nvcc's kernel: a newer GPU compiles its PTX, which has
    /// the source's macros and no register cap.
    pub fn kernel_takes_launch(&self, winner: &Configuration, baseline: &Configuration) -> bool {
        winner.macros == baseline.macros && winner.block_threads() <= self.threads_anywhere
    }

    /// Tells whether the header gives the winner's own launch. Otherwise it gives the baseline's,
    /// and the stub launches the winner instead.
    pub fn is_own_in_header(&self, winner: &Configuration, baseline: &Configuration) -> bool {
        !self.reshapes() || self.kernel_takes_launch(winner, baseline)
    }

    /// Where the winner's entry goes.
    pub fn destination(&self) -> Destination {
        match self.placement {
            WinnerPlacement::InPlace => Destination::InPlace,
            WinnerPlacement::Entries { .. } | WinnerPlacement::Unreachable(_) => Destination::Added,
        }
    }

    /// Returns the name of the launch path in fingerprints.
    pub fn fingerprint_name(&self) -> &'static str {
        match self.placement {
            WinnerPlacement::InPlace => "in place",
            WinnerPlacement::Entries { reshapes: true, accepts: false } => "entries",
            WinnerPlacement::Entries { reshapes: true, accepts: true } => "entries, header",
            WinnerPlacement::Entries { reshapes: false, .. } => "header",
            WinnerPlacement::Unreachable(_) => "pinned",
        }
    }

    /// Tells whether the program makes its buffers and arguments for the baseline's launch,
    /// regardless of the winner.
    pub fn keeps_arguments(&self) -> bool {
        !matches!(self.placement, WinnerPlacement::InPlace | WinnerPlacement::Entries { reshapes: false, .. })
    }

    /// Returns the configuration that the host program makes its arguments for.
    pub fn prepared(&self, space: &Space, configuration: &Configuration) -> Configuration {
        if self.keeps_arguments() { space.baseline().clone() } else { configuration.clone() }
    }

    /// Why a configuration must not be used, whatever its time is.
    pub fn refusal(&self, space: &Space, configuration: &Configuration, launch: &Launch) -> Option<String> {
        let baseline = space.baseline();
        if configuration == baseline {
            return None;
        }
        let moves =
            |of: &Configuration| (of.block, of.grid, &of.macros) != (baseline.block, baseline.grid, &baseline.macros);
        if let Some(reason) = self.pinned() {
            return Some(reason.to_owned());
        }
        if let Some(reason) =
            self.fixed_registers.filter(|_| configuration.cap != baseline.cap || configuration.exact_block)
        {
            return Some(reason.to_owned());
        }
        if let Some(reason) = self.fixed_block.filter(|_| configuration.block != baseline.block) {
            return Some(reason.to_owned());
        }
        if (configuration.exact_block || configuration.is_coarsened())
            && !matches!(self.placement, WinnerPlacement::Entries { .. })
        {
            return Some(NO_STUB_GUARANTEES.to_owned());
        }
        if self.placement == WinnerPlacement::InPlace {
            return None;
        }
        if let Some(reason) = self.fixed_shape.as_ref().filter(|_| moves(configuration)) {
            return Some(reason.clone());
        }
        // A macro may tie the code to the block, and then it moves with it.
        if configuration.macros == baseline.macros
            && let Some(reason) = self.other_extent(configuration, baseline)
        {
            return Some(reason);
        }
        if matches!(self.placement, WinnerPlacement::Entries { reshapes: false, .. })
            && configuration.macros != baseline.macros
        {
            return Some(
                "its buffers depend on the macros: write launch(header) if every launch follows the header".to_owned(),
            );
        }
        if self.keeps_arguments()
            && let Some(name) = self.launch_argument(space.annotation())
        {
            return Some(format!(
                "the launch depends on `{name}`, which depends on the block: include the header and launch by it"
            ));
        }
        let is_beyond = launch.grid.iter().zip(MAX_GRID).any(|(&blocks, most)| blocks > most);
        is_beyond.then(|| "its grid has more blocks in y or z than a GPU takes".to_owned())
    }

    /// Returns why timing a configuration does not suffice to choose it: the kernel writes what
    /// no comparison sees.
    pub fn refuses_uncompared(&self, space: &Space, configuration: &Configuration, launch: &Launch) -> Option<String> {
        let variable = self.uncompared_variable.as_ref()?;
        if !configuration.math.is_none() {
            return Some(format!(
                "`{variable}` is written and not compared, so that nothing bounds the errors of math options"
            ));
        }
        self.refuses_predicted(space, configuration, launch)?;
        Some(format!("`{variable}` is written and not compared: launch(remap) allows other shapes unproved"))
    }

    /// Why the model alone must not choose a configuration, which is launched so; with the
    /// remedy.
    pub fn refuses_predicted(&self, space: &Space, configuration: &Configuration, launch: &Launch) -> Option<String> {
        let made = |configuration: &Configuration| space.launch(configuration).ok();
        if let Some(reason) = self.shares.left_undone(space, configuration, launch, made) {
            return Some(reason);
        }
        let baseline = space.baseline();
        if let Some(reason) = self.refusal(space, configuration, launch) {
            return Some(reason);
        }
        // Launches by the header are the winner's own, and others are left alone.
        if self.accepts() && self.is_own_in_header(configuration, baseline) {
            return self.mistakes_block(space, configuration);
        }
        let Ok(before) = space.launch(baseline) else { return Some("its launch is not known".to_owned()) };
        if self.keeps_arguments()
            && let Some(reason) = self.other_arguments(space, configuration, (launch, &before))
        {
            return Some(reason);
        }
        if !is_exact(space, configuration) {
            return Some(MUST_DIVIDE.to_owned());
        }
        if configuration.block == before.block && configuration.grid == baseline.grid || self.is_promised {
            return None;
        }
        let is_axis = configuration.grid.is_some();
        // What is proved is of as many threads.
        let is_proved = self.is_invariant
            && (is_axis
                || configuration.macros != baseline.macros
                || threads_by_dimension(launch) == threads_by_dimension(&before));
        (!is_proved).then(|| {
            let moved = if configuration.block == before.block { "grid" } else { "block" };
            format!("an untimed {moved} needs launch(remap), a promise that it works, or launches by the header")
        })
    }

    /// Why the program's own arguments and buffers do not fit a launch. `launches`: the
    /// configuration's, the baseline's.
    fn other_arguments(
        &self,
        space: &Space,
        configuration: &Configuration,
        (launch, before): (&Launch, &Launch),
    ) -> Option<String> {
        let baseline = space.baseline();
        let value = |of: &Configuration, expression: &Expr| space.evaluate(of, expression).ok();
        let changed =
            |(_, expression): &&(String, Expr)| value(configuration, expression) != value(baseline, expression);
        if let Some((name, _)) = self.launch_dependent.iter().find(changed) {
            return Some(format!("`{name}` of args(...) depends on the block: include the header and launch by it"));
        }
        // `partial = out[132]` for a program that launches 132 blocks.
        let blocks = before.blocks();
        let counts_blocks = |(_, count): &&(String, Expr)| {
            let count = value(baseline, count).and_then(|count| count.as_integer());
            count.and_then(|count| u64::try_from(count).ok()) == Some(blocks)
        };
        let is_other = blocks > 1 && launch.blocks() != blocks;
        self.elements.iter().find(counts_blocks).filter(|_| is_other).map(|(name, _)| {
            format!(
                "`{name}` of args(...) has one element for each of {blocks} blocks: launch by the header, or make it longer in program and comment"
            )
        })
    }

    /// Returns an argument that both depends on the launch and is used to compute it.
    fn launch_argument(&self, annotation: &Annotation) -> Option<&str> {
        let clauses = &annotation.clauses;
        let grid = clauses.grid.iter().flat_map(|grid| match &grid.value {
            Grid::Expressions(expressions) => expressions.as_slice(),
            Grid::Lists(_) => &[],
        });
        let threads = clauses.threads.iter().flat_map(|threads| &threads.value);
        let expressions: Vec<&Expr> = grid.chain(threads).chain(&clauses.shared).collect();
        let is_used =
            |(name, _): &&(String, Expr)| expressions.iter().any(|expression| expression.any_name(|used| used == name));
        self.launch_dependent.iter().find(is_used).map(|(name, _)| name.as_str())
    }

    /// Returns why the kernel needs the baseline's block, if a configuration changes the block
    /// without telling the code by a macro or an argument.
    fn mistakes_block(&self, space: &Space, configuration: &Configuration) -> Option<String> {
        let baseline = space.baseline();
        let reason = self.other_extent(configuration, baseline)?;
        // A macro that is tied to the block tells the code of it.
        let differs = |name: &String| configuration.macros.get(name) != baseline.macros.get(name);
        let is_told = self.takes_block_as_argument || space.tied_macros().iter().any(differs);
        (!is_told).then_some(reason)
    }

    /// Why the code needs the baseline's block, where a configuration's is another in such a
    /// dimension.
    fn other_extent(&self, configuration: &Configuration, baseline: &Configuration) -> Option<String> {
        let mut dimensions = (0..3).filter(|&at| configuration.block[at] != baseline.block[at]);
        dimensions.find_map(|at| self.fixed_extent[at].clone())
    }
}

/// Tells whether the linker keeps one of several definitions of the kernel.
fn is_weak(module: &Module, symbol: &str) -> bool {
    module.entry(symbol).is_some_and(|entry| entry.linkage == Linkage::Weak)
}

/// Why block, grid and macros stay the baseline's: the grid of another launch is not known.
fn fixed_shape(annotation: &Annotation, module: &Module, symbol: &str) -> Option<String> {
    let is_counted = annotation.clauses.threads.is_some() || annotation.clauses.grid.is_some();
    let untold = || {
        "the comment does not say how many threads or blocks a launch has: write threads(...) or grid(...)".to_owned()
    };
    ptx_facts::fixed_block(module, symbol).map(str::to_owned).or_else(|| (!is_counted).then(untold))
}

/// Returns the scalars and buffer sizes of a workload that are given by the block, the grid or
/// a macro axis, themselves or through other arguments.
fn launch_dependent(annotation: &Annotation) -> Vec<(String, Expr)> {
    let is_axis = |name: &str| annotation.clauses.macros.iter().any(|axis| axis.name == name);
    let is_of_launch = |name: &str| name.starts_with("block.") || name.starts_with("grid.") || is_axis(name);
    let mut names: BTreeSet<String> = BTreeSet::new();
    loop {
        let count = names.len();
        for (path, value) in annotation.values() {
            let GivenValue::Scalar(expression) = value else { continue };
            if expression.any_name(|name| is_of_launch(name) || names.contains(name)) {
                names.insert(path);
            }
        }
        if names.len() == count {
            break;
        }
    }
    let of_launch = |expression: &Expr| expression.any_name(|name| is_of_launch(name) || names.contains(name));
    let given = annotation.values().into_iter().filter_map(|(name, value)| match value {
        GivenValue::Scalar(expression) | GivenValue::Buffer { count: expression, .. } => Some((name, expression)),
        GivenValue::Table(_)
        | GivenValue::File(_)
        | GivenValue::Null(_)
        | GivenValue::Recorded { .. }
        | GivenValue::Struct { .. } => None,
    });
    given.filter(|(_, expression)| of_launch(expression)).map(|(name, expression)| (name, expression.clone())).collect()
}

/// Returns the sizes of buffers that are written first and that follow neither the block nor
/// the grid.
fn elements(annotation: &Annotation, launch_dependent: &[(String, Expr)]) -> Vec<(String, Expr)> {
    let given = annotation.values().into_iter().filter_map(|(name, value)| match value {
        GivenValue::Buffer { count, fill: GivenFill::Out | GivenFill::Zeros, .. } => Some((name, count)),
        _ => None,
    });
    let is_other = |(name, _): &(String, &Expr)| launch_dependent.iter().all(|(own, _)| own != name);
    given.filter(is_other).map(|(name, count)| (name, count.clone())).collect()
}

/// Returns why code must not be launched with another block extent in a dimension than the
/// baseline's.
fn fixed_extent_reason(dimension: usize, is_fixed: bool, is_unread: bool) -> Option<String> {
    let name = DIMENSIONS[dimension];
    match (is_fixed, is_unread) {
        (true, _) => Some(format!("the kernel reads threadIdx.{name} and never blockDim.{name}")),
        (_, true) => Some(format!("the kernel reads neither threadIdx.{name} nor blockDim.{name}")),
        _ => None,
    }
}
