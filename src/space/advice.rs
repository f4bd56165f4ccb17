//! What is legal in a tuning comment but surely meant otherwise.
//!
//! Annotation, space and what the compiler knows of the kernel -> warnings with places. Each of
//! them is certain on what it is given: where something is not known, nothing is said. The
//! space must be one that can be walked ([`Space::check_size`]).

use super::space::Space;
use crate::comment::{Annotation, Block, GivenFill, GivenValue, Grid, Power, Regs};
use crate::comment::{Binary, Function, Unary, Value};
use crate::comment::{Expr, Node};
use crate::diag::Span;
use crate::diag::{Diagnostic, MessageCode};
use crate::launch::{Configuration, DIMENSIONS, Dim3, Math};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a kernel besides its comment, under the baseline's macros. The default is
/// to know nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// `-maxrregcount` of the command line.
    pub register_cap: Option<u32>,
    /// Launch bounds of any kind, which override the command line.
    pub has_launch_bounds: bool,
    /// Launch bounds with a number of resident blocks.
    pub bounds: Option<LaunchBounds>,
    /// By dimension: the code tells threads of a block apart and does not ask how many there
    /// are.
    pub fixed: [bool; 3],
    /// By dimension: the code does not tell threads of a block apart.
    pub unread: [bool; 3],
    /// It has shared memory as large as its launch says (`extern __shared__`).
    pub dynamic_shared: bool,
    /// The most bytes that one thread stores to global memory, where that is bounded.
    pub stored: Option<u64>,
    /// The buffers that are there to be written (`out[n]`) and their bytes.
    pub outputs: Vec<(String, u64)>,
    /// The most bytes that one thread loads from and stores to global memory, where that is
    /// bounded.
    pub accessed: Option<u64>,
    /// All buffers of the workload and their bytes.
    pub buffers: Vec<(String, u64)>,
    /// No thread asks how many blocks there are: each does a fixed part of the work.
    pub ignores_grid: bool,
    /// Parameters, fields and variables of floating types.
    pub floating: BTreeSet<String>,
    /// The threads of the baseline that were looked at leave at once, before they read or write
    /// global memory.
    pub idle: bool,
    /// Buffers beyond which threads of the baseline surely reach.
    pub overruns: Vec<Overrun>,
}

/// An access of the baseline that lies beyond a buffer of the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overrun {
    pub buffer: String,
    /// The element that is accessed, and how many there are.
    pub element: i64,
    pub has: u64,
    pub is_read: bool,
}

/// `__launch_bounds__(threads, blocks)`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchBounds {
    pub threads: u32,
    pub blocks: u32,
    /// Registers of a thread that leave room for this many blocks.
    pub registers: u32,
}

/// Returns the warnings, in no promised order.
pub fn give_advice(annotation: &Annotation, space: &Space, facts: &Facts) -> Vec<Diagnostic> {
    let mut advisor = Advisor { annotation, space, found: Vec::new() };
    let seen = Seen::of_space(space);
    advisor.check_powers();
    advisor.check_size();
    advisor.check_axes(&seen);
    advisor.check_math();
    advisor.fixed_block(&seen, facts);
    advisor.check_shared(facts);
    advisor.command_line(facts);
    advisor.launch_bounds(facts);
    advisor.check_divisions(facts);
    advisor.check_outputs(facts);
    advisor.check_reach(facts);
    advisor.rounded_grid(&seen, facts);
    advisor.check_idle(facts);
    advisor.check_overruns(facts);
    advisor.found
}

/// What occurs in the valid configurations of a space.
#[derive(Default)]
struct Seen {
    /// Configurations that differ in more than the register cap, the cache operator and the
    /// carve-out.
    points: u64,
    blocks: BTreeSet<Dim3>,
    grids: [BTreeSet<u32>; 3],
    macros: BTreeMap<String, BTreeSet<i64>>,
    /// By dimension: the block varies in it while all macros stay.
    varies: [bool; 3],
    /// The first configuration of each set of macros and block, up to [`MOST_SAMPLES`].
    samples: Vec<Configuration>,
}

/// Most configurations that an expression of the comment is evaluated for: one takes a few
/// microseconds.
const MOST_SAMPLES: usize = 256;

