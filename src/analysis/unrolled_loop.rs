//! PTX -> whether the compiler may have unrolled a kernel's grid-stride loop.

use super::grid_stride::is_computation;
use crate::ptx::opcode::{Class, Mnemonic};
use crate::ptx::{ControlFlow, Module, Opcode, StateSpace};

/// Whether a kernel's code has two loops at least and no instruction that
/// [`grid_stride::find`](super::grid_stride::find) refuses. A loop that the compiler unrolled is
/// two, the second one for the items that are left; then code of the same source without
/// unrolling is worth a look.
pub fn may_be_unrolled(module: &Module, symbol: &str) -> bool {
    let Some(body) = module.entry(symbol).and_then(|entry| entry.body.as_ref()) else { return false };
    let ControlFlow { instructions, successors } = ControlFlow::new(body);
    let loops = successors.iter().enumerate().filter(|(at, next)| next.iter().any(|to| to <= at)).count();
    loops > 1 && instructions.iter().all(|instruction| is_followed(&instruction.opcode))
}

/// Whether the proof follows instructions of this kind.
fn is_followed(opcode: &Opcode) -> bool {
    match opcode.class() {
        Class::Load => !opcode.spaces().any(|space| space == StateSpace::Shared),
        Class::Store => opcode.spaces().eq([StateSpace::Global]),
        Class::ControlFlow => matches!(opcode.mnemonic, Mnemonic::Bra | Mnemonic::Ret),
        class => is_computation(class),
    }
}
