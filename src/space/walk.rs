//! Walking some axes of a space in order, depth first, cutting where a constraint fails.
//!
//! A [`Table`] (axes, what follows from them, constraints) and an order of its axes -> the
//! valid positions, one at a time. What follows from axes is computed, and a constraint is
//! tested, as soon as its last axis is bound; no product of axes is ever made.

use crate::comment::{Expr, Fault, Located, Value};
use crate::diag::Span;
use crate::launch::{Dim3, LoadCacheOperator, Math};

/// Branches that a search for one configuration tries: about a second.
pub(super) const PATIENCE: u64 = 2_000_000;

/// The axes of a space, what follows from them, and what must hold.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub axes: Vec<Axis>,
    /// In an order in which each depends only on earlier ones.
    pub derived: Vec<Derived>,
    pub constraints: Vec<Constraint>,
    /// Slots of values: those of axes and derived values.
    pub slots: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Axis {
    /// A macro or an extent of the grid: one number in one slot.
    Number { slot: usize, values: Vec<i64> },
    /// The block: its extents and their product in four slots from this one on.
    Block { slot: usize, shapes: Vec<Dim3> },
    /// The register cap, which no expression can name.
    Cap { caps: Vec<u32> },
    /// The cache operator of global loads.
    Cache { operators: Vec<Option<LoadCacheOperator>> },
    /// The preferred shared-memory carve-out in percent.
    Carveout { percents: Vec<Option<u8>> },
    /// The math options besides the build's.
    Math { sets: Vec<Math> },
    /// The factor by which loops are unrolled.
    Unroll { factors: Vec<Option<u32>> },
}

impl Table {
    /// Marks the derived values that constraints depend on.
    pub fn mark_tested(&mut self) {
        let mut used = vec![false; self.slots];
        let mark = |used: &mut Vec<bool>, expression: &Expr<usize>| {
            expression.names(&mut |&slot, _| {
                if let Some(used) = used.get_mut(slot) {
                    *used = true;
                }
            });
        };
        self.constraints.iter().for_each(|constraint| mark(&mut used, &constraint.expression));
        for derived in self.derived.iter_mut().rev() {
            derived.tested = used.get(derived.slot).copied().unwrap_or(false);
            if derived.tested {
                mark(&mut used, &derived.expression);
            }
        }
    }

    /// Returns the axes in groups that no constraint connects, each in the order of the
    /// table.
    pub fn connected_axes(&self) -> Vec<Vec<usize>> {
        let mut sets: Vec<AxisSet> = (0..self.axes.len()).map(|axis| 1 << axis).collect();
        for constraint in &self.constraints {
            let (joined, apart): (Vec<AxisSet>, Vec<AxisSet>) =
                sets.into_iter().partition(|set| set & constraint.axes != 0);
            sets = apart;
            let union = joined.into_iter().fold(0, |union, set| union | set);
            if union != 0 {
                sets.push(union);
            }
        }
        sets.sort_by_key(|set| set.trailing_zeros());
        sets.into_iter().map(|set| (0..self.axes.len()).filter(|axis| set >> axis & 1 == 1).collect()).collect()
    }
}

impl Axis {
    pub fn len(&self) -> usize {
        match self {
            Axis::Number { values, .. } => values.len(),
            Axis::Block { shapes, .. } => shapes.len(),
            Axis::Cap { caps } => caps.len(),
            Axis::Cache { operators } => operators.len(),
            Axis::Carveout { percents } => percents.len(),
            Axis::Math { sets } => sets.len(),
            Axis::Unroll { factors } => factors.len(),
        }
    }
}

/// A set of axes, by their indices.
pub(super) type AxisSet = u64;

/// A value that follows from axes.
#[derive(Clone, Debug)]
pub(super) struct Derived {
    pub slot: usize,
    pub expression: Expr<usize>,
    pub axes: AxisSet,
    /// Some constraint depends on it, so that walks compute it.
    pub tested: bool,
}

/// What must hold of a configuration.
#[derive(Clone, Debug)]
pub(super) struct Constraint {
    pub expression: Expr<usize>,
    pub axes: AxisSet,
    pub test: Test,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// Not zero (`require`).
    Truth,
    /// An integer from `lo` to `hi`; `of` says what it is.
    Within { lo: i64, hi: i64, of: Quantity },
}

/// A number of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Blocks in one dimension.
    Grid(usize),
    /// Dynamic shared memory in bytes.
    Shared,
}

/// Why a constraint does not hold.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TestFailure {
    /// It cannot be computed.
    Fault(Located),
    /// `require` is false.
    False,
    /// Computed, but outside what is allowed.
    Outside(Value),
}

