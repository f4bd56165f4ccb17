//! Lets each block of an entry do the work of several blocks, in PTX text.
//!
//! PTX text + entry -> PTX text in which the entry has one more parameter, the blocks of the
//! program's grid in x. Its body is a loop: a block does the work of the program's block with its
//! own number, then of the one that is as many further as this launch has blocks, and so on. So one
//! code serves every number of blocks that a block does the work of. No line moves.
//!
//! Entries for which that could be wrong are refused ([`are_blocks_independent`]).

use super::directives::replace_spans;
use super::error::PtxError;
use super::independent_blocks::are_blocks_independent;
use super::module::{Instruction, Module, PtxFunction};
use super::opcode::Mnemonic;

/// The parameter that is added, the last one.
const PARAMETER: &str = ".param .u32 nvtune_blocks";
const PARAMETER_NAME: &str = "nvtune_blocks";

/// Stands before the code of the first block. The registers are what the code reads in place of
/// `%ctaid.x` and `%nctaid.x`, and the real `%nctaid.x`.
const BEGIN: &str = " .reg .b32 %nvtune_block, %nvtune_blocks, %nvtune_step; .reg .pred %nvtune_more; \
                     ld.param.u32 %nvtune_blocks, [nvtune_blocks]; mov.u32 %nvtune_block, %ctaid.x; \
                     mov.u32 %nvtune_step, %nctaid.x; nvtune_begin: ";

/// Stands behind the code. All threads of a block go on to the same one.
const END: &str = " nvtune_next: add.u32 %nvtune_block, %nvtune_block, %nvtune_step; \
                   setp.lt.u32 %nvtune_more, %nvtune_block, %nvtune_blocks; @%nvtune_more bra nvtune_begin; ret; ";

/// Returns the text in which a block of `entry` does the work of several.
///
/// # Errors
/// As [`Module::parse`]; [`PtxError::NoEntry`]; [`PtxError::DependentBlocks`].
pub fn coarsen(text: &str, entry: &str) -> Result<String, PtxError> {
    let module = Module::parse(text)?;
    let function = module.entry(entry).ok_or_else(|| PtxError::NoEntry { name: entry.to_owned() })?;
    // A variable of the parameter's name could not be named any more.
    let mut names = module.variables.iter().map(|variable| &*variable.name);
    if !are_blocks_independent(&module, function) || names.any(|name| name == PARAMETER_NAME) {
        return Err(PtxError::DependentBlocks { name: entry.to_owned() });
    }
    let mut edits = Vec::new();
    if let Some(body) = &function.body {
        let (open, close) = (body.open + 1, function.span.end - 1);
        edits.extend([parameter(function, body.open), (open..open, BEGIN.to_owned()), (close..close, END.to_owned())]);
        for (name, register) in [("%ctaid.x", "%nvtune_block"), ("%nctaid.x", "%nvtune_blocks")] {
            let reads = text[open..close].match_indices(name);
            edits.extend(reads.map(|(at, _)| (open + at..open + at + name.len(), register.to_owned())));
        }
        let is_end = |of: &&Instruction| matches!(of.opcode.mnemonic, Mnemonic::Ret | Mnemonic::Exit);
        let ends = body.instructions().filter(is_end);
        edits.extend(ends.map(|end| {
            let start = end.span.start;
            (start..start + end.opcode.text().len(), "bra nvtune_next".to_owned())
        }));
    }
    Ok(replace_spans(text, edits))
}

/// Where the parameter is added, and as which text.
fn parameter(function: &PtxFunction, open: usize) -> (std::ops::Range<usize>, String) {
    match function.parameters_end {
        Some(end) if function.parameters.is_empty() => (end..end, PARAMETER.to_owned()),
        Some(end) => (end..end, format!(", {PARAMETER}")),
        None => {
            let place = function.directives.first().map_or(open, |directive| directive.span.start);
            (place..place, format!("({PARAMETER}) "))
        }
    }
}
