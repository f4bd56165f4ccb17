//! PTX, workload and command line -> what advice on a tuning comment depends on.

use super::memory_check;
use super::shape_invariance;
use crate::analysis::shared_memory::has_dynamic_shared;
use crate::gpu::{MAX_REGISTERS, REGISTERS};
use crate::launch::Launch;
use crate::ptx::Opcode;
use crate::ptx::opcode::{Class, Effect, Mnemonic};
use crate::ptx::{Body, Instruction, Module, Operand, PtxFunction, StateSpace, Statement};
use crate::sim;
use crate::space::{Facts, LaunchBounds};
use crate::workload::{Fill, Workload};
use std::collections::HashMap;

/// Registers of a thread come in units of this many.
const THREAD_UNIT: u32 = 8;

/// PTX instructions at most of a thread that finds out where it is, and that it has nothing to
/// do.
const AT_ONCE: f64 = 64.0;

/// PTX instructions that are run to see whether anybody does anything.
const LOOKED_AT: u64 = 100_000;

/// Tells whether the kernel `symbol` reads textures, or reads or writes surfaces.
pub fn accesses_textures(module: &Module, symbol: &str) -> bool {
    let body = module.entry(symbol).and_then(|entry| entry.body.as_ref());
    let is_access = |instruction: &Instruction| matches!(instruction.opcode.class(), Class::Texture | Class::Surface);
    body.is_some_and(|body| body.instructions().any(is_access))
}

/// Collects the facts about the kernel `symbol` of a module. Launch and workload are the
/// baseline's.
pub fn collect_facts(
    module: &Module,
    symbol: &str,
    register_cap: Option<u32>,
    run: Option<(&Launch, &Workload)>,
) -> Facts {
    let outputs = run.iter().flat_map(|(_, workload)| &workload.buffers).filter(|buffer| buffer.fill == Fill::Poison);
    let outputs = outputs.map(|buffer| (buffer.name.clone(), buffer.bytes())).collect();
    let buffers = run.iter().flat_map(|(_, workload)| &workload.buffers);
    let buffers = buffers.map(|buffer| (buffer.name.clone(), buffer.bytes())).collect();
    let mut facts = Facts { register_cap, outputs, buffers, ..Facts::default() };
    if let Some((entry, body)) = module.entry(symbol).and_then(|entry| Some((entry, entry.body.as_ref()?))) {
        facts.has_launch_bounds = has_launch_bounds(module, symbol);
        facts.bounds = launch_bounds(entry);
        (facts.fixed, facts.unread) = fixed_dimensions(module, entry, body);
        facts.dynamic_shared = has_dynamic_shared(module, body);
        facts.stored = bytes_stored(body);
        facts.accessed = bytes_moved(body, |effect| effect != Effect::None);
        facts.ignores_grid = ignores_grid(module, body);
        facts.idle = run.is_some_and(|run| is_idle(module, symbol, body, run));
        facts.overruns = run.map(|run| memory_check::beyond_buffers(module, symbol, run)).unwrap_or_default();
    }
    facts
}

fn directive_values<'a>(entry: &'a PtxFunction, name: &str) -> Option<&'a [u64]> {
    entry.directives.iter().find(|directive| &*directive.name == name).map(|directive| directive.values.as_slice())
}

/// `__launch_bounds__(threads, blocks)`, where both are there and can be had together.
fn launch_bounds(entry: &PtxFunction) -> Option<LaunchBounds> {
    let threads =
        u32::try_from(directive_values(entry, ".maxntid")?.iter().product::<u64>()).ok().filter(|&n| n > 0)?;
    let blocks = directive_values(entry, ".minnctapersm")?.first().and_then(|&blocks| u32::try_from(blocks).ok())?;
    let registers = REGISTERS / threads.checked_mul(blocks).filter(|&resident| resident > 0)?;
    let registers = (registers / THREAD_UNIT * THREAD_UNIT).min(MAX_REGISTERS);
    Some(LaunchBounds { threads, blocks, registers })
}

/// Whether the kernel is compiled with launch bounds or a number of registers of its own
/// (`__launch_bounds__`, `__maxnreg__`), wherever the source has them from.
pub fn has_launch_bounds(module: &Module, symbol: &str) -> bool {
    let bounds = [".maxntid", ".reqntid", ".minnctapersm", ".maxnreg"];
    module.entry(symbol).is_some_and(|entry| bounds.iter().any(|name| directive_values(entry, name).is_some()))
}

