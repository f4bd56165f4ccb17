//! The macros that a source defines itself -> their names and bodies, whatever `#if` they stand
//! under.

use super::tokens::{directive_end, is_word, split_directive};
use crate::diag::{Source, Span};
use std::ops::Range;

/// Returns the place in a line of the name that it defines; `None` if it is no `#define`.
pub(crate) fn defined_name(line: &str) -> Option<Range<usize>> {
    let (_, rest) = split_directive(line).filter(|(word, rest)| *word == "define" && rest.starts_with([' ', '\t']))?;
    let rest = rest.trim_start();
    let (start, length) = (line.len() - rest.len(), rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
    (length > 0).then(|| start..start + length)
}

/// Lists names and bodies of all macros, in order. The parameters of a macro are part of
/// its body.
pub(crate) fn all_definitions(text: &str) -> Vec<(Span, Span)> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some(name) = defined_name(line) {
            let name = Span { start: start + name.start, end: start + name.end };
            found.push((name, Span { start: name.end, end: directive_end(text.as_bytes(), name.end) }));
        }
        start += line.len();
    }
    found
}

/// Lists names and bodies of the macros without parameters, in order.
pub(crate) fn plain_macros(text: &str) -> Vec<(Span, Span)> {
    let mut found = all_definitions(text);
    // A parenthesis right behind the name begins parameters.
    found.retain(|(_, body)| !text[body.start..].starts_with('('));
    found
}

/// The names of macros that declare kernels: `#define KERNEL extern "C" __global__ void`.
pub(crate) fn of_kernels(source: &Source) -> Vec<&str> {
    let declares = |body: Span| source.slice(body).split(|c| !is_word(c)).any(|word| word == "__global__");
    plain_macros(&source.text)
        .into_iter()
        .filter(|(_, body)| declares(*body))
        .map(|(name, _)| source.slice(name))
        .collect()
}

/// Lists the bodies of all definitions of a macro.
pub(crate) fn bodies_of(source: &Source, name: &str) -> Vec<Span> {
    let of_name = plain_macros(&source.text).into_iter().filter(|(of, _)| source.slice(*of) == name);
    of_name.map(|(_, body)| body).collect()
}
