//! Edits an entry's performance directives in PTX text, so that ptxas compiles it under a
//! register cap or for one block.
//!
//! PTX text + entry + cap -> PTX text in which that entry has `.maxnreg CAP` and no
//! `.minnctapersm`. PTX text + entry + block -> PTX text in which it has `.reqntid`, no
//! `.maxntid`, and numbers in place of `%ntid.x`, of which ptxas itself makes no constants. All
//! other bytes stay as they are, and no line moves: a profile by PTX line holds for the edited
//! text too.
//!
//! What ptxas 13.0.88 does on sm_90, measured on a kernel that takes 56 registers when nothing
//! is asked (60 with `.maxntid 256`, 110 when the limit lies above that):
//!
//! | directives | `--maxrregcount 48` | registers |
//! | --- | --- | --- |
//! | none | absent / given | 56 / 48 |
//! | `.maxnreg R` | absent or given | at most R; the option is silently ignored, also where it is lower |
//! | `.maxntid` or `.reqntid` | absent or given | 60; the option is silently ignored |
//! | `.maxntid` or `.reqntid`, `.maxnreg R` | absent or given | at most R; `.maxnreg` wins even where a block of that size can then not be launched |
//! | `.maxntid 256`, `.minnctapersm 8` | absent or given | 32 = 65536 / (256 x 8) |
//! | `.maxntid 256`, `.minnctapersm 8`, `.maxnreg R` | absent or given | the lower of R and 32: a cap above what `.minnctapersm` implies has no effect |
//! | `.minnctapersm` alone | absent / given | as without it (ptxas warns that it is ignored); the option counts |
//! | `.minnctapersm` beyond the hardware (`.maxntid 1024`, 8) | absent or given | as without it (ptxas warns) |
//!
//! Of two `.maxnreg` the last counts. `.maxnreg 0` is an error, above 255 it is ignored with a
//! warning, and below 24 it is raised to 24 with a warning. Hence this module: `.minnctapersm`
//! goes, every `.maxnreg` but one goes.

use super::error::PtxError;
use super::module::{Module, PtxFunction};
use crate::launch::Dim3;
use std::ops::Range;

/// The text in which `entry` is compiled under a cap of `cap` registers a thread.
///
/// # Errors
/// As [`Module::parse`]; [`PtxError::NoEntry`]; [`PtxError::Cap`] where `cap` is not 1 to 255.
pub fn set_register_cap(text: &str, entry: &str, cap: u32) -> Result<String, PtxError> {
    set_register_caps(text, &[(entry, cap)])
}

/// [`set_register_cap`] for several entries of one text. Of an entry that is named twice the
/// last cap counts.
///
/// # Errors
/// As [`set_register_cap`].
pub fn set_register_caps(text: &str, caps: &[(&str, u32)]) -> Result<String, PtxError> {
    let module = Module::parse(text)?;
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for (index, &(name, cap)) in caps.iter().enumerate() {
        if !(1..=255).contains(&cap) {
            return Err(PtxError::Cap { cap });
        }
        let entry = module.entry(name).ok_or_else(|| PtxError::NoEntry { name: name.to_owned() })?;
        if caps[index + 1..].iter().all(|&(later, _)| later != name) {
            entry_edits(text, entry, cap, &mut edits);
        }
    }
    Ok(replace_spans(text, edits))
}

/// Replaces these spans of a text, which do not overlap.
pub(super) fn replace_spans(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(span, _)| span.start);
    let mut result = String::with_capacity(text.len() + 16 * edits.len());
    let mut at = 0;
    for (span, replacement) in edits {
        result.push_str(&text[at..span.start]);
        result.push_str(&replacement);
        at = span.end;
    }
    result.push_str(&text[at..]);
    result
}

/// Returns the text in which `entry` is compiled for blocks of exactly this shape: the driver
/// refuses launches in others.
///
/// # Errors
/// As [`Module::parse`]; [`PtxError::NoEntry`].
pub fn set_required_block(text: &str, entry: &str, [x, y, z]: Dim3) -> Result<String, PtxError> {
    let module = Module::parse(text)?;
    let function = module.entry(entry).ok_or_else(|| PtxError::NoEntry { name: entry.to_owned() })?;
    let mut edits = Vec::new();
    set_directive(text, function, format!(".reqntid {x}, {y}, {z}"), &[".reqntid", ".maxntid"], &mut edits);
    if let Some(body) = &function.body {
        for (name, extent) in [("%ntid.x", x), ("%ntid.y", y), ("%ntid.z", z)] {
            let reads = text[body.open..function.span.end].match_indices(name);
            let spans = reads.map(|(at, _)| body.open + at..body.open + at + name.len());
            edits.extend(spans.map(|span| (span, extent.to_string())));
        }
    }
    Ok(replace_spans(text, edits))
}

/// Returns the text in which ptxas may spill registers of `entry` to shared memory. ptxas (13.0
/// or later) takes as much of it as leaves the occupancy that the registers allow, and refuses
/// entries with dynamic shared memory and relocatable code.
///
/// # Errors
/// As [`Module::parse`]; [`PtxError::NoEntry`].
pub fn allow_shared_spills(text: &str, entry: &str) -> Result<String, PtxError> {
    let module = Module::parse(text)?;
    let function = module.entry(entry).ok_or_else(|| PtxError::NoEntry { name: entry.to_owned() })?;
    let start = function.body.as_ref().map(|body| body.open + 1);
    let pragma = " .pragma \"enable_smem_spilling\";".to_owned();
    Ok(replace_spans(text, start.map(|start| (start..start, pragma)).into_iter().collect()))
}

fn entry_edits(text: &str, entry: &PtxFunction, cap: u32, edits: &mut Vec<(Range<usize>, String)>) {
    set_directive(text, entry, format!(".maxnreg {cap}"), &[".maxnreg", ".minnctapersm"], edits);
}

/// Puts a directive in the place of the first of those that go, or before the body.
fn set_directive(
    text: &str,
    entry: &PtxFunction,
    directive: String,
    replaced: &[&str],
    edits: &mut Vec<(Range<usize>, String)>,
) {
    let mut directive = Some(directive);
    for old in entry.directives.iter().filter(|old| replaced.contains(&&*old.name)) {
        // Line ends inside a directive stay, so that no line moves.
        let ends: String = text[old.span.clone()].chars().filter(|&c| c == '\n').collect();
        edits.push((old.span.clone(), directive.take().unwrap_or_default() + &ends));
    }
    let Some(directive) = directive else { return };
    if let Some(body) = &entry.body {
        let spaced = text[..body.open].ends_with(char::is_whitespace);
        let space = if spaced { "" } else { " " };
        edits.push((body.open..body.open, format!("{space}{directive} ")));
    }
}