impl Seen {
    fn of_space(space: &Space) -> Seen {
        let mut seen = Seen::default();
        // Macros vary slowest.
        let mut first: Option<(BTreeMap<String, i64>, Dim3)> = None;
        let first_cap = space.caps().first().copied().unwrap_or(0);
        let is_first = |found: &Configuration| {
            let others = (found.cache, found.carveout, found.math, found.unroll);
            found.cap == first_cap && others == (None, None, Math::NONE, None)
        };
        for configuration in space.iter().filter(is_first) {
            seen.points += 1;
            let is_sampled =
                |known: &Configuration| known.block == configuration.block && known.macros == configuration.macros;
            if seen.samples.len() < MOST_SAMPLES && !seen.samples.last().is_some_and(is_sampled) {
                seen.samples.push(Configuration { cap: 0, ..configuration.clone() });
            }
            let Configuration { block, grid, macros, .. } = configuration;
            seen.blocks.insert(block);
            for (values, extent) in seen.grids.iter_mut().zip(grid.unwrap_or([1; 3])) {
                values.insert(extent);
            }
            for (name, value) in &macros {
                seen.macros.entry(name.clone()).or_default().insert(*value);
            }
            let (_, shape) = match first.take() {
                Some(found) if found.0 == macros => first.insert(found),
                _ => first.insert((macros, block)),
            };
            for ((varies, one), other) in seen.varies.iter_mut().zip(*shape).zip(block) {
                *varies |= one != other;
            }
        }
        seen
    }
}

/// An axis as its clause has it, with how many of its values occur.
struct WrittenAxis {
    what: String,
    span: Span,
    values: usize,
    left: usize,
}

struct Advisor<'a> {
    annotation: &'a Annotation,
    space: &'a Space,
    found: Vec<Diagnostic>,
}

