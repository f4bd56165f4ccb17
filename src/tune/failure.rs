//! Why a kernel stays as nvcc builds it, and how that is said.

use super::scoring::NoBaseline;
use super::variants::{Macros, options};
use crate::comment::Annotation;
use crate::diag::Diagnostic;
use crate::diag::console::Console;
use crate::launch::Configuration;
use crate::nvcc::ToolError;
use crate::ptx;
use std::sync::Arc;
use thiserror::Error;

/// Why a kernel is not tuned.
#[derive(Debug, Error)]
pub enum Problem {
    /// With places in the source.
    #[error("its tuning comment does not fit it")]
    Comment(Vec<Diagnostic>),
    #[error("{0}")]
    Tool(Arc<ToolError>),
    /// The front end refuses the source as it stands: most likely nvcc will say the same.
    #[error("{0}")]
    Source(Arc<ToolError>),
    /// It takes the source without them.
    #[error(
        "with {} the source does not compile, and without it does: where the name is also that of something else in the source or in a header, as of a template's parameter, give the macro a longer one; {}",
        options(macros),
        first(error)
    )]
    Macros { macros: Macros, error: Arc<ToolError> },
    #[error("{0}")]
    Ptx(#[from] ptx::PtxError),
    /// An `#if` leaves it out, or nobody uses it: this compile is not about it.
    #[error("the compilation has no such kernel")]
    Absent,
    /// Then its values are not what the code is made of.
    #[error(
        "macro axis `{name}` is defined in {place} whatever nvtune sets: define it there only where it is not (#ifndef), or not at all"
    )]
    Defined { name: String, place: String },
    /// A `template` clause may name what is specialized elsewhere.
    #[error("the comment above the kernel at line {line} tunes this instance already: remove one of the two")]
    Twice { line: u32 },
    #[error(
        "its baseline ({configuration}) is not what the source is without nvtune: let `default` give the macros the values that the source gives them"
    )]
    Default { configuration: Configuration },
    #[error("{0} is not an architecture that this version of nvtune knows")]
    Architecture(String),
    #[error("its baseline ({configuration}) cannot be built or launched: {reason}")]
    Baseline { configuration: Configuration, reason: String },
}

/// The error in one line: of what a tool says its first, which the rest often follows from.
pub fn first(error: &ToolError) -> String {
    let said = error.to_string();
    said.lines().next().unwrap_or_default().to_owned()
}

impl From<Vec<Diagnostic>> for Problem {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Self::Comment(diagnostics)
    }
}

impl From<NoBaseline> for Problem {
    fn from(NoBaseline { configuration, reason }: NoBaseline) -> Self {
        Self::Baseline { configuration, reason }
    }
}

impl From<Diagnostic> for Problem {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Comment(vec![diagnostic])
    }
}

impl From<Box<Diagnostic>> for Problem {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        Self::Comment(vec![*diagnostic])
    }
}

impl Problem {
    /// Whether the same inputs will meet it again, if nothing disturbed the compiler's tools.
    pub fn is_lasting(&self) -> bool {
        // Of a source that the front end refuses not even the files are known.
        !matches!(self, Self::Tool(_) | Self::Source(_))
    }

    /// Says that the kernel stays as nvcc builds it, and why.
    pub fn print(&self, console: &Console, annotation: &Annotation) {
        let message = format!("{}: not tuned: {self}", annotation.name);
        match self {
            Self::Comment(diagnostics) => console.diagnostics(diagnostics),
            Self::Absent => {}
            // What nvcc refuses as well is nvcc's to say.
            Self::Source(_) | Self::Macros { .. } | Self::Baseline { .. } => console.warn_if_the_build_passes(message),
            _ => console.warning(&message),
        }
    }
}
