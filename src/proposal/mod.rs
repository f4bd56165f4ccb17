//! Source texts, and which kernels have recordings -> a tuning comment for each unmarked
//! kernel, or the reason why it gets none.
//!
//! Invariants: every proposal is read without an error by the parser of comments, alone and
//! together with the others of its file; what no text tells is named as a guess. Nothing here
//! touches the world.

mod arguments;
mod comment_text;
mod diff;
mod instance;
mod proposed;
mod subject;

pub use diff::{insert_lines, unified_diff};
pub use proposed::{Basis, FileProposals, Proposal, Refusal};

use crate::comment::annotations_among;
use crate::cuda::{ANY_COUNT, ArgumentCounts, HostProgram, Kernel, ListedKernel, kernels_of};
use crate::diag::{Diagnostic, MessageCode, Source};
use crate::space::{Limits, Space};
use comment_text::proposed_lines;
use subject::Subject;

/// The most bytes of dynamic shared memory that a block has on any GPU (compute capability 9.0).
const MOST_SHARED: u32 = 227 << 10;

/// Proposes a comment for each unmarked kernel of a source. `program` has the source and the
/// code around it, and `around` its other files. `is_recorded` tells whether there is a
/// recording of a kernel, or of an instance of it.
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
    let all = kernels_of(source);
    for listed in &all {
        if marked.contains(&listed.kernel.line) {
            found.marked += 1;
            continue;
        }
        // The launches of a recorded kernel are not looked for in the text.
        let is_recorded = is_recorded(&listed.kernel.name);
        let counts = if is_recorded { Ok(ANY_COUNT) } else { argument_counts(program, source, listed, &all) };
        let proposal = counts.and_then(|counts| {
            let subject = Subject { source, program, listed, all: &all, counts };
            let proposal = proposal(&subject, is_recorded)?;
            named(proposal, |proposal| check(source, around, &found.proposals, proposal))
        });
        match proposal {
            Ok(proposal) => found.proposals.push(proposal),
            Err(reason) => {
                let (kernel, line) = (listed.kernel.name.clone(), listed.kernel.line);
                found.refusals.push(Refusal { kernel, line, reason });
            }
        }
    }
    Ok(found)
}

/// Whether `#if` keeps a kernel.
fn is_compiled(program: &HostProgram, source: &Source, kernel: &Kernel) -> bool {
    let compiled = program.text(&source.path).and_then(|text| text.get(kernel.span.start..kernel.span.end));
    compiled == Some(kernel.name.as_str())
}

/// The numbers of arguments of a kernel's launches, which distinguish them from launches of other
/// kernels of its name.
///
/// # Errors
/// The reason if another one takes as many.
fn argument_counts(
    program: &HostProgram,
    source: &Source,
    listed: &ListedKernel,
    all: &[ListedKernel],
) -> Result<ArgumentCounts, String> {
    let counts = |kernel: &Kernel| {
        let needed = kernel.declarations.iter().filter(|declaration| !declaration.contains('=')).count();
        needed..=kernel.declarations.len()
    };
    let own = counts(&listed.kernel);
    let is_namesake = |other: &&ListedKernel| {
        let other = &other.kernel;
        let is_instance = other.arguments.is_some() || listed.kernel.arguments.is_some();
        let is_same = other.declarations == listed.kernel.declarations;
        other.name == listed.kernel.name && !is_same && !is_instance
    };
    let namesakes = all.iter().filter(is_namesake).filter(|other| is_compiled(program, source, &other.kernel));
    let others: Vec<ArgumentCounts> = namesakes.map(|other| counts(&other.kernel)).collect();
    match others.iter().find(|other| other.start() <= own.end() && own.start() <= other.end()) {
        Some(_) => Err("its launches may be those of another kernel of its name".to_owned()),
        None => Ok(if others.is_empty() { ANY_COUNT } else { own }),
    }
}

/// The most kernels of one name.
const MOST_NAMESAKES: usize = 64;

/// A proposal with a name of its own if another comment has that of its kernel.
fn named(proposal: Proposal, check: impl Fn(&Proposal) -> Result<(), Problem>) -> Result<Proposal, String> {
    let first = match check(&proposal) {
        Err(problem) if problem.is_name_clash => problem,
        checked => return checked.map(|()| proposal).map_err(|problem| problem.reason),
    };
    let at = proposal.lines.iter().position(|line| line.trim_start().starts_with("//@tune")).unwrap_or(0);
    for number in 2..MOST_NAMESAKES {
        let mut named = proposal.clone();
        let indent = named.lines.get(at).map_or("", |line| &line[..line.len() - line.trim_start().len()]);
        named.lines.insert(at, format!("{indent}//@tune name({}_{number})", proposal.kernel));
        match check(&named) {
            Err(problem) if problem.is_name_clash => {}
            checked => return checked.map(|()| named).map_err(|problem| problem.reason),
        }
    }
    Err(first.reason)
}

/// Why a proposal is none.
struct Problem {
    reason: String,
    is_name_clash: bool,
}

/// Proposes a comment for one kernel.
fn proposal(subject: &Subject<'_>, is_recorded: bool) -> Result<Proposal, String> {
    let Subject { source, program, listed, .. } = subject;
    let kernel = &listed.kernel;
    if !is_compiled(program, source, kernel) {
        return Err("`#if` leaves it out: give the build's macros, as in -- -DNAME".to_owned());
    }
    let indent = listed.indent(source).ok_or("other code is on the line where its declaration begins")?;
    let (lines, basis) = proposed_lines(subject, is_recorded)?;
    let lines = lines.into_iter().map(|line| format!("{indent}{line}")).collect();
    Ok(Proposal { kernel: kernel.name.clone(), line: source.line(listed.start), lines, basis })
}

/// Checks a proposal by the parser and the rules of spaces, together with those before it.
fn check(
    source: &Source,
    around: &dyn Fn() -> Vec<Source>,
    earlier: &[Proposal],
    proposal: &Proposal,
) -> Result<(), Problem> {
    let all: Vec<&Proposal> = earlier.iter().chain([proposal]).collect();
    let text = insert_lines(source.text.as_bytes(), &all);
    let proposed = Source::new(source.path.clone(), &text);
    let reason = |problems: Vec<Diagnostic>| {
        let first = problems.first();
        let message = first.map(|problem| problem.message.clone()).unwrap_or_default();
        let is_name_clash = first.is_some_and(|problem| problem.code == Some(MessageCode::NameClash));
        Problem { reason: format!("the comment that its launches suggest is not valid: {message}"), is_name_clash }
    };
    let annotations = annotations_among(&proposed, around).map_err(reason)?;
    let added: usize = all.iter().map(|proposal| proposal.lines.len()).sum();
    let own = annotations.iter().filter(|annotation| annotation.kernel.name == proposal.kernel);
    let own: Vec<_> =
        own.filter(|annotation| annotation.kernel.line as usize >= proposal.line as usize + added).collect();
    if own.is_empty() {
        let reason = "no comment above its declaration would be its own".to_owned();
        return Err(Problem { reason, is_name_clash: false });
    }
    if proposal.basis == Basis::Recording {
        return Ok(());
    }
    let limits = Limits { max_dynamic_shared: MOST_SHARED, ..Limits::default() };
    own.into_iter().try_for_each(|annotation| Space::new(annotation, &limits).map(drop).map_err(reason))
}
