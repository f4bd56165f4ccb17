//! The constants that a source defines, or a file around it -> their values, as far as the
//! texts tell.
//!
//! `#define N 256`, `constexpr int N = 256, M{N / 2};` and enumerators, by their names without
//! scopes. A name that the file defines twice with different values has none, and neither has
//! one whose definition is more than an integer expression over others. What the file itself
//! does not define is looked for in the files around it. Which definition a build compiles
//! depends on `#if` and the command line, none of which is looked at: who relies on a value asks
//! the compiler in the end (see
//! [`TemplateArgument::Constant`](super::annotation::TemplateArgument)), or the preprocessor
//! ([`differing`]).

use super::annotation::{MacroAxis, NamedConstant};
use super::expression::Expr;
use super::lexer::tokens;
use super::parser::Cursor;
use super::value::{Fault, Value};
use crate::comment::constant_definitions::{Definitions, definitions};
use crate::cuda::macros::bodies_of;
use crate::cuda::tokens::{CxxToken, cxx_tokens};
use crate::diag::{Source, Span};
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};

/// The most bytes of a definition: one that is longer is a table or a text, and no number.
const LONGEST: usize = 1000;

/// The constants of a source; nothing is read before one is asked for.
pub(super) struct Constants<'a> {
    source: &'a Source,
    code: &'a [CxxToken],
    /// The files around the source: what it includes, and what includes it.
    around: &'a dyn Fn() -> Vec<Source>,
    files: OnceCell<Vec<Source>>,
    definitions: OnceCell<Definitions>,
    others: OnceCell<Definitions>,
    /// What was asked for before.
    values: RefCell<HashMap<String, Option<i64>>>,
}

impl<'a> Constants<'a> {
    /// `code` are the tokens of the source, and `around` reads the files around it, where a
    /// name is asked for that it does not define.
    pub fn new(source: &'a Source, code: &'a [CxxToken], around: &'a dyn Fn() -> Vec<Source>) -> Constants<'a> {
        let (files, definitions, others) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Constants { source, code, around, files, definitions, others, values: RefCell::default() }
    }

    /// The value of a template argument, which is an expression or a name with scopes; `None`
    /// where it depends on a macro axis, whose value is another one in each variant.
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
        let is_axis = |name: &str| axes.iter().any(|axis| axis.name == name);
        (!self.depends_on(pending, &is_axis)).then_some(value)
    }

    /// The value of a constant by its name without scopes; `None` where it depends on a name that
    /// `is_axis`.
    pub fn named(&self, name: &str, is_axis: &dyn Fn(&str) -> bool) -> Option<i64> {
        let value = self.value(name)?;
        (!self.depends_on(vec![name.to_owned()], is_axis)).then_some(value)
    }

    /// Whether one of these names is an axis, or is defined by one that is.
    fn depends_on(&self, mut pending: Vec<String>, is_axis: &dyn Fn(&str) -> bool) -> bool {
        let mut seen: HashSet<String> = HashSet::new();
        while let Some(name) = pending.pop() {
            if is_axis(&name) {
                return true;
            }
            if seen.insert(name.clone()) {
                for definition in self.definitions(&name).into_iter().flatten().flatten() {
                    definition.names(&mut |name, _| pending.push(name.clone()));
                }
            }
        }
        false
    }

    /// The files around the source, which are read once.
    pub fn around(&self) -> &[Source] {
        self.files.get_or_init(self.around)
    }

    /// What defines a name: the source where it does, else the files around it.
    fn definitions(&self, name: &str) -> Option<&Vec<Option<Expr>>> {
        let own =
            self.definitions.get_or_init(|| definitions(self.source, self.code, &|span| expression(self.source, span)));
        own.get(name).or_else(|| {
            let others = self.others.get_or_init(|| {
                let mut found = Definitions::new();
                for source in self.around() {
                    for (name, definitions) in
                        definitions(source, &cxx_tokens(&source.text), &|span| expression(source, span))
                    {
                        found.entry(name).or_default().extend(definitions);
                    }
                }
                found
            });
            others.get(name)
        })
    }

