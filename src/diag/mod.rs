//! TODOC

pub mod console;
pub mod diagnostic;
mod exit_code;
pub(crate) mod print;
mod source;

pub(crate) use diagnostic::suggestion;
pub use diagnostic::{Diagnostic, Severity, render, render_of};
pub use exit_code::{FATAL, exit_code};
pub(crate) use print::{put, put_on, say, say_on};
pub use source::{Source, Span};
