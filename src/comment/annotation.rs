//! What a tuning comment says, checked as far as the comment and the kernel's declaration alone allow.

use super::expression::Expr;
use super::kernel::Kernel;
use super::source::{Source, Span};
use crate::space::Dim3;
use crate::workload::Fill;
use std::sync::Arc;

/// Something and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Spanned<T> {
    pub value: T,
    pub span: Span,
}

/// A tuning comment and its kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    pub source: Arc<Source>,
    /// The place of the comment's first marker.
    pub comment: Span,
    /// The clauses with blanks made even: what the lock file's digest takes of the comment.
    pub text: String,
    pub kernel: Kernel,
    /// The name in header and lock: the `name` clause, else the function's.
    pub name: String,
    /// The `name` clause, or the function's name.
    pub name_span: Span,
    pub block: Option<Spanned<Block>>,
    /// Without a `regs` clause this is [`Regs::Auto`].
    pub regs: Regs,
    pub macros: Vec<MacroAxis>,
    pub threads: Option<Spanned<Vec<Expr>>>,
    pub grid: Option<Spanned<Grid>>,
    /// Dynamic shared memory of a block in bytes.
    pub shared: Option<Expr>,
    pub require: Vec<Expr>,
    pub default: Defaults,
    /// `None` without an `args` clause: the kernel can then not be measured. Otherwise in the order of the clause.
    pub args: Option<Vec<Given>>,
    /// `None` without a `check` clause; empty for `check(none)`.
    pub check: Option<CheckClause>,
    pub strategy: Option<String>,
    /// Seconds of GPU time.
    pub budget: Option<f64>,
    pub launch: Launching,
    /// The clauses that the comment has and the places of their names.
    pub clauses: Vec<(String, Span)>,
}

/// The `block` clause.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    Auto,
    /// One to three lists; all values are 1 or more.
    Lists(Vec<Vec<u32>>),
}

/// The `regs` clause.
#[derive(Clone, Debug, PartialEq)]
pub enum Regs {
    Auto,
    /// Each is 0 or 16 to 255.
    List(Vec<u32>),
}

/// A macro that a kernel is compiled with.
#[derive(Clone, Debug, PartialEq)]
pub struct MacroAxis {
    pub name: String,
    pub span: Span,
    pub values: Vec<i64>,
}

/// The `grid` clause.
#[derive(Clone, Debug, PartialEq)]
pub enum Grid {
    /// The grid follows from the configuration.
    Expressions(Vec<Expr>),
    /// The grid is an axis.
    Lists(Vec<Vec<u32>>),
}

/// The `default` clause; each part may be absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Defaults {
    pub span: Option<Span>,
    pub block: Option<Spanned<Dim3>>,
    pub regs: Option<Spanned<u32>>,
    pub grid: Option<Spanned<Dim3>>,
    pub macros: Vec<(String, Spanned<i64>)>,
}

/// A parameter's value in the `args` clause.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    pub name: String,
    pub span: Span,
    /// Index among the kernel's parameters.
    pub parameter: usize,
    pub value: GivenValue,
}

#[derive(Clone, Debug, PartialEq)]
pub enum GivenValue {
    Scalar(Expr),
    /// `fill` is `None` for `random[n]`, whose range hangs on the element's type.
    Buffer {
        fill: Option<Fill>,
        fill_span: Span,
        count: Expr,
    },
}

/// The `check` clause.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckClause {
    pub buffers: Vec<Spanned<String>>,
    pub relative: Option<f64>,
    pub absolute: Option<f64>,
}

/// The `launch` clause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Launching {
    /// The host code uses the header.
    #[default]
    Header,
    /// Launches of the default block are reshaped in the object itself.
    Remap,
}

impl Annotation {
    /// True where the comment says what to launch the kernel on.
    pub fn has_workload(&self) -> bool {
        self.args.is_some()
    }

    /// The place of a clause's name; that of the comment where it has no such clause.
    pub fn place(&self, clause: &str) -> Span {
        self.clauses.iter().find(|(name, _)| name == clause).map_or(self.comment, |(_, span)| *span)
    }
}
