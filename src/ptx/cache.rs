//! Writes a cache operator into the global loads of an entry, in PTX text.
//!
//! PTX text + entry + operator -> the same text in which each weak load of that entry from
//! global or generic memory that says nothing of caches itself has the operator. All other
//! bytes stay as they are, and no line moves.
//!
//! What ptxas 13.0.88 does, measured on sm_75, sm_80, sm_90 and sm_100: an entry edited so has
//! the machine code that `-dlcm=OPERATOR` gives it. That option, too, leaves alone what is
//! volatile, relaxed or acquire, what has an operator or an eviction priority
//! (`.L1::evict_last`), and loads through the read-only path (`.nc`) but for `cs`. An explicit
//! `.ca` differs from no operator: it makes `LDG.E.STRONG.SM` of `LDG.E`. Two things differ: the
//! option also reaches functions that the entry calls (a directive of one entry must not), and
//! `ldu`, which takes no operator.

use super::directives::replace_spans;
use super::error::PtxError;
use super::module::Module;
use super::opcode::{Mnemonic, Opcode, Semantics};
use super::types::StateSpace;
use crate::launch::LoadCacheOperator;
use std::ops::Range;

/// The text in which the loads of these entries have these operators. Of an entry that is named
/// twice the last one counts.
///
/// # Errors
/// As [`Module::parse`]; [`PtxError::NoEntry`].
pub fn set_cache_operators(text: &str, operators: &[(&str, LoadCacheOperator)]) -> Result<String, PtxError> {
    let module = Module::parse(text)?;
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for (index, &(name, operator)) in operators.iter().enumerate() {
        let entry = module.entry(name).ok_or_else(|| PtxError::NoEntry { name: name.to_owned() })?;
        if operators[index + 1..].iter().any(|&(later, _)| later == name) {
            continue;
        }
        for instruction in entry.body.iter().flat_map(|body| body.instructions()) {
            if let Some(offset) = operator_offset(&instruction.opcode, operator) {
                let at = instruction.span.start + offset;
                edits.push((at..at, format!(".{operator}")));
            }
        }
    }
    Ok(replace_spans(text, edits))
}

/// Returns the byte of a load's opcode before which the operator is written, if it takes one.
fn operator_offset(opcode: &Opcode, operator: LoadCacheOperator) -> Option<usize> {
    let is_weak = opcode.semantics().is_none_or(|semantics| semantics == Semantics::Weak);
    if opcode.mnemonic != Mnemonic::Ld || !is_weak || opcode.spaces().any(|space| space != StateSpace::Global) {
        return None;
    }
    let mut end = "ld".len();
    let mut offset = end;
    for part in opcode.modifiers() {
        end += 1 + part.len();
        let has_operator = part.parse::<LoadCacheOperator>().is_ok();
        let evicts = part.starts_with("L1::") || part.starts_with("L2::evict");
        if has_operator || evicts || (part == "nc" && operator != LoadCacheOperator::Cs) {
            return None;
        }
        if matches!(part, "weak" | "global") {
            offset = end;
        }
    }
    Some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_is_written_where_none_stands() {
        for (opcode, cg, cs) in [
            ("ld.global.f32", "ld.global.cg.f32", "ld.global.cs.f32"),
            ("ld.global.v4.f32", "ld.global.cg.v4.f32", "ld.global.cs.v4.f32"),
            ("ld.weak.global.u8", "ld.weak.global.cg.u8", "ld.weak.global.cs.u8"),
            ("ld.f32", "ld.cg.f32", "ld.cs.f32"),
            ("ld.weak.b64", "ld.weak.cg.b64", "ld.weak.cs.b64"),
            ("ld.global.L2::128B.f32", "ld.global.cg.L2::128B.f32", "ld.global.cs.L2::128B.f32"),
            ("ld.global.nc.f32", "", "ld.global.cs.nc.f32"),
            ("ld.global.nc.L1::no_allocate.f32", "", ""),
            ("ld.global.L1::evict_last.f32", "", ""),
            ("ld.global.L2::evict_first.v4.b64", "", ""),
            ("ld.global.ca.f32", "", ""),
            ("ld.volatile.global.f32", "", ""),
            ("ld.relaxed.gpu.global.f32", "", ""),
            ("ld.acquire.sys.global.u32", "", ""),
            ("ld.mmio.relaxed.sys.global.u32", "", ""),
            ("ld.shared.f32", "", ""),
            ("ld.shared::cluster.f32", "", ""),
            ("ld.param.u64", "", ""),
            ("ld.const.f32", "", ""),
            ("ld.local.f32", "", ""),
            ("ldu.global.f32", "", ""),
            ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "", ""),
            ("st.global.f32", "", ""),
        ] {
            for (operator, expected) in [(LoadCacheOperator::Cg, cg), (LoadCacheOperator::Cs, cs)] {
                let written = operator_offset(&Opcode::parse(opcode), operator)
                    .map(|at| format!("{}.{operator}{}", &opcode[..at], &opcode[at..]));
                assert_eq!(written.unwrap_or_default(), expected, "{opcode}");
            }
        }
    }
}
