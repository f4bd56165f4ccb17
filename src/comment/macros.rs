//! The macros without parameters that a source defines itself -> their names and bodies, whatever `#if` they stand under.

use super::cxx::directive_end;
use super::source::{Source, Span};

/// Names and bodies, in their order.
pub(super) fn macros(source: &Source) -> Vec<(Span, Span)> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in source.text.split_inclusive('\n') {
        let rest = line.trim_start().strip_prefix('#').and_then(|rest| rest.trim_start().strip_prefix("define"));
        if let Some(rest) = rest.filter(|rest| rest.starts_with([' ', '\t'])).map(str::trim_start) {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let name = start + (line.len() - rest.len());
            // A parenthesis right behind the name begins parameters.
            if length > 0 && !rest[length..].starts_with('(') {
                let body = name + length;
                let end = directive_end(source.text.as_bytes(), body);
                found.push((Span { start: name, end: body }, Span { start: body, end }));
            }
        }
        start += line.len();
    }
    found
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
