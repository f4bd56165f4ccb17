//! How a kernel's winner reaches its launches, and what that leaves of its space.
//!
//! In: the comment, what the compiler made of the kernel, the code around it. Out: [`Reach`], which says how each configuration
//! is launched, and why one must not be used. What always holds: what is timed is what the object will launch.
//!
//! - header: the host code launches as the header says; every configuration is launched as the comment has it.
//! - remap: host code launches the baseline, and the launch stub reshapes that. So the workload, which host code makes, is the
//!   baseline's. The grid covers the baseline's threads in each dimension in which it hangs on the block; elsewhere it stays as
//!   the program has it.
//! - pinned: nothing can change the launch, so that block and grid stay the baseline's.

use super::host_macros::HostMacros;
use super::surroundings::Surroundings;
use super::variants::Macros;
use crate::analysis::shape_invariance;
use crate::analysis::work_coverage::{Shares, threads};
use crate::analysis::{grid_sync, ptx_facts};
use crate::comment::{Annotation, Expr, GivenFill, GivenValue};
use crate::diag::Diagnostic;
use crate::emit::{Reshaped, Scale, Shape};
use crate::gpu::{REGISTER_UNIT, REGISTERS, SUB_CORES, WARP};
use crate::launch::{Configuration, DIMENSIONS, Dim3, Launch};
use crate::ptx::Module;
use crate::space::Facts;
use crate::space::{Counted, MAX_BLOCK_THREADS, MAX_GRID, Space};
use crate::workload::Entry;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Dynamic shared memory that a launch may have without the program's consent, in bytes.
const FREE_SHARED: u32 = 48 << 10;

/// How many times as large as the workload the problems are on which a lack of blocks must show, too: one block may do for all of a
/// small workload whatever a macro is. A much larger one may be beyond what can be computed, or launched.
const LARGER: [i64; 2] = [1 << 6, 1 << 14];

/// Why launches of a kernel stay whose machine code is all that is built; with the remedy.
const WITHOUT_STUBS: &str = "a cubin or fatbin has no launch stubs, and what loads it launches as it is written: write launch(header), and launch there as the header says";

/// Why launches of a kernel stay whose blocks wait for each other; with the remedy.
const COOPERATIVE: &str = "it waits for its whole grid, and cooperative launches go by no launch stub: write launch(header), and launch there as the header says";

/// The same where the comment says that they wait.
const TOLD_COOPERATIVE: &str =
    "cooperative launches go by no launch stub: write launch(header, cooperative), and launch there as the header says";

/// Why the model alone does not choose blocks that leave a part of the last one without work; with the remedy.
pub const MUST_DIVIDE: &str = "where nothing is timed, the block must divide the threads of the program's launch: list blocks that do, as in block({64, 128, 256}), or include the header and launch by it";

/// The way of a winner to the launches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    Header,
    /// `told`: by the comment.
    Remap {
        told: bool,
    },
    /// Why neither is possible.
    Pinned(String),
}

/// What machine code asks of the launches of its kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Registers of a thread.
    pub registers: u32,
    /// Threads that a block has at most by launch bounds.
    pub most: Option<u32>,
}

/// The blocks of a launch, where macros divide the work of which the program's grid knows nothing.
pub enum Blocks {
    /// As many as the comment asks for, or nothing speaks against them.
    Asked,
    /// Too few, and what to do.
    Lacking(String),
    /// More: a launch with some, the grid that is asked for, and what to do where they do harm.
    Beyond { launch: Launch, needed: Dim3, reason: String },
}

