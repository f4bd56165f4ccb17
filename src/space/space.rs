//! The space of one kernel: its valid configurations, the baseline among them, and how each is
//! launched.
//!
//! Without `regs`, the caps are those of `regs(auto)`. Without `block`, the block stays at the
//! default's. `block(auto)` has the dimensions of `threads` or `grid` that the block counts,
//! and contains the default's block.

use super::build::Builder;
use super::constraint_failure::{describe_failure, describe_fault};
use super::grid_factors::GridFactors;
use super::limits::Limits;
use super::names::{Meaning, compile_late, given_by};
use super::walk::{Axis, AxisSet, PATIENCE, Table, Test, TestFailure, Values, Walk};
use crate::comment::{Annotation, Expr, Grid, Value};
use crate::diag::{Diagnostic, MessageCode, Span};
use crate::launch::{Configuration, Dim3, FrontEndOptions, Launch, LoadCacheOperator, Math};
use std::collections::{BTreeMap, BTreeSet};

/// The most configurations that are worth a walk: each of them is scored and written to the
/// record.
const MAX_CONFIGURATIONS: u64 = 1_000_000;

/// The most configurations that a search looks at. Each takes up to 4 KB of memory.
const MAX_SEARCHED: u64 = 100_000;

/// 2^64 divided by the golden ratio: the multiples of it, modulo 2^64, lie evenly.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// All valid configurations of a kernel. Never empty.
#[derive(Clone, Debug)]
pub struct Space {
    pub(super) annotation: Annotation,
    limits: Limits,
    pub(super) table: Table,
    names: BTreeMap<String, Meaning>,
    macros: usize,
    cap_axis: usize,
    pub(super) grid_axes: Vec<usize>,
    /// Constraints on the grid by dimension, where it follows.
    grid: Option<[Option<usize>; 3]>,
    shared: Option<usize>,
    unbound: Option<(String, Span)>,
    baseline: Configuration,
}

impl Space {
    /// The space that a tuning comment spans.
    ///
    /// # Errors
    /// Everything that is wrong with the comment as a space: a name that means nothing, a
    /// default outside its axis, no block that can be launched, a baseline that a
    /// constraint excludes, no valid configuration at all.
    pub fn new(annotation: &Annotation, limits: &Limits) -> Result<Space, Vec<Diagnostic>> {
        let mut builder = Builder::new(annotation);
        builder.build_all(limits);
        if !builder.problems.is_empty() {
            return Err(builder.problems);
        }
        let mut space = Space {
            annotation: annotation.clone(),
            limits: limits.clone(),
            table: builder.table,
            names: builder.names,
            macros: builder.macros,
            cap_axis: builder.cap_axis,
            grid_axes: builder.grid_axes,
            grid: builder.grid,
            shared: builder.shared,
            unbound: builder.unbound,
            baseline: Configuration::of_block([1, 1, 1]),
        };
        space.baseline = space.find_baseline().map_err(|problem| vec![*problem])?;
        space.trip_counts(&space.baseline).map_err(|problem| vec![problem])?;
        Ok(space)
    }

    /// Evaluates the `trips` clause under a configuration: iterations of loops, from the
    /// outermost depth inwards.
    ///
    /// # Errors
    /// Where a name has no value, or a count is no number of 0 or more.
    pub fn trip_counts(&self, configuration: &Configuration) -> Result<Vec<f64>, Diagnostic> {
        let count = |expression: &Expr| {
            let value = self.evaluate(configuration, expression)?.as_f64();
            let message = || format!("a loop cannot be executed {value} times: give a number of 0 or more");
            let is_count = value.is_finite() && value >= 0.0;
            is_count
                .then_some(value)
                .ok_or_else(|| self.annotation.source.error(MessageCode::TripsClause, expression.span, message()))
        };
        self.annotation.clauses.trips.iter().map(count).collect()
    }

