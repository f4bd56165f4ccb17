//! The `symbol` clause: what `__constant__` and `__device__` variables hold before a launch.
//!
//! `symbol(ck = random[n])` takes the element's type from the variable's declaration in the same file;
//! `symbol(float ck = random[n])` gives it, for a variable that is declared elsewhere.

use super::annotation::GivenSymbol;
use super::clause::Clauses;
use super::cxx::{CxxKind, CxxToken};
use super::diagnostic::Diagnostic;
use super::parser::Cursor;
use super::source::{Source, Span};
use super::token::TokenKind;
use super::workload_clause;

pub(super) fn symbol(
    clauses: &mut Clauses,
    cursor: Cursor<'_>,
    _: Span,
    problems: &mut Vec<Diagnostic>,
) -> Result<(), Diagnostic> {
    for item in cursor.items() {
        match one(item) {
            Ok(given) => {
                if let Some(first) = clauses.symbols.iter().find(|other| other.name == given.name) {
                    let note = cursor.source.note(first.span, "first given here");
                    let message = format!("variable `{}` is given twice", given.name);
                    problems.push(cursor.source.error(given.span, message).with(note));
                } else {
                    clauses.symbols.push(given);
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    Ok(())
}

fn one(mut item: Cursor<'_>) -> Result<GivenSymbol, Diagnostic> {
    let equals = item.tokens.iter().position(|token| token.kind == TokenKind::Mark("="));
    let Some(equals) = equals else {
        item.name("the name of a variable")?;
        return Err(item.expected("`=` and its contents"));
    };
    let head = &item.tokens[..equals];
    let is_name = |at: usize| head.get(at).is_some_and(|token| token.kind == TokenKind::Name);
    let is_colon = |at: usize| head.get(at).is_some_and(|token| token.kind == TokenKind::Mark(":"));
    // The name with its scopes, from its end.
    let Some(mut start) = equals.checked_sub(1).filter(|&last| is_name(last)) else {
        return Err(item.expected("the name of a variable"));
    };
    while start >= 3 && is_colon(start - 1) && is_colon(start - 2) && is_name(start - 3) {
        start -= 3;
    }
    let spelled = |tokens| Cursor::new(item.source, tokens, item.place()).spelled();
    let name = spelled(&head[start..]);
    // `::ck` is `ck` of the outermost scope.
    let global = start >= 2 && is_colon(start - 1) && is_colon(start - 2);
    let kind = &head[..if global { start - 2 } else { start }];
    if let Some(colon) = kind.last().filter(|token| token.kind == TokenKind::Mark(":")) {
        return Err(item.source.error(colon.span, "namespaces are written with `::`"));
    }
    let element = (!kind.is_empty()).then(|| spelled(kind));
    let span = match (head.get(start), head.last()) {
        (Some(first), Some(last)) => first.span.to(last.span),
        _ => item.place(),
    };
    item.tokens = &item.tokens[equals + 1..];
    let value = workload_clause::value(&mut item)?;
    Ok(GivenSymbol { name, span, element, value })
}

/// Words of a declaration that are no part of the type.
const SPECIFIERS: [&str; 11] = [
    "__constant__",
    "__device__",
    "__managed__",
    "static",
    "extern",
    "inline",
    "const",
    "constexpr",
    "volatile",
    "struct",
    "alignas",
];

/// The type of the elements of a `__constant__` or `__device__` variable that is declared in `code`, as text; `None` where no
/// declaration of that name is found, or one that is not plain.
pub(super) fn declared_element(source: &Source, code: &[CxxToken], name: &str) -> Option<String> {
    let name = name.rsplit("::").next().unwrap_or(name);
    let code: Vec<&CxxToken> = code.iter().filter(|token| !matches!(token.kind, CxxKind::Comment { .. })).collect();
    let text = |at: usize| code.get(at).map_or("", |token| source.slice(token.span));
    (0..code.len()).filter(|&at| text(at) == name && matches!(text(at + 1), ";" | "[" | "=" | "{")).find_map(|at| {
        let start = (0..at).rev().find(|&at| matches!(text(at), ";" | "{" | "}")).map_or(0, |at| at + 1);
        let words: Vec<&str> = (start..at).map(text).collect();
        let of_device = words.iter().any(|word| matches!(*word, "__constant__" | "__device__" | "__managed__"));
        of_device.then(|| plain(&words)).flatten()
    })
}

/// A type without specifiers and attributes; `None` for a pointer and for what declares several variables.
fn plain(words: &[&str]) -> Option<String> {
    let (mut kept, mut depth) = (Vec::new(), 0usize);
    for (at, word) in words.iter().enumerate() {
        match *word {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "," | "*" | "&" if depth == 0 => return None,
            word if depth > 0 || SPECIFIERS.contains(&word) => {}
            // `__align__(16)` and its like.
            _ if words.get(at + 1) == Some(&"(") => {}
            word => kept.push(word),
        }
    }
    (!kept.is_empty()).then(|| kept.join(" ").replace(" :: ", "::"))
}
