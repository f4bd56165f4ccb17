//! PTX as text: its entries, their parameters and performance directives, and their
//! instructions by line.
//!
//! Text that cicc wrote (or a person, in inline assembly) -> [`Module`]. Every statement knows
//! its 1-based line, every performance directive its bytes and every instruction its first, so
//! that [`directives`] and [`cache`] can edit them in place. [`canonical`] gives an entry's
//! text without what does not change its machine code; [`Transplant`] copies an entry into
//! another text. The language: NVIDIA, "PTX ISA", version 9.0.

pub mod cache;
pub mod canonical;
pub mod coarsening;
mod control_flow;
pub mod directives;
mod edit;
mod error;
mod independent_blocks;
mod lexer;
mod memory;
mod module;
pub mod opcode;
mod order;
mod parser;
mod postdominators;
mod references;
mod standalone;
mod transplant;
mod types;

pub use control_flow::ControlFlow;
pub use edit::{Edits, edit_entries};
pub use error::PtxError;
pub use memory::{AccessKind, MemorySpace};
pub use module::{
    ASSERTION, Body, Directive, Guard, Initial, Instruction, Label, Linkage, Module, Operand, Parameter, PtxFunction,
    PtxVariable, Registers, Statement,
};
pub use opcode::Opcode;
pub use postdominators::immediate_postdominators;
pub use standalone::{calls_by_address, isolate_entry};
pub use transplant::{Destination, Transplant, TransplantError, insert_transplants};
pub use types::{Scalar, StateSpace};

pub use opcode::Mnemonic;
