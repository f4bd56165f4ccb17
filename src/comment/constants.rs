//! The constants that a source defines itself -> their values, as far as its text tells.
//!
//! `#define N 256`, `constexpr int N = 256, M{N / 2};` and enumerators, by their names without scopes. A name that the file defines
//! twice with different values has none, and neither has one whose definition is more than an integer expression over others. Which
//! definition a build compiles hangs on `#if`, headers and the command line, none of which is looked at: who relies on a
//! value has the compiler's word for it in the end (see [`TemplateArgument::Constant`](super::TemplateArgument)).

use super::cxx::{CxxKind, CxxToken};
use super::expression::{Expr, Node};
use super::parser::Cursor;
use super::source::{Source, Span};
use super::token::tokens;
use super::value::{Binary, Fault, Value};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

/// The constants of a source; nothing is read before one is asked for.
pub(super) struct Constants<'a> {
    source: &'a Source,
    code: &'a [CxxToken],
    definitions: OnceCell<HashMap<&'a str, Vec<Option<Expr>>>>,
    /// What was asked for before; what is being found has no value.
    values: RefCell<HashMap<String, Option<i64>>>,
}

impl<'a> Constants<'a> {
    /// `code` are the tokens of the source.
    pub fn new(source: &'a Source, code: &'a [CxxToken]) -> Constants<'a> {
        Constants { source, code, definitions: OnceCell::new(), values: RefCell::default() }
    }

    /// The value of a name, with its scopes or without.
    pub fn value(&self, name: &str) -> Option<i64> {
        let name = name.rsplit("::").next()?.trim();
        if let Some(found) = self.values.borrow().get(name) {
            return *found;
        }
        self.values.borrow_mut().insert(name.to_owned(), None);
        let definitions = self.definitions.get_or_init(|| definitions(self.source, self.code));
        let mut values = definitions.get(name)?.iter().map(|definition| self.evaluate(definition.as_ref()?));
        let value = values.next()?.filter(|first| values.all(|other| other == Some(*first)));
        self.values.borrow_mut().insert(name.to_owned(), value);
        value
    }

    /// The value of an expression over constants.
    pub fn evaluate(&self, expression: &Expr) -> Option<i64> {
        let lookup = |name: &String| self.value(name).map(Value::Int).ok_or_else(|| Fault::NoValue(name.clone()));
        match expression.evaluate(&lookup).ok()? {
            Value::Int(value) => Some(value),
            Value::Float(_) => None,
        }
    }
}