#[derive(Clone, Debug)]
pub struct Reach {
    pub way: Way,
    /// The kernel does the same under every shape of the block, as long as the threads are as many.
    pub proven: bool,
    /// By dimension: the code needs the baseline's extent, for this reason.
    fixed: [Option<String>; 3],
    shares: Shares,
    /// The block reaches the kernel as an argument.
    is_told_its_block: bool,
    /// Threads that a block can have at most by the kernel's launch bounds.
    most: u32,
    macros: HostMacros,
    /// Macros that constraints tie to the block.
    tied_macros: BTreeSet<String>,
    /// Macros by which the comment divides the work, and the space on larger problems where there are any.
    dividing_macros: BTreeSet<String>,
    larger: Vec<Space>,
    /// What of the workload follows the block or the grid: values of parameters and numbers of elements.
    following: Vec<(String, Expr)>,
    /// Numbers of elements that do not.
    elements: Vec<(String, Expr)>,
    /// By dimension: what the grid's blocks are counted by.
    counted: [Counted; 3],
    /// The same as a word, where it is other than one extent of the block for each dimension.
    counts: String,
}

impl Reach {
    /// For a program that launches whatever the header says.
    pub fn header() -> Self {
        Self {
            way: Way::Header,
            proven: false,
            fixed: Default::default(),
            shares: Shares::default(),
            is_told_its_block: false,
            most: MAX_BLOCK_THREADS,
            macros: HostMacros::default(),
            tied_macros: BTreeSet::new(),
            dividing_macros: BTreeSet::new(),
            larger: Vec::new(),
            following: Vec::new(),
            elements: Vec::new(),
            counted: Default::default(),
            counts: String::new(),
        }
    }

    /// Finds the way of a kernel; `module` is the PTX of its baseline.
    pub fn new(annotation: &Annotation, space: &Space, module: &Module, entry: &Entry, around: &Surroundings) -> Self {
        let symbol = entry.symbol.as_str();
        let Facts { fixed, unread, .. } = ptx_facts::facts(module, symbol, None, None);
        let fixed = std::array::from_fn(|at| unaware_of_block(at, fixed[at], unread[at]));
        let most = ptx_facts::most_threads(module, symbol).unwrap_or(MAX_BLOCK_THREADS);
        let varies = space.varying_extents();
        let before = space.baseline().block;
        let proven =
            shape_invariance::is_all(module, symbol, std::array::from_fn(|at| (!varies[at]).then_some(before[at])));
        // A kernel may have its share told, as in args(stride = grid.x * block.x).
        let is_told_its_share = !following(annotation).is_empty();
        let shares = if proven && !is_told_its_share { Shares::of(module, symbol) } else { Shares::default() };
        let is_told_its_block = annotation.tells_block();
        let way = match annotation.clauses.launch {
            _ if around.goes_by_header(annotation) => Way::Header,
            // Where all launches are alike, results are the same as those of an object, and hold for both.
            _ if !around.has_stubs && launches_vary(annotation, space) => Way::Pinned(WITHOUT_STUBS.to_owned()),
            _ if annotation.clauses.cooperative => Way::Pinned(TOLD_COOPERATIVE.to_owned()),
            _ if grid_sync::waits_for_grid(module, symbol) => Way::Pinned(COOPERATIVE.to_owned()),
            _ if entry.mangled.is_none() => {
                Way::Pinned("the compiler makes no launch stub of it that is known".to_owned())
            }
            told => match ptx_facts::fixed_block(module, symbol) {
                Some(reason) => Way::Pinned(reason.to_owned()),
                None if told.is_none() && ptx_facts::has_launch_bounds(module, symbol) => {
                    Way::Pinned("it has launch bounds: launch(remap) reshapes it all the same".to_owned())
                }
                None => match told.is_none().then(|| around.host.bypass(&annotation.kernel.name)).flatten() {
                    Some(place) => Way::Pinned(format!(
                        "what this source launches ({place}) goes by no launch stub: include the header and launch by it"
                    )),
                    None => Way::Remap { told: told.is_some() },
                },
            },
        };
        let macros = HostMacros::new(annotation, space, around, way == Way::Header);
        let mut reach = Self { fixed, shares, macros, is_told_its_block, most, proven, way, ..Self::header() };
        if reach.way != Way::Header {
            reach.look_at_launches(annotation, space);
        }
        reach
    }

