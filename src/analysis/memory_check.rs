//! A launch on its workload -> what its threads surely do that no launch may do: reach beyond
//! their memory, fail, or exchange data in shared memory without a barrier.
//!
//! Invariant: only what is certain is reported (see [`sim::find_violations`] and
//! [`sim::find_shared_race`]).

use super::shared_memory::has_dynamic_shared;
use crate::gpu::WARP;
use crate::launch::{Dim3, Launch};
use crate::ptx::opcode::{Class, Semantics};
use crate::ptx::{ASSERTION, AccessKind, Body, Mnemonic, Module, Operand, StateSpace, Statement};
use crate::sim;
use crate::sim::LaunchViolation;
use crate::space::Overrun;
use crate::workload::{Buffer, Workload, demangled_name};
use std::collections::BTreeSet;

/// PTX instructions of a thread that is watched.
const WATCHED: u64 = 20_000;

/// PTX instructions of the warps of a block that is watched, each counted once for a warp.
const WATCHED_OF_BLOCK: u64 = 20_000;

/// Explains why a launch of the kernel fails: an assertion that expects another block, an access
/// beyond shared memory, which a GPU may not detect, or a race of warps.
pub fn explain_refusal(
    symbol: &str,
    launch: &Launch,
    (module, workload): (&Module, &Workload),
    says_how_much: bool,
) -> Option<String> {
    match stray_of_block(module, symbol, launch, workload, says_how_much) {
        Some(LaunchViolation::Failure) => Some("threads of such a block end in an assertion or a trap".to_owned()),
        Some(LaunchViolation::Shared { has }) => {
            Some(format!("threads of such a block reach beyond the {has} bytes of shared memory that it has"))
        }
        Some(LaunchViolation::Buffer { .. }) | None => {
            let raced = shared_race(symbol, launch, (module, workload), says_how_much)?;
            Some(format!("warps of such a block race on {raced}: put a barrier between them"))
        }
    }
}

/// Returns what warps of a block exchange in shared memory without a barrier, so that results depend
/// on which comes first.
pub fn shared_race(
    symbol: &str,
    launch: &Launch,
    (module, workload): (&Module, &Workload),
    says_how_much: bool,
) -> Option<String> {
    let body = module.entry(symbol)?.body.as_ref()?;
    if launch.block_threads() <= WARP
        || !has_known_shared(module, body, says_how_much)
        || has_unwatched_effects(module, symbol)
    {
        return None;
    }
    let block = middle_block(launch);
    let variable = sim::find_shared_race(module, symbol, launch, workload, block, WATCHED_OF_BLOCK).ok()??;
    let name = demangled_name(&variable);
    let name = name.rsplit("::").next().filter(|name| !name.is_empty());
    Some(name.map_or_else(|| "shared memory".to_owned(), |name| format!("`{name}` in shared memory")))
}

/// Tells whether a kernel does what the search for races does not see: it may order its warps by
/// other means than barriers of the whole block (fences, barriers as objects, accesses that are not
/// weak, locks), or write shared memory by instructions that the interpreter does not run.
fn has_unwatched_effects(module: &Module, symbol: &str) -> bool {
    module.instructions_of(symbol).any(|instruction| {
        let opcode = &instruction.opcode;
        let is_lock = || opcode.modifiers().any(|modifier| matches!(modifier, "cas" | "exch"));
        matches!(opcode.class(), Class::Fence | Class::AsyncBarrier | Class::AsyncCopy | Class::Grid)
            || matches!(opcode.mnemonic, Mnemonic::BarrierCluster | Mnemonic::Stmatrix | Mnemonic::WmmaStore)
            || opcode.class() == Class::Atomic && is_lock()
            || opcode.semantics().is_some_and(|semantics| semantics != Semantics::Weak)
    })
}

