//! Whether a kernel may take addresses from memory.
//!
//! In: PTX. Out: whether any code that the kernel may run loads whole words that can be addresses.
//! Where none does, a word in memory that looks like an address is a number, whatever memory is at
//! that address. Addresses that are put together of narrower loads are not found: the replay of
//! such a kernel fails, and nvcc's code is kept.

use crate::ptx::opcode::{Class, Opcode};
use crate::ptx::{Module, Scalar, StateSpace};

/// Returns whether the kernel `symbol`, or a function of its module, may load an address.
pub fn may_load_addresses(module: &Module, symbol: &str) -> bool {
    module.instructions_of(symbol).any(|instruction| loads_words(&instruction.opcode))
}

/// Whether an instruction loads 64-bit integers, or copies memory without a type. What is in the
/// thread's or the block's own memory may have been copied there in pieces; arguments are not.
fn loads_words(opcode: &Opcode) -> bool {
    let is_argument = |space| space == StateSpace::Param;
    let is_word = |kind| matches!(kind, Scalar::B64 | Scalar::U64 | Scalar::S64 | Scalar::B128);
    match opcode.class() {
        Class::Load | Class::Atomic => !opcode.spaces().any(is_argument) && opcode.types().any(is_word),
        Class::AsyncCopy | Class::Multimem | Class::Unknown => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_loaded_as_words() {
        for (opcode, expected) in [
            ("ld.global.u64", true),
            ("ld.global.nc.v2.b64", true),
            ("ld.u64", true),
            ("ld.const.b64", true),
            ("atom.global.exch.b64", true),
            ("cp.async.cg.shared.global", true),
            ("something.new", true),
            ("ld.global.v2.u32", false),
            ("ld.global.f64", false),
            ("ld.param.u64", false),
            ("ld.local.u64", true),
            ("ld.shared.u64", true),
            ("atom.global.add.u32", false),
            ("st.global.u64", false),
            ("mov.b64", false),
        ] {
            assert_eq!(loads_words(&Opcode::parse(opcode)), expected, "{opcode}");
        }
    }
}