    /// What is known of it before the kernel is compiled, from its comment and the host code; `None` where that is nothing.
    fn beforehand(annotation: &Annotation, space: &Space, around: &Surroundings) -> Option<Self> {
        if around.goes_by_header(annotation) {
            let macros = HostMacros::new(annotation, space, around, true);
            return (!macros.kept.is_empty()).then(|| Self { macros, ..Self::header() });
        }
        // Which of the other ways it is makes no difference to macros.
        let macros = HostMacros::new(annotation, space, around, false);
        let mut reach = Self { way: Way::Remap { told: true }, macros, ..Self::header() };
        reach.look_at_launches(annotation, space);
        Some(reach)
    }

    /// The sets of macros that no configuration may have, whatever the compiler makes of them: host code uses them otherwise,
    /// launches too few blocks, or cannot make the launch at all. Where the model chooses (`by_model`), those too that it must not choose.
    pub fn barred(annotation: &Annotation, space: &Space, around: &Surroundings, by_model: bool) -> BTreeSet<Macros> {
        let reach = Self::beforehand(annotation, space, around).filter(|_| !annotation.clauses.macros.is_empty());
        let Some((reach, before)) = reach.zip(space.launch(space.baseline()).ok()) else { return BTreeSet::new() };
        let refuses = |configuration: &Configuration| {
            if reach.macros.refusal(space, configuration).is_some() {
                return true;
            }
            if reach.way == Way::Header {
                return false;
            }
            if reach.lacks_blocks(space, configuration) {
                return true;
            }
            let Ok(launch) = reach.launch(space, configuration) else { return false };
            let of_model = || reach.refuses_predicted(space, configuration, &launch);
            refuses_launch(&launch, &before).is_some() || by_model && of_model().is_some()
        };
        // By macros, block and grid, which all of it hangs on.
        let mut seen: BTreeMap<Macros, BTreeMap<(Dim3, Option<Dim3>), bool>> = BTreeMap::new();
        for configuration in space.iter() {
            let shape = (configuration.block, configuration.grid);
            if seen.get(&configuration.macros).is_none_or(|shapes| !shapes.contains_key(&shape)) {
                let is_refused = refuses(&configuration);
                seen.entry(configuration.macros).or_default().insert(shape, is_refused);
            }
        }
        seen.remove(&space.baseline().macros);
        let barred = seen.into_iter().filter(|(_, shapes)| shapes.values().all(|is_refused| *is_refused));
        barred.map(|(macros, _)| macros).collect()
    }

    /// Whether the program surely launches fewer blocks than a configuration takes.
    fn lacks_blocks(&self, space: &Space, configuration: &Configuration) -> bool {
        // Where the grid is an axis, it is the winner's.
        let launch = self.launch(space, configuration).ok().filter(|_| configuration.grid.is_none());
        launch.is_some_and(|launch| matches!(self.blocks(space, configuration, &launch), Blocks::Lacking(_)))
    }

    /// Why macros keep their values, by name, and launches theirs: reasons that name places of the code around.
    pub fn reasons(&self) -> BTreeMap<String, String> {
        let pinned = match &self.way {
            Way::Pinned(reason) => Some((String::new(), reason.clone())),
            Way::Header | Way::Remap { .. } => None,
        };
        self.macros.kept.clone().into_iter().chain(pinned).collect()
    }

    /// The way with all that it hangs on besides the comment and the kernel's code, as a word to compare.
    pub fn words(&self) -> String {
        let way = match &self.way {
            Way::Header => "header".to_owned(),
            Way::Remap { .. } => format!("remap{}", self.counts),
            Way::Pinned(_) => format!("pinned{}", self.counts),
        };
        way + &self.macros.words()
    }

