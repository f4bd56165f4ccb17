//! The tokens of a tuning comment.
//!
//! Pieces of the source (the bodies of its tuning comments) -> tokens, or a diagnostic at what
//! is no token. A token is never empty and its span is of the whole source.

use super::value::{BINARY, Value};
use crate::diag::Diagnostic;
use crate::diag::{MessageCode, Source, Span};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TokenKind {
    Number(Value),
    Name,
    Text,
    /// An operator or a bracket.
    Mark(&'static str),
    /// Nothing of the language; reported and left out.
    Wrong,
}

/// What to write for `64..1024`, `1, ..., 4` and `range(1, 4)`.
pub(super) const RANGE: &str = "a range is written lo:hi or lo:hi:step, as in 64:256:64";

/// What characters behind a backslash stand for.
const ESCAPES: [(u8, u8); 7] =
    [(b'0', 0), (b't', b'\t'), (b'n', b'\n'), (b'r', b'\r'), (b'\'', b'\''), (b'"', b'"'), (b'\\', b'\\')];

/// The marks that are no binary operators.
const MARKS: [&str; 14] = ["(", ")", "[", "]", "{", "}", ",", ":", "?", "=", "!", "~", ".", ";"];

/// The tokens of these pieces in order. Comments within a piece are skipped. Where all lines of
/// a piece after its first begin with `*`, these are decoration.
pub(super) fn tokens(source: &Source, pieces: &[Span], problems: &mut Vec<Diagnostic>) -> Vec<Token> {
    let mut tokens = Vec::new();
    // Whether a character that is not of ASCII was reported.
    let mut has_foreign = false;
    for piece in pieces {
        let starred = is_starred(source.slice(*piece));
        let mut at = piece.start;
        let mut line_start = false;
        while let Some(rest) = source.text.get(at..piece.end).filter(|rest| !rest.is_empty()) {
            let blank = |c: char| c.is_whitespace() || c == '\\';
            let blanks = rest.len() - rest.trim_start_matches(blank).len();
            if blanks > 0 {
                line_start |= rest[..blanks].contains('\n');
                at += blanks;
                continue;
            }
            if std::mem::take(&mut line_start) && starred && rest.starts_with('*') {
                at += 1;
                continue;
            }
            if rest.starts_with("//") {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            if let Some(inside) = rest.strip_prefix("/*") {
                at += inside.find("*/").map_or(rest.len(), |end| end + 4);
                continue;
            }
            let (length, kind) = next(rest).unwrap_or_else(|(length, message)| {
                let span = Span { start: at, end: at + length };
                let is_foreign = rest.starts_with(|c: char| !c.is_ascii());
                // Quotation marks of a text processor come in pairs.
                if !(is_foreign && std::mem::replace(&mut has_foreign, true)) {
                    problems.push(source.error(MessageCode::TokenForm, span, message));
                }
                // A number that is wrong still is a value, so that it is reported once: one that is right as
                // block, cap and shift.
                let number = rest.starts_with(|c: char| c.is_ascii_digit() || c == '.');
                (length, if number { TokenKind::Number(Value::Int(32)) } else { TokenKind::Wrong })
            });
            let span = Span { start: at, end: at + length };
            if kind != TokenKind::Wrong {
                tokens.push(Token { kind, span });
            }
            at += length;
        }
    }
    tokens
}

fn is_starred(piece: &str) -> bool {
    let mut lines = piece.split('\n').skip(1).map(str::trim).filter(|line| !line.is_empty()).peekable();
    lines.peek().is_some() && lines.all(|line| line.starts_with('*'))
}

/// The length and kind of the token that `rest` begins with, or the length and fault of what is
/// none.
fn next(rest: &str) -> Result<(usize, TokenKind), (usize, String)> {
    let first = rest.chars().next().unwrap_or(' ');
    let second = rest.chars().nth(1).unwrap_or(' ');
    if first.is_ascii_digit() || (first == '.' && second.is_ascii_digit()) {
        return number(rest);
    }
    if first.is_alphabetic() || first == '_' {
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        return Ok((length, TokenKind::Name));
    }
    if first == '"' {
        let line = rest.split('\n').next().unwrap_or(rest);
        return match line[1..].find('"') {
            Some(end) => Ok((end + 2, TokenKind::Text)),
            None => Err((line.trim_end().len(), "this text has no closing `\"`".to_string())),
        };
    }
    if let Some((length, value)) = character(rest) {
        return Ok((length, TokenKind::Number(Value::Int(value))));
    }
    // `==`, `!=`, `<=` and so on stand before their first characters.
    let operators = BINARY.iter().map(|(_, symbol, _)| *symbol);
    match operators.chain(MARKS).find(|mark| rest.starts_with(mark)) {
        Some(mark) => Ok((mark.len(), TokenKind::Mark(mark))),
        None => Err((first.len_utf8(), format!("`{first}` has no meaning in a tuning comment: remove it"))),
    }
}

/// A character of C, `'a'` or `'\n'`, and how long it is.
fn character(rest: &str) -> Option<(usize, i64)> {
    let (value, length) = match rest.as_bytes() {
        [b'\'', b'\\', escaped, b'\'', ..] => {
            let known = ESCAPES.iter().find(|(letter, _)| letter == escaped);
            (known?.1, 4)
        }
        [b'\'', letter @ b' '..=b'~', b'\'', ..] if !b"'\\".contains(letter) => (*letter, 3),
        _ => return None,
    };
    Some((length, i64::from(value)))
}

/// A C literal: decimal, hexadecimal, octal, binary or floating, with C's suffixes and digit
/// separators.
fn number(rest: &str) -> Result<(usize, TokenKind), (usize, String)> {
    let length = literal_length(rest);
    let spelled = &rest[..length];
    let wrong = |why: &str| Err((length, format!("`{spelled}` {why}")));
    let text = spelled.replace('\'', "").to_ascii_lowercase();
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x', ..] => (&text[2..], 16),
        [b'0', b'b', ..] => (&text[2..], 2),
        [b'0', b'0'..=b'9', ..] if !text.contains(['.', 'e']) => (&text[1..], 8),
        _ => (text.as_str(), 10),
    };
    if radix == 10 && text.contains(['.', 'e', 'f']) {
        let (digits, single) = match digits.strip_suffix('f') {
            Some(digits) => (digits, true),
            None => (digits, false),
        };
        let value = match digits.parse::<f64>() {
            // An `f` literal has the value that float can hold.
            Ok(value) if single => f64::from(value as f32),
            Ok(value) => value,
            Err(_) if digits.contains("..") => return wrong(&format!("is not a number: {RANGE}")),
            Err(_) => return wrong("is not a number"),
        };
        if !value.is_finite() {
            return wrong("is too large for its type");
        }
        return Ok((length, TokenKind::Number(Value::Float(value))));
    }
    let digits = digits.trim_end_matches(['u', 'l']);
    match u64::from_str_radix(digits, radix) {
        Ok(value) => match i64::try_from(value) {
            Ok(value) => Ok((length, TokenKind::Number(Value::Int(value)))),
            Err(_) => wrong("does not fit in 64 bits with a sign"),
        },
        Err(error) if *error.kind() == std::num::IntErrorKind::PosOverflow => {
            wrong("does not fit in 64 bits with a sign")
        }
        Err(_) => match shape(&text) {
            Some(extents) => {
                wrong(&format!("is not a number: a shape is {{{extents}}} in `default`, and {extents} in `block`"))
            }
            None => wrong("is not a number"),
        },
    }
}

/// Returns the extents of a shape as messages write it: `32, 8` for `32x8`.
fn shape(text: &str) -> Option<String> {
    let extents: Vec<&str> = text.split('x').collect();
    let is_number = |extent: &&str| !extent.is_empty() && extent.bytes().all(|byte| byte.is_ascii_digit());
    (matches!(extents.len(), 2 | 3) && extents.iter().all(is_number)).then(|| extents.join(", "))
}

/// How far a literal goes: letters, digits, points, and a sign after an exponent.
fn literal_length(rest: &str) -> usize {
    let hexadecimal = rest.starts_with("0x") || rest.starts_with("0X");
    let mut previous = ' ';
    for (at, c) in rest.char_indices() {
        let sign = (c == '+' || c == '-') && matches!(previous, 'e' | 'E') && !hexadecimal;
        if !(c.is_alphanumeric() || c == '_' || c == '.' || c == '\'' || sign) {
            return at;
        }
        previous = c;
    }
    rest.len()
}
