//! Whether a kernel uses shared memory whose size the launch gives.

use crate::ptx::Body;
use crate::ptx::Module;
use crate::ptx::Operand;
use crate::ptx::PtxVariable;
use crate::ptx::StateSpace;

/// Whether the kernel, or a function of its module, uses shared memory of which the launch says
/// how much there is.
pub fn has_dynamic_shared(module: &Module, body: &Body) -> bool {
    let is_dynamic = |variable: &&PtxVariable| variable.space == StateSpace::Shared && variable.size == 0;
    let names: Vec<&str> = module.variables.iter().filter(is_dynamic).map(|variable| &*variable.name).collect();
    let functions =
        module.functions.iter().filter(|function| !function.entry).filter_map(|function| function.body.as_ref());
    let mut operands =
        functions.chain([body]).flat_map(Body::instructions).flat_map(|instruction| &instruction.operands);
    !names.is_empty()
        && operands.any(|operand| match operand {
            Operand::Name(name) | Operand::Displaced(name, _) | Operand::Address { base: Some(name), .. } => {
                names.contains(&&**name)
            }
            _ => false,
        })
}
