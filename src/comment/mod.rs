//! Source text -> annotations, or diagnostics with places.
//!
//! [`is_marked`] says in a moment whether a file can hold a tuning comment; [`annotations()`]
//! finds the comments, reads their clauses and finds the kernels that they stand above. Nothing
//! here touches the world.

mod alternatives;
mod annotation;
mod annotations;
mod block_of_macros;
mod clause;
mod constant_definitions;
mod constants;
mod default_clause;
mod expression;
mod given_arguments;
mod inferred;
mod lexer;
mod list;
mod marker;
mod misspelled;
mod named_constants;
mod numbers;
mod other_tools;
mod parsed;
mod parser;
mod recorded_memory;
mod selected_kernels;
mod symbol_clause;
mod template_clause;
mod template_instances;
mod template_parameters;
mod value;
mod workload_clause;

pub use alternatives::{are_conditional, has_alternatives, may_be_apart, without_alternatives};
pub use annotation::{
    Annotation, Block, CheckClause, Clauses, Defaults, Given, GivenField, GivenFile, GivenFill, GivenSymbol,
    GivenTable, GivenValue, Grid, Inferred, Instance, Launching, MacroAxis, NamedConstant, OtherLaunch, Power,
    RecordedMember, Regs, Spanned, TemplateArgument,
};
pub use annotations::{annotations, annotations_among};
pub(crate) use constant_definitions::{UNTOLD, is_defined};
pub(crate) use constants::differing;
pub use expression::{Expr, Located, Node};
pub use given_arguments::ONE_VALUE;
pub use inferred::{choose_compiled_parameters, give_inferred, inferred_text};
pub use marker::{Mark, is_marked, mark, occurrences, tune_pragma};
pub use misspelled::near_misses;
pub use recorded_memory::{RecordedBuffer, RecordedMemory};
pub use selected_kernels::{SelectedKernels, mark_selected};
pub use symbol_clause::variable_element;
pub use template_instances::{Namesakes, TemplateInstances};
pub use value::{Binary, Fault, Function, Math, Unary, Value};
