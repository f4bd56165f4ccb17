//! PTX -> whether a kernel's blocks need nothing of each other, and its threads nothing of the rest
//! of their block, so that one block may do the work of several, one after the other.
//!
//! The answer is yes only for code of loads, stores, computation and branches. A barrier, shared
//! memory, an exchange between threads or an access by which blocks could wait for each other is
//! a no, as is all that a thread could see of its block's place in the launch but its number.

use super::module::{Body, Instruction, Module, PtxFunction, PtxVariable, Statement};
use super::opcode::{Class, Mnemonic, Opcode, Semantics};
use super::types::StateSpace;
use std::collections::HashSet;

/// Special registers that are the same whichever block does the work, or are replaced.
const KNOWN_REGISTERS: [&str; 13] = [
    "%tid.x",
    "%tid.y",
    "%tid.z",
    "%ntid.x",
    "%ntid.y",
    "%ntid.z",
    "%ctaid.x",
    "%ctaid.y",
    "%ctaid.z",
    "%nctaid.x",
    "%nctaid.y",
    "%nctaid.z",
    "%laneid",
];

/// Whether one block of an entry may do the work of several.
pub fn are_blocks_independent(module: &Module, entry: &PtxFunction) -> bool {
    let Some(body) = &entry.body else { return false };
    let is_clustered = entry.directives.iter().any(|directive| directive.name.contains("cluster"));
    let own = body.statements.iter().filter_map(|statement| match statement {
        Statement::Variable(variable) => Some(variable),
        _ => None,
    });
    let is_shared = |variable: &&PtxVariable| variable.space == StateSpace::Shared;
    let shared: HashSet<&str> =
        module.variables.iter().chain(own).filter(is_shared).map(|variable| &*variable.name).collect();
    let known = known_registers(body);
    let is_allowed = |instruction: &Instruction| {
        let mut names = instruction.operands.iter().flat_map(|operand| operand.names());
        may_be_repeated(instruction) && names.all(|name| !shared.contains(name) && is_known(name, &known))
    };
    !is_clustered && body.instructions().all(is_allowed)
}

/// Whether an instruction does the same when another block's work was done before.
fn may_be_repeated(instruction: &Instruction) -> bool {
    let opcode = &instruction.opcode;
    let is_weak = || matches!(opcode.semantics(), None | Some(Semantics::Weak));
    let is_global = || !opcode.spaces().any(|space| space == StateSpace::Shared);
    match opcode.class() {
        Class::Arithmetic | Class::Comparison | Class::Logic | Class::Move | Class::Video => true,
        Class::Conversion => is_global(),
        Class::Load => is_weak() && is_global() && !may_poll(opcode),
        Class::Store => is_weak() && is_global(),
        Class::Reduction => is_global() && opcode.mnemonic == Mnemonic::Red,
        Class::Texture | Class::Surface => true,
        Class::Address => matches!(opcode.mnemonic, Mnemonic::Prefetch | Mnemonic::Prefetchu | Mnemonic::Isspacep),
        Class::ControlFlow => opcode.mnemonic != Mnemonic::Call,
        Class::Miscellaneous => opcode.mnemonic == Mnemonic::Trap,
        _ => false,
    }
}

/// Whether a load asks for what other blocks may have written meanwhile: past the level-1 cache, as
/// `__ldcg` and `__ldcv` do.
fn may_poll(opcode: &Opcode) -> bool {
    opcode.modifiers().any(|part| matches!(part, "cg" | "cv"))
}

/// The registers that the code declares: whole names, and beginnings that numbers follow.
fn known_registers(body: &Body) -> HashSet<&str> {
    let declared = body.statements.iter().filter_map(|statement| match statement {
        Statement::Registers(registers) => Some(&*registers.name),
        _ => None,
    });
    declared.chain(KNOWN_REGISTERS).collect()
}

/// Whether a name is no special register that tells more of the launch.
fn is_known(name: &str, known: &HashSet<&str>) -> bool {
    !name.starts_with('%')
        || known.contains(name)
        || known.contains(name.trim_end_matches(|of: char| of.is_ascii_digit()))
}