/// What each constant is defined as, once for each of its definitions; `None` where that is no expression.
fn definitions<'a>(source: &'a Source, code: &[CxxToken]) -> HashMap<&'a str, Vec<Option<Expr>>> {
    let mut found: HashMap<&str, Vec<Option<Expr>>> = HashMap::new();
    for (name, body) in macros(source) {
        found.entry(source.slice(name)).or_default().push(expression(source, body));
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
                    for (name, value) in enumerators(source, &code[at + 1..end]) {
                        found.entry(source.slice(name)).or_default().push(value);
                    }
                    at = end;
                }
                is_constant = false;
            }
            "const" | "constexpr" => is_constant = true,
            "=" if is_constant && at > 0 && is_name(at - 1) => {
                let end = at + 1 + initializer(source, &code[at + 1..]);
                let value = whole(&code[at + 1..end]).and_then(|span| expression(source, span));
                found.entry(source.slice(code[at - 1].span)).or_default().push(value);
                is_constant = text(end) == ",";
                at = end;
                continue;
            }
            "{" if is_constant && at > 0 && is_name(at - 1) => {
                let end = closing(source, &code, at);
                if matches!(text(end + 1), "," | ";") {
                    let value = whole(&code[at + 1..end]).and_then(|span| expression(source, span));
                    found.entry(source.slice(code[at - 1].span)).or_default().push(value);
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

/// Names and bodies of the macros without parameters.
fn macros(source: &Source) -> Vec<(Span, Span)> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in source.text.split_inclusive('\n') {
        let rest = line.trim_start().strip_prefix('#').and_then(|rest| rest.trim_start().strip_prefix("define"));
        if let Some(rest) = rest.filter(|rest| rest.starts_with([' ', '\t'])).map(str::trim_start) {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let name = start + (line.len() - rest.len());
            // A parenthesis right behind the name begins parameters, and a body over several lines is no number.
            if !rest[length..].starts_with('(') && !rest.trim_end().ends_with('\\') {
                let (from, to) = (name + length, start + line.trim_end().len());
                found.push((Span { start: name, end: from }, Span { start: from, end: to.max(from) }));
            }
        }
        start += line.len();
    }
    found
}

/// The enumerators between the braces of an `enum`.
fn enumerators(source: &Source, code: &[CxxToken]) -> Vec<(Span, Option<Expr>)> {
    let mut found: Vec<(Span, Option<Expr>)> = Vec::new();
    let mut at = 0;
    while let Some(name) = code.get(at) {
        let end = at + initializer(source, &code[at..]);
        let value = code[at..end].iter().position(|token| source.slice(token.span) == "=");
        let value = match (value, found.last()) {
            (Some(equals), _) => whole(&code[at + equals + 1..end]).and_then(|span| expression(source, span)),
            (None, None) => Some(number(name.span, 0)),
            (None, Some((_, before))) => before.as_ref().map(|before| {
                let one = Box::new(number(name.span, 1));
                Expr { span: name.span, node: Node::Binary(Binary::Add, name.span, Box::new(before.clone()), one) }
            }),
        };
        found.push((name.span, value));
        at = end + 1;
    }
    found
}

fn number(span: Span, value: i64) -> Expr {
    Expr { span, node: Node::Value(Value::Int(value)) }
}

/// How many tokens go before what ends an initializer: a comma, a semicolon, or the brace of something else.
fn initializer(source: &Source, code: &[CxxToken]) -> usize {
    let mut depth = 0usize;
    let ends = |(at, token): (usize, &CxxToken)| {
        match source.slice(token.span) {
            "{" if depth == 0 && at > 0 => return true,
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 0 => return true,
            ")" | "]" | "}" => depth -= 1,
            "," | ";" => return depth == 0,
            _ => {}
        }
        false
    };
    code.iter().enumerate().position(ends).unwrap_or(code.len())
}

/// The place of the brace that closes the one at `open`; the end where none does.
fn closing(source: &Source, code: &[CxxToken], open: usize) -> usize {
    let mut depth = 0usize;
    let closes = |token: &CxxToken| {
        match source.slice(token.span) {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        depth == 0
    };
    code[open..].iter().position(closes).map_or(code.len(), |length| open + length)
}

fn whole(code: &[CxxToken]) -> Option<Span> {
    Some(code.first()?.span.to(code.last()?.span))
}

/// A piece of the source as an expression of the comments' language.
fn expression(source: &Source, span: Span) -> Option<Expr> {
    let mut unreadable = Vec::new();
    let tokens = tokens(source, &[span], &mut unreadable);
    let expression = Cursor::new(source, &tokens, span).whole_expression().ok()?;
    unreadable.is_empty().then_some(expression)
}

#[cfg(test)]
mod tests {
    use super::super::cxx::cxx_tokens;
    use super::Constants;
    use crate::comment::Source;

    #[test]
    fn constants_have_the_values_that_their_definitions_tell() {
        let text = "
            #define BLOCK 256 // threads
            # define HALF (BLOCK / 2)
            #define CALL(x) x
            #define EMPTY
            #define LONG 1 + \\
                2
            #ifndef TILE
            #define TILE 16
            #endif
            enum { A, B = 5, C, D = sizeof(int) << 2, E };
            enum class Mode : unsigned char { Fast = HALF, Slow, };
            enum Kind f(int);
            namespace ns { constexpr int ROWS = 4, COLS{ROWS * 8}, LAST(3); }
            struct S { static constexpr bool flag = true; enum : int { Inner = -1 }; };
            static const unsigned int MASK = 0xffu;
            const float *p = nullptr; int variable = 3;
            constexpr float ratio = 0.5f;
            constexpr int f(int argument = 9) { return argument; }
            void g() { constexpr int ROUND = 7; const int other = variable; int after = 1; }
            constexpr int TWICE = 1;
            #if X
            constexpr int TWICE = 2, SAME = 1 + 1;
            #else
            constexpr int SAME = 2;
            #endif
            #define LOOP POOL
            #define POOL LOOP
            #define X0 X1 + X1
            #define X1 X2 + X2
            #define X2 1 << 62
            constexpr int BIG = 1 << 64;
            template <int N, const int M = 4> void h() {}
            const Some GIVEN = Some{3};
            enum Last { Open = 8";
        let source = Source::new("a.cu", text.as_bytes());
        let code = cxx_tokens(&source.text);
        let constants = Constants::new(&source, &code);
        for (name, value) in [
            ("BLOCK", Some(256)),
            ("HALF", Some(128)),
            ("CALL", None),
            ("EMPTY", None),
            ("LONG", None),
            ("TILE", Some(16)),
            ("A", Some(0)),
            ("B", Some(5)),
            ("C", Some(6)),
            ("D", Some(16)),
            ("E", Some(17)),
            ("Mode::Slow", Some(129)),
            ("ns::ROWS", Some(4)),
            ("::ns::COLS", Some(32)),
            ("LAST", None),
            ("S::flag", Some(1)),
            ("Inner", Some(-1)),
            ("MASK", Some(255)),
            ("p", None),
            ("variable", None),
            ("ratio", None),
            ("argument", None),
            ("ROUND", Some(7)),
            ("other", None),
            ("after", None),
            ("TWICE", None),
            ("SAME", Some(2)),
            ("LOOP", None),
            ("POOL", None),
            ("X0", None),
            ("BIG", None),
            ("M", None),
            ("GIVEN", None),
            ("Some", None),
            ("Open", Some(8)),
            ("absent", None),
            ("", None),
        ] {
            assert_eq!(constants.value(name), value, "{name}");
            assert_eq!(constants.value(name), value, "{name} again");
        }
    }

    #[test]
    fn damaged_sources_have_constants_or_none() {
        let text = "enum { A = 1, B }; constexpr int C = 2, D{3}; const int E = {4";
        for (end, _) in text.char_indices() {
            for part in [&text[..end], &text[end..]] {
                let source = Source::new("a.cu", part.as_bytes());
                let code = cxx_tokens(&source.text);
                for name in ["A", "B", "C", "D", "E"] {
                    let found = Constants::new(&source, &code).value(name);
                    assert!(found.is_none_or(|value| value < 5), "{part}");
                }
            }
        }
    }
}
