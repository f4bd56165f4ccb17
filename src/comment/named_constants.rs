//! The names of the source's constants in a tuning comment -> their numbers.
//!
//! `block(BLOCK)` under `constexpr int BLOCK = 256;` is `block(256)`. A name that means
//! something to the comment itself stays: a parameter of the kernel or of its template, a macro
//! axis, and what stands where no value does. What is put in a name's place keeps the name's
//! place in the source, so that messages show the name.

use super::annotation::NamedConstant;
use super::constants::Constants;
use super::lexer::{Token, TokenKind};
use super::value::Value;
use crate::cuda::Kernel;
use crate::cuda::brackets::Depth;
use crate::diag::Source;
use std::collections::HashSet;

/// Clauses in which names are no values.
const WORDS: [&str; 6] = ["cache", "check", "template", "launch", "strategy", "name"];

/// Words of the language where a value may stand.
const RESERVED: [&str; 10] = ["auto", "true", "false", "nullptr", "NULL", "index", "block", "grid", "random", "out"];

/// The names that `define` makes macro axes of.
pub(super) fn axes<'a>(source: &'a Source, tokens: &[Token]) -> HashSet<&'a str> {
    let mut found = HashSet::new();
    for (at, clause) in clauses(source, tokens) {
        if clause == "define" && followed_by(tokens, at, "=") {
            found.extend(name(source, tokens, at));
        }
    }
    found
}

/// The tokens with numbers in the places of constants, and the constants. `axes` are the macro
/// axes of the whole file.
pub(super) fn given(
    source: &Source,
    tokens: &[Token],
    kernel: &Kernel,
    axes: &HashSet<&str>,
    constants: &Constants<'_>,
) -> (Vec<Token>, Vec<NamedConstant>) {
    let of_template = kernel.template_parameters.iter().flatten().map(|parameter| parameter.name.as_str());
    let own: HashSet<&str> = kernel.parameters.iter().flatten().map(String::as_str).chain(of_template).collect();
    let (mut made, mut found): (Vec<Token>, Vec<NamedConstant>) = (Vec::new(), Vec::new());
    let places: HashSet<usize> =
        clauses(source, tokens).into_iter().filter(|(_, clause)| !WORDS.contains(clause)).map(|(at, _)| at).collect();
    let mut at = 0;
    while let Some(&token) = tokens.get(at) {
        // `ns::Mode::Fast` goes up to its last name.
        let mut last = at;
        while is_scope(tokens, last + 1) && name(source, tokens, last + 3).is_some() {
            last += 3;
        }
        let is_scoped = last > at;
        let candidate =
            name(source, tokens, last).filter(|_| places.contains(&at) && is_value(source, tokens, at, last));
        let candidate = candidate
            .filter(|name| is_scoped || !(RESERVED.contains(name) || own.contains(name) || axes.contains(name)));
        match candidate.and_then(|name| Some((name, constants.named(name, &|name| axes.contains(name))?))) {
            Some((name, value)) => {
                let span = token.span.to(tokens[last].span);
                made.push(Token { kind: TokenKind::Number(Value::Int(value)), span });
                if found.iter().all(|constant| constant.name != name) {
                    found.push(NamedConstant { name: name.to_owned(), value, span });
                }
            }
            None => made.extend_from_slice(&tokens[at..=last]),
        }
        at = last + 1;
    }
    (made, found)
}

/// The tokens inside of clauses by their number, each with its clause.
fn clauses<'a>(source: &'a Source, tokens: &[Token]) -> Vec<(usize, &'a str)> {
    let (mut depth, mut clause) = (Depth::default(), "");
    let of = |(at, token): (usize, &Token)| {
        match token.kind {
            TokenKind::Mark(mark) => _ = depth.pass_token(mark),
            TokenKind::Name if depth.is_outside() => clause = source.slice(token.span),
            _ => {}
        }
        (!depth.is_outside()).then_some((at, clause))
    };
    tokens.iter().enumerate().filter_map(of).collect()
}

/// Whether the name from `first` to `last` stands where a value does: what is before `=` or
/// before another name is being given one or is a type, and what a bracket follows is a
/// function or the contents of a buffer.
fn is_value(source: &Source, tokens: &[Token], first: usize, last: usize) -> bool {
    let is_before = ["(", "[", "{", "=", "."].iter().any(|mark| followed_by(tokens, last, mark));
    let is_type = name(source, tokens, last + 1).is_some()
        // `float *points = ...`, and not `rows * columns`.
        || (followed_by(tokens, last, "*") && followed_by(tokens, last + 2, "="));
    let before = first.checked_sub(1).and_then(|before| tokens.get(before));
    let is_field = before.is_some_and(|token| token.kind == TokenKind::Mark("."));
    let is_measured = first >= 2 && name(source, tokens, first - 2) == Some("sizeof");
    !(is_before || is_type || is_field || is_measured)
}

fn followed_by(tokens: &[Token], at: usize, mark: &str) -> bool {
    tokens.get(at + 1).is_some_and(|token| matches!(token.kind, TokenKind::Mark(found) if found == mark))
}

/// Whether `::` stands at `at`, two marks side by side.
fn is_scope(tokens: &[Token], at: usize) -> bool {
    let is_colon = |token: &Token| token.kind == TokenKind::Mark(":");
    matches!(tokens.get(at..at + 2), Some([first, second])
        if is_colon(first) && is_colon(second) && first.span.end == second.span.start)
}

fn name<'a>(source: &'a Source, tokens: &[Token], at: usize) -> Option<&'a str> {
    tokens.get(at).filter(|token| token.kind == TokenKind::Name).map(|token| source.slice(token.span))
}