/// Threads of a block that launch bounds allow.
pub fn most_threads(module: &Module, symbol: &str) -> Option<u32> {
    let entry = module.entry(symbol)?;
    let bound = [".maxntid", ".reqntid"].iter().find_map(|name| directive_values(entry, name))?;
    u32::try_from(bound.iter().product::<u64>()).ok()
}

/// Why the kernel can be launched in blocks of one shape only.
pub fn fixed_block(module: &Module, symbol: &str) -> Option<&'static str> {
    let entry = module.entry(symbol)?;
    let has = |name: &str| entry.directives.iter().any(|directive| directive.name.contains(name));
    if has("cluster") {
        return Some("it is launched in clusters, which its grid must fit");
    }
    has(".reqntid").then_some("it is compiled for blocks of one shape (__block_size__)")
}

/// Returns why the block and the register cap must stay the baseline's: `setmaxnreg` moves
/// registers between the warps of a block, and waits for ever if the block has too few.
pub fn fixed_registers(module: &Module, symbol: &str) -> Option<&'static str> {
    let is_pool = |instruction: &Instruction| instruction.opcode.mnemonic == Mnemonic::Setmaxnreg;
    reached_bodies(module, symbol)
        .any(|body| body.instructions().any(is_pool))
        .then_some("its warps exchange registers (setmaxnreg), whose number its block and launch bounds fix")
}

/// Returns why equal results do not prove that other blocks work: the kernel orders memory
/// accesses within a block only.
pub fn block_scope(module: &Module, symbol: &str) -> Option<&'static str> {
    let is_scoped = |instruction: &Instruction| shape_invariance::has_block_scope(&instruction.opcode);
    reached_bodies(module, symbol).any(|body| body.instructions().any(is_scoped)).then_some(
        "it orders memory within a block only (.cta or .cluster scope): write launch(remap) if other blocks work",
    )
}

/// Returns the code of a kernel and of every function that it may call.
fn reached_bodies<'a>(module: &'a Module, symbol: &str) -> impl Iterator<Item = &'a Body> {
    let functions = module.functions.iter().filter(|function| !function.entry);
    module.entry(symbol).into_iter().chain(functions).filter_map(|function| function.body.as_ref())
}

/// The dimensions in which the kernel tells threads apart without asking how many there are,
/// and those in which it does neither. Unknown if the kernel hands out
/// its work by atomics or calls functions.
fn fixed_dimensions(module: &Module, entry: &PtxFunction, body: &Body) -> ([bool; 3], [bool; 3]) {
    let is_uncertain = |instruction: &Instruction| {
        instruction.is_call() || matches!(instruction.opcode.class(), Class::Atomic | Class::Reduction)
    };
    if body.instructions().any(is_uncertain) || directive_values(entry, ".reqntid").is_some() {
        return ([false; 3], [false; 3]);
    }
    let functions =
        module.functions.iter().filter(|function| !function.entry).filter_map(|function| function.body.as_ref());
    let all = || functions.clone().chain([body]);
    let is_told = [".x", ".y", ".z"].map(|dimension| {
        let reads = |body: &Body, register: &str| reads_register(body, register, dimension);
        (reads(body, "%tid"), all().any(|body| reads(body, "%ntid")))
    });
    (is_told.map(|is_told| is_told == (true, false)), is_told.map(|is_told| is_told == (false, false)))
}

/// Whether no thread asks how many blocks there are. Not known where work is handed out by
/// atomics, or functions are called.
fn ignores_grid(module: &Module, body: &Body) -> bool {
    let is_uncertain = |instruction: &Instruction| {
        instruction.is_call() || matches!(instruction.opcode.class(), Class::Atomic | Class::Reduction)
    };
    let functions =
        module.functions.iter().filter(|function| !function.entry).filter_map(|function| function.body.as_ref());
    let asks = |body: &Body| [".x", ".y", ".z"].iter().any(|dimension| reads_register(body, "%nctaid", dimension));
    !body.instructions().any(is_uncertain) && !functions.chain([body]).any(asks)
}

/// Returns whether a special register is read in this dimension.
pub fn reads_register(body: &Body, register: &str, dimension: &str) -> bool {
    body.instructions().flat_map(|instruction| &instruction.operands).any(|operand| match operand {
        // Without a dimension: all of them, as a vector.
        Operand::Name(name) => name.strip_prefix(register).is_some_and(|rest| rest == dimension || rest.is_empty()),
        _ => false,
    })
}

/// The most bytes that a thread of the kernel `symbol` stores to global memory; `None` where
/// that is open.
pub fn stored_by(module: &Module, symbol: &str) -> Option<u64> {
    bytes_stored(module.entry(symbol)?.body.as_ref()?)
}

