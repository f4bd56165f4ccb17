//! An instruction -> the registers that it writes and reads, by name.

use crate::ptx::opcode::Class;
use crate::ptx::{Instruction, Operand};

/// The registers that an instruction writes.
pub(super) fn written_names(instruction: &Instruction) -> Vec<&str> {
    match instruction.opcode.class() {
        Class::Store | Class::ControlFlow => Vec::new(),
        _ => instruction.operands.first().map(Operand::names).unwrap_or_default(),
    }
}

/// The registers that an instruction reads, its guard among them.
pub(super) fn read_names(instruction: &Instruction) -> Vec<&str> {
    let guard = instruction.guard.iter().map(|guard| &*guard.register);
    let operands = match instruction.opcode.class() {
        Class::Store => &instruction.operands[..],
        Class::ControlFlow => &[],
        _ => instruction.operands.get(1..).unwrap_or_default(),
    };
    guard.chain(operands.iter().flat_map(Operand::names)).collect()
}
