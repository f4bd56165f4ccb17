//! PTX as text: its entries, their parameters and performance directives, and their instructions by line.
//!
//! Text that cicc wrote (or a person, in inline assembly) -> [`Module`]. Every statement knows its 1-based line, every
//! performance directive its bytes and every instruction its first, so that [`directives`] and [`cache`] can edit them in place. [`canonical`] gives an entry's text
//! without what does not change its machine code. The language: NVIDIA, "PTX ISA", version 9.0.

mod alone;
pub mod cache;
pub mod canonical;
pub mod directives;
mod edits;
mod error;
mod lexer;
mod module;
mod order;
mod parser;

pub use alone::{alone, calls_by_address};
pub use cache::CacheOperator;
pub use edits::{Edits, edited};
pub use error::Error;
pub use module::{
    Body, Directive, Function, Guard, Initial, Instruction, Label, Linkage, Module, Operand, Parameter, Registers,
    Scalar, Space, Statement, Variable,
};