/// What threads of a launch surely do that no launch may do, whatever the workload's buffers
/// are: reach beyond the shared memory of their block, or fail; as far as those at its corners
/// tell. Shared memory is not looked at where the comment does not say how much a launch gives
/// (`says_how_much`), and the kernel uses that.
fn stray_of_block(
    module: &Module,
    symbol: &str,
    launch: &Launch,
    workload: &Workload,
    says_how_much: bool,
) -> Option<LaunchViolation> {
    let body = module.entry(symbol)?.body.as_ref()?;
    let is_known = has_known_shared(module, body, says_how_much);
    if !is_known && !may_fail(module) {
        return None;
    }
    let block = middle_block(launch);
    let places: Vec<_> = corner_threads(launch.block).into_iter().map(|thread| (block, thread)).collect();
    let violations = sim::find_violations(module, symbol, launch, workload, &places, WATCHED).ok()?;
    violations.into_iter().find(|violation| match violation {
        LaunchViolation::Failure => true,
        LaunchViolation::Shared { .. } => is_known,
        LaunchViolation::Buffer { .. } => false,
    })
}

/// Returns a block with work before and behind it.
fn middle_block(launch: &Launch) -> Dim3 {
    launch.grid.map(|extent| extent / 2)
}

/// Tells whether a kernel uses shared memory of which it is known how much a launch has.
fn has_known_shared(module: &Module, body: &Body, says_how_much: bool) -> bool {
    has_shared(module) && (says_how_much || !has_dynamic_shared(module, body))
}

/// Whether code of the module may end a launch as a failure.
fn may_fail(module: &Module) -> bool {
    let bodies = module.functions.iter().filter_map(|function| function.body.as_ref());
    bodies.flat_map(Body::instructions).any(|instruction| {
        let names_it = |operand: &Operand| matches!(operand, Operand::Name(name) if &**name == ASSERTION);
        instruction.opcode.mnemonic == Mnemonic::Trap
            || instruction.is_call() && instruction.operands.iter().any(names_it)
    })
}

/// The buffers beyond which threads of a launch surely reach, with the first byte so found of
/// each and whether it is written; as far as those in the corners of its first and last blocks,
/// and of one between, tell.
pub fn beyond_buffers(module: &Module, symbol: &str, (launch, workload): (&Launch, &Workload)) -> Vec<Overrun> {
    let mut blocks = vec![[0; 3], launch.grid.map(|extent| extent / 2), last_block(launch)];
    blocks.dedup();
    find_overruns(module, symbol, (launch, workload), &blocks)
}

/// The same as far as the last block tells, which reaches beyond first where a launch has more
/// threads than its buffers have room for.
pub fn last_beyond_buffers(module: &Module, symbol: &str, run: (&Launch, &Workload)) -> Vec<Overrun> {
    find_overruns(module, symbol, run, &[last_block(run.0)])
}

fn last_block(launch: &Launch) -> Dim3 {
    launch.grid.map(|extent| extent.saturating_sub(1))
}

fn find_overruns(
    module: &Module,
    symbol: &str,
    (launch, workload): (&Launch, &Workload),
    blocks: &[Dim3],
) -> Vec<Overrun> {
    let places =
        blocks.iter().flat_map(|&block| corner_threads(launch.block).into_iter().map(move |thread| (block, thread)));
    let places: Vec<_> = places.collect();
    let violations = sim::find_violations(module, symbol, launch, workload, &places, WATCHED).unwrap_or_default();
    let mut found: Vec<Overrun> = Vec::new();
    for violation in violations {
        if let LaunchViolation::Buffer { index, byte, kind } = violation
            && let Some(Buffer { name, element, count, .. }) = workload.buffers.get(index)
            && !found.iter().any(|known| known.buffer == *name)
        {
            let element = byte.div_euclid((element.size() as i64).max(1));
            found.push(Overrun { buffer: name.clone(), element, has: *count, is_read: kind == AccessKind::Load });
        }
    }
    found
}

/// The first and last threads of a block in each dimension.
fn corner_threads(block: Dim3) -> BTreeSet<Dim3> {
    let end = |corner: usize, at: usize| if corner >> at & 1 == 0 { 0 } else { block[at].saturating_sub(1) };
    (0..8).map(|corner| [0, 1, 2].map(|at| end(corner, at))).collect()
}

/// Whether anything of the module lies in shared memory.
fn has_shared(module: &Module) -> bool {
    let statements =
        module.functions.iter().filter_map(|function| function.body.as_ref()).flat_map(|body| &body.statements);
    let within = statements.filter_map(|statement| match statement {
        Statement::Variable(variable) => Some(variable),
        _ => None,
    });
    module.variables.iter().chain(within).any(|variable| variable.space == StateSpace::Shared)
}
