//! TODOC

pub mod console;
pub mod diagnostic;
mod exit_code;
pub mod print;
mod source;

pub(crate) use diagnostic::suggestion;
pub use diagnostic::{Diagnostic, Severity, render, render_of};
pub use exit_code::{FATAL, exit_code};
pub use source::{Source, Span};
