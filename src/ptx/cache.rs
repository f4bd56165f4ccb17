//! Writes a cache operator into the global loads of an entry, in PTX text.
//!
//! PTX text + entry + operator -> the same text in which each weak load of that entry from global or generic memory that says
//! nothing of caches itself has the operator. All other bytes stay as they are, and no line moves.
//!
//! What ptxas 13.0.88 does, measured on sm_75, sm_80, sm_90 and sm_100: an entry edited so has the machine code that
//! `-dlcm=OPERATOR` gives it. That option, too, leaves alone what is volatile, relaxed or acquire, what has an operator or an
//! eviction priority (`.L1::evict_last`), and loads through the read-only path (`.nc`) but for `cs`. An explicit `.ca` is not the
//! same as none: it makes `LDG.E.STRONG.SM` of `LDG.E`. Two things differ: the option also reaches functions that the entry
//! calls (a directive of one entry must not), and `ldu`, which takes no operator.

use super::directives::replaced;
use super::error::Error;
use super::module::Module;
use crate::launch::CacheOperator;
use std::ops::Range;

/// The text in which the loads of these entries have these operators. Of an entry that is named twice the last one counts.
///
/// # Errors
/// As [`Module::parse`]; [`Error::NoEntry`].
pub fn set_cache_operators(text: &str, operators: &[(&str, CacheOperator)]) -> Result<String, Error> {
    let module = Module::parse(text)?;
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for (index, &(name, operator)) in operators.iter().enumerate() {
        let entry = module.entry(name).ok_or_else(|| Error::NoEntry { name: name.to_owned() })?;
        if operators[index + 1..].iter().any(|&(later, _)| later == name) {
            continue;
        }
        for instruction in entry.body.iter().flat_map(|body| body.instructions()) {
            if let Some(offset) = place(&instruction.opcode, operator) {
                let at = instruction.start + offset;
                edits.push((at..at, format!(".{operator}")));
            }
        }
    }
    Ok(replaced(text, edits))
}

/// Modifiers of loads that say themselves how memory is to be accessed.
const ORDERED: [&str; 4] = ["volatile", "relaxed", "acquire", "mmio"];

/// Where in the opcode of a load the operator belongs; `None` for what takes none.
fn place(opcode: &str, operator: CacheOperator) -> Option<usize> {
    let mut parts = opcode.split('.');
    if parts.next() != Some("ld") {
        return None;
    }
    let mut end = "ld".len();
    let mut at = end;
    for part in parts {
        end += 1 + part.len();
        let says = ORDERED.contains(&part) || part.parse::<CacheOperator>().is_ok();
        let evicts = part.starts_with("L1::") || part.starts_with("L2::evict");
        let elsewhere = ["const", "local", "param", "shared"].contains(&part.split("::").next().unwrap_or_default());
        if says || evicts || elsewhere || (part == "nc" && operator != CacheOperator::Cs) {
            return None;
        }
        if matches!(part, "weak" | "global") {
            at = end;
        }
    }
    Some(at)
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
            for (operator, expected) in [(CacheOperator::Cg, cg), (CacheOperator::Cs, cs)] {
                let written =
                    place(opcode, operator).map(|at| format!("{}.{operator}{}", &opcode[..at], &opcode[at..]));
                assert_eq!(written.unwrap_or_default(), expected, "{opcode}");
            }
        }
    }
}