impl Constraint {
    /// Tests it; the value as an integer where it has to be one.
    pub fn check_value(&self, values: &Values) -> Result<i64, TestFailure> {
        let value = values.evaluate(&self.expression).map_err(TestFailure::Fault)?;
        match self.test {
            Test::Truth if value.is_true() => Ok(1),
            Test::Truth => Err(TestFailure::False),
            Test::Within { lo, hi, .. } => {
                value.as_integer().filter(|value| (lo..=hi).contains(value)).ok_or(TestFailure::Outside(value))
            }
        }
    }

    pub fn span(&self) -> Span {
        self.expression.span
    }
}

/// The values of slots. One that is not bound yet or could not be computed has none.
#[derive(Clone, Debug)]
pub(super) struct Values {
    slots: Vec<Option<Value>>,
    /// The first derived value that could not be computed.
    pub fault: Option<Located>,
}

impl Values {
    pub fn new(slots: usize) -> Values {
        Values { slots: vec![None; slots], fault: None }
    }

    pub fn evaluate(&self, expression: &Expr<usize>) -> Result<Value, Located> {
        expression.evaluate(&|&slot: &usize| self.value_at(slot).ok_or(Fault::NoValue(String::new())))
    }

    pub fn value_at(&self, slot: usize) -> Option<Value> {
        self.slots.get(slot).copied().flatten()
    }

    fn set_value(&mut self, slot: usize, value: Option<Value>) {
        if let Some(into) = self.slots.get_mut(slot) {
            *into = value;
        }
    }

    /// Binds an axis to its value at this position.
    pub fn bind_axis(&mut self, axis: &Axis, position: usize) {
        match axis {
            Axis::Number { slot, values } => {
                self.set_value(*slot, values.get(position).map(|&value| Value::Int(value)))
            }
            Axis::Block { slot, shapes } => {
                if let Some(&shape) = shapes.get(position) {
                    self.bind_block(*slot, shape);
                }
            }
            Axis::Cap { .. } | Axis::Cache { .. } | Axis::Carveout { .. } | Axis::Math { .. } | Axis::Unroll { .. } => {
            }
        }
    }

    pub fn bind_block(&mut self, slot: usize, shape: Dim3) {
        for (dimension, &extent) in shape.iter().enumerate() {
            self.set_value(slot + dimension, Some(Value::Int(i64::from(extent))));
        }
        let threads: i64 = shape.iter().fold(1, |product: i64, &extent| product.saturating_mul(i64::from(extent)));
        self.set_value(slot + 3, Some(Value::Int(threads)));
    }

    pub fn bind_number(&mut self, slot: usize, value: i64) {
        self.set_value(slot, Some(Value::Int(value)));
    }

    /// Returns the failure that this one passes on, or this one.
    pub fn original_cause(&self, failure: TestFailure) -> TestFailure {
        match (&failure, &self.fault) {
            (TestFailure::Fault(Located { fault: Fault::NoValue(_), .. }), Some(fault)) => {
                TestFailure::Fault(fault.clone())
            }
            _ => failure,
        }
    }