    /// What host code launches, and what it prepares for that.
    fn look_at_launches(&mut self, annotation: &Annotation, space: &Space) {
        self.following = following(annotation);
        self.elements = elements(annotation);
        let varies = space.varying_extents();
        self.tied_macros = space.tied_macros();
        self.dividing_macros = space.dividing_macros();
        if !self.dividing_macros.is_empty() {
            self.larger = LARGER.into_iter().filter_map(|times| space.enlarged(times)).collect();
        }
        self.counted = std::array::from_fn(|dimension| space.counted_by(dimension));
        for (dimension, name) in DIMENSIONS.into_iter().enumerate() {
            let by = self.counted[dimension].block;
            // An extent that is the same in every block says nothing.
            if space.baseline().grid.is_none() && (0..3).any(|at| varies[at] && by[at] != (at == dimension)) {
                let by: String = (0..3).filter(|&at| by[at]).map(|at| DIMENSIONS[at]).collect();
                let by = if by.is_empty() { "kept" } else { &by };
                self.counts.push_str(&format!(" grid.{name}:{by}"));
            }
        }
    }

    /// What a configuration makes of the blocks that the program launches, by dimension, where the grid is no axis.
    pub fn scale(&self, space: &Space, configuration: &Configuration) -> [Scale; 3] {
        let origin = self.origin(space, configuration);
        std::array::from_fn(|dimension| {
            let Counted { mut block, macros, .. } = self.counted[dimension].clone();
            // `ceildiv(n, TILE)` with `require(block.x == TILE)` is counted by the block under another name.
            let follows = |name: &String| {
                self.tied_macros.contains(name) && configuration.macros.get(name) != origin.macros.get(name)
            };
            block[dimension] |= block == [false; 3] && macros.iter().any(follows);
            let count = |of: Dim3| (0..3).filter(|&at| block[at]).map(|at| of[at]).product();
            Scale { before: count(origin.block), after: count(configuration.block) }
        })
    }

    /// What the host code launches, whatever the winner is: the baseline's shape, under the macros that it uses itself.
    fn origin(&self, space: &Space, configuration: &Configuration) -> Configuration {
        let mut origin = space.baseline().clone();
        for (name, value) in &configuration.macros {
            if self.macros.followed.contains(name) {
                origin.macros.insert(name.clone(), *value);
            }
        }
        origin.block = self.macros.launched(configuration).unwrap_or(origin.block);
        origin
    }

    /// The configuration that the host program prepares its arguments for.
    pub fn prepared(&self, space: &Space, configuration: &Configuration) -> Configuration {
        match self.way {
            Way::Header => configuration.clone(),
            Way::Remap { .. } | Way::Pinned(_) => self.origin(space, configuration),
        }
    }

    /// How a configuration is launched.
    ///
    /// # Errors
    /// As [`Space::launch`].
    pub fn launch(&self, space: &Space, configuration: &Configuration) -> Result<Launch, Diagnostic> {
        let own = space.launch(configuration)?;
        if self.way == Way::Header {
            return Ok(own);
        }
        let before = space.launch(&self.origin(space, configuration))?;
        let scale = self.scale(space, configuration);
        let covering = || std::array::from_fn(|at| scale[at].covering(before.grid[at]));
        Ok(Launch { grid: configuration.grid.unwrap_or_else(covering), ..own })
    }

    /// Why a configuration must not be used. `code` is what its own and the baseline's ask for; `launches` its launch and the baseline's.
    pub fn refusal(
        &self,
        space: &Space,
        configuration: &Configuration,
        code: (Asked, Asked),
        launches: (&Launch, &Launch),
    ) -> Option<String> {
        let baseline = space.baseline();
        if self.way == Way::Header || configuration == baseline {
            return self.macros.refusal(space, configuration);
        }
        let (launch, before) = launches;
        if let Way::Pinned(reason) = &self.way {
            let origin = self.origin(space, configuration);
            let moved = configuration.block != origin.block || configuration.grid != baseline.grid;
            // Without a stub the program's own launch says how much there is.
            let prepared = space.launch(&origin);
            if moved || prepared.is_ok_and(|prepared| prepared.shared != launch.shared) {
                return Some(reason.clone());
            }
        }
        // A macro may tie the code to the block, and then it moves with it.
        let tied = configuration.macros != baseline.macros;
        if let Some(reason) = self.other_extent(configuration, baseline).filter(|_| !tied) {
            return Some(reason);
        }
        if let Some(reason) = self.macros.refusal(space, configuration) {
            return Some(reason);
        }
        if configuration.carveout != baseline.carveout {
            return Some("only host code can set a carve-out: include the header".to_owned());
        }
        if let Some(reason) = refuses_launch(launch, before) {
            return Some(reason.to_owned());
        }
        let registers = code.0.registers;
        let (own, natural) = (most_threads(registers), most_threads(code.1.registers).min(self.most));
        if own < natural {
            return Some(format!(
                "with {registers} registers a launch of more than {own} threads a block would fail, which plain nvcc's code allows"
            ));
        }
        let most = code.0.most.filter(|&most| most < natural)?;
        Some(format!(
            "its launch bounds let a launch of more than {most} threads a block fail, which plain nvcc's code allows: include the header and launch by it"
        ))
    }

