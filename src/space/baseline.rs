//! A space -> its baseline.
//!
//! Rules of the baseline (what plain `nvcc` would have used), part by part, where `default`
//! does not give it:
//! - block: the valid shape whose count of threads is nearest to 256, then the least elongated,
//!   then the widest in x;
//! - register cap: 0 (none), which is a cap of every space whether `regs` lists it or not;
//! - cache operator, carve-out, math options and unrolling: none, which each of these axes has whether its clause
//!   lists it or not;
//! - macros and grid: the first value of each list.
//!
//! Where constraints forbid that combination, it is the first valid one in that order (macros
//! first). What `default` gives is never changed: if a constraint excludes it, that is an
//! error.

use super::constraint_failure::describe_failure;
use super::shapes::shape_strangeness;
use super::space::Space;
use super::walk::{Axis, PATIENCE, Walk};
use crate::diag::{Diagnostic, MessageCode};
use crate::launch::Configuration;

impl Space {
    /// The positions of an axis that the baseline may have, best first.
    fn baseline_choices(&self, axis: usize) -> Vec<usize> {
        let default = &self.annotation.clauses.default;
        let all = 0..self.table.axes[axis].len();
        match &self.table.axes[axis] {
            Axis::Block { shapes, .. } => match &default.block {
                Some(pinned) => all.filter(|&at| shapes[at] == pinned.value).collect(),
                None => {
                    let mut order: Vec<usize> = all.collect();
                    order.sort_by_key(|&at| shape_strangeness(shapes[at]));
                    order
                }
            },
            Axis::Cap { caps } => {
                let cap = default.regs.as_ref().map_or(0, |pinned| pinned.value);
                all.filter(|&at| caps[at] == cap).collect()
            }
            Axis::Cache { operators } => all.filter(|&at| operators[at].is_none()).collect(),
            Axis::Carveout { percents } => {
                let percent = default.carveout.as_ref().and_then(|pinned| pinned.value);
                all.filter(|&at| percents[at] == percent).collect()
            }
            Axis::Math { sets } => all.filter(|&at| sets[at].is_none()).collect(),
            Axis::Unroll { factors } => all.filter(|&at| factors[at].is_none()).collect(),
            Axis::Number { values, .. } => {
                let pinned = match self.annotation.clauses.macros.get(axis) {
                    Some(named) => {
                        default.macros.iter().find(|(name, _)| *name == named.name).map(|(_, value)| value.value)
                    }
                    None => {
                        let dimension = self.grid_axes.iter().position(|&other| other == axis);
                        default.grid.as_ref().zip(dimension).map(|(grid, dimension)| i64::from(grid.value[dimension]))
                    }
                };
                all.filter(|&at| pinned.is_none_or(|pinned| values[at] == pinned)).collect()
            }
        }
    }

    /// Finds the baseline.
    ///
    /// # Errors
    /// Where no configuration is valid, what `default` gives is excluded, or the search takes too long.
    pub(super) fn find_baseline(&self) -> Result<Configuration, Box<Diagnostic>> {
        let mut point = Vec::new();
        for axes in self.table.connected_axes() {
            let choices = axes.iter().map(|&axis| self.baseline_choices(axis)).collect();
            let depth = axes.len();
            let mut walk = Walk::new(&self.table, axes.clone(), choices).with_patience(PATIENCE);
            if walk.advance_to(depth) {
                point.extend(walk.current_point());
                continue;
            }
            let mut free = Walk::over_all(&self.table, axes).with_patience(PATIENCE);
            let any = free.advance_to(depth);
            if walk.gave_up() || free.gave_up() {
                let message = format!(
                    "no configuration fulfils the constraints among the first {PATIENCE} tried: give default(...) or shorter lists"
                );
                return Err(Box::new(self.annotation.source.error(
                    MessageCode::SpaceTooLarge,
                    self.annotation.comment,
                    message,
                )));
            }
            let subject = if any { "the baseline" } else { "every configuration" };
            return Err(Box::new(match &walk.cut {
                Some((index, failure)) => {
                    let problem = describe_failure(&self.annotation, &self.table.constraints[*index], failure, subject);
                    match self.annotation.clauses.default.span.filter(|_| any) {
                        Some(span) => problem.with(self.annotation.source.note(span, "the baseline is given here")),
                        None => problem,
                    }
                }
                None => self.annotation.source.error(
                    MessageCode::SpaceEmpty,
                    self.annotation.comment,
                    "no configuration is valid",
                ),
            }));
        }
        Ok(self.configuration_at(point.into_iter()))
    }
}
