//! PTX -> a `__device__` variable that a kernel may write.
//!
//! The property: a variable is not reported only if every use of its address, in the kernel and
//! in each function with a body, is followed and is a read. An address that leaves the
//! registers (a call, a return value, a store) counts as written through.

use super::address_flow::{AddressUse, any_use};
use crate::ptx::opcode::Class;
use crate::ptx::{Body, Initial, Module, StateSpace};

/// Functions of the CUDA runtime that only read what their arguments point at.
const READERS: [&str; 2] = ["vprintf", "__assertfail"];

/// Finds the first variable in global memory, in the order of the text, that the kernel
/// `symbol` may write.
pub fn first_written<'a>(module: &'a Module, symbol: &str) -> Option<&'a str> {
    let functions = module.functions.iter().filter(|function| !function.entry);
    let bodies: Vec<&Body> =
        module.entry(symbol).into_iter().chain(functions).filter_map(|function| function.body.as_ref()).collect();
    let globals = module.variables.iter().filter(|variable| variable.space == StateSpace::Global);
    globals.map(|variable| &*variable.name).find(|name| {
        let is_mentioned = |pointer: &str| bodies.iter().any(|body| mentions_variable(body, pointer));
        bodies.iter().any(|body| writes_variable(body, name)) || pointers_to(module, name).any(is_mentioned)
    })
}

/// Lists the variables whose initial value holds the address of `variable`.
fn pointers_to<'a>(module: &'a Module, variable: &'a str) -> impl Iterator<Item = &'a str> {
    let holds =
        move |(_, initial): &(u64, Initial)| matches!(initial, Initial::Address { name, .. } if **name == *variable);
    let variables = module.variables.iter();
    variables.filter(move |other| other.initial.iter().flatten().any(holds)).map(|other| &*other.name)
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

    fn first(kernel: &str, function: &str) -> Option<String> {
        let text = format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n.const .align 4 .b8 table[16];\n\
             .visible .global .align 8 .u64 total;\n.global .align 8 .u64 pointer = generic(total);\n.global .align 1 .b8 $str[4] = {{37, 100, 10}};\n\
             .func f()\n{{\n{function}\nret;\n}}\n\
             .visible .entry other()\n{{\nred.global.add.u64 [total], 1;\nret;\n}}\n\
             .visible .entry k()\n{{\n{kernel}\nret;\n}}\n"
        );
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        first_written(&module, "k").map(str::to_owned)
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
            assert_eq!(first(kernel, ""), None, "{kernel}");
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
            assert_eq!(first(kernel, "").as_deref(), Some("total"), "{kernel}");
        }
    }

    #[test]
    fn functions_count_and_other_kernels_do_not() {
        assert_eq!(first("call.uni f, ();", "st.global.u64 [total], %rd1;").as_deref(), Some("total"));
        assert_eq!(first("call.uni f, ();", "ld.global.u64 %rd1, [total];"), None);
    }
}
