//! PTX -> the parameters whose memory a kernel writes and never reads.
//!
//! The property: a parameter is named only if every use of the address that it holds, or of the
//! handle of a surface, is followed and is a plain store. What that memory held before the launch
//! then changes nothing.

use super::address_flow::{AddressUse, any_use};
use crate::ptx::opcode::{Class, Mnemonic};
use crate::ptx::{Body, Instruction, Module, StateSpace};

/// For each parameter of the kernel `symbol`: whether it is a pointer to memory, or a surface,
/// that is only written.
pub fn parameters(module: &Module, symbol: &str) -> Vec<bool> {
    let Some(function) = module.entry(symbol) else { return Vec::new() };
    let is_only_written = |name: &str| function.body.as_ref().is_some_and(|body| is_only_written(body, name));
    function.parameters.iter().map(|parameter| is_only_written(&parameter.name)).collect()
}

fn is_only_written(body: &Body, parameter: &str) -> bool {
    let mut addresses = Vec::new();
    let mentions = |instruction: &&Instruction| instruction.operands.iter().any(|of| of.names().contains(&parameter));
    for instruction in body.instructions().filter(mentions) {
        let is_load = instruction.opcode.class() == Class::Load
            && instruction.opcode.spaces().any(|space| space == StateSpace::Param);
        let Some(result) = instruction.operands.first().filter(|_| is_load) else { return false };
        addresses.extend(result.names());
    }
    let is_store = |found: &AddressUse| {
        matches!(found, AddressUse::Access(instruction)
            if instruction.opcode.class() == Class::Store || instruction.opcode.mnemonic == Mnemonic::Sust)
    };
    any_use(body, &addresses, |found| is_store(&found)) && !any_use(body, &addresses, |found| !is_store(&found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_only_written_if_all_uses_are_stores() {
        const ADDRESS: &str = "ld.param.u64 %rd1, [k_param_0];\ncvta.to.global.u64 %rd2, %rd1;\n\
                               mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd2, %rd3;";
        for (uses, expected) in [
            ("st.global.f32 [%rd4], %f1;", true),
            ("st.global.cs.v4.f32 [%rd4+16], {%f1, %f2, %f3, %f4};", true),
            ("@%p1 st.global.f32 [%rd4], %f1;\nst.global.f32 [%rd2], %f1;", true),
            ("", false),
            ("ld.global.f32 %f1, [%rd4];", false),
            ("ld.global.f32 %f1, [%rd4+4];\nst.global.f32 [%rd4], %f1;", false),
            ("red.global.add.f32 [%rd4], %f1;", false),
            ("atom.global.add.u32 %r2, [%rd4], 1;", false),
            ("st.global.f32 [%rd4], %f1;\nst.global.u64 [%rd9], %rd4;", false),
            ("st.global.f32 [%rd4], %f1;\ncall.uni f, (%rd4);", false),
            ("sust.b.2d.b32.trap [%rd1, {%r1, %r2}], {%r3};", true),
            ("sust.b.2d.b32.trap [%rd1, {%r1, %r2}], {%r3};\nsuld.b.2d.b32.trap {%r3}, [%rd1, {%r1, %r2}];", false),
            ("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", false),
            (
                "st.global.f32 [%rd4], %f1;\nld.param.u32 %r7, [k_param_0+4];\nmov.b64 %rd7, {%r7, %r7};\nld.global.f32 %f2, [%rd7];",
                false,
            ),
        ] {
            let text = format!(
                ".version 9.0\n.target sm_90\n.address_size 64\n.func f(.reg .b64 a)\n{{\nret;\n}}\n\
                 .visible .entry k(.param .u64 k_param_0, .param .u32 k_param_1)\n{{\n{ADDRESS}\n{uses}\nret;\n}}\n"
            );
            let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(parameters(&module, "k"), [expected, false], "{uses}");
        }
    }
}
