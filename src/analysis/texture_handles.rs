//! PTX -> which bytes of a kernel's parameters are handles of textures and surfaces.
//!
//! The property: a place is named only if an access takes its handle from a register into which
//! nothing but these bytes is loaded. Handles that code computes, or has in memory, are not.

use crate::cuda::{HandlePlace, OpaqueHandle};
use crate::ptx::opcode::Class;
use crate::ptx::{Body, Instruction, Module, Operand, StateSpace};
use std::collections::{BTreeSet, HashMap};

/// Returns the places of handles in the parameters of the kernel `symbol`.
pub fn texture_handles(module: &Module, symbol: &str) -> BTreeSet<HandlePlace> {
    let entry = module.entry(symbol).and_then(|entry| Some((&entry.parameters, entry.body.as_ref()?)));
    let Some((parameters, body)) = entry else { return BTreeSet::new() };
    let number = |name: &str| parameters.iter().position(|parameter| *parameter.name == *name);
    let loaded = loaded_words(body, number);
    let places = body.instructions().filter_map(|instruction| {
        let kind = match instruction.opcode.class() {
            Class::Texture => OpaqueHandle::Texture,
            Class::Surface => OpaqueHandle::Surface,
            _ => return None,
        };
        let Some(Operand::Name(register)) = instruction.operands.iter().find_map(first_in_brackets) else {
            return None;
        };
        let (argument, offset) = (*loaded.get(&**register)?)?;
        Some(HandlePlace { argument, offset, kind })
    });
    places.collect()
}

/// The first of a list in brackets: `[texture, {coordinates}]`.
fn first_in_brackets(operand: &Operand) -> Option<&Operand> {
    match operand {
        Operand::Brackets(inner) => inner.first(),
        _ => None,
    }
}

/// The registers that words of parameters are loaded into: parameter and byte, or `None` for a
/// register that holds something else as well.
fn loaded_words(body: &Body, number: impl Fn(&str) -> Option<usize>) -> HashMap<&str, Option<(usize, u64)>> {
    let mut loaded = HashMap::new();
    for instruction in body.instructions() {
        let place = parameter_word(instruction, &number);
        let is_memory = |operand: &&Operand| matches!(operand, Operand::Address { .. } | Operand::Brackets(_));
        let written = instruction.operands.first().filter(|operand| !is_memory(operand));
        let written = written.map(Operand::names).unwrap_or_default();
        for (register, step) in written.into_iter().zip(0_u64..) {
            let place = place.map(|(argument, offset)| (argument, offset + 8 * step));
            loaded.entry(register).and_modify(|known| *known = None).or_insert(place);
        }
    }
    loaded
}

/// The parameter and the first byte that an instruction loads words of 64 bits from.
fn parameter_word(instruction: &Instruction, number: impl Fn(&str) -> Option<usize>) -> Option<(usize, u64)> {
    let opcode = &instruction.opcode;
    let is_load = opcode.class() == Class::Load
        && opcode.spaces().eq([StateSpace::Param])
        && opcode.types().all(|kind| kind.size() == 8);
    match instruction.operands.get(1).filter(|_| is_load)? {
        Operand::Address { base: Some(name), offset } => Some((number(name)?, u64::try_from(*offset).ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_words_of_parameters_that_accesses_take() {
        const TEXTURE: OpaqueHandle = OpaqueHandle::Texture;
        for (code, expected) in [
            (
                "ld.param.u64 %rd1, [k_0];\ntex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];",
                vec![(0, 0, TEXTURE)],
            ),
            (
                "ld.param.u64 %rd1, [k_1+8];\nld.param.u64 %rd2, [k_0];\n\
                 suld.b.2d.b32.trap {%r3}, [%rd2, {%r1, %r2}];\nsust.b.2d.b32.trap [%rd1, {%r1, %r2}], {%r3};",
                vec![(0, 0, OpaqueHandle::Surface), (1, 8, OpaqueHandle::Surface)],
            ),
            (
                "ld.param.v2.u64 {%rd1, %rd2}, [k_1];\ntex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd2, {%r1}];",
                vec![(1, 8, TEXTURE)],
            ),
            // A coordinate is no handle.
            ("ld.param.u64 %rd1, [k_0];\ntex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd9, {%rd1}];", vec![]),
            (
                "ld.param.u64 %rd1, [k_0];\nld.u64 %rd2, [%rd1];\ntex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd2, {%r1}];",
                vec![],
            ),
            (
                "ld.param.u64 %rd1, [k_0];\n@%p1 ld.param.u64 %rd1, [k_1];\n\
                 tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];",
                vec![],
            ),
        ] {
            let text = format!(
                ".version 9.0\n.target sm_90\n.address_size 64\n\
                 .visible .entry k(.param .u64 k_0, .param .align 8 .b8 k_1[16])\n{{\n{code}\nret;\n}}\n"
            );
            let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let found = texture_handles(&module, "k").into_iter();
            let found: Vec<_> = found.map(|place| (place.argument, place.offset, place.kind)).collect();
            assert_eq!(found, expected, "{code}");
        }
    }
}
