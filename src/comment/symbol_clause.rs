//! The `symbol` clause: what `__constant__` and `__device__` variables hold before a launch.
//!
//! `symbol(ck = random[n])` takes the element's type from the variable's declaration in the
//! same file; `symbol(float ck = random[n])` gives it, for a variable that is declared
//! elsewhere.

use super::annotation::GivenSymbol;
use super::lexer::{Token, TokenKind};
use super::parsed::Parsed;
use super::parser::Cursor;
use super::workload_clause;
use crate::cuda::brackets::{Depth, closing_bracket, split_parts};
use crate::cuda::instance_arguments;
use crate::cuda::tokens::{CxxKind, CxxToken, cxx_tokens};
use crate::diag::Diagnostic;
use crate::diag::{MessageCode, Source, Span};

pub(super) fn symbol(
    parsed: &mut Parsed,
    cursor: Cursor<'_>,
    _: Span,
    problems: &mut Vec<Diagnostic>,
) -> Result<(), Diagnostic> {
    for item in items(&cursor) {
        match one(item) {
            Ok(given) => {
                if let Some(first) = parsed.clauses.symbols.iter().find(|other| other.name == given.name) {
                    let note = cursor.source.note(first.span, "first given here");
                    let message = format!("variable `{}` is given twice", given.name);
                    problems.push(cursor.source.error(MessageCode::GivenTwice, given.span, message).with(note));
                } else {
                    parsed.clauses.symbols.push(given);
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    Ok(())
}

/// Returns the pieces between commas outside brackets. Before a `=`, `<` and `>` are brackets
/// too.
fn items<'a>(cursor: &Cursor<'a>) -> Vec<Cursor<'a>> {
    if cursor.is_empty() {
        return Vec::new();
    }
    let mut is_value = false;
    cursor.split(|depth, mark| {
        let is_bracket = match mark {
            "<" | ">" | ">>" if is_value => false,
            // `mask<float>=` has both in one mark.
            "=" | ">=" => depth.close_angles(),
            mark => depth.pass_template(mark),
        };
        if depth.is_outside() {
            is_value = (is_value || matches!(mark, "=" | ">=")) && mark != ",";
        }
        is_bracket
    })
}

/// Where the `<` of the template arguments is that end with `tokens`; `closed` of them stand
/// behind these already.
fn opening_angle(tokens: &[Token], closed: i32) -> Option<usize> {
    let mut depth = closed;
    for (at, token) in tokens.iter().enumerate().rev() {
        match token.kind {
            TokenKind::Mark(">") => depth += 1,
            TokenKind::Mark(">>") => depth += 2,
            TokenKind::Mark("<") if depth == 1 => return Some(at),
            TokenKind::Mark("<") => depth -= 1,
            _ => {}
        }
    }
    None
}

fn one(mut item: Cursor<'_>) -> Result<GivenSymbol, Diagnostic> {
    // `mask<float>=` has both in one mark.
    let equals = item.tokens.iter().position(|token| matches!(token.kind, TokenKind::Mark("=" | ">=")));
    let Some(equals) = equals else {
        item.name("the name of a variable")?;
        return Err(item.expected("`=` and its contents"));
    };
    let head = &item.tokens[..equals];
    let is_name = |at: usize| head.get(at).is_some_and(|token| token.kind == TokenKind::Name);
    let is_colon = |at: usize| head.get(at).is_some_and(|token| token.kind == TokenKind::Mark(":"));
    // The template arguments of an instance, and the name with its scopes, from its end.
    let closed = i32::from(item.tokens[equals].kind == TokenKind::Mark(">="));
    let is_instance = closed > 0 || matches!(head.last().map(|last| last.kind), Some(TokenKind::Mark(">" | ">>")));
    let end = if is_instance { opening_angle(head, closed) } else { Some(equals) };
    let Some((mut start, end)) = end.and_then(|end| Some((end.checked_sub(1).filter(|&last| is_name(last))?, end)))
    else {
        return Err(item.expected("the name of a variable"));
    };
    while start >= 3 && is_colon(start - 1) && is_colon(start - 2) && is_name(start - 3) {
        start -= 3;
    }
    let spelled = |tokens| Cursor::new(item.source, tokens, item.place()).spelled();
    let mut name = spelled(&head[start..end]);
    if is_instance {
        let arguments = &head[end + 1..head.len() - usize::from(closed == 0)];
        let inner = if closed == 0 && head[head.len() - 1].kind == TokenKind::Mark(">>") { ">" } else { "" };
        name = format!("{name}<{}{inner}>", spelled(arguments).replace(" ,", ","));
    }
    // `::ck` is `ck` of the outermost scope.
    let global = start >= 2 && is_colon(start - 1) && is_colon(start - 2);
    let kind = &head[..if global { start - 2 } else { start }];
    if let Some(colon) = kind.last().filter(|token| token.kind == TokenKind::Mark(":")) {
        return Err(item.source.error(MessageCode::SymbolClause, colon.span, "namespaces are written with `::`"));
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

/// The type of the elements of a `__constant__` or `__device__` variable that the file
/// declares, as text.
pub fn variable_element(source: &Source, name: &str) -> Option<String> {
    declared_element(source, &cxx_tokens(&source.text), name)
}

/// The type of the elements of a `__constant__` or `__device__` variable that is declared in
/// `code`, as text; `None` where no declaration of that name is found, or one that is not
/// plain.
pub(super) fn declared_element(source: &Source, code: &[CxxToken], name: &str) -> Option<String> {
    let plain_name = name.split('<').next().unwrap_or(name);
    let arguments = instance_arguments(name).unwrap_or_default();
    let name = plain_name.rsplit("::").next().unwrap_or(plain_name);
    let code: Vec<&CxxToken> = code.iter().filter(|token| !matches!(token.kind, CxxKind::Comment { .. })).collect();
    let text = |at: usize| code.get(at).map_or("", |token| source.slice(token.span));
    (0..code.len()).filter(|&at| text(at) == name && matches!(text(at + 1), ";" | "[" | "=" | "{" | ",")).find_map(
        |at| {
            let start = (0..at).rev().find(|&at| matches!(text(at), ";" | "{" | "}")).map_or(0, |at| at + 1);
            let words: Vec<&str> = (start..at).map(text).collect();
            let of_device = words.iter().any(|word| matches!(*word, "__constant__" | "__device__" | "__managed__"));
            let (parameters, words) = template_parameters(&words);
            let element = of_device.then(|| plain(shared_type(words)?)).flatten()?;
            // The element of a template may be one of its parameters.
            match parameters.iter().position(|parameter| *parameter == element) {
                Some(at) => arguments.get(at).map(|argument| argument.trim().to_owned()),
                None => Some(element),
            }
        },
    )
}

/// The names of the parameters that a declaration begins with (`template <typename T, int N>`),
/// and what follows them.
fn template_parameters<'w, 's>(words: &'w [&'s str]) -> (Vec<&'s str>, &'w [&'s str]) {
    let (Some(&"template"), Some(&"<")) = (words.first(), words.get(1)) else { return (Vec::new(), words) };
    let text = |at: usize| words[at];
    let Some(close) = closing_bracket(1..words.len(), text, Depth::pass_template) else { return (Vec::new(), &[]) };
    let parameters = split_parts(2, close, text, Depth::pass_template).into_iter();
    (parameters.map(|(_, end)| words[end - 1]).collect(), &words[close + 1..])
}

/// The words of the type of a variable, of those from the start of its declaration to its name:
/// all of them, or where several are declared together (`float a = 1, b[4], c`), those before
/// the first one's name. `None` where it is not of that very type (`*c`).
fn shared_type<'w, 's>(words: &'w [&'s str]) -> Option<&'w [&'s str]> {
    let mut depth = Depth::default();
    let (mut first_end, mut last_comma) = (None, None);
    for (at, word) in words.iter().enumerate() {
        // What ends the first name; attributes have brackets, too, but in front.
        if depth.is_outside() && at > 0 && matches!(*word, "," | "=" | "[") {
            first_end = first_end.or(Some(at));
        }
        if !depth.pass_template(word) && depth.is_outside() && *word == "," {
            last_comma = Some(at);
        }
    }
    match (first_end, last_comma) {
        (_, None) => Some(words),
        (Some(end), Some(comma)) if comma + 1 == words.len() => words.get(..end.checked_sub(1)?),
        _ => None,
    }
}

/// A type without specifiers and attributes; `None` for a pointer.
fn plain(words: &[&str]) -> Option<String> {
    let (mut kept, mut depth) = (Vec::new(), Depth::default());
    for (at, word) in words.iter().enumerate() {
        match *word {
            word if depth.pass_token(word) || !depth.is_outside() || SPECIFIERS.contains(&word) => {}
            "," | "*" | "&" => return None,
            // `__align__(16)` and its like.
            _ if words.get(at + 1) == Some(&"(") => {}
            word => kept.push(word),
        }
    }
    (!kept.is_empty()).then(|| kept.join(" ").replace(" :: ", "::"))
}
