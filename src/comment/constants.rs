//! The constants that a source defines, or a file that is compiled with it -> their values, as far as the texts tell.
//!
//! `#define N 256`, `constexpr int N = 256, M{N / 2};` and enumerators, by their names without scopes. A name that is defined
//! twice with different values has none, and neither has one whose definition is more than an integer expression over others. What the
//! source defines itself counts before what stands in the other files. Which
//! definition a build compiles hangs on `#if`, headers and the command line, none of which is looked at: who relies on a
//! value has the compiler's word for it in the end (see [`TemplateArgument::Constant`](super::TemplateArgument)).

use super::annotation::MacroAxis;
use super::cxx::{CxxKind, CxxToken, cxx_tokens};
use super::expression::{Expr, Node};
use super::macros::{bodies, macros};
use super::parser::Cursor;
use super::source::{Source, Span};
use super::token::tokens;
use super::value::{Binary, Fault, Value};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ops::Deref;

/// The most constants of which each is defined by the next.
const DEEPEST: usize = 64;

/// The most bytes of a definition: one that is longer is a table or a text, and no number.
const LONGEST: usize = 1000;

/// What each constant is defined as, once for each of its definitions; `None` where that is no expression.
type Definitions<'a> = HashMap<&'a str, Vec<Option<Expr>>>;

/// The constants of a source; nothing is read before one is asked for, and no other file before one that the source does not define.
pub(super) struct Constants<'a> {
    source: &'a Source,
    code: &'a [CxxToken],
    others: &'a dyn Deref<Target = Vec<Source>>,
    definitions: OnceCell<Definitions<'a>>,
    defined_elsewhere: OnceCell<Definitions<'a>>,
    /// What was asked for before; what is being found has no value.
    values: RefCell<HashMap<String, Option<i64>>>,
    /// How many are being found.
    depth: Cell<usize>,
}

impl<'a> Constants<'a> {
    /// `code` are the tokens of the source, `others` the files that are compiled with it; it may be among them.
    pub fn new(source: &'a Source, code: &'a [CxxToken], others: &'a dyn Deref<Target = Vec<Source>>) -> Constants<'a> {
        Constants {
            source,
            code,
            others,
            definitions: OnceCell::new(),
            defined_elsewhere: OnceCell::new(),
            values: RefCell::default(),
            depth: Cell::new(0),
        }
    }

    /// The value of a template argument, which is an expression or a name with scopes; `None` where it hangs on a macro axis, whose
    /// value is another one in each variant.
    pub fn argument(&self, text: &str, expression: Option<&Expr>, axes: &[MacroAxis]) -> Option<i64> {
        let mut pending = Vec::new();
        let value = match expression {
            Some(expression) => {
                expression.names(&mut |name, _| pending.push(name.clone()));
                self.evaluate(expression)?
            }
            // `ns::N`, and neither `-ns::N` nor `S<2>::N`.
            None => {
                let is_name = text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | ' '));
                let name = text.rsplit("::").next().filter(|_| is_name)?.trim();
                pending.push(name.to_owned());
                self.value(name)?
            }
        };
        let mut seen: HashSet<String> = HashSet::new();
        while let Some(name) = pending.pop() {
            if axes.iter().any(|axis| axis.name == name) {
                return None;
            }
            if seen.insert(name.clone()) {
                for definition in self.definitions(&name).iter().flatten() {
                    definition.names(&mut |name, _| pending.push(name.clone()));
                }
            }
        }
        Some(value)
    }

    fn definitions(&self, name: &str) -> &[Option<Expr>] {
        let own = self.definitions.get_or_init(|| definitions(self.source, self.code));
        if let Some(found) = own.get(name) {
            return found;
        }
        let elsewhere = self.defined_elsewhere.get_or_init(|| {
            let mut found = Definitions::new();
            for other in self.others.iter().filter(|other| other.path != self.source.path) {
                for (name, of_file) in definitions(other, &cxx_tokens(&other.text)) {
                    found.entry(name).or_default().extend(of_file);
                }
            }
            found
        });
        elsewhere.get(name).map_or(&[], Vec::as_slice)
    }

    fn value(&self, name: &str) -> Option<i64> {
        if let Some(found) = self.values.borrow().get(name) {
            return *found;
        }
        self.values.borrow_mut().insert(name.to_owned(), None);
        let depth = self.depth.get();
        if depth == DEEPEST {
            return None;
        }
        self.depth.set(depth + 1);
        let mut values = self.definitions(name).iter().map(|definition| self.evaluate(definition.as_ref()?));
        let value = values.next().flatten().filter(|first| values.all(|other| other == Some(*first)));
        self.depth.set(depth);
        self.values.borrow_mut().insert(name.to_owned(), value);
        value
    }

    fn evaluate(&self, expression: &Expr) -> Option<i64> {
        let lookup = |name: &String| self.value(name).map(Value::Int).ok_or_else(|| Fault::NoValue(name.clone()));
        match expression.evaluate(&lookup).ok()? {
            Value::Int(value) => Some(value),
            Value::Float(_) => None,
        }
    }
}