    pub fn derive_value(&mut self, derived: &Derived) {
        match self.evaluate(&derived.expression) {
            Ok(value) => self.set_value(derived.slot, Some(value)),
            Err(located) => {
                self.set_value(derived.slot, None);
                // A fault that only passes on the lack of another value says nothing new.
                if !matches!(located.fault, Fault::NoValue(_)) {
                    self.fault.get_or_insert(located);
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum WalkStep {
    Derive(usize),
    Test(usize),
}

/// A walk over some axes in some order; the positions of each axis may be a choice of them.
#[derive(Clone, Debug)]
pub(super) struct Walk<'a> {
    table: &'a Table,
    order: Vec<usize>,
    choices: Vec<Vec<usize>>,
    /// What to do once this many axes are bound.
    steps: Vec<Vec<WalkStep>>,
    at: Vec<usize>,
    values: Values,
    started: bool,
    /// Branches that may still be cut before the walk ends as if there were no more points.
    patience: u64,
    /// The first thing that cut a branch: constraint and reason.
    pub cut: Option<(usize, TestFailure)>,
}

impl<'a> Walk<'a> {
    /// A walk over the axes in `order` with these choices of positions for each. Constraints
    /// and derived values that depend on other axes are left out.
    pub fn new(table: &'a Table, order: Vec<usize>, choices: Vec<Vec<usize>>) -> Walk<'a> {
        let mut steps = vec![Vec::new(); order.len() + 1];
        let ready = |axes: AxisSet| -> Option<usize> {
            let depths = (0..64)
                .filter(|axis| axes >> axis & 1 == 1)
                .map(|axis| order.iter().position(|&other| other == axis).map(|at| at + 1));
            depths.collect::<Option<Vec<usize>>>().map(|depths| depths.into_iter().max().unwrap_or(0))
        };
        for (index, derived) in table.derived.iter().enumerate().filter(|(_, derived)| derived.tested) {
            if let Some(depth) = ready(derived.axes) {
                steps[depth].push(WalkStep::Derive(index));
            }
        }
        for (index, constraint) in table.constraints.iter().enumerate() {
            if let Some(depth) = ready(constraint.axes) {
                steps[depth].push(WalkStep::Test(index));
            }
        }
        let at = vec![0; order.len()];
        Walk {
            table,
            order,
            choices,
            steps,
            at,
            values: Values::new(table.slots),
            started: false,
            patience: u64::MAX,
            cut: None,
        }
    }

    /// Ends the walk after it has cut `branches` branches (at least one).
    pub fn with_patience(self, branches: u64) -> Walk<'a> {
        Walk { patience: branches.max(1), ..self }
    }

    /// True where the walk ended for lack of patience.
    pub fn gave_up(&self) -> bool {
        self.patience == 0
    }

    /// Walks all positions of each axis.
    pub fn over_all(table: &'a Table, order: Vec<usize>) -> Walk<'a> {
        let choices = order.iter().map(|&axis| (0..table.axes[axis].len()).collect()).collect();
        Walk::new(table, order, choices)
    }

    /// Does the steps that are due with `depth` axes bound; false where a constraint does not
    /// hold.
    fn passes_steps(&mut self, depth: usize) -> bool {
        for step in &self.steps[depth] {
            match *step {
                WalkStep::Derive(index) => self.values.derive_value(&self.table.derived[index]),
                WalkStep::Test(index) => {
                    if let Err(failure) = self.table.constraints[index].check_value(&self.values) {
                        if self.cut.is_none() {
                            self.cut = Some((index, self.values.original_cause(failure)));
                        }
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Goes on to the next valid point that differs in one of the first `prefix` axes (all of
    /// them: simply the next).
    pub fn advance_to(&mut self, prefix: usize) -> bool {
        let mut depth;
        if self.started {
            if prefix == 0 {
                return false;
            }
            if self.gave_up() {
                return false;
            }
            depth = prefix - 1;
            self.at[depth] += 1;
        } else {
            self.started = true;
            if !self.passes_steps(0) {
                return self.end_walk();
            }
            depth = 0;
        }
        while depth < self.order.len() {
            match self.choices[depth].get(self.at[depth]) {
                None if depth == 0 => return self.end_walk(),
                None => {
                    self.at[depth] = 0;
                    depth -= 1;
                    self.at[depth] += 1;
                }
                Some(&position) => {
                    self.values.bind_axis(&self.table.axes[self.order[depth]], position);
                    depth += 1;
                    if !self.passes_steps(depth) {
                        depth -= 1;
                        self.at[depth] += 1;
                        self.patience -= 1;
                        if self.patience == 0 {
                            return self.end_walk();
                        }
                    } else if let Some(next) = self.at.get_mut(depth) {
                        *next = 0;
                    }
                }
            }
        }
        true
    }

    fn end_walk(&mut self) -> bool {
        // Past the end in the first axis: every later call comes here again.
        if let (Some(at), Some(choices)) = (self.at.first_mut(), self.choices.first()) {
            *at = choices.len();
        }
        self.at.iter_mut().skip(1).for_each(|at| *at = 0);
        false
    }

    /// Lists the axes of the walk and their positions at the current point.
    pub fn current_point(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.order.iter().zip(&self.at).zip(&self.choices).map(|((&axis, &at), choices)| (axis, choices[at]))
    }

    /// Counts the points from the start, without walking axes that nothing further
    /// depends on.
    pub fn count_points(mut self) -> u64 {
        let last = self
            .steps
            .iter()
            .rposition(|steps| steps.iter().any(|step| matches!(step, WalkStep::Test(_))))
            .unwrap_or(0);
        let free =
            self.choices[last..].iter().fold(1u64, |product, choices| product.saturating_mul(choices.len() as u64));
        if last == 0 {
            return if self.passes_steps(0) { free } else { 0 };
        }
        self.order.truncate(last);
        self.choices.truncate(last);
        self.at.truncate(last);
        self.steps.truncate(last + 1);
        let mut points = 0u64;
        while self.advance_to(last) {
            points += 1;
        }
        points.saturating_mul(free)
    }
}
