//! The first runs of the preprocessor on a source. They are planned before its kernels are looked
//! at, so that all run at once: one after the other, each would wait for the one before.

use super::variants::Macros;
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

    /// Who asks for the text later reports what is wrong with it.
    pub fn run(&self, toolchain: &Toolchain) {
        match self {
            Self::Source(macros) => drop(toolchain.source_under(macros)),
            Self::Definitions(macros) => drop(axes::defined_elsewhere(toolchain, macros)),
        }
    }
}

impl Tuner<'_> {
    /// Plans the first runs for these kernels: that of the source as it is, and as many of those
    /// that follow as there are other cores.
    pub fn preprocessing(&self, toolchain: &Toolchain, annotations: &[Annotation]) -> Vec<Preprocessing> {
        let (mut axes, mut sets) = (Macros::new(), Vec::new());
        for annotation in annotations {
            let lookup = self.lookup(toolchain, annotation);
            let is_known = lookup.as_ref().is_some_and(|lookup| lookup.is_promising());
            if self.settings.mode == Mode::Locked && !is_known {
                continue;
            }
            // What is wrong with a comment is reported when its kernel is looked at.
            let Ok(space) = header_functions::space(annotation, toolchain.architecture()) else { continue };
            let own = &space.baseline().macros;
            axes.extend(own.clone());
            let is_timed = !is_known && lookup.is_some_and(|lookup| lookup.can_time() && !lookup.was_refused());
            sets.extend(if is_timed { space.macro_sets() } else { vec![own.clone()] });
        }
        let mut planned = HashSet::from([Macros::new()]);
        sets.retain(|set| planned.insert(set.clone()));
        let definitions = (!axes.is_empty()).then_some(Preprocessing::Definitions(axes));
        let others = definitions.into_iter().chain(sets.into_iter().map(Preprocessing::Source));
        std::iter::once(Preprocessing::of_source()).chain(others.take(process::usual_count() - 1)).collect()
    }
}