/// What a name of the source is that has a value there and none in a comment: "macros", "constants".
pub fn kind_of(source: &Source, name: &str) -> Option<&'static str> {
    if !bodies(source, name).is_empty() {
        return Some("macros");
    }
    definitions(source, &cxx_tokens(&source.text)).contains_key(name).then_some("constants")
}

fn definitions<'a>(source: &'a Source, code: &[CxxToken]) -> Definitions<'a> {
    let mut found = Definitions::new();
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

/// The enumerators between the braces of an `enum`.
fn enumerators(source: &Source, code: &[CxxToken]) -> Vec<(Span, Option<Expr>)> {
    let mut found: Vec<(Span, Option<Expr>)> = Vec::new();
    // The last that is given a value, and how many come behind it.
    let (mut given, mut behind) = (None, 0);
    let mut at = 0;
    while let Some(name) = code.get(at) {
        let end = at + initializer(source, &code[at..]);
        if let Some(equals) = code[at..end].iter().position(|token| source.slice(token.span) == "=") {
            given = Some(whole(&code[at + equals + 1..end]).and_then(|span| expression(source, span)));
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
    if span.end - span.start > LONGEST {
        return None;
    }
    let mut unreadable = Vec::new();
    let tokens = tokens(source, &[span], &mut unreadable);
    let expression = Cursor::new(source, &tokens, span).whole_expression().ok()?;
    unreadable.is_empty().then_some(expression)
}

#[cfg(test)]
mod tests {
    use super::{Constants, cxx_tokens};
    use crate::comment::{Source, annotations};
    use std::cell::LazyCell;
    use std::sync::LazyLock;

    /// No other files.
    static ALONE: LazyLock<Vec<Source>> = LazyLock::new(Vec::new);

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
        let constants = Constants::new(&source, &code, &ALONE);
        for (name, value) in [
            ("BLOCK", Some(256)),
            ("HALF", Some(128)),
            ("CALL", None),
            ("EMPTY", None),
            ("LONG", Some(3)),
            ("TILE", Some(16)),
            ("A", Some(0)),
            ("B", Some(5)),
            ("C", Some(6)),
            ("D", Some(16)),
            ("E", Some(17)),
            ("Slow", Some(129)),
            ("ROWS", Some(4)),
            ("COLS", Some(32)),
            ("LAST", None),
            ("flag", Some(1)),
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

    /// The value of a template argument where the macro `AXIS` is an axis.
    fn argument(constants: &Constants<'_>, argument: &str) -> Option<i64> {
        let text =
            format!("//@tune define(AXIS = {{1, 2}}) block(64) threads(1)\n__global__ void k() {{}}\n{argument}");
        let tuned = Source::new("b.cu", text.as_bytes());
        let axes = annotations(&tuned).expect("a comment").remove(0).macros;
        let start = text.len() - argument.len();
        let read = super::expression(&tuned, super::Span { start, end: text.len() });
        constants.argument(argument, read.as_ref(), &axes)
    }

    #[test]
    fn arguments_are_names_with_scopes_or_expressions_that_hang_on_no_axis() {
        let text = "
            #ifndef AXIS
            #define AXIS 2
            #endif
            namespace ns { constexpr int N = 4; }
            constexpr int BY_AXIS = N * AXIS, FURTHER = BY_AXIS + 1;";
        let source = Source::new("a.cu", text.as_bytes());
        let code = cxx_tokens(&source.text);
        let constants = Constants::new(&source, &code, &ALONE);
        for (text, value) in [
            ("N", Some(4)),
            ("ns::N", Some(4)),
            ("::ns::N", Some(4)),
            ("N * 2 - 1", Some(7)),
            ("-ns::N", None),
            ("S<2>::N", None),
            ("0 ? 1 : ns::N", None),
            ("AXIS", None),
            ("N * AXIS", None),
            ("BY_AXIS", None),
            ("ns::FURTHER", None),
        ] {
            assert_eq!(argument(&constants, text), value, "{text}");
        }
    }

    #[test]
    fn constants_of_other_files_count_where_the_source_has_none_of_the_name() {
        let source = Source::new("a.cu", b"constexpr int N = 4, HALF = WIDTH / 2, LATER = N * ROWS;");
        let others = Box::new(vec![
            Source::new("b.h", b"#define N 5\n#define WIDTH (2 * N)\n#define TWICE 1\nenum { ROWS = 3 };"),
            Source::new("a.cu", b"constexpr int STALE = 1;"),
            Source::new("c.h", b"constexpr int TWICE = 2, SAME = 7; static const int DEEP = HALF;"),
            Source::new("d.h", b"#define SAME 7"),
        ]);
        let code = cxx_tokens(&source.text);
        let constants = Constants::new(&source, &code, &others);
        for (name, value) in [
            ("N", Some(4)),
            ("WIDTH", Some(8)),
            ("HALF", Some(4)),
            ("LATER", Some(12)),
            ("DEEP", Some(4)),
            ("SAME", Some(7)),
            ("TWICE", None),
            ("STALE", None),
        ] {
            assert_eq!(constants.value(name), value, "{name}");
        }
        let unread: LazyCell<Vec<Source>> = LazyCell::new(|| panic!("the source has it itself"));
        assert_eq!(Constants::new(&source, &code, &unread).value("N"), Some(4));
    }

    /// With each in terms of all before it, memory would not hold them.
    #[test]
    fn long_enumerations_chains_and_tables_are_read_once() {
        let names: String = (0..100_000).map(|at| format!("E{at}, ")).collect();
        let chain: String = (0..50_000).map(|at| format!("#define C{at} C{} + 1\n", at + 1)).collect();
        let table = "'a', ".repeat(100_000);
        let text = format!(
            "enum {{ {names} }};\nenum {{ F = 7, {}, LAST }};\n{chain}#define C50000 1\nconst Table t = {{ {table} }};",
            names.replace('E', "G").trim_end_matches(", ")
        );
        let source = Source::new("a.cu", text.as_bytes());
        let code = cxx_tokens(&source.text);
        let constants = Constants::new(&source, &code, &ALONE);
        for (name, value) in
            [("E99999", Some(99_999)), ("LAST", Some(100_008)), ("C0", None), ("C49990", Some(11)), ("t", None)]
        {
            assert_eq!(constants.value(name), value, "{name}");
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
                    let found = Constants::new(&source, &code, &ALONE).value(name);
                    assert!(found.is_none_or(|value| value < 5), "{part}");
                }
            }
        }
    }
}
