//! The clauses of a comment as they are read, before the kernel is looked at.

use super::annotation::{Clauses, GivenValue, Spanned};
use super::expression::Expr;
use crate::diag::Span;

/// The clauses of one comment as written, and the parts that depend on the kernel's
/// declaration.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// Without `args`.
    pub clauses: Clauses,
    pub args: Option<Vec<RawGiven>>,
    pub name: Option<Spanned<String>>,
    /// Dimensions of the block that follow macros: `block(TILE, TILE)`.
    pub(super) block_of_macros: Vec<(usize, Expr)>,
    /// One for each `template` clause.
    pub instances: Vec<RawInstance>,
}

/// An instance before its names are looked for among the macros.
#[derive(Debug)]
pub(crate) struct RawInstance {
    pub span: Span,
    pub(super) arguments: Vec<RawArgument>,
}

/// An argument of an instance.
#[derive(Debug)]
pub(super) struct RawArgument {
    pub text: String,
    /// Where the text can be read as one.
    pub expression: Option<Expr>,
}

/// A value of `args` before its name is looked for among the parameters.
#[derive(Debug)]
pub(crate) struct RawGiven {
    pub name: String,
    pub span: Span,
    /// `None` where the value has an error that has been reported.
    pub value: Option<GivenValue>,
    pub element: Option<String>,
}
