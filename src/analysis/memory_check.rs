//! A launch on its workload -> what its threads surely do that no launch may do: reach beyond
//! their memory, or fail.
//!
//! Invariant: only what is certain is reported (see [`sim::find_violations`]).

use super::shared_memory::has_dynamic_shared;
use crate::launch::{Dim3, Launch};
use crate::ptx::{ASSERTION, AccessKind, Body, Mnemonic, Module, Operand, StateSpace, Statement};
use crate::sim;
use crate::sim::LaunchViolation;
use crate::space::Overrun;
use crate::workload::{Buffer, Workload};
use std::collections::BTreeSet;

/// PTX instructions of a thread that is watched.
const WATCHED: u64 = 20_000;

/// Explains why a launch of the kernel fails: an assertion that expects another block, or
/// an access beyond shared memory, which a GPU may not detect.
pub fn explain_refusal(
    symbol: &str,
    launch: &Launch,
    (module, workload): (&Module, &Workload),
    says_how_much: bool,
) -> Option<String> {
    match stray_of_block(module, symbol, launch, workload, says_how_much)? {
        LaunchViolation::Failure => Some("threads of such a block end in an assertion or a trap".to_owned()),
        LaunchViolation::Shared { has } => {
            Some(format!("threads of such a block reach beyond the {has} bytes of shared memory that it has"))
        }
        LaunchViolation::Buffer { .. } => None,
    }
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
    let tells_shared = has_shared(module) && (says_how_much || !has_dynamic_shared(module, body));
    if !tells_shared && !may_fail(module) {
        return None;
    }
    // One with work before and behind it.
    let block = launch.grid.map(|extent| extent / 2);
    let places: Vec<_> = corner_threads(launch.block).into_iter().map(|thread| (block, thread)).collect();
    let violations = sim::find_violations(module, symbol, launch, workload, &places, WATCHED).ok()?;
    violations.into_iter().find(|violation| match violation {
        LaunchViolation::Failure => true,
        LaunchViolation::Shared { .. } => tells_shared,
        LaunchViolation::Buffer { .. } => false,
    })
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