impl Advisor<'_> {
    fn add_warning(&mut self, code: MessageCode, span: Span, message: String) {
        self.found.push(self.annotation.source.warning(code, span, message));
    }

    /// Powers that are none.
    fn check_powers(&mut self) {
        for &Power { span, base, exponent } in &self.annotation.powers {
            let remedy = match (base, exponent) {
                (2, 0..63) => format!(": write 1 << {exponent}"),
                (10, 0..19) => format!(": write 1e{exponent}"),
                _ => match u32::try_from(exponent).ok().and_then(|exponent| base.checked_pow(exponent)) {
                    Some(power) => format!(": write {power}"),
                    None => String::new(),
                },
            };
            let message =
                format!("{base}^{exponent} is {}, for `^` is C's exclusive or and no power{remedy}", base ^ exponent);
            self.add_warning(MessageCode::PowerOperator, span, message);
        }
    }

    /// A space that is too large to be searched whole.
    fn check_size(&mut self) {
        let Some(all) = self.space.sampled_from() else { return };
        let searched = self.space.searched().len();
        let message =
            format!("only {searched} of {all} configurations are searched: give shorter lists or larger steps");
        self.add_warning(MessageCode::SpaceSampled, self.annotation.comment, message);
    }

    /// Axes that are none, and spaces with nothing in them.
    fn check_axes(&mut self, seen: &Seen) {
        let annotation = self.annotation;
        let cut = annotation.place(if annotation.clauses.require.is_empty() { "block" } else { "require" });
        let written = self.written_axes(seen);
        if seen.points == 1 && written.iter().any(|axis| axis.values > 1) {
            let baseline = Configuration { cap: 0, ..self.space.baseline().clone() };
            let left = match self.unlaunched_axes().as_slice() {
                [] => "nothing".to_owned(),
                axes => format!("only {}", axes.join(" and ")),
            };
            // One comment may have several.
            let of = annotation.instance.as_ref().map(|_| format!(" of `{}`", annotation.name)).unwrap_or_default();
            self.add_warning(
                MessageCode::NothingToTune,
                cut,
                match annotation.clauses.require.is_empty() {
                    true => format!(
                        "of these values only the baseline{of} ({baseline}) can be launched: {left} is left to tune"
                    ),
                    false => {
                        format!("`require` leaves only the baseline{of} ({baseline}): {left} is left; loosen it")
                    }
                },
            );
            return;
        }
        if seen.points == 1 && self.unlaunched_axes().is_empty() {
            let name = &annotation.name;
            let message = format!("nothing is left to tune: every axis of `{name}` has one value; add values to one");
            self.add_warning(MessageCode::NothingToTune, annotation.comment, message);
            return;
        }
        for axis in &annotation.clauses.macros {
            if let [only] = axis.values[..] {
                let message = format!(
                    "macro `{0}` has one value and is no axis: give it several, or write #define {0} {only} in the source",
                    axis.name
                );
                self.add_warning(MessageCode::ValuesIgnored, axis.span, message);
            }
        }
        if let Some(unroll) = annotation.clauses.unroll.as_ref().filter(|_| !self.space.limits().has_loops) {
            let name = &annotation.kernel.name;
            let message = format!(
                "`unroll` has no effect: the body of `{name}` has no loop without a pragma of its own; remove the clause"
            );
            self.add_warning(MessageCode::ValuesIgnored, unroll.span, message);
        }
        self.beyond_the_limits();
        for WrittenAxis { what, span, values, left } in written {
            if values > 1 && left == 1 {
                self.add_warning(
                    MessageCode::ValuesIgnored,
                    span,
                    format!("{what} has {values} values, but only one of them is in a valid configuration"),
                );
            }
        }
    }

    /// Math options that nothing can choose.
    fn check_math(&mut self) {
        if self.space.math().len() > 1 && !self.annotation.has_workload() {
            let message = "`math` has no effect: nothing compares its results; add `args`, or record a run";
            self.add_warning(MessageCode::ValuesIgnored, self.annotation.place("math"), message.to_owned());
        }
    }

    /// Values of `block` and `grid` that no launch may have.
    fn beyond_the_limits(&mut self) {
        let (clauses, limits) = (&self.annotation.clauses, self.space.limits());
        let mut found = Vec::new();
        if let Some(block) = &clauses.block
            && let Block::Lists(lists) = &block.value
        {
            let most = limits.max_threads_per_block;
            let smallest = |list: &Vec<u32>| list.iter().min().copied().map_or(1, u64::from);
            for (dimension, list) in lists.iter().enumerate() {
                let others = lists.iter().enumerate().filter(|(other, _)| *other != dimension);
                let others: u64 = others.map(|(_, list)| smallest(list)).product();
                let most = u64::from(most).checked_div(others).unwrap_or(0).min(u64::from(limits.max_block[dimension]));
                found.extend(explain_excess(("block", dimension), list, most).map(|message| (block.span, message)));
            }
        }
        if let Some(grid) = &clauses.grid
            && let Grid::Lists(lists) = &grid.value
        {
            for (dimension, list) in lists.iter().enumerate() {
                let most = u64::from(limits.max_grid[dimension]);
                found.extend(explain_excess(("grid", dimension), list, most).map(|message| (grid.span, message)));
            }
        }
        found.into_iter().for_each(|(span, message)| self.add_warning(MessageCode::ValuesIgnored, span, message));
    }

    /// The axes with several values that neither block, grid nor macros are.
    fn unlaunched_axes(&self) -> Vec<&'static str> {
        let carveouts = self.annotation.clauses.carveout.as_ref().is_some_and(|percents| !percents.is_empty());
        let several = [
            ("the register cap", self.space.caps().len() > 1),
            ("the cache operator", self.space.cache_operators().len() > 1),
            ("the carve-out", carveouts),
            ("the math options", self.space.math().len() > 1),
            ("unrolling", self.space.unroll().len() > 1),
        ];
        several.into_iter().filter(|(_, several)| *several).map(|(name, _)| name).collect()
    }

    /// Every axis as written, but for those of [`Self::unlaunched_axes`].
    fn written_axes(&self, seen: &Seen) -> Vec<WrittenAxis> {
        let annotation = self.annotation;
        let mut axes = Vec::new();
        let product = |lists: &[Vec<u32>]| lists.iter().map(Vec::len).fold(1, usize::saturating_mul);
        if let Some(block) = &annotation.clauses.block {
            // `auto` stands for many shapes of any number of threads.
            let values = if let Block::Lists(lists) = &block.value { product(lists) } else { 2 };
            axes.push(WrittenAxis { what: "`block`".into(), span: block.span, values, left: seen.blocks.len() });
        }
        if let Some(grid) = &annotation.clauses.grid
            && let Grid::Lists(lists) = &grid.value
        {
            let left = seen.grids.iter().map(BTreeSet::len).product();
            axes.push(WrittenAxis { what: "`grid`".into(), span: grid.span, values: product(lists), left });
        }
        for axis in &annotation.clauses.macros {
            let left = seen.macros.get(&axis.name).map_or(0, BTreeSet::len);
            axes.push(WrittenAxis {
                what: format!("macro `{}`", axis.name),
                span: axis.span,
                values: axis.values.len(),
                left,
            });
        }
        axes
    }

    /// A block that the code cannot know of: results would depend on it.
    fn fixed_block(&mut self, seen: &Seen, facts: &Facts) {
        // Blocks that the comment does not list are no mistake of it.
        let is_written = self.annotation.clauses.place("block").is_some();
        if self.annotation.tells_block() || !is_written {
            return;
        }
        let names = |of: [bool; 3]| -> Vec<&str> {
            let wrong = (0..3).filter(|&dimension| of[dimension] && seen.varies[dimension]);
            wrong.map(|dimension| ["x", "y", "z"][dimension]).collect()
        };
        for name in names(facts.unread) {
            let message = format!(
                "`{}` reads neither threadIdx.{name} nor blockDim.{name}: remove that dimension from `block`",
                self.annotation.kernel.name
            );
            self.add_warning(MessageCode::BlockAssumed, self.annotation.place("block"), message);
        }
        let names = names(facts.fixed);
        if let [first, ..] = names[..] {
            let list = |of: &str| format!("{of}.{}", names.join("/"));
            let message = format!(
                "`{}` reads {}, not {}: tie it to a macro by require(block.{first} == TILE)",
                self.annotation.kernel.name,
                list("threadIdx"),
                list("blockDim"),
            );
            self.add_warning(MessageCode::BlockAssumed, self.annotation.place("block"), message);
        }
    }

    /// Shared memory that a launch by the comment does not have.
    fn check_shared(&mut self, facts: &Facts) {
        if facts.dynamic_shared && self.annotation.clauses.shared.is_none() {
            let message = format!(
                "`{}` has extern __shared__ memory: add its bytes, as in shared(block.x * sizeof(float))",
                self.annotation.kernel.name
            );
            self.add_warning(MessageCode::SharedMissing, self.annotation.comment, message);
        }
    }

    /// The highest cap that the comment lists, where that is above `most`.
    fn cap_above(&self, most: u32) -> Option<u32> {
        let Regs::List(caps) = &self.annotation.clauses.regs else { return None };
        caps.iter().copied().max().filter(|&cap| cap > most)
    }

    /// A cap of the comment above that of the command line, which it overrides. Launch bounds
    /// override the command line too.
    fn command_line(&mut self, facts: &Facts) {
        let most = facts.register_cap.filter(|&cap| cap > 0 && !facts.has_launch_bounds);
        if let Some(most) = most
            && let Some(cap) = self.cap_above(most)
        {
            let message = format!(
                "`regs` (up to {cap}) overrides -maxrregcount={most} of the command line: remove one of the two"
            );
            self.add_warning(MessageCode::RegsOverride, self.annotation.place("regs"), message);
        }
    }

    /// A cap that takes the registers of blocks that launch bounds promise.
    fn launch_bounds(&mut self, facts: &Facts) {
        if let Some(LaunchBounds { threads, blocks, registers }) = facts.bounds
            && let Some(cap) = self.cap_above(registers)
        {
            let message = format!(
                "`regs` goes up to {cap}, but __launch_bounds__({threads}, {blocks}) allows {registers}: end there, or drop the bound"
            );
            self.add_warning(MessageCode::RegsOverride, self.annotation.place("regs"), message);
        }
    }

    /// Threads that fill no more than two thirds of any of the buffers that are there to be
    /// filled.
    fn check_outputs(&mut self, facts: &Facts) {
        let (Some(stored), Ok(launch)) = (facts.stored, self.space.launch(self.space.baseline())) else { return };
        // Numbers that the comment tells make up structures of the source: how much of these is
        // padding, and never written, is not known.
        let typed = self.annotation.clauses.args.iter().flatten().filter(|given| given.element.is_some());
        if typed.into_iter().any(|given| facts.outputs.iter().any(|(name, _)| *name == given.name)) {
            return;
        }
        let reach = launch.threads().saturating_mul(stored);
        let smallest = facts.outputs.iter().min_by_key(|(_, bytes)| *bytes);
        // Borders that a stencil leaves alone, and what stands before an offset, are a small part
        // of a buffer.
        let bordered = reach.saturating_add(reach / 2);
        if let Some((name, bytes)) = smallest.filter(|(_, bytes)| *bytes > bordered) {
            let clause = if self.annotation.clauses.threads.is_some() { "threads" } else { "grid" };
            let message = format!(
                "the {} threads store only {reach} of {bytes} bytes of `{name}`: correct `{clause}` or `{name}`",
                launch.threads(),
            );
            self.add_warning(MessageCode::OutputNotCovered, self.annotation.place(clause), message);
        }
    }

    /// Threads that reach a small part of every buffer, none of which is there to be filled.
    fn check_reach(&mut self, facts: &Facts) {
        let (Some(accessed), Ok(launch)) = (facts.accessed, self.space.launch(self.space.baseline())) else { return };
        // Other advice covers these, and may name the reason.
        if !facts.outputs.is_empty() || facts.idle || !self.annotation.powers.is_empty() {
            return;
        }
        let reach = launch.threads().saturating_mul(accessed);
        let smallest = facts.buffers.iter().min_by_key(|(_, bytes)| *bytes);
        if let Some((name, _)) = smallest.filter(|(_, bytes)| *bytes > reach.saturating_mul(REACH_FACTOR)) {
            let clause = if self.annotation.clauses.threads.is_some() { "threads" } else { "grid" };
            let message = format!(
                "the baseline's {} threads reach {reach} bytes, less than any buffer: correct `{clause}` or `{name}`",
                launch.threads(),
            );
            self.add_warning(MessageCode::OutputNotCovered, self.annotation.place(clause), message);
        }
    }

    /// A grid that is rounded down, of a kernel whose blocks do a fixed part of the work.
    fn rounded_grid(&mut self, seen: &Seen, facts: &Facts) {
        let Some(Grid::Expressions(expressions)) = self.annotation.clauses.grid.as_ref().map(|grid| &grid.value) else {
            return;
        };
        if !facts.ignores_grid {
            return;
        }
        let mut divisions = Vec::new();
        expressions.iter().for_each(|expression| rounding_divisions(expression, &mut divisions));
        let mut found = Vec::new();
        for (place, a, b) in divisions {
            let samples = std::iter::once(self.space.baseline()).chain(&seen.samples);
            let rest = |sample: &Configuration| {
                let integer = |of: &Expr| self.space.evaluate(sample, of).ok()?.as_integer();
                integer(a)?.checked_rem(integer(b)?)
            };
            let rests: Vec<(&Configuration, Option<i64>)> = samples.map(|sample| (sample, rest(sample))).collect();
            let remedy = format!("write ceildiv({a}, {b})");
            if let Some((sample, rest)) =
                rests.iter().find_map(|(sample, rest)| Some((sample, rest.filter(|&rest| rest > 0)?)))
            {
                found.push((place, format!("this division drops the last {rest} of {a} with {sample}: {remedy}")));
            } else if rests.iter().all(|(_, rest)| rest.is_none()) && b.any_name(|name| name.starts_with("block.")) {
                found.push((place, format!("this division drops a rest if {b} does not divide {a}: {remedy}")));
            }
        }
        found.into_iter().for_each(|(place, message)| self.add_warning(MessageCode::RestDropped, place, message));
    }

    /// Divisions of whole numbers that lose a rest, where a fraction could be kept.
    fn check_divisions(&mut self, facts: &Facts) {
        let mut values = self.annotation.values();
        values.extend(self.annotation.clauses.symbols.iter().map(|given| (given.name.clone(), &given.value)));
        for (name, value) in values.into_iter().filter(|(name, _)| facts.floating.contains(name)) {
            let given: Vec<&Expr> = match value {
                GivenValue::Scalar(expression) => vec![expression],
                GivenValue::Buffer { fill: GivenFill::Range(lo, hi), .. } => vec![lo, hi],
                GivenValue::Buffer { fill: GivenFill::Constant(expression), .. } => vec![expression],
                GivenValue::Table(table) => table.values.iter().collect(),
                _ => Vec::new(),
            };
            given.into_iter().for_each(|expression| self.check_division(&name, expression));
        }
    }

    /// The same in what such a value is added up of.
    fn check_division(&mut self, name: &str, expression: &Expr) {
        match &expression.node {
            Node::Unary(Unary::Negate, a) => self.check_division(name, a),
            Node::Choice(_, a, b) => [a, b].iter().for_each(|a| self.check_division(name, a)),
            Node::Binary(operator, at, a, b) => {
                let value = |of: &Expr| self.space.evaluate(self.space.baseline(), of);
                if let (Binary::Divide, Ok(Value::Int(first)), Ok(Value::Int(second))) = (operator, value(a), value(b))
                    && first.checked_rem(second).is_some_and(|rest| rest != 0)
                {
                    let remedy = match a.node {
                        Node::Value(_) => format!("{a}.0 / {b}"),
                        _ => format!("1.0 * {a} / {b}"),
                    };
                    let message = format!(
                        "this division of whole numbers is {}, and `{name}` takes fractions: write {remedy}",
                        first / second
                    );
                    self.add_warning(MessageCode::IntegerDivision, *at, message);
                } else if let Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide = operator {
                    [a, b].iter().for_each(|a| self.check_division(name, a));
                }
            }
            _ => {}
        }
    }

    /// Buffers that are smaller than what the kernel reaches.
    fn check_overruns(&mut self, facts: &Facts) {
        for Overrun { buffer, element, has, is_read } in &facts.overruns {
            let name = &self.annotation.kernel.name;
            let does = if *is_read { "reads" } else { "writes" };
            let (place, remedy) = match self.annotation.clauses.recorded {
                Some(_) => ("in the recorded launch, where it", "correct the program"),
                None => ("on this workload, which", "make it longer"),
            };
            let message = format!("`{name}` {does} element {element} of `{buffer}` {place} has {has}: {remedy}");
            // A buffer within a structure is called by its way there.
            let parameter = buffer.split(['.', '[']).next();
            let given =
                self.annotation.clauses.args.iter().flatten().find(|given| Some(given.name.as_str()) == parameter);
            self.add_warning(
                MessageCode::BeyondBuffer,
                given.map_or_else(|| self.annotation.place("args"), |given| given.span),
                message,
            );
        }
    }

    /// A launch in which nobody does anything.
    fn check_idle(&mut self, facts: &Facts) {
        if !facts.idle {
            return;
        }
        let mut zero = Vec::new();
        for given in self.annotation.clauses.args.iter().flatten() {
            match &given.value {
                GivenValue::Scalar(value) => {
                    let value = self.space.evaluate(self.space.baseline(), value);
                    zero.extend(value.is_ok_and(|value| !value.is_true()).then(|| format!("`{}` is 0", given.name)));
                }
                GivenValue::Struct { .. } => {
                    zero.push(format!("unset fields of `{}` are 0", given.name));
                }
                _ => {}
            }
        }
        let because = if zero.is_empty() { String::new() } else { format!(" ({})", zero.join(", ")) };
        let message =
            format!("`{}` accesses no global memory here{because}: change the arguments", self.annotation.kernel.name);
        self.add_warning(MessageCode::IdleWorkload, self.annotation.place("args"), message);
    }
}

