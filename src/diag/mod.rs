//! Source text and places in it, messages in nvcc's form, and everything that is printed.
//!
//! Invariants: a closed or full stream ends no build; messages of processes side by side do not
//! mix.

mod bytes;
mod code;
pub mod console;
pub mod diagnostic;
mod escape;
mod exit_code;
pub mod print;
pub mod progress;
mod source;

pub use bytes::in_units;
pub use code::MessageCode;
pub(crate) use diagnostic::suggestion;
pub use diagnostic::{Diagnostic, Severity, render};
pub use exit_code::{FATAL, exit_code};
pub use source::{Source, Span};
