//! C++ code -> the constants that it defines: macros, `const` and `constexpr` variables,
//! enumerators.

use super::expression::Expr;
use super::expression::Node;
use super::value::Binary;
use super::value::Value;
use crate::cuda::brackets::Depth;
use crate::cuda::brackets::closes_bracket;
use crate::cuda::brackets::matching_bracket;
use crate::cuda::macros::bodies_of;
use crate::cuda::macros::plain_macros;
use crate::cuda::tokens::CxxKind;
use crate::cuda::tokens::CxxToken;
use crate::cuda::tokens::cxx_tokens;
use crate::diag::Source;
use crate::diag::Span;
use std::collections::HashMap;

/// What each constant is defined as, once for each of its definitions; `None` where that is no
/// expression.
pub(crate) type Definitions = HashMap<String, Vec<Option<Expr>>>;

/// Whether a name is one of the constants that a source defines, be it that its value is not
/// known.
pub fn is_defined(source: &Source, name: &str) -> bool {
    !bodies_of(source, name).is_empty() || definitions(source, &cxx_tokens(&source.text), &|_| None).contains_key(name)
}

/// What to say where a constant has no value in a comment.
pub const UNTOLD: &str = "its definition is not one number; write the number";

/// Finds the definitions of each name; `read` reads the text of a value.
pub(crate) fn definitions(source: &Source, code: &[CxxToken], read: &impl Fn(Span) -> Option<Expr>) -> Definitions {
    let mut found = Definitions::new();
    let mut define = |name: Span, value: Option<Expr>| {
        found.entry(source.slice(name).to_owned()).or_default().push(value);
    };
    for (name, body) in plain_macros(&source.text) {
        define(name, read(body));
    }
    let is_code = |token: &&CxxToken| !matches!(token.kind, CxxKind::Comment { .. });
    let code: Vec<CxxToken> = code.iter().filter(is_code).copied().collect();
    let text = |at: usize| code.get(at).map_or("", |token| source.slice(token.span));
    let is_name = |at: usize| code.get(at).is_some_and(|token| token.kind == CxxKind::Name);
    let (mut at, mut is_constant) = (0, false);
    while at < code.len() {
        match text(at) {
            "enum" => {
                let head = code[at..]
                    .iter()
                    .take_while(|token| !matches!(source.slice(token.span), "{" | ";" | ")" | "," | ">"));
                at += head.count();
                if text(at) == "{" {
                    let end = closing(source, &code, at);
                    for (name, value) in enumerators(source, &code[at + 1..end], read) {
                        define(name, value);
                    }
                    at = end;
                }
                is_constant = false;
            }
            "const" | "constexpr" => is_constant = true,
            "=" if is_constant && at > 0 && is_name(at - 1) => {
                let end = at + 1 + initializer(source, &code[at + 1..]);
                let value = whole(&code[at + 1..end]).and_then(read);
                define(code[at - 1].span, value);
                is_constant = text(end) == ",";
                at = end;
                continue;
            }
            "{" if is_constant && at > 0 && is_name(at - 1) => {
                let end = closing(source, &code, at);
                if matches!(text(end + 1), "," | ";") {
                    let value = whole(&code[at + 1..end]).and_then(read);
                    define(code[at - 1].span, value);
                    at = end;
                } else {
                    is_constant = false;
                }
            }
            ";" | "{" | "}" | "(" | ")" => is_constant = false,
            _ => {}
        }
        at += 1;
    }
    found
}

/// The enumerators between the braces of an `enum`.
pub(crate) fn enumerators(
    source: &Source,
    code: &[CxxToken],
    read: &impl Fn(Span) -> Option<Expr>,
) -> Vec<(Span, Option<Expr>)> {
    let mut found: Vec<(Span, Option<Expr>)> = Vec::new();
    // The last that is given a value, and how many come behind it.
    let (mut given, mut behind) = (None, 0);
    let mut at = 0;
    while let Some(name) = code.get(at) {
        let end = at + initializer(source, &code[at..]);
        if let Some(equals) = code[at..end].iter().position(|token| source.slice(token.span) == "=") {
            given = Some(whole(&code[at + equals + 1..end]).and_then(read));
            behind = 0;
        }
        let count = number(name.span, behind);
        let value = match &given {
            None => Some(count),
            Some(given) if behind == 0 => given.clone(),
            Some(given) => given.clone().map(|given| Expr {
                span: name.span,
                node: Node::Binary(Binary::Add, name.span, Box::new(given), Box::new(count)),
            }),
        };
        found.push((name.span, value));
        behind += 1;
        at = end + 1;
    }
    found
}

pub(crate) fn number(span: Span, value: i64) -> Expr {
    Expr { span, node: Node::Value(Value::Int(value)) }
}

/// How many tokens go before what ends an initializer: a comma, a semicolon, or the brace of
/// something else.
pub(crate) fn initializer(source: &Source, code: &[CxxToken]) -> usize {
    let mut depth = Depth::default();
    let ends = |(at, token): (usize, &CxxToken)| {
        let text = source.slice(token.span);
        let ends_here = matches!(text, "," | ";") || text == "{" && at > 0 || closes_bracket(text);
        let is_over = ends_here && depth.is_outside();
        depth.pass_token(text);
        is_over
    };
    code.iter().enumerate().position(ends).unwrap_or(code.len())
}

/// The place of the brace that closes the one at `open`; the end where none does.
pub(crate) fn closing(source: &Source, code: &[CxxToken], open: usize) -> usize {
    matching_bracket(open..code.len(), |at| source.slice(code[at].span), "{", "}").unwrap_or(code.len())
}

pub(crate) fn whole(code: &[CxxToken]) -> Option<Span> {
    Some(code.first()?.span.to(code.last()?.span))
}
