//! The macros that a source defines itself -> their names and bodies, whatever `#if` they stand under.

use super::cxx::{CxxKind, cxx_tokens, directive_end};
use super::source::{Source, Span};

/// Names and bodies of all, in their order; the parameters of one that has some are a part of its body.
fn definitions(source: &Source) -> Vec<(Span, Span)> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in source.text.split_inclusive('\n') {
        let rest = line.trim_start().strip_prefix('#').and_then(|rest| rest.trim_start().strip_prefix("define"));
        if let Some(rest) = rest.filter(|rest| rest.starts_with([' ', '\t'])).map(str::trim_start) {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let name = start + (line.len() - rest.len());
            if length > 0 {
                let body = name + length;
                let end = directive_end(source.text.as_bytes(), body);
                found.push((Span { start: name, end: body }, Span { start: body, end }));
            }
        }
        start += line.len();
    }
    found
}

/// Names and bodies of those without parameters, in their order.
pub(super) fn macros(source: &Source) -> Vec<(Span, Span)> {
    let mut found = definitions(source);
    // A parenthesis right behind the name begins parameters.
    found.retain(|(_, body)| !source.slice(*body).starts_with('('));
    found
}

/// The words that each macro is made of, its parameters among them, with the place of its name.
pub(super) fn words(source: &Source) -> Vec<(Span, Vec<&str>)> {
    let of_body = |body: Span| {
        let text = source.slice(body);
        let tokens = cxx_tokens(text).into_iter().filter(|token| token.kind == CxxKind::Name);
        tokens.map(|token| &text[token.span.start..token.span.end]).collect()
    };
    definitions(source).into_iter().map(|(name, body)| (name, of_body(body))).collect()
}

/// The names of macros that declare kernels: `#define KERNEL extern "C" __global__ void`.
pub(super) fn of_kernels(source: &Source) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let declares = |body: Span| source.slice(body).split(|c| !is_word(c)).any(|word| word == "__global__");
    macros(source).into_iter().filter(|(_, body)| declares(*body)).map(|(name, _)| source.slice(name)).collect()
}

/// What a macro of this name is defined as, each time.
pub(super) fn bodies(source: &Source, name: &str) -> Vec<Span> {
    let of_name = macros(source).into_iter().filter(|(of, _)| source.slice(*of) == name);
    of_name.map(|(_, body)| body).collect()
}
