//! The first runs of the preprocessor on a source. They are planned before its kernels are looked
//! at, so that all run at once: one after the other, each would wait for the one before.

use super::variants::{Macros, compile_order};
use super::{Tuner, axes, header_functions};
use crate::comment::Annotation;
use crate::nvcc::Toolchain;
use crate::process;
use crate::settings::Mode;
use std::collections::HashSet;

/// A run of the preprocessor with these macros defined. The toolchain keeps what it makes.
#[derive(Debug)]
pub enum Preprocessing {
    Source(Macros),
    /// It keeps the `#define` lines.
    Definitions(Macros),
}

impl Preprocessing {
    /// That of the source as it is.
    pub fn of_source() -> Self {
        Self::Source(Macros::new())
    }

    /// What is wrong with the text is reported where it is used.
    pub fn run(&self, toolchain: &Toolchain) {
        match self {
            Self::Source(macros) => drop(toolchain.source_under(macros)),
            Self::Definitions(macros) => drop(axes::defined_elsewhere(toolchain, macros)),
        }
    }
}

impl Tuner<'_> {
    /// Plans the first runs for these kernels: that of the source as it is, and as many of those
    /// that follow as may run at the same time without make being asked.
    ///
    /// Also starts the measuring process if a kernel will be searched.
    pub fn preprocessing(&mut self, toolchain: &Toolchain, annotations: &[Annotation]) -> Vec<Preprocessing> {
        let is_searched = |annotation| {
            let lookup = self.lookup(toolchain, annotation);
            lookup.is_some_and(|lookup| lookup.can_time() && !lookup.was_refused() && !lookup.is_promising())
        };
        if annotations.iter().any(is_searched) {
            self.begin();
        }
        let (mut axes, mut sets) = (Macros::new(), Vec::new());
        for annotation in annotations {
            // What is wrong with a comment is reported when its kernel is looked at.
            let Ok(space) = header_functions::space(annotation, toolchain.architecture()) else { continue };
            let own = &space.baseline().macros;
            axes.extend(own.clone());
            let lookup = self.lookup(toolchain, annotation);
            let is_known = lookup.as_ref().is_some_and(|lookup| lookup.is_promising());
            if is_known {
                sets.push(own.clone());
            } else if self.settings.mode != Mode::Locked && space.check_size().is_ok() {
                let is_timed = lookup.is_some_and(|lookup| lookup.can_time() && !lookup.was_refused());
                let compiled = space.front_ends();
                let ordered = compile_order(&compiled).into_iter().map(|(_, set)| set.macros.clone());
                sets.extend(ordered.take(if is_timed { usize::MAX } else { 1 }));
            }
        }
        let has_kernels = !sets.is_empty();
        let mut planned = HashSet::from([Macros::new()]);
        sets.retain(|set| planned.insert(set.clone()));
        let definitions = (has_kernels && !axes.is_empty()).then_some(Preprocessing::Definitions(axes));
        let others = definitions.into_iter().chain(sets.into_iter().map(Preprocessing::Source));
        std::iter::once(Preprocessing::of_source()).chain(others.take(process::own_permits() - 1)).collect()
    }
}