/// The most bytes that a thread stores to global memory, where no call or atomic operation
/// leaves that open, nor a loop around a store.
fn bytes_stored(body: &Body) -> Option<u64> {
    bytes_moved(body, |effect| effect == Effect::Write)
}

/// The same for the bytes that accesses of some effects move.
fn bytes_moved(body: &Body, counts: impl Fn(Effect) -> bool) -> Option<u64> {
    let (mut labels, mut loops, mut accesses) = (HashMap::new(), Vec::new(), Vec::new());
    for (at, statement) in body.statements.iter().enumerate() {
        match statement {
            Statement::Label(label) => {
                labels.insert(&*label.name, at);
            }
            Statement::Instruction(instruction) => match (instruction.opcode.effect(), instruction.opcode.mnemonic) {
                (Effect::Unbounded, _) => return None,
                (effect @ (Effect::Read | Effect::Write), _) if counts(effect) => {
                    accesses.push((at, access_width(&instruction.opcode)?));
                }
                (_, Mnemonic::Bra) => {
                    // Whatever is run again lies between a label and a branch back to it.
                    let back = instruction.operands.iter().find_map(|operand| match operand {
                        Operand::Name(name) => labels.get(&**name).copied(),
                        _ => None,
                    });
                    loops.extend(back.map(|label| label..at));
                }
                _ => {}
            },
            _ => {}
        }
    }
    let is_run_again = |at: &usize| loops.iter().any(|range| range.contains(at));
    let mut accesses = accesses.iter().filter(|(_, bytes)| *bytes > 0);
    accesses.try_fold(0u64, |bytes, (at, width)| (!is_run_again(at)).then(|| bytes.saturating_add(*width)))
}

/// Whether the threads that are run all leave at once, before they touch the memory of the GPU,
/// of a kernel that can. One that searches may work for long and find nothing. Not known where
/// what they did is an estimate.
fn is_idle(module: &Module, symbol: &str, body: &Body, (launch, workload): (&Launch, &Workload)) -> bool {
    let mut reaching = reaching_instructions(body).peekable();
    if reaching.peek().is_none() {
        return false;
    }
    let limits = sim::Limits { instructions: LOOKED_AT, ..sim::Limits::default() };
    let Ok(profile) = sim::profile_entry(module, symbol, launch, workload, &limits) else { return false };
    let is_run = |line: u32| profile.counts.get(&line).is_some_and(|&count| count > 0.0);
    let is_short = profile.counts.values().sum::<f64>() <= AT_ONCE;
    profile.exact && !profile.counts.is_empty() && is_short && !reaching.any(|instruction| is_run(instruction.line))
}

/// The instructions that may read or write the memory of the GPU.
fn reaching_instructions(body: &Body) -> impl Iterator<Item = &Instruction> {
    body.instructions().filter(|Instruction { opcode, .. }| match opcode.effect() {
        Effect::None => false,
        Effect::Read | Effect::Write => opcode.spaces().all(|space| space == StateSpace::Global),
        Effect::Unbounded => true,
    })
}

/// Returns the bytes that a load or store (`st.global.v4.f32`) moves; 0 if it cannot reach a
/// buffer.
pub(super) fn access_width(opcode: &Opcode) -> Option<u64> {
    let is_other =
        |space| matches!(space, StateSpace::Local | StateSpace::Param | StateSpace::Shared | StateSpace::Const);
    if opcode.spaces().any(is_other) {
        return Some(0);
    }
    let lanes = opcode.modifiers().find_map(|part| part.strip_prefix('v')?.parse::<u64>().ok()).unwrap_or(1);
    Some(u64::from(opcode.types().next_back()?.size()).saturating_mul(lanes))
}

#[cfg(test)]
mod tests {
    use super::collect_facts;
    use crate::ptx::Module;
    use crate::space::{Facts, LaunchBounds};