    /// The value of a constant, found after those of all that it is defined by; one that is
    /// defined by itself has none.
    fn value(&self, name: &str) -> Option<i64> {
        let known = |name: &str| self.values.borrow().get(name).copied();
        // A chain of names may be long: it is no recursion.
        let (mut pending, mut begun) = (vec![name.to_owned()], HashSet::new());
        while let Some(name) = pending.last().filter(|name| known(name).is_none()).cloned() {
            let definitions = self.definitions(&name);
            if begun.insert(name.clone()) {
                let mut further = Vec::new();
                definitions.into_iter().flatten().flatten().for_each(|of| of.names(&mut |name, _| further.push(name)));
                further.retain(|name| known(name).is_none() && !begun.contains(*name));
                pending.extend(further.into_iter().cloned());
            } else {
                let lookup = |name: &String| known(name).flatten();
                let value = definitions.and_then(|definitions| {
                    let mut values = definitions.iter().map(|definition| integer(definition.as_ref()?, &lookup));
                    values.next()?.filter(|first| values.all(|other| other == Some(*first)))
                });
                self.values.borrow_mut().insert(name, value);
            }
            while pending.pop_if(|name| known(name).is_some()).is_some() {}
        }
        known(name).flatten()
    }

    fn evaluate(&self, expression: &Expr) -> Option<i64> {
        integer(expression, &|name| self.value(name))
    }
}

/// The value of an expression that is an integer, where `value` has those of its names.
fn integer(expression: &Expr, value: &dyn Fn(&String) -> Option<i64>) -> Option<i64> {
    let lookup = |name: &String| value(name).map(Value::Int).ok_or_else(|| Fault::NoValue(name.clone()));
    match expression.evaluate(&lookup).ok()? {
        Value::Int(value) => Some(value),
        Value::Float(_) => None,
    }
}

/// Those of these constants that have other values in a preprocessed source with its `#define`
/// lines. There the last definition of a macro counts; of constants any of its name may be the
/// one. Where no definition tells a value there is nothing against it.
pub fn differing<'c>(preprocessed: &Source, named: &'c [NamedConstant]) -> Vec<&'c NamedConstant> {
    let code = cxx_tokens(&preprocessed.text);
    let constants = Constants::new(preprocessed, &code, &Vec::new);
    let differs = |constant: &&NamedConstant| {
        let last = bodies_of(preprocessed, &constant.name).pop().map(|body| vec![expression(preprocessed, body)]);
        let definitions = last.as_ref().or_else(|| constants.definitions(&constant.name));
        let values = definitions.into_iter().flatten().flatten().filter_map(|found| constants.evaluate(found));
        let values: Vec<i64> = values.collect();
        !values.is_empty() && !values.contains(&constant.value)
    };
    named.iter().filter(differs).collect()
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
    use super::{Constants, differing};
    use crate::comment::annotation::NamedConstant;
    use crate::comment::annotations::annotations;
    use crate::cuda::tokens::cxx_tokens;
    use crate::diag::Source;
    use crate::diag::Span;

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
        let constants = Constants::new(&source, &code, &Vec::new);
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
        let axes = annotations(&tuned).expect("a comment").remove(0).clauses.macros;
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
        let constants = Constants::new(&source, &code, &Vec::new);
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
        let others = || {
            vec![
                Source::new("b.h", b"#define N 5\n#define WIDTH (2 * N)\n#define TWICE 1\nenum { ROWS = 3 };"),
                Source::new("c.h", b"constexpr int TWICE = 2, SAME = 7; static const int DEEP = HALF;"),
                Source::new("d.h", b"#define SAME 7"),
            ]
        };
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
        ] {
            assert_eq!(constants.value(name), value, "{name}");
        }
        let unread = || panic!("the source has it itself");
        assert_eq!(Constants::new(&source, &code, &unread).value("N"), Some(4));
    }

    #[test]
    fn a_build_has_other_values_where_the_last_macro_or_every_constant_of_a_name_says_so() {
        let text = "#define N 4\n#define N (2 * M)\nconstexpr int M = 4, R = UNSAID;\nextern const int E;\n\
            namespace a { enum { K = 1 }; }\nnamespace b { const int K = M / 2; }";
        let preprocessed = Source::new("a.cu", text.as_bytes());
        for (name, value, differs) in [
            ("N", 8, false),
            ("N", 4, true),
            ("M", 4, false),
            ("M", 5, true),
            ("K", 1, false),
            ("K", 2, false),
            ("K", 3, true),
            ("R", 1, false),
            ("E", 1, false),
            ("nowhere", 1, false),
        ] {
            let named = [NamedConstant { name: name.to_owned(), value, span: Span { start: 0, end: 1 } }];
            assert_eq!(differing(&preprocessed, &named).len(), usize::from(differs), "{name} {value}");
        }
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
        let constants = Constants::new(&source, &code, &Vec::new);
        for (name, value) in
            [("E99999", Some(99_999)), ("LAST", Some(100_008)), ("C0", Some(50_001)), ("C49990", Some(11)), ("t", None)]
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
                    let found = Constants::new(&source, &code, &Vec::new).value(name);
                    assert!(found.is_none_or(|value| value < 5), "{part}");
                }
            }
        }
    }
}