    /// Why the model alone must not choose a configuration, which is launched so; with the remedy.
    pub fn refuses_predicted(&self, space: &Space, configuration: &Configuration, launch: &Launch) -> Option<String> {
        let made = |of: &Configuration| self.launch(space, of).ok();
        if let Some(reason) = self.shares.left_undone(space, configuration, launch, made) {
            return Some(reason);
        }
        if self.way == Way::Header {
            return self.mistakes_block(space, configuration);
        }
        if let Some(reason) = self.macros.refusal(space, configuration) {
            return Some(reason);
        }
        let origin = self.origin(space, configuration);
        let Ok(before) = space.launch(&origin) else { return Some("its launch is not known".to_owned()) };
        if !self.does_all(space, configuration, launch, &before) {
            let few = || "the program's grid would have too few of its blocks".to_owned();
            return Some(self.unaware(space, configuration).unwrap_or_else(few));
        }
        if configuration.block == before.block && configuration.grid == space.baseline().grid {
            return None;
        }
        let told = match &self.way {
            Way::Remap { told } => *told,
            Way::Pinned(reason) => return Some(reason.clone()),
            Way::Header => true,
        };
        let value = |of: &Configuration, expression: &Expr| space.evaluate(of, expression).ok();
        let changed =
            |(_, expression): &&(String, Expr)| value(configuration, expression) != value(&origin, expression);
        if let Some((name, _)) = self.following.iter().find(changed) {
            return Some(format!(
                "`{name}` of args(...) follows the block, and the program passes what goes with its own: include the header and launch by it"
            ));
        }
        // `partial = out[132]` for a program that launches 132 blocks.
        let blocks = before.blocks();
        let counts_blocks = |(_, count): &&(String, Expr)| {
            value(&origin, count).and_then(|count| count.as_integer()).and_then(|count| u64::try_from(count).ok())
                == Some(blocks)
        };
        if let Some((name, _)) =
            self.elements.iter().find(counts_blocks).filter(|_| blocks > 1 && launch.blocks() != blocks)
        {
            return Some(format!(
                "`{name}` of args(...) has as many elements as the program launches blocks, {blocks}: include the header and launch by it, or have the program allocate and read more, and say so here"
            ));
        }
        let scale = self.scale(space, configuration);
        let exact = |at: usize| {
            let Scale { before: from, after: to } = scale[at];
            u64::from(launch.grid[at]) * u64::from(to) == u64::from(before.grid[at]) * u64::from(from)
        };
        let is_axis = configuration.grid.is_some();
        let moved = if configuration.block == before.block { "grid" } else { "block" };
        let untold = || {
            format!(
                "where nothing is timed, the {moved} changes only where the kernel surely works in others: write launch(remap) to say that it does, or include the header and launch by it"
            )
        };
        // No promise makes that right, whatever the comment says.
        let is_tied = configuration.macros != space.baseline().macros;
        if let Some(reason) = self.other_extent(configuration, space.baseline()).filter(|_| !is_tied) {
            return Some(reason);
        }
        if !told && !self.proven {
            return Some(untold());
        }
        if !is_axis && !(0..3).all(exact) {
            return Some(MUST_DIVIDE.to_owned());
        }
        // What is proven is of as many threads.
        (!told && !is_axis && threads(launch) != threads(&before)).then(untold)
    }

