//! Source text -> annotations, or diagnostics with places.
//!
//! [`is_marked`] says in a moment whether a file can hold a tuning comment; [`annotations`] finds the comments, reads their
//! clauses and finds the kernels that they stand above. Nothing here touches the world.

mod advice;
mod alternatives;
mod annotation;
mod annotations;
mod brackets;
mod clause;
mod compiled;
mod conditional;
mod constants;
mod cxx;
mod default_clause;
mod derived_macros;
mod diagnostic;
mod elsewhere;
mod expression;
mod header_launch;
mod host_code;
mod host_launch;
mod kernel;
mod launch_flow;
mod launch_sites;
mod launch_text;
mod list;
mod macros;
mod marker;
mod named_constants;
mod near_miss;
mod parser;
mod source;
mod symbol_clause;
mod template_clause;
mod template_parameters;
mod token;
mod value;
mod without_stub;
mod workload_clause;

pub use advice::{Bounds, Facts, Overrun, advice};
pub use alternatives::{are_conditional, has_alternatives, without_alternatives};
pub use annotation::{
    Annotation, Block, CheckClause, Defaults, Given, GivenField, GivenFile, GivenFill, GivenSymbol, GivenTable,
    GivenValue, Grid, Instance, Launching, MacroAxis, NamedConstant, Power, Regs, Spanned, TemplateArgument,
};
pub use annotations::{ONE_VALUE, annotations, annotations_among};
pub use compiled::{CompiledFile, Side, compiled_files, compiled_text, left_out};
pub(crate) use constants::{UNTOLD, differing, is_defined};
pub(crate) use diagnostic::suggestion;
pub use diagnostic::{Diagnostic, Severity, render, render_of};
pub use expression::{Expr, Located, Node};
pub use header_launch::HeaderName;
pub use host_code::HostCode;
pub use host_launch::{HostLaunch, LaunchedBlock};
pub use kernel::{Kernel, TemplateParameter};
pub use marker::{Mark, is_marked, mark, occurrences};
pub use near_miss::near_misses;
pub use source::{Source, Span};
pub use value::{Binary, Fault, Function, Math, Unary, Value};
