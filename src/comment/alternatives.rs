//! Names that two kernels of one file cannot both have, unless `#if` lets one of them through
//! and leaves the other out.

use super::annotation::{Annotation, Instance};
use crate::cuda::preprocessed::{Branch, compiled_branches};
use crate::diag::Source;
use crate::diag::{Diagnostic, MessageCode};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The branches of all `#if` of a file.
pub(super) struct Conditions(Vec<ConditionBranch>);

struct ConditionBranch {
    lines: Range<u32>,
    /// Of which `#if`, by its line.
    group: u32,
}

impl Conditions {
    pub(super) fn new(text: &str) -> Self {
        let branches = compiled_branches(text).map(|(branches, _)| branches).unwrap_or_default();
        let branch = |branch: Branch| ConditionBranch { lines: branch.lines, group: branch.group };
        Self(branches.into_iter().map(branch).collect())
    }

    /// Whether a comment and its kernel stand in one branch. Of a comment before the `#if` the
    /// kernel is whichever is compiled.
    fn has_both(&self, comment: u32, kernel: u32) -> bool {
        !self.may_part(comment, kernel) && self.0.iter().any(|branch| branch.lines.contains(&kernel))
    }

    /// Whether one of the lines may be compiled without the other.
    pub(super) fn may_part(&self, first: u32, second: u32) -> bool {
        self.0.iter().any(|branch| branch.lines.contains(&first) != branch.lines.contains(&second))
    }

    /// Whether the lines are of two branches of one `#if`, so that at most one is compiled.
    pub(super) fn exclude(&self, first: u32, second: u32) -> bool {
        self.0.iter().filter(|one| one.lines.contains(&first)).any(|one| {
            let mut others = self.0.iter().filter(|other| other.group == one.group && other.lines != one.lines);
            others.any(|other| other.lines.contains(&second))
        })
    }
}

/// What is wrong with two kernels of one file that are both compiled: one name.
pub(super) fn clashes(first: &Annotation, second: &Annotation) -> Vec<Diagnostic> {
    let source: &Source = &second.source;
    let mut problems = Vec::new();
    if first.name == second.name {
        let text = |annotation: &Annotation| annotation.instance.as_ref().map(Instance::to_string);
        let is_same = second.instance.is_some() && first.kernel == second.kernel && text(first) == text(second);
        let message = match is_same {
            true => format!("this instance of `{}` is given twice: remove one", second.kernel.name),
            false => {
                format!("two tuned kernels of this file are called `{}`; add name(...) to one", second.name)
            }
        };
        problems.push(
            source
                .error(MessageCode::NameClash, second.name_span, message)
                .with(source.note(first.name_span, "the other is here")),
        );
    }
    problems
}

fn are_of_one_file(first: &Annotation, second: &Annotation) -> bool {
    first.source.path == second.source.path
}

/// Tells whether `#if` may let one of two kernels through without the other.
pub fn may_be_apart(first: &Annotation, second: &Annotation) -> bool {
    are_of_one_file(first, second)
        && Conditions::new(&first.source.text).may_part(first.kernel.line, second.kernel.line)
}

/// Whether some of a source's kernels are alternatives: only what is compiled tells which of
/// them there is.
pub fn has_alternatives(annotations: &[Annotation]) -> bool {
    let clash =
        |first: &Annotation, second: &Annotation| are_of_one_file(first, second) && !clashes(first, second).is_empty();
    (1..).zip(annotations).any(|(behind, first)| annotations[behind..].iter().any(|second| clash(first, second)))
}

/// Of each kernel whether it stands with its comment in a branch of an `#if`: only what is
/// compiled tells whether it is there.
pub fn are_conditional(annotations: &[Annotation]) -> Vec<bool> {
    let files: BTreeMap<&str, &Source> =
        annotations.iter().map(|of| (of.source.path.as_str(), of.source.as_ref())).collect();
    let files: BTreeMap<&str, Conditions> =
        files.into_iter().map(|(path, source)| (path, Conditions::new(&source.text))).collect();
    let is_conditional = |of: &Annotation| {
        let lines = (of.source.line(of.comment.start), of.kernel.line);
        files.get(of.source.path.as_str()).is_some_and(|file| file.has_both(lines.0, lines.1))
    };
    annotations.iter().map(is_conditional).collect()
}

/// The annotations without those of the alternatives that are not compiled. Where none of
/// several is, the first one stays.
///
/// # Errors
/// Alternatives that are both compiled.
pub fn without_alternatives(
    annotations: Vec<Annotation>,
    is_compiled: impl Fn(&Annotation) -> bool,
) -> Result<Vec<Annotation>, Vec<Diagnostic>> {
    let (mut kept, mut problems): (Vec<Annotation>, Vec<Diagnostic>) = (Vec::new(), Vec::new());
    for annotation in annotations {
        let others = kept.iter().enumerate().filter(|(_, other)| are_of_one_file(other, &annotation));
        let clashing = others.map(|(at, other)| (at, clashes(other, &annotation)));
        let clashing: Vec<(usize, Vec<Diagnostic>)> = clashing.filter(|(_, clashes)| !clashes.is_empty()).collect();
        if clashing.is_empty() {
            kept.push(annotation);
        } else if is_compiled(&annotation) {
            let both = clashing.iter().filter(|(at, _)| is_compiled(&kept[*at]));
            problems.extend(both.flat_map(|(_, clashes)| clashes.clone()));
            let replaced: BTreeSet<usize> = clashing.iter().map(|(at, _)| *at).collect();
            let mut at = 0..;
            kept.retain(|_| at.next().is_none_or(|at| !replaced.contains(&at)));
            kept.push(annotation);
        }
    }
    if problems.is_empty() { Ok(kept) } else { Err(problems) }
}