    /// The valid configurations, found as they are asked for. Macros vary slowest (in the order
    /// of `define`), then the block, the grid, the register cap, the cache operator, the
    /// carve-out, the math options and the factor of loops; each in the order of its list.
    pub fn iter(&self) -> impl Iterator<Item = Configuration> + '_ {
        let all: Vec<usize> = (0..self.table.axes.len()).collect();
        let depth = all.len();
        let mut walk = Walk::over_all(&self.table, all);
        std::iter::from_fn(move || walk.advance_to(depth).then(|| self.configuration_at(walk.current_point())))
    }

    /// The configurations that a search looks at: all, or of a large space an even sample that
    /// is the same each time.
    pub fn searched(&self) -> Vec<Configuration> {
        let Some(all) = self.sampled_from() else { return self.iter().collect() };
        let most = u64::MAX / all * MAX_SEARCHED;
        let order: Vec<usize> = (0..self.table.axes.len()).collect();
        let depth = order.len();
        let mut walk = Walk::over_all(&self.table, order);
        let mut found = Vec::new();
        let mut place: u64 = 0;
        while walk.advance_to(depth) {
            if place <= most {
                found.push(self.configuration_at(walk.current_point()));
            }
            place = place.wrapping_add(GOLDEN);
        }
        found
    }

    /// Returns the number of configurations if a search looks at a sample of them alone.
    pub fn sampled_from(&self) -> Option<u64> {
        Some(self.len()).filter(|&count| count > MAX_SEARCHED)
    }

    /// The number of valid configurations, counted without making them; saturates. Takes time
    /// by the points of those axes that constraints connect (about 0.1 µs each), not of the
    /// whole space.
    // A space is never empty: the baseline is in it.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        let components = self.table.connected_axes().into_iter();
        components.map(|axes| Walk::over_all(&self.table, axes).count_points()).fold(1, u64::saturating_mul)
    }

    /// Whether walking the whole space is worth it: nothing else bounds the time of
    /// [`iter`](Space::iter), [`len`](Space::len) and [`macro_sets`](Space::macro_sets). Takes
    /// a second at most.
    ///
    /// # Errors
    /// At the comment, where there are more than a million configurations, or where they are
    /// too rare among the combinations of values that the constraints are tried on.
    pub fn check_size(&self) -> Result<(), Box<Diagnostic>> {
        let depth = self.table.axes.len();
        let mut walk = Walk::over_all(&self.table, (0..depth).collect()).with_patience(4 * PATIENCE);
        let mut found = 0;
        while walk.advance_to(depth) {
            found += 1;
            if found > MAX_CONFIGURATIONS {
                let message = format!(
                    "this space has more than {MAX_CONFIGURATIONS} configurations: give shorter lists or larger steps"
                );
                return Err(Box::new(self.annotation.source.error(
                    MessageCode::SpaceTooLarge,
                    self.annotation.comment,
                    message,
                )));
            }
        }
        if walk.gave_up() {
            let message = "the constraints leave too few of the combinations of these lists: give shorter lists";
            return Err(Box::new(self.annotation.source.error(
                MessageCode::SpaceTooLarge,
                self.annotation.comment,
                message,
            )));
        }
        Ok(())
    }

    /// The configuration that plain `nvcc` would have used.
    pub fn baseline(&self) -> &Configuration {
        &self.baseline
    }

    /// By dimension: whether blocks of the space differ in their extent.
    #[must_use]
    pub fn varying_extents(&self) -> [bool; 3] {
        let before = self.baseline().block;
        let mut varies = [false; 3];
        for configuration in self.iter() {
            (0..3).for_each(|at| varies[at] |= configuration.block[at] != before[at]);
        }
        varies
    }

    /// The assignments of macros that occur in the configurations of a search, the baseline's
    /// first. One empty assignment for a kernel without macro axes.
    pub fn macro_sets(&self) -> Vec<BTreeMap<String, i64>> {
        let mut sets = vec![self.baseline.macros.clone()];
        if self.sampled_from().is_some() {
            let mut sampled: Vec<_> = self.searched().into_iter().map(|found| found.macros).collect();
            // Macros vary slowest.
            sampled.dedup();
            sets.extend(sampled.into_iter().filter(|set| *set != self.baseline.macros));
            return sets;
        }
        let touched =
            self.table.connected_axes().into_iter().filter(|axes| axes.iter().any(|&axis| axis < self.macros));
        let mut order: Vec<usize> = touched.flatten().collect();
        order.sort_unstable();
        let mut walk = Walk::over_all(&self.table, order);
        while walk.advance_to(self.macros) {
            let set = self.configuration_at(walk.current_point()).macros;
            if set != self.baseline.macros {
                sets.push(set);
            }
        }
        sets
    }

    /// True for a configuration of this space.
    pub fn contains(&self, configuration: &Configuration) -> bool {
        let same_macros = configuration.macros.len() == self.macros;
        let same_grid = configuration.grid.is_some() != self.grid_axes.is_empty();
        let same_policies = (configuration.cache.is_none() || self.annotation.clauses.cache.is_some())
            && (configuration.carveout.is_none() || self.annotation.clauses.carveout.is_some())
            && (configuration.math.is_none() || self.annotation.clauses.math.is_some())
            && (configuration.unroll.is_none() || self.annotation.clauses.unroll.is_some())
            && (!configuration.shared_spills || self.annotation.clauses.shared_spills);
        let positions: Option<Vec<Vec<usize>>> =
            (0..self.table.axes.len()).map(|axis| Some(vec![self.axis_position(axis, configuration)?])).collect();
        let order: Vec<usize> = (0..self.table.axes.len()).collect();
        let depth = order.len();
        same_macros
            && same_grid
            && same_policies
            && positions.is_some_and(|choices| Walk::new(&self.table, order, choices).advance_to(depth))
    }

    /// What the grid's blocks in a dimension (0 to 2) are counted by, where the comment gives
    /// it by expressions.
    ///
    /// Under `threads` it is the block's own extent, whatever else the number of threads depends
    /// on. Under `grid` it is what the expression names, itself or through arguments of the
    /// workload; a dimension that the clause does not give is one block.
    pub fn counted_by(&self, dimension: usize) -> GridFactors {
        match self.annotation.clauses.grid.as_ref().map(|grid| &grid.value) {
            Some(Grid::Expressions(expressions)) => {
                let counted =
                    expressions.get(dimension).map(|expression| GridFactors::count_names(&self.annotation, expression));
                counted.unwrap_or_default()
            }
            _ => GridFactors { block: [0, 1, 2].map(|at| at == dimension), ..GridFactors::default() },
        }
    }

    /// The macros that constraints of the comment tie to the block, itself or through other
    /// macros.
    pub fn tied_macros(&self) -> BTreeSet<String> {
        let is_block = |axis: &usize| matches!(self.table.axes[*axis], Axis::Block { .. });
        let mut tied: AxisSet = (0..self.table.axes.len()).filter(is_block).fold(0, |set, axis| set | 1 << axis);
        loop {
            let required = self.table.constraints.iter().filter(|constraint| constraint.test == Test::Truth);
            let touched = required.filter(|constraint| constraint.axes & tied != 0);
            let wider = touched.fold(tied, |set, constraint| set | constraint.axes);
            if wider == tied {
                break;
            }
            tied = wider;
        }
        let macros = self.annotation.clauses.macros.iter().enumerate().filter(|(axis, _)| tied >> axis & 1 == 1);
        macros.map(|(_, named)| named.name.clone()).collect()
    }

    /// Whether a thread has more or less to do under a configuration than under the baseline,
    /// as in blocks that walk over a row each, and `trips` does not say how much.
    pub fn leaves_work_untold(&self, configuration: &Configuration) -> bool {
        let baseline = &self.baseline;
        let threads = |of: &Configuration, grid: Dim3| of.block.iter().chain(&grid).map(|&at| u128::from(at)).product();
        let is_other = match (configuration.grid, baseline.grid) {
            (Some(grid), Some(before)) => {
                let (now, before): (u128, u128) = (threads(configuration, grid), threads(baseline, before));
                now != before
            }
            // An extent that the grid's blocks are counted by leaves each thread its share.
            _ => {
                let counted: [GridFactors; 3] = std::array::from_fn(|dimension| self.counted_by(dimension));
                let tied = self.tied_macros();
                let is_tied = counted.iter().any(|by| !by.macros.is_disjoint(&tied));
                let is_counted = |at: usize| is_tied || counted.iter().any(|by| by.block[at]);
                (0..3).any(|at| configuration.block[at] != baseline.block[at] && !is_counted(at))
            }
        };
        is_other && !self.annotation.clauses.trips.iter().any(|expression| self.follows_shape(expression))
    }

    /// Whether an expression names the block or the grid, or a macro that is tied to the block.
    fn follows_shape(&self, expression: &Expr) -> bool {
        let GridFactors { block, macros, .. } = GridFactors::count_names(&self.annotation, expression);
        let mut names_grid = false;
        expression.names(&mut |name, _| names_grid |= name.starts_with("grid."));
        names_grid || block.contains(&true) || !macros.is_disjoint(&self.tied_macros())
    }

    /// Returns the parameter without a value that the launch depends on, if there is one.
    pub fn name_without_value(&self) -> Option<&str> {
        self.unbound.as_ref().map(|(name, _)| name.as_str())
    }

    /// How a configuration is launched.
    ///
    /// # Errors
    /// Where the grid or the shared memory cannot be computed (a parameter without a value, a
    /// division by zero) or is more than the limits allow. For a configuration of
    /// [`iter`](Space::iter) only the first of these happens.
    pub fn launch(&self, configuration: &Configuration) -> Result<Launch, Diagnostic> {
        let source = &self.annotation.source;
        if let Some((name, span)) = &self.unbound {
            let (kernel, remedy) = (&self.annotation.kernel.name, given_by(name));
            return Err(source.error(
                MessageCode::NameWithoutValue,
                *span,
                format!("the launch of `{kernel}` is not known: `{name}` has no value; {remedy}"),
            ));
        }
        if !self.limits.allows(configuration.block) {
            let [x, y, z] = configuration.block;
            return Err(source.error(
                MessageCode::BlockTooLarge,
                self.annotation.comment,
                format!("a block of {x} x {y} x {z} cannot be launched"),
            ));
        }
        let values = self.slot_values(configuration);
        let number = |index: usize| {
            let constraint = &self.table.constraints[index];
            let value = constraint.check_value(&values).map_err(|failure| {
                describe_failure(&self.annotation, constraint, &values.original_cause(failure), "this configuration")
            })?;
            Ok(u32::try_from(value).unwrap_or(u32::MAX))
        };
        let mut grid: Dim3 = [1, 1, 1];
        match (&self.grid, configuration.grid) {
            (Some(indices), _) => {
                for (extent, index) in grid.iter_mut().zip(indices) {
                    *extent = index.map_or(Ok(1), number)?;
                }
            }
            (None, Some(given)) => grid = given,
            (None, None) => {
                return Err(source.error(
                    MessageCode::GridUnknown,
                    self.annotation.comment,
                    "this configuration has no grid, which is an axis here",
                ));
            }
        }
        let shared = self.shared.map_or(Ok(0), number)?;
        Ok(Launch {
            grid,
            block: configuration.block,
            shared,
            carveout: configuration.carveout,
            coarsening: configuration.coarsening,
        })
    }

    /// The value of an expression of the comment under a configuration.
    ///
    /// # Errors
    /// Where a name has no value or the value cannot be computed.
    pub fn evaluate(&self, configuration: &Configuration, expression: &Expr) -> Result<Value, Diagnostic> {
        let compiled = compile_late(&self.annotation, &self.names, expression)?;
        let values = self.slot_values(configuration);
        values.evaluate(&compiled).map_err(|located| match values.original_cause(TestFailure::Fault(located.clone())) {
            TestFailure::Fault(cause) => {
                self.annotation.source.error(MessageCode::NoValue, cause.span, describe_fault(&cause.fault))
            }
            _ => self.annotation.source.error(MessageCode::NoValue, located.span, describe_fault(&located.fault)),
        })
    }

    /// Returns the space of a problem whose given whole numbers of these names are smaller by
    /// `less`; `None` where there is no such problem.
    pub fn with_less(&self, names: &BTreeSet<String>, less: i64) -> Option<Space> {
        let mut annotation = self.annotation.clone();
        for given in annotation.clauses.args.iter_mut().flatten() {
            let name = given.name.clone();
            given.value.diminish(&name, names, less);
        }
        Space::new(&annotation, &self.limits).ok()
    }

    /// The annotation that this is the space of.
    pub fn annotation(&self) -> &Annotation {
        &self.annotation
    }

    /// What a launch may be at most.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The register caps of the space, 0 among them.
    pub fn caps(&self) -> &[u32] {
        match self.table.axes.get(self.cap_axis) {
            Some(Axis::Cap { caps }) => caps,
            _ => &[],
        }
    }

    /// The cache operators of the space, none (nvcc's own loads) the first of them.
    pub fn cache_operators(&self) -> Vec<Option<LoadCacheOperator>> {
        let found = self.table.axes.iter().find_map(|axis| match axis {
            Axis::Cache { operators } => Some(operators.clone()),
            _ => None,
        });
        found.unwrap_or_else(|| vec![None])
    }

    /// The math options of the space, none the first of them.
    pub fn math(&self) -> &[Math] {
        let found = self.table.axes.iter().find_map(|axis| match axis {
            Axis::Math { sets } => Some(sets.as_slice()),
            _ => None,
        });
        found.unwrap_or(&[Math::NONE])
    }

    /// The factors of loops of the space, none (nvcc's own choice) the first of them.
    pub fn unroll(&self) -> &[Option<u32>] {
        let found = self.table.axes.iter().find_map(|axis| match axis {
            Axis::Unroll { factors } => Some(factors.as_slice()),
            _ => None,
        });
        found.unwrap_or(&[None])
    }

    /// What the front end is run with for the configurations of a search, the baseline's first:
    /// each assignment of macros with each set of math options and each factor of loops.
    pub fn front_ends(&self) -> Vec<FrontEndOptions> {
        let mut sets = Vec::new();
        for macros in self.macro_sets() {
            for &math in self.math() {
                let of = |&unroll: &Option<u32>| FrontEndOptions { macros: macros.clone(), math, unroll };
                sets.extend(self.unroll().iter().map(of));
            }
        }
        sets
    }

    /// All slots under a configuration.
    fn slot_values(&self, configuration: &Configuration) -> Values {
        let mut values = Values::new(self.table.slots);
        for axis in 0..self.table.axes.len() {
            match &self.table.axes[axis] {
                Axis::Block { slot, .. } => values.bind_block(*slot, configuration.block),
                Axis::Number { slot, .. } => {
                    if let Some(value) = self.axis_number(axis, configuration) {
                        values.bind_number(*slot, value);
                    }
                }
                Axis::Cap { .. }
                | Axis::Cache { .. }
                | Axis::Carveout { .. }
                | Axis::Math { .. }
                | Axis::Unroll { .. } => {}
            }
        }
        self.table.derived.iter().for_each(|derived| values.derive_value(derived));
        values
    }

    /// What a configuration has on a macro or grid axis.
    fn axis_number(&self, axis: usize, configuration: &Configuration) -> Option<i64> {
        match self.annotation.clauses.macros.get(axis) {
            Some(named) => configuration.macros.get(&named.name).copied(),
            None => {
                let dimension = self.grid_axes.iter().position(|&other| other == axis)?;
                configuration.grid.map(|grid| i64::from(grid[dimension]))
            }
        }
    }

    fn axis_position(&self, axis: usize, configuration: &Configuration) -> Option<usize> {
        match &self.table.axes[axis] {
            Axis::Block { shapes, .. } => shapes.iter().position(|&shape| shape == configuration.block),
            Axis::Cap { caps } => caps.iter().position(|&cap| cap == configuration.cap),
            Axis::Cache { operators } => operators.iter().position(|&operator| operator == configuration.cache),
            Axis::Carveout { percents } => percents.iter().position(|&percent| percent == configuration.carveout),
            Axis::Math { sets } => sets.iter().position(|&set| set == configuration.math),
            Axis::Unroll { factors } => factors.iter().position(|&factor| factor == configuration.unroll),
            Axis::Number { values, .. } => {
                let number = self.axis_number(axis, configuration)?;
                values.iter().position(|&value| value == number)
            }
        }
    }

    /// The configuration with these positions; axes that are not given keep their first value.
    pub(super) fn configuration_at(&self, point: impl Iterator<Item = (usize, usize)>) -> Configuration {
        let mut made = Configuration::of_block([1, 1, 1]);
        for (axis, position) in point {
            match &self.table.axes[axis] {
                Axis::Block { shapes, .. } => made.block = shapes[position],
                Axis::Cap { caps } => made.cap = caps[position],
                Axis::Cache { operators } => made.cache = operators[position],
                Axis::Carveout { percents } => made.carveout = percents[position],
                Axis::Math { sets } => made.math = sets[position],
                Axis::Unroll { factors } => made.unroll = factors[position],
                Axis::Number { values, .. } => match self.annotation.clauses.macros.get(axis) {
                    Some(named) => {
                        made.macros.insert(named.name.clone(), values[position]);
                    }
                    None => {
                        let grid = made.grid.get_or_insert([1, 1, 1]);
                        if let Some(dimension) = self.grid_axes.iter().position(|&other| other == axis) {
                            grid[dimension] = u32::try_from(values[position]).unwrap_or(u32::MAX);
                        }
                    }
                },
            }
        }
        made
    }
}
