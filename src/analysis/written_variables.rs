//! PTX -> the `__device__` variables that a kernel may write.
//!
//! The property: a variable is left out only if every use of its address, in the kernel and in
//! each function with a body, is followed and is a read. An address that leaves the registers
//! (a call, a return value, a store) counts as written through, and so does an address that
//! another variable holds at the start.

use super::address_flow::{AddressUse, any_use};
use crate::ptx::opcode::Class;
use crate::ptx::{Body, Initial, Module, PtxVariable, StateSpace};
use std::collections::BTreeSet;

/// Functions of the CUDA runtime that only read what their arguments point at.
const READERS: [&str; 2] = ["vprintf", "__assertfail"];

/// Lists the variables in global memory that the kernel `symbol` may write, in the order of the
/// text.
pub fn written<'a>(module: &'a Module, symbol: &str) -> Vec<&'a PtxVariable> {
    let functions = module.functions.iter().filter(|function| !function.entry);
    let bodies: Vec<&Body> =
        module.entry(symbol).into_iter().chain(functions).filter_map(|function| function.body.as_ref()).collect();
    let is_mentioned = |pointer: &str| bodies.iter().any(|body| mentions_variable(body, pointer));
    let is_written = |variable: &&PtxVariable| {
        let name = &*variable.name;
        bodies.iter().any(|body| writes_variable(body, name)) || pointers_to(module, name).into_iter().any(is_mentioned)
    };
    module.variables.iter().filter(|variable| variable.space == StateSpace::Global).filter(is_written).collect()
}

/// Lists the variables whose initial value holds the address of `variable`, itself or through
/// other variables.
fn pointers_to<'a>(module: &'a Module, variable: &'a str) -> BTreeSet<&'a str> {
    let mut pointers = BTreeSet::new();
    let mut targets = vec![variable];
    while let Some(target) = targets.pop() {
        let holds =
            |(_, initial): &(u64, Initial)| matches!(initial, Initial::Address { name, .. } if **name == *target);
        let holders = module.variables.iter().filter(|other| other.initial.iter().flatten().any(holds));
        targets.extend(holders.map(|holder| &*holder.name).filter(|&name| pointers.insert(name)));
    }
    pointers
}

fn mentions_variable(body: &Body, variable: &str) -> bool {
    body.instructions().flat_map(|instruction| &instruction.operands).any(|operand| operand.names().contains(&variable))
}

/// Returns whether the code may write the variable.
fn writes_variable(body: &Body, variable: &str) -> bool {
    any_use(body, &[variable], |found| match found {
        // Prefetches and questions about addresses write nothing.
        AddressUse::Access(instruction) => !matches!(instruction.opcode.class(), Class::Load | Class::Address),
        AddressUse::Call(call) => !call.callee().is_some_and(|name| READERS.contains(&name)),
        AddressUse::Escape => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: &str =
        "mov.u64 %rd1, total;\ncvta.global.u64 %rd2, %rd1;\nmul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd2, %rd3;";

    fn names(kernel: &str, function: &str) -> Vec<String> {
        let text = format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n.const .align 4 .b8 table[16];\n\
             .visible .global .align 8 .u64 total;\n.global .align 8 .u64 pointer = generic(total);\n.global .align 8 .u64 table_of_pointers[2] = {{0, generic(pointer)}};\n.global .align 1 .b8 $str[4] = {{37, 100, 10}};\n\
             .func f()\n{{\n{function}\nret;\n}}\n\
             .visible .entry other()\n{{\nred.global.add.u64 [total], 1;\nret;\n}}\n\
             .visible .entry k()\n{{\n{kernel}\nret;\n}}\n"
        );
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        written(&module, "k").into_iter().map(|variable| variable.name.to_string()).collect()
    }

    #[test]
    fn reads_of_a_variable_are_no_writes() {
        for kernel in [
            "ret;",
            "ld.global.u64 %rd1, [total];",
            "ld.global.u64 %rd1, [total+8];\nst.global.u64 [%rd9], %rd1;",
            &format!("{HELD}\nld.u32 %r2, [%rd4];\nst.u32 [%rd9], %r2;"),
            &format!("{HELD}\nprefetch.global.L2 [%rd4];"),
            &format!("{HELD}\nsetp.eq.u64 %p1, %rd4, 0;\nselp.u32 %r3, 1, 0, %p1;\nst.global.u32 [%rd9], %r3;"),
            "mov.u64 %rd1, $str;\ncvta.global.u64 %rd2, %rd1;\n{\n.param .b64 param0;\nst.param.b64 [param0], %rd2;\n\
             .param .b32 retval0;\ncall.uni (retval0), vprintf, (param0);\n}",
            "st.global.u64 [table], %rd1;",
        ] {
            assert_eq!(names(kernel, ""), [""; 0], "{kernel}");
        }
    }

    #[test]
    fn stores_atomics_and_escaping_addresses_are_writes() {
        for kernel in [
            "st.global.u64 [total], %rd1;",
            "ld.global.u64 %rd1, [pointer];\nst.u64 [%rd1], %rd2;",
            "red.global.add.u64 [total], 1;",
            "atom.global.add.u64 %rd1, [total], 1;",
            &format!("{HELD}\nst.u32 [%rd4], %r1;"),
            &format!("L:\nred.add.u32 [%rd6], 1;\n{HELD}\nmov.b64 %rd6, %rd4;\n@%p1 bra L;"),
            &format!("{HELD}\nselp.b64 %rd6, %rd4, %rd7, %p1;\nst.u32 [%rd6], %r1;"),
            &format!("{HELD}\nst.global.u64 [%rd9], %rd4;"),
            &format!("{HELD}\ncp.async.bulk.global.shared::cta.bulk_group [%rd4], [%r7], 16;"),
            &format!("{HELD}\n{{\n.param .b64 param0;\nst.param.b64 [param0], %rd4;\ncall.uni f, (param0);\n}}"),
            &format!("{HELD}\nst.param.b64 [func_retval0], %rd4;"),
        ] {
            assert_eq!(names(kernel, ""), ["total"], "{kernel}");
        }
    }

    #[test]
    fn functions_count_and_other_kernels_do_not() {
        assert_eq!(names("call.uni f, ();", "st.global.u64 [total], %rd1;"), ["total"]);
        assert_eq!(names("call.uni f, ();", "ld.global.u64 %rd1, [total];"), [""; 0]);
    }

    #[test]
    fn every_written_variable_is_listed() {
        let kernel = "st.global.u64 [pointer], %rd1;\nred.global.add.u64 [total], 1;";
        assert_eq!(names(kernel, ""), ["total", "pointer"]);
    }

    #[test]
    fn pointer_to_a_pointer_reaches_both_variables() {
        let kernel = "ld.global.u64 %rd1, [table_of_pointers+8];\nld.u64 %rd2, [%rd1];\nst.u64 [%rd2], %rd3;";
        assert_eq!(names(kernel, ""), ["total", "pointer"]);
    }
}
