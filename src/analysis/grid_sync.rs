//! PTX -> whether a kernel's blocks wait for each other
//! (`cooperative_groups::this_grid().sync()`), so that all of them must be resident at once.
//!
//! The driver gives the address of a cooperative launch's barrier in two registers. A kernel
//! waits if it, or what it calls, does more with that address than ask whether there is one
//! (`is_valid()`).

use super::address_flow::any_use;
use crate::ptx::{Body, Instruction, Module, PtxFunction};
use std::collections::HashSet;

/// The halves of the barrier's address.
const BARRIER: [&str; 2] = ["%envreg1", "%envreg2"];

/// Whether the kernel of this symbol waits for its whole grid.
pub fn waits_for_grid(module: &Module, symbol: &str) -> bool {
    // Each function that is called, once; a file may have other kernels that wait.
    let (mut pending, mut seen): (Vec<&PtxFunction>, HashSet<&str>) =
        (module.entry(symbol).into_iter().collect(), HashSet::new());
    while let Some(function) = pending.pop() {
        if uses_barrier(function) {
            return true;
        }
        for name in
            instructions_of(function).filter(|instruction| instruction.is_call()).filter_map(Instruction::callee)
        {
            match module.function(name) {
                Some(called) if seen.insert(name) => pending.push(called),
                Some(_) => {}
                // An address, which may be that of any of them.
                None => return module.functions.iter().filter(|function| !function.entry).any(uses_barrier),
            }
        }
    }
    false
}

fn instructions_of(function: &PtxFunction) -> impl Iterator<Item = &Instruction> {
    function.body.iter().flat_map(Body::instructions)
}

/// Whether memory is reached by the barrier's address, or it goes where it is not followed.
fn uses_barrier(function: &PtxFunction) -> bool {
    function.body.as_ref().is_some_and(|body| any_use(body, &BARRIER, |_| true))
}

#[cfg(test)]
mod tests {
    use super::waits_for_grid;
    use crate::ptx::Module;

    /// The address of the barrier, as cooperative groups put it together.
    const ADDRESS: &str = "mov.u32 %r1, %envreg2;\ncvt.u64.u32 %rd3, %r1;\nmov.u32 %r2, %envreg1;\ncvt.u64.u32 %rd4, %r2;\nbfi.b64 %rd5, %rd4, %rd3, 32, 32;";

    #[test]
    fn a_kernel_waits_for_its_grid_by_itself_or_by_what_it_calls() {
        let waits = &format!("{ADDRESS}\natom.add.release.gpu.u32 %r9, [%rd5+4], %r10;");
        let asks =
            &format!("{ADDRESS}\nsetp.ne.s64 %p1, %rd5, 0;\nselp.u32 %r3, 1, 0, %p1;\nst.global.u32 [%rd7], %r3;");
        let more = |line: &str| format!("{ADDRESS}\n{line}");
        for (body, first, second, expected) in [
            (waits.as_str(), "", "", true),
            ("call.uni g, ();", "", waits, true),
            ("call.uni g, ();", waits, "call.uni f, ();", true),
            ("call.uni g, ();", waits, "call.uni g, ();", false),
            ("mov.u32 %r1, %envreg3;\nld.u32 %r2, [%r1];", waits, waits, false),
            (asks, "", "", false),
            ("call.uni g, ();", waits, asks, false),
            (&more("add.s64 %rd6, %rd5, 4;\nld.acquire.gpu.u32 %r4, [%rd6];"), "", "", true),
            (&more("selp.b64 %rd6, %rd5, %rd7, %p1;\natom.add.u32 %r4, [%rd6], 1;"), "", "", true),
            (&more("prefetch.global.L2 [%rd5];"), "", "", true),
            // Where it comes from stands behind where it is used.
            (&format!("L:\nred.add.u32 [%rd6], 1;\n{}\n@%p1 bra L;", more("mov.b64 %rd6, %rd5;")), "", "", true),
            // Not followed further.
            (&more("st.local.u64 [%rd9], %rd5;"), "", "", true),
            (&more("st.param.b64 [param0], %rd5;"), "", "", true),
            (&more("call.uni g, (%rd5);"), "", "", true),
        ] {
            let text = format!(
                ".version 9.0\n.target sm_90\n.address_size 64\n.func f()\n{{\n{first}\nret;\n}}\n\
                 .func g()\n{{\n{second}\nret;\n}}\n.visible .entry other()\n{{\n{waits}\nret;\n}}\n\
                 .visible .entry k()\n{{\n{body}\nret;\n}}\n"
            );
            let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(waits_for_grid(&module, "k"), expected, "{text}");
        }
    }
}