    /// The facts of a kernel with these directives and this body, after a device function with
    /// that one.
    fn of(directives: &str, body: &str, function: &str) -> Facts {
        let text = format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n.func f()\n{{\n{function}\nret;\n}}\n\
             .visible .entry k()\n{directives}\n{{\n{body}\nret;\n}}\n"
        );
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        collect_facts(&module, "k", None, None)
    }

    #[test]
    fn stores_are_counted_where_nothing_leaves_them_open() {
        for (body, stored) in [
            ("", Some(0)),
            ("st.global.f32 [%rd1], %f1;", Some(4)),
            ("st.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};\nst.u8 [%rd1+16], %r1;", Some(17)),
            ("st.shared.f32 [%rd1], %f1;\nst.local.u64 [%rd1], %rd2;", Some(0)),
            ("bra.uni L;\nst.global.f64 [%rd1], %fd1;\nL:", Some(8)),
            ("L:\nst.global.f32 [%rd1], %f1;\n@%p1 bra L;", None),
            ("L:\nbra M;\nN:\nst.global.f32 [%rd1], %f1;\nret;\nM:\n@%p1 bra N;\nbra L;", None),
            ("L:\nst.shared.f32 [%rd1], %f1;\n@%p1 bra L;\nst.global.f32 [%rd1], %f1;", Some(4)),
            ("atom.global.add.u32 %r1, [%rd1], 1;", None),
            ("red.global.add.u32 [%rd1], 1;", None),
            ("call f, ();", None),
            ("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2;", None),
        ] {
            assert_eq!(of("", body, "").stored, stored, "{body}");
        }
    }

    #[test]
    fn accesses_are_counted_where_nothing_leaves_them_open() {
        for (body, accessed) in [
            ("ld.param.u64 %rd1, [p];\nld.const.f32 %f2, [c];", Some(0)),
            ("ld.global.v2.f32 {%f1, %f2}, [%rd1];\nst.global.f32 [%rd1], %f1;", Some(12)),
            ("L:\nld.global.f32 %f1, [%rd1];\n@%p1 bra L;", None),
            ("atom.global.add.u32 %r1, [%rd1], 1;", None),
        ] {
            assert_eq!(of("", body, "").accessed, accessed, "{body}");
        }
    }

    #[test]
    fn kernel_that_reads_the_grid_does_not_ignore_it() {
        for (body, function, ignores) in [
            ("mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;", "", true),
            ("mov.u32 %r1, %nctaid.x;", "", false),
            ("", "mov.u32 %r1, %nctaid.y;", false),
            ("atom.global.add.u32 %r1, [%rd1], 1;", "", false),
            ("call f, ();", "", false),
        ] {
            assert_eq!(of("", body, function).ignores_grid, ignores, "{body} {function}");
        }
    }

    #[test]
    fn shared_memory_of_the_launchs_size_is_seen() {
        let text = ".version 9.0\n.target sm_90\n.address_size 64\n.extern .shared .align 16 .b8 s[];\n.shared .align 4 .b8 t[64];\n\
                    .entry a() { mov.u32 %r1, s; ret; }\n.entry b() { ld.shared.u32 %r1, [s+4]; ret; }\n\
                    .entry c() { ld.shared.u32 %r1, [t]; ret; }\n";
        let module = Module::parse(text).expect("it is PTX");
        let found = ["a", "b", "c"].map(|symbol| collect_facts(&module, symbol, None, None).dynamic_shared);
        assert_eq!(found, [true, true, false]);
    }

    #[test]
    fn a_block_is_fixed_where_nothing_asks_for_it() {
        let tid = "mov.u32 %r1, %tid.x;";
        let expected_facts =
            |text: &str| text.split(' ').map(|of| ["x", "y", "z"].map(|name| of.contains(name))).collect::<Vec<_>>();
        for (directives, body, function, fixed) in [
            ("", "", "", "- xyz"),
            ("", tid, "", "x yz"),
            ("", "mov.u32 %r1, %tid.y;\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, %ntid.x;", "", "y z"),
            ("", tid, "mov.u32 %r1, %ntid.x;", "- yz"),
            (".reqntid 128, 1, 1", tid, "", "- -"),
            ("", &format!("{tid}\natom.global.add.u32 %r2, [%rd1], 1;"), "", "- -"),
            ("", &format!("{tid}\ncall f, ();"), "", "- -"),
        ] {
            let found = of(directives, body, function);
            assert_eq!(vec![found.fixed, found.unread], expected_facts(fixed), "{directives} {body} {function}");
        }
    }

    #[test]
    fn launch_bounds_are_both_or_none() {
        let bounds = |threads, blocks, registers| Some(LaunchBounds { threads, blocks, registers });
        for (directives, expected) in [
            ("", None),
            (".maxntid 256, 1, 1", None),
            (".minnctapersm 2", None),
            (".maxntid 256, 1, 1\n.minnctapersm 8", bounds(256, 8, 32)),
            (".maxntid 192, 1, 1\n.minnctapersm 3", bounds(192, 3, 112)),
            (".maxntid 32, 1, 1\n.minnctapersm 1", bounds(32, 1, 255)),
            (".maxntid 0\n.minnctapersm 0", None),
        ] {
            assert_eq!(of(directives, "", "").bounds, expected, "{directives}");
        }
    }
}
