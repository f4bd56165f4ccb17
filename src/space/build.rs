//! Annotation -> table: names become slots, clauses become axes, derived values and
//! constraints.

use super::grid_factors::GridFactors;
use super::limits::Limits;
use super::names::{Meaning, Refusal, declared_type, given_by, resolve_name};
use super::shapes;
use super::walk::{Axis, AxisSet, Constraint, Derived, Quantity, Table, Test};
use crate::comment::{Annotation, Binary, Block, Expr, Fault, Function, GivenValue, Grid, Node, Regs, Value};
use crate::cuda::Type;
use crate::diag::{Diagnostic, MessageCode, Span};
use crate::gpu::WARP;
use crate::launch::{Dim3, Math, MathOption};
use std::collections::BTreeMap;

/// A table under construction, and what the finished space keeps of it.
pub(super) struct Builder<'a> {
    annotation: &'a Annotation,
    pub table: Table,
    pub names: BTreeMap<String, Meaning>,
    /// The number of macro axes, which come first.
    pub macros: usize,
    pub cap_axis: usize,
    /// Axes of the grid by dimension, where the grid is an axis.
    pub grid_axes: Vec<usize>,
    /// Index of the constraint for each dimension of a grid that follows; `None` where it depends
    /// on a parameter without value.
    pub grid: Option<[Option<usize>; 3]>,
    pub shared: Option<usize>,
    /// The parameter without a value that the launch depends on.
    pub unbound: Option<(String, Span)>,
    pub problems: Vec<Diagnostic>,
}