    /// That the block is another than the code of a configuration can know of.
    fn mistakes_block(&self, space: &Space, configuration: &Configuration) -> Option<String> {
        let baseline = space.baseline();
        let reason = self.other_extent(configuration, baseline)?;
        // A macro that is tied to the block tells the code of it, if the code has it.
        let differs =
            |name: &String| configuration.macros.get(name) != baseline.macros.get(name) && self.macros.is_named(name);
        if self.is_told_its_block || space.tied_macros().iter().any(differs) {
            return None;
        }
        Some(reason)
    }

    /// Why the code needs the baseline's block, where a configuration's is another in such a dimension.
    fn other_extent(&self, configuration: &Configuration, baseline: &Configuration) -> Option<String> {
        let mut dimensions = (0..3).filter(|&at| configuration.block[at] != baseline.block[at]);
        dimensions.find_map(|at| self.fixed[at].clone())
    }

    /// Whether a launch is what the comment asks for under a configuration, as far as the workload tells. The program's grid knows
    /// nothing of a macro by which the comment divides the work.
    fn does_all(&self, space: &Space, configuration: &Configuration, launch: &Launch, before: &Launch) -> bool {
        if configuration.grid.is_some() {
            return true;
        }
        let under_its_macros =
            Configuration { macros: configuration.macros.clone(), ..self.origin(space, configuration) };
        let (Ok(own), Ok(divided)) = (space.launch(configuration), space.launch(&under_its_macros)) else {
            return false;
        };
        let enough = (0..3).all(|at| launch.grid[at] >= own.grid[at]);
        enough && (own.grid == launch.grid || divided.grid == before.grid)
    }

    /// The program's grid under a configuration against the one that the comment asks for, on the workload and on larger ones. `launch`
    /// is as it is made. It hangs on the macros and the block alone.
    pub fn blocks(&self, space: &Space, configuration: &Configuration, launch: &Launch) -> Blocks {
        let Some(reason) = self.unaware(space, configuration) else { return Blocks::Asked };
        let Ok(needed) = space.launch(configuration).map(|own| own.grid) else { return Blocks::Asked };
        let compared = |space: &Space| {
            let made = self.launch(space, configuration).ok()?.grid;
            let own = space.launch(configuration).ok()?.grid;
            Some([0, 1, 2].map(|at| made[at].cmp(&own[at])))
        };
        let all: Vec<[Ordering; 3]> = std::iter::once(space).chain(&self.larger).filter_map(compared).collect();
        if all.iter().flatten().any(|order| order.is_lt()) {
            return Blocks::Lacking(reason);
        }
        let more = [0, 1, 2].map(|at| all.iter().any(|orders| orders[at].is_gt()));
        if more == [false; 3] {
            return Blocks::Asked;
        }
        // On the workload there may be none of them.
        let grid = [0, 1, 2]
            .map(|at| if more[at] { launch.grid[at].max(needed[at].saturating_add(1)) } else { launch.grid[at] });
        Blocks::Beyond { launch: Launch { grid, ..*launch }, needed, reason }
    }

    /// That the program divides the work by other values of macros than a configuration has, with the remedy.
    pub fn unaware(&self, space: &Space, configuration: &Configuration) -> Option<String> {
        let origin = self.origin(space, configuration);
        let differs = |name: &&String| configuration.macros.get(*name) != origin.macros.get(*name);
        let names: Vec<&str> = self.dividing_macros.iter().filter(differs).map(String::as_str).collect();
        (!names.is_empty()).then(|| {
            format!(
                "the grid that the program launches knows nothing of {}: launch by the macro, or include the header and launch by it",
                names.join(" and ")
            )
        })
    }

    /// The dimensions in which a launch of the configuration can have more threads than the baseline's.
    pub fn surplus(&self, space: &Space, configuration: &Configuration) -> [bool; 3] {
        let rounds = matches!(self.way, Way::Remap { .. }) && configuration.grid.is_none();
        self.scale(space, configuration).map(|scale| rounds && !scale.is_exact())
    }

