//! An expression of a comment -> what of a configuration it counts by.

use crate::comment::{Annotation, Expr, GivenValue};
use std::collections::BTreeSet;

/// What the blocks of a grid in one dimension depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GridFactors {
    /// By dimension: the block's extent.
    pub block: [bool; 3],
    /// Of these, those that are named one by one, and not all at once by `block.size`.
    pub extents: [bool; 3],
    /// Macro axes.
    pub macros: BTreeSet<String>,
}

impl GridFactors {
    /// Collects what an expression of a comment names, directly or through arguments of
    /// the workload.
    pub(super) fn count_names(annotation: &Annotation, expression: &Expr) -> Self {
        let mut found = Self::default();
        found.add_names(annotation, expression, &mut BTreeSet::new());
        found
    }

    fn add_extent(&mut self, dimension: usize) {
        self.block[dimension] = true;
        self.extents[dimension] = true;
    }

    /// `seen`: the arguments that were followed, for what is computed from itself is found out
    /// later.
    fn add_names(&mut self, annotation: &Annotation, expression: &Expr, seen: &mut BTreeSet<String>) {
        expression.names(&mut |name, _| match name.as_str() {
            "block.x" => self.add_extent(0),
            "block.y" => self.add_extent(1),
            "block.z" => self.add_extent(2),
            "block.size" => self.block = [true; 3],
            _ if annotation.clauses.macros.iter().any(|axis| axis.name == *name) => {
                self.macros.insert(name.clone());
            }
            _ if seen.insert(name.clone()) => {
                let values = annotation.values();
                if let Some((_, GivenValue::Scalar(value))) = values.iter().find(|(path, _)| path == name) {
                    self.add_names(annotation, value, seen);
                }
            }
            _ => {}
        });
    }
}