impl<'a> Builder<'a> {
    pub fn new(annotation: &'a Annotation) -> Builder<'a> {
        let table = Table { axes: Vec::new(), derived: Vec::new(), constraints: Vec::new(), slots: 0 };
        Builder {
            annotation,
            table,
            names: BTreeMap::new(),
            macros: annotation.clauses.macros.len(),
            cap_axis: 0,
            grid_axes: Vec::new(),
            grid: None,
            shared: None,
            unbound: None,
            problems: Vec::new(),
        }
    }

    fn add_error(&mut self, code: MessageCode, span: Span, message: impl Into<String>) {
        self.problems.push(self.annotation.source.error(code, span, message));
    }

    fn add_slots(&mut self, count: usize) -> usize {
        self.table.slots += count;
        self.table.slots - count
    }

    fn add_name(&mut self, name: &str, slot: usize, axes: AxisSet) {
        self.names.insert(name.to_string(), Meaning::Slot { slot, axes });
    }

    /// Makes everything. The order of axes is: macros as defined, block, grid, register cap,
    /// cache operator, carve-out, math options, unrolling.
    pub fn build_all(&mut self, limits: &Limits) {
        for axis in &self.annotation.clauses.macros {
            let slot = self.add_slots(1);
            self.add_name(&axis.name, slot, 1 << self.table.axes.len());
            self.table.axes.push(Axis::Number { slot, values: axis.values.clone() });
        }
        self.add_block(limits);
        let dimensions = self.grid_dimensions();
        if let Some(Grid::Lists(lists)) = self.annotation.clauses.grid.as_ref().map(|grid| &grid.value) {
            self.grid_lists(lists, limits);
        }
        let caps = self.cap_axis_values(limits);
        self.cap_axis = self.table.axes.len();
        self.table.axes.push(Axis::Cap { caps });
        self.add_policies(limits);

        if self.grid_axes.is_empty() {
            for name in ["grid.x", "grid.y", "grid.z"] {
                self.names.insert(name.to_string(), Meaning::Later);
            }
        }
        let deferred = self.add_arguments();
        if self.grid_axes.is_empty() {
            self.place_arguments(&deferred, Meaning::Later);
            self.grid_follows(dimensions, limits);
            self.place_arguments(&deferred, Meaning::Circular);
            for (name, expression) in deferred {
                self.add_argument(&name, expression);
            }
        }
        if let Some(shared) = &self.annotation.clauses.shared {
            let test = Test::Within { lo: 0, hi: i64::from(limits.max_dynamic_shared), of: Quantity::Shared };
            self.shared = self.launch_constraint(shared, test);
        }
        for require in &self.annotation.clauses.require {
            match self.compile_expression(require) {
                Ok((expression, axes)) => {
                    self.table.constraints.push(Constraint { expression, axes, test: Test::Truth })
                }
                Err(Refusal::Unbound(name, span)) => {
                    let remedy = given_by(&name);
                    self.add_error(
                        MessageCode::NameWithoutValue,
                        span,
                        format!("`{name}` has no value in `require`: {remedy}"),
                    );
                }
                Err(refusal) => self.add_refusal(refusal),
            }
        }
        self.table.mark_tested();
    }

    /// Dimensions of the grid as the comment gives it.
    fn grid_dimensions(&self) -> usize {
        match (&self.annotation.clauses.threads, self.annotation.clauses.grid.as_ref().map(|grid| &grid.value)) {
            (Some(threads), _) => threads.value.len(),
            (None, Some(Grid::Expressions(expressions))) => expressions.len(),
            (None, Some(Grid::Lists(lists))) => lists.len(),
            (None, None) => 1,
        }
    }

    /// The dimensions in which the blocks of `block(auto)` extend: those of the launch that the
    /// kernel names, and those that the comment names. Left out are dimensions of a grid whose
    /// blocks are counted by something else, such as a block for each image: there the program's
    /// block has one thread, by `default` or, without it, where other blocks of the grid
    /// are counted by the block.
    fn block_dimensions(&self) -> [bool; 3] {
        let dimensions = self.grid_dimensions();
        let all = [0, 1, 2].map(|at| at < dimensions.max(1) && !self.is_flat(at));
        let names = |expression: &Expr| GridFactors::count_names(self.annotation, expression);
        let tied: Vec<GridFactors> = self.annotation.clauses.require.iter().map(names).collect();
        let default = self.annotation.clauses.default.block.as_ref().map(|shape| shape.value);
        let named = self.annotation.kernel.named_dimensions;
        // `block.size` is of every shape, and says nothing of the dimensions.
        let is_named = |by: &[GridFactors], at: usize| by.iter().any(|by| by.extents[at]);
        let comment_varies = |at: usize| is_named(&tied, at) || default.is_some_and(|default| default[at] > 1);
        let Some(Grid::Expressions(expressions)) = self.annotation.clauses.grid.as_ref().map(|grid| &grid.value) else {
            return [0, 1, 2].map(|at| all[at] && (at == 0 || named[at] || comment_varies(at)));
        };
        let counted: Vec<GridFactors> = expressions.iter().map(names).collect();
        let is_alone = match default {
            Some(_) => true,
            None => counted.iter().any(|counted| counted.block.contains(&true)),
        };
        // A macro may be the block's extent by another name; in a dimension that the kernel does not
        // name it is what a thread does in a loop.
        let follows = |at: usize| {
            let own = counted.get(at).is_some_and(|own| !own.macros.is_empty());
            named[at] && (own || !is_alone) || comment_varies(at)
        };
        [0, 1, 2].map(|at| at == 0 || !self.is_flat(at) && (is_named(&counted, at) || all[at] && follows(at)))
    }

    /// Whether a constraint leaves blocks no other extent than 1 in y or z: `require(block.y ==
    /// 1)`.
    fn is_flat(&self, at: usize) -> bool {
        let extent = ["", "block.y", "block.z"][at];
        let holds = |constraint: &Expr, value: i64| {
            let lookup = |name: &String| match name == extent {
                true => Ok(Value::Int(value)),
                false => Err(Fault::NoValue(name.clone())),
            };
            constraint.evaluate(&lookup).is_ok_and(Value::is_true)
        };
        let mut pending: Vec<&Expr> = self.annotation.clauses.require.iter().collect();
        while let Some(constraint) = pending.pop() {
            if let Node::Binary(Binary::And, _, left, right) = &constraint.node {
                pending.extend([&**left, &**right]);
                continue;
            }
            let mut is_alone = true;
            constraint.names(&mut |name, _| is_alone &= name == extent);
            if is_alone && holds(constraint, 1) && !(2..=shapes::MOST_ROWS).any(|rows| holds(constraint, rows)) {
                return true;
            }
        }
        false
    }

    /// What `block(128, 256)` was meant to be, where each dimension has one value that is a
    /// warp or more.
    fn meant_list(&self) -> Option<String> {
        let Some(Block::Lists(lists)) = self.annotation.clauses.block.as_ref().map(|block| &block.value) else {
            return None;
        };
        let alone = lists.iter().filter(|list| list.len() == 1 && list[0] >= WARP);
        let values: Vec<String> = alone.flatten().map(ToString::to_string).collect();
        let is_meant = values.len() >= 2 && values.len() == lists.len();
        is_meant.then(|| format!("; for a choice write block({{{}}})", values.join(", ")))
    }

    /// What `block({32, 4})` was meant to be, where the program's block has these as its
    /// dimensions.
    fn meant_shape(&self, default: Dim3) -> Option<String> {
        let shape: Vec<u32> = default.into_iter().filter(|&extent| extent > 1).collect();
        let Block::Lists(lists) = &self.annotation.clauses.block.as_ref()?.value else { return None };
        let [list] = &lists[..] else { return None };
        // A list has each value once.
        let is_meant = shape.len() > 1
            && list.iter().all(|value| shape.contains(value))
            && shape.iter().all(|extent| list.contains(extent));
        let each: Vec<String> = shape.iter().map(ToString::to_string).collect();
        is_meant.then(|| format!("write this block as block({})", each.join(", ")))
    }

    fn add_block(&mut self, limits: &Limits) {
        let default = self.annotation.clauses.default.block.as_ref();
        let given = default.map(|shape| shape.value);
        let (mut shapes, span) = match &self.annotation.clauses.block {
            Some(block) => match &block.value {
                Block::Auto => {
                    let mut shapes = shapes::automatic_shapes(self.block_dimensions());
                    // The program's own block is always worth its place.
                    shapes.extend(given.filter(|given| !shapes.contains(given)));
                    (shapes, block.span)
                }
                Block::Lists(lists) => (shapes::listed_shapes(lists, limits), block.span),
            },
            None => (given.into_iter().collect(), default.map_or(self.annotation.comment, |default| default.span)),
        };
        shapes.retain(|&shape| limits.allows(shape));
        match default {
            Some(default) if !limits.allows(default.value) => {
                let [x, y, z] = default.value;
                self.add_error(
                    MessageCode::BlockTooLarge,
                    default.span,
                    format!("a block of {x} x {y} x {z} cannot be launched: {}", limits.block_rule()),
                );
            }
            _ if shapes.is_empty() => {
                let rule = limits.block_rule();
                self.add_error(
                    MessageCode::BlockTooLarge,
                    span,
                    format!("no block here can be launched{}", self.meant_list().unwrap_or(format!(": {rule}"))),
                );
            }
            Some(default) if !shapes.contains(&default.value) => {
                let [x, y, z] = default.value;
                let remedy = self.meant_shape(default.value);
                let remedy = remedy.unwrap_or_else(|| "add it there, or choose one of its blocks".to_owned());
                self.add_error(
                    MessageCode::DefaultNotListed,
                    default.span,
                    format!("the default block {x} x {y} x {z} is not in `block`: {remedy}"),
                );
            }
            _ => {}
        }
        let slot = self.add_slots(4);
        let axis = self.table.axes.len();
        for (offset, name) in ["block.x", "block.y", "block.z", "block.size"].into_iter().enumerate() {
            self.add_name(name, slot + offset, 1 << axis);
        }
        self.table.axes.push(Axis::Block { slot, shapes });
    }

    fn grid_lists(&mut self, lists: &[Vec<u32>], limits: &Limits) {
        let place = self.annotation.clauses.grid.as_ref().map_or(self.annotation.comment, |grid| grid.span);
        for (dimension, name) in ["x", "y", "z"].into_iter().enumerate() {
            let given = lists.get(dimension).cloned().unwrap_or_else(|| vec![1]);
            let values: Vec<i64> =
                given.into_iter().filter(|&blocks| blocks <= limits.max_grid[dimension]).map(i64::from).collect();
            if values.is_empty() {
                self.add_error(
                    MessageCode::GridTooLarge,
                    place,
                    format!(
                        "every value of `grid` is too large: it has at most {} blocks in {name}",
                        limits.max_grid[dimension]
                    ),
                );
            }
            if let Some(default) = &self.annotation.clauses.default.grid
                && !values.contains(&i64::from(default.value[dimension]))
            {
                let blocks = default.value[dimension];
                self.add_error(MessageCode::DefaultNotListed,
                    default.span,
                    format!("the default grid has {blocks} blocks in {name}, which `grid` lacks: add it, or choose one of its values"),
                );
            }
            let slot = self.add_slots(1);
            self.add_name(&format!("grid.{name}"), slot, 1 << self.table.axes.len());
            self.grid_axes.push(self.table.axes.len());
            self.table.axes.push(Axis::Number { slot, values });
        }
    }

    /// The caps: "none given" is always one of them, for it is what plain nvcc does.
    fn cap_axis_values(&mut self, limits: &Limits) -> Vec<u32> {
        let given = match &self.annotation.clauses.regs {
            Regs::Auto => &limits.auto_caps,
            Regs::List(caps) => caps,
        };
        let mut caps = if given.contains(&0) { Vec::new() } else { vec![0] };
        for &cap in given {
            if !caps.contains(&cap) {
                caps.push(cap);
            }
        }
        if let Some(default) = &self.annotation.clauses.default.regs
            && !caps.contains(&default.value)
        {
            match self.annotation.clauses.regs {
                Regs::Auto => caps.push(default.value),
                Regs::List(_) => self.add_error(
                    MessageCode::DefaultNotListed,
                    default.span,
                    format!("the default register cap {} is not among those of `regs`: add it there", default.value),
                ),
            }
        }
        for (name, default) in &self.annotation.clauses.default.macros {
            let axis = self.annotation.clauses.macros.iter().find(|axis| axis.name == *name);
            if axis.is_some_and(|axis| !axis.values.contains(&default.value)) {
                self.add_error(
                    MessageCode::DefaultNotListed,
                    default.span,
                    format!("the default {} of `{name}` is not among its values: add it there", default.value),
                );
            }
        }
        caps
    }

    /// The axes of caches, math options and unrolling, where their clauses are there. "None given" is
    /// always one of their values, for it is what plain nvcc and a plain launch do.
    fn add_policies(&mut self, limits: &Limits) {
        let annotation = self.annotation;
        if let Some(given) = &annotation.clauses.cache {
            let operators = std::iter::once(None).chain(given.iter().copied().map(Some)).collect();
            self.table.axes.push(Axis::Cache { operators });
        }
        if let Some(given) = &annotation.clauses.carveout {
            let percents: Vec<_> = std::iter::once(None).chain(given.iter().copied().map(Some)).collect();
            if let Some(default) = &annotation.clauses.default.carveout
                && !percents.contains(&default.value)
            {
                let percent = default.value.unwrap_or_default();
                let message = format!("the default carve-out {percent} is not among those of `carveout`: add it there");
                self.add_error(MessageCode::DefaultNotListed, default.span, message);
            }
            self.table.axes.push(Axis::Carveout { percents });
        }
        if let Some(given) = &annotation.clauses.math {
            self.table.axes.push(Axis::Math { sets: math_sets(given, limits.build_math) });
        }
        if let Some(given) = &annotation.clauses.unroll {
            let given = given.value.iter().copied().filter(|_| limits.has_loops);
            let factors = std::iter::once(None).chain(given.map(Some)).collect();
            self.table.axes.push(Axis::Unroll { factors });
        }
    }

    /// Slots for the scalar arguments; those that need the grid are given back for later.
    fn add_arguments(&mut self) -> Vec<(String, &'a Expr)> {
        let annotation = self.annotation;
        for name in annotation.kernel.parameters.iter().flatten() {
            self.names.entry(name.clone()).or_insert(Meaning::Unbound);
        }
        let values = annotation.values();
        for (path, value) in &values {
            let meaning = match value {
                GivenValue::Scalar(_) => Meaning::Circular,
                GivenValue::Table(_) if path.contains('.') => Meaning::List,
                GivenValue::Buffer { .. }
                | GivenValue::File(_)
                | GivenValue::Table(_)
                | GivenValue::Null(_)
                | GivenValue::Recorded { .. } => Meaning::Buffer,
                GivenValue::Struct { .. } => Meaning::Struct,
            };
            self.names.insert(path.clone(), meaning);
        }
        let scalars = values.into_iter().flat_map(|(path, value)| match value {
            GivenValue::Scalar(expression) => vec![(path, expression)],
            // An array in a structure.
            GivenValue::Table(table) if path.contains('.') => {
                let elements = table.values.iter().enumerate();
                elements.map(|(index, value)| (format!("{path}[{index}]"), value)).collect()
            }
            _ => Vec::new(),
        });
        let mut deferred: Vec<(String, &Expr)> = Vec::new();
        for (path, expression) in in_turn(scalars.collect()) {
            let mut waits = false;
            expression.names(&mut |name, _| {
                let of_grid = name.starts_with("grid.") && self.names.get(name) == Some(&Meaning::Later);
                waits |= of_grid || deferred.iter().any(|(earlier, _)| earlier == name);
            });
            match waits {
                true => deferred.push((path, expression)),
                false => self.add_argument(&path, expression),
            }
        }
        deferred
    }

    fn place_arguments(&mut self, arguments: &[(String, &Expr)], meaning: Meaning) {
        self.names.extend(arguments.iter().map(|(name, _)| (name.clone(), meaning)));
    }

    fn add_argument(&mut self, name: &str, expression: &Expr) {
        if self.may_be_enumeration(name)
            && let Node::Name(unknown) = &expression.node
            && !self.names.contains_key(unknown)
            && !unknown.contains('.')
        {
            let message = format!(
                "unknown name `{unknown}`: if it is a constant of the source, give its value, as in {} = 0",
                name.rsplit('.').next().unwrap_or(name)
            );
            self.names.insert(name.to_string(), Meaning::Broken);
            self.add_error(MessageCode::UnknownName, expression.span, message);
            return;
        }
        match self.compile_expression(expression) {
            Ok((expression, axes)) => {
                let slot = self.add_slots(1);
                self.add_name(name, slot, axes);
                self.table.derived.push(Derived { slot, expression, axes, tested: false });
            }
            Err(refusal) => {
                self.names.insert(name.to_string(), Meaning::Broken);
                self.add_refusal(refusal);
            }
        }
    }

    /// Whether a parameter or field can be an enumeration, as far as its declaration tells.
    fn may_be_enumeration(&self, path: &str) -> bool {
        match declared_type(self.annotation, path) {
            Some(Type::Other(kind)) => !kind.contains(['*', '&', '(', '[']),
            Some(Type::Scalar(_) | Type::Pointer { .. }) => false,
            // A field's type is in another place.
            None => path.contains('.'),
        }
    }

    /// The grid from `threads` or from expressions.
    fn grid_follows(&mut self, dimensions: usize, limits: &Limits) {
        let mut indices = [None; 3];
        let mut meanings = [Meaning::Unbound; 3];
        let annotation = self.annotation;
        for dimension in 0..dimensions.min(3) {
            let axis = ["x", "y", "z"][dimension];
            let expression =
                match (&annotation.clauses.threads, annotation.clauses.grid.as_ref().map(|grid| &grid.value)) {
                    (Some(threads), _) => threads.value.get(dimension).map(|threads| {
                        let block = Expr { span: threads.span, node: Node::Name(format!("block.{axis}")) };
                        Expr { span: threads.span, node: Node::Call(Function::Ceildiv, vec![threads.clone(), block]) }
                    }),
                    (None, Some(Grid::Expressions(expressions))) => expressions.get(dimension).cloned(),
                    _ => None,
                };
            let Some(expression) = expression else {
                continue;
            };
            let test = Test::Within { lo: 1, hi: i64::from(limits.max_grid[dimension]), of: Quantity::Grid(dimension) };
            let reported = self.problems.len();
            indices[dimension] = self.launch_constraint(&expression, test);
            if self.problems.len() > reported {
                meanings[dimension] = Meaning::Broken;
            }
            if let Some(index) = indices[dimension] {
                let Constraint { expression, axes, .. } = self.table.constraints[index].clone();
                let slot = self.add_slots(1);
                meanings[dimension] = Meaning::Slot { slot, axes };
                self.table.derived.push(Derived { slot, expression, axes, tested: false });
            }
        }
        for (dimension, name) in ["grid.x", "grid.y", "grid.z"].into_iter().enumerate() {
            if dimension >= dimensions {
                let slot = self.add_slots(1);
                let one = Expr { span: annotation.comment, node: Node::Value(crate::comment::Value::Int(1)) };
                self.table.derived.push(Derived { slot, expression: one, axes: 0, tested: false });
                meanings[dimension] = Meaning::Slot { slot, axes: 0 };
            }
            self.names.insert(name.to_string(), meanings[dimension]);
        }
        self.grid = Some(indices);
    }

    /// A constraint on a number of the launch. `None` after an error, or where the number depends
    /// on a parameter without a value: there is a space all the same, but no launch
    /// ([`Space::launch`](super::space::Space::launch)).
    fn launch_constraint(&mut self, expression: &Expr, test: Test) -> Option<usize> {
        match self.compile_expression(expression) {
            Ok((expression, axes)) => {
                self.table.constraints.push(Constraint { expression, axes, test });
                Some(self.table.constraints.len() - 1)
            }
            Err(Refusal::Unbound(name, span)) => {
                self.unbound.get_or_insert((name, span));
                None
            }
            Err(refusal) => {
                self.add_refusal(refusal);
                None
            }
        }
    }

    fn add_refusal(&mut self, refusal: Refusal) {
        match refusal {
            Refusal::Problem(problem) => self.problems.push(*problem),
            Refusal::Unbound(..) | Refusal::Silent => {}
        }
    }

    fn compile_expression(&self, expression: &Expr) -> Result<(Expr<usize>, AxisSet), Refusal> {
        let mut set = 0;
        let compiled =
            expression.rename(
                &mut |name: &String, span| match resolve_name(self.annotation, &self.names, name, span) {
                    Ok((slot, axes)) => {
                        set |= axes;
                        Ok(slot)
                    }
                    Err(refusal) => Err(refusal),
                },
            )?;
        Ok((compiled, set))
    }
}

/// Arguments in the order in which they can be computed, each behind those that it needs; that
/// of the comment where either does. Where some need each other in a circle, the first that can
/// be found of it comes before what it needs.
fn in_turn(mut waiting: Vec<(String, &Expr)>) -> Vec<(String, &Expr)> {
    let mut ordered = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let needs = |(_, expression): &(String, &Expr)| {
            let mut found = None;
            expression.names(&mut |name, _| {
                found = found.or_else(|| waiting.iter().position(|(other, _)| other == name));
            });
            found
        };
        // Who follows the needs of as many as there are ends in a circle.
        let ready = waiting.iter().position(|argument| needs(argument).is_none());
        let circle = || (0..waiting.len()).fold(0, |at, _| needs(&waiting[at]).unwrap_or(at));
        let next = ready.unwrap_or_else(circle);
        ordered.push(waiting.remove(next));
    }
    ordered
}

/// The values of a `math` clause: none of its options, each alone, and all of them. What the
/// build has anyway is no option.
fn math_sets(given: &[MathOption], build: Math) -> Vec<Math> {
    let options: Vec<MathOption> = given.iter().copied().filter(|option| !build.contains(*option)).collect();
    let mut sets = vec![Math::NONE];
    sets.extend(options.iter().map(|option| Math::from_iter([*option])));
    if options.len() > 1 {
        sets.push(options.into_iter().collect());
    }
    sets
}
