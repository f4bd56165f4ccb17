//! Source texts, and which kernels have recordings -> a tuning comment for each unmarked
//! kernel, or the reason why it gets none.
//!
//! Invariants: every proposal is read without an error by the parser of comments, alone and
//! together with the others of its file; what no text tells is named as a guess. Nothing here
//! touches the world.

mod arguments;
mod comment_text;
mod diff;
mod proposed;

pub use diff::{insert_lines, unified_diff};
pub use proposed::{Basis, FileProposals, Proposal, Refusal};

use crate::comment::annotations_among;
use crate::cuda::{HostProgram, ListedKernel, kernels_of};
use crate::diag::{Diagnostic, Source};
use crate::space::{Limits, Space};
use comment_text::proposed_lines;

/// The most bytes of dynamic shared memory that a block has on any GPU (compute capability 9.0).
const MOST_SHARED: u32 = 227 << 10;

/// Proposes a comment for each unmarked kernel of a source. `program` has the source and the
/// code around it, and `around` its other files. `is_recorded` tells whether there is a
/// recording of a kernel.
///
/// # Errors
/// What is wrong with the comments that the source has.
pub fn propose(
    source: &Source,
    program: &HostProgram,
    around: &dyn Fn() -> Vec<Source>,
    is_recorded: &dyn Fn(&str) -> bool,
) -> Result<FileProposals, Vec<Diagnostic>> {
    let marked: Vec<u32> = annotations_among(source, around)?.iter().map(|annotation| annotation.kernel.line).collect();
    let mut found = FileProposals::default();
    for listed in kernels_of(source) {
        if marked.contains(&listed.kernel.line) {
            found.marked += 1;
            continue;
        }
        let proposal = proposal(source, program, &listed, is_recorded)
            .and_then(|proposal| check(source, around, &found.proposals, &proposal).map(|()| proposal));
        match proposal {
            Ok(proposal) => found.proposals.push(proposal),
            Err(reason) => {
                let (kernel, line) = (listed.kernel.name, listed.kernel.line);
                found.refusals.push(Refusal { kernel, line, reason });
            }
        }
    }
    Ok(found)
}

/// Proposes a comment for one kernel.
fn proposal(
    source: &Source,
    program: &HostProgram,
    listed: &ListedKernel,
    is_recorded: &dyn Fn(&str) -> bool,
) -> Result<Proposal, String> {
    let kernel = &listed.kernel;
    let compiled = program.text(&source.path).and_then(|text| text.get(kernel.span.start..kernel.span.end));
    if compiled != Some(kernel.name.as_str()) {
        return Err("`#if` leaves it out: give the build's macros, as in -- -DNAME".to_owned());
    }
    let indent = listed.indent(source).ok_or("other code is on the line where its declaration begins")?;
    let (lines, basis) = proposed_lines(source, program, listed, is_recorded(&kernel.name))?;
    let lines = lines.into_iter().map(|line| format!("{indent}{line}")).collect();
    Ok(Proposal { kernel: kernel.name.clone(), line: source.line(listed.start), lines, basis })
}

/// Checks a proposal by the parser and the rules of spaces, together with those before it.
fn check(
    source: &Source,
    around: &dyn Fn() -> Vec<Source>,
    earlier: &[Proposal],
    proposal: &Proposal,
) -> Result<(), String> {
    let all: Vec<&Proposal> = earlier.iter().chain([proposal]).collect();
    let text = insert_lines(source.text.as_bytes(), &all);
    let proposed = Source::new(source.path.clone(), &text);
    let reason = |problems: Vec<Diagnostic>| {
        let first = problems.first().map(|problem| problem.message.clone()).unwrap_or_default();
        format!("the comment that its launches suggest is not valid: {first}")
    };
    let annotations = annotations_among(&proposed, around).map_err(reason)?;
    let added: usize = all.iter().map(|proposal| proposal.lines.len()).sum();
    let own = annotations.iter().filter(|annotation| annotation.kernel.name == proposal.kernel);
    let own: Vec<_> =
        own.filter(|annotation| annotation.kernel.line as usize >= proposal.line as usize + added).collect();
    if own.is_empty() {
        return Err("no comment above its declaration would be its own".to_owned());
    }
    if proposal.basis == Basis::Recording {
        return Ok(());
    }
    let limits = Limits { max_dynamic_shared: MOST_SHARED, ..Limits::default() };
    own.into_iter().try_for_each(|annotation| Space::new(annotation, &limits).map(drop).map_err(reason))
}