    /// What the launch stub makes of the baseline's launches under a configuration; `shared` writes the `shared` clause for it.
    pub fn shape(&self, configuration: &Configuration, shared: String) -> Shape {
        Shape { block: configuration.block, grid: configuration.grid, shared }
    }

    /// The same as a winner.
    pub fn reshaped(&self, space: &Space, configuration: &Configuration, shared: String, surplus: bool) -> Reshaped {
        Reshaped { shape: self.shape(configuration, shared), scale: self.scale(space, configuration), surplus }
    }
}

/// Why a program that launches `before` cannot make a launch, whatever code it is of.
fn refuses_launch(launch: &Launch, before: &Launch) -> Option<&'static str> {
    if launch.shared > before.shared.max(FREE_SHARED) {
        return Some("more than 48 KiB of dynamic shared memory need the host code's consent");
    }
    let is_beyond = launch.grid.iter().zip(MAX_GRID).any(|(&blocks, most)| blocks > most);
    is_beyond.then_some("its grid has more blocks in y or z than a GPU takes")
}

/// Whether configurations may be launched in other ways than the baseline.
fn launches_vary(annotation: &Annotation, space: &Space) -> bool {
    let baseline = space.baseline();
    let is_other = |found: Configuration| found.block != baseline.block || found.grid != baseline.grid;
    annotation.clauses.shared.is_some() && !annotation.clauses.macros.is_empty() || space.iter().any(is_other)
}

/// The values of parameters and the numbers of elements that a workload gives by the block or the grid.
fn following(annotation: &Annotation) -> Vec<(String, Expr)> {
    let of_launch = |expression: &Expr| {
        let mut found = false;
        expression.names(&mut |name, _| found |= name.starts_with("block.") || name.starts_with("grid."));
        found
    };
    let given = annotation.values().into_iter().filter_map(|(name, value)| match value {
        GivenValue::Scalar(expression) | GivenValue::Buffer { count: expression, .. } => Some((name, expression)),
        GivenValue::Table(_) | GivenValue::File(_) | GivenValue::Null(_) | GivenValue::Struct { .. } => None,
    });
    given.filter(|(_, expression)| of_launch(expression)).map(|(name, expression)| (name, expression.clone())).collect()
}

/// The numbers of elements that a workload gives buffers which are written first, whatever the block and the grid are.
fn elements(annotation: &Annotation) -> Vec<(String, Expr)> {
    let following = following(annotation);
    let given = annotation.values().into_iter().filter_map(|(name, value)| match value {
        GivenValue::Buffer { count, fill: GivenFill::Out | GivenFill::Zeros, .. } => Some((name, count)),
        _ => None,
    });
    let is_other = |(name, _): &(String, &Expr)| following.iter().all(|(own, _)| own != name);
    given.filter(is_other).map(|(name, count)| (name, count.clone())).collect()
}

/// Why code is not launched with another extent of the block in a dimension than the baseline's.
fn unaware_of_block(dimension: usize, is_fixed: bool, is_unread: bool) -> Option<String> {
    let name = DIMENSIONS[dimension];
    match (is_fixed, is_unread) {
        (true, _) => Some(format!("the kernel reads threadIdx.{name} and never blockDim.{name}")),
        (_, true) => Some(format!("the kernel reads neither threadIdx.{name} nor blockDim.{name}")),
        _ => None,
    }
}

/// Threads that a block of code with so many registers can have.
fn most_threads(registers: u32) -> u32 {
    let of_warp = (registers.max(1) * WARP).next_multiple_of(REGISTER_UNIT);
    // Each quarter of a multiprocessor has its own registers.
    let warps = REGISTERS / SUB_CORES / of_warp * SUB_CORES;
    (warps * WARP).min(MAX_BLOCK_THREADS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_a_block_end_with_the_registers() {
        for (registers, threads) in [(16, 1024), (64, 1024), (65, 896), (96, 640), (128, 512), (255, 256)] {
            assert_eq!(most_threads(registers), threads, "{registers}");
        }
    }
}