/// How many times larger than what the threads can reach every buffer must be. Kernels with
/// strides leave less of their buffers alone.
const REACH_FACTOR: u64 = 16;

/// What to say of values above the most that a dimension may have, where others are left.
fn explain_excess((clause, dimension): (&str, usize), list: &[u32], most: u64) -> Option<String> {
    let is_above = |value: &u32| u64::from(*value) > most;
    let largest = list.iter().copied().filter(|value| !is_above(value)).max()?;
    let name = DIMENSIONS[dimension];
    list.iter().any(is_above).then(|| {
        format!("no GPU can launch the values of `{clause}` above {largest} in {name}: end the list at {largest}")
    })
}

/// Collects the divisions, as place, dividend and divisor, that round the value of an
/// expression down.
fn rounding_divisions<'a>(expression: &'a Expr, found: &mut Vec<(Span, &'a Expr, &'a Expr)>) {
    match &expression.node {
        Node::Binary(Binary::Divide, place, a, b) => {
            // A sum is how a quotient is rounded up.
            if !matches!(a.node, Node::Binary(Binary::Add | Binary::Subtract, ..)) {
                found.push((*place, a, b));
            }
            rounding_divisions(a, found);
        }
        Node::Binary(Binary::Multiply, _, a, b) => [a, b].iter().for_each(|part| rounding_divisions(part, found)),
        Node::Call(Function::Min | Function::Max, arguments) => {
            arguments.iter().for_each(|argument| rounding_divisions(argument, found));
        }
        _ => {}
    }
}
