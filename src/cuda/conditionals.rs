//! Tokens with `#if` among them -> what its branches make of them.

use super::tokens::{CxxToken, split_directive};
use crate::diag::{Source, Span};

/// More lists than these are not made: branches of further groups are taken for the first.
const MOST_LISTS: usize = 64;

/// An `#if` with its `#elif`, `#else` and `#endif`.
#[derive(Default)]
struct Group {
    branches: usize,
    has_else: bool,
}

/// The groups that a place is in, from the outermost, each with the number of its branch.
type LinePlace = Vec<(usize, usize)>;

/// What the tokens between the first and the last can be: one list, or where `#if` stands among
/// them, one for each choice of branches, first branches first. A group without `#else` may
/// leave all of its branches out.
pub(crate) fn token_lists(source: &Source, tokens: &[CxxToken]) -> Vec<Vec<CxxToken>> {
    let (mut groups, mut here, mut places): (Vec<Group>, LinePlace, Vec<LinePlace>) =
        (Vec::new(), Vec::new(), Vec::new());
    for pair in tokens.windows(2) {
        let between = source.slice(Span { start: pair[0].span.end, end: pair[1].span.start });
        between.lines().for_each(|line| follow_line(line, &mut groups, &mut here));
        places.push(here.clone());
    }
    // The last token ends the list.
    places.pop();
    let choices = |group: &Group| group.branches + usize::from(!group.has_else);
    let count = groups.iter().map(choices).fold(1usize, usize::saturating_mul).min(MOST_LISTS);
    let list = |number: usize| {
        let mut rest = number;
        let chosen: Vec<usize> = groups
            .iter()
            .map(|group| {
                let branch = rest % choices(group);
                rest /= choices(group);
                branch
            })
            .collect();
        let is_in = |place: &(&CxxToken, &LinePlace)| place.1.iter().all(|&(group, branch)| chosen[group] == branch);
        tokens[1..].iter().zip(&places).filter(is_in).map(|(token, _)| *token).collect()
    };
    (0..count).map(list).collect()
}

/// Whether an `#if` stands among the tokens.
pub(crate) fn is_among(source: &Source, tokens: &[CxxToken]) -> bool {
    let (mut groups, mut here) = (Vec::new(), Vec::new());
    for pair in tokens.windows(2) {
        let between = source.slice(Span { start: pair[0].span.end, end: pair[1].span.start });
        between.lines().for_each(|line| follow_line(line, &mut groups, &mut here));
    }
    !groups.is_empty()
}

/// Goes on to the next line.
fn follow_line(line: &str, groups: &mut Vec<Group>, here: &mut LinePlace) {
    match split_directive(line).map(|(word, _)| word) {
        Some("if" | "ifdef" | "ifndef") => {
            here.push((groups.len(), 0));
            groups.push(Group { branches: 1, has_else: false });
        }
        Some(word @ ("elif" | "elifdef" | "elifndef" | "else")) => {
            if let Some((group, branch)) = here.last_mut() {
                *branch += 1;
                groups[*group].branches += 1;
                groups[*group].has_else |= word == "else";
            }
        }
        Some("endif") => {
            here.pop();
        }
        _ => {}
    }
}
