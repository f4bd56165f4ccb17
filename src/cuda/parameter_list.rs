//! A kernel's list of parameters: tokens, or what the preprocessor made of the source -> names and
//! declarations.
//!
//! No C++ parser: what one declarator declares is found by its words and brackets.

use super::brackets::{Depth, closing_bracket, split_parts};
use super::macros;
use super::tokens::{CxxKind, CxxToken, cxx_tokens};
use crate::diag::{Source, Span};

/// The parameters of a kernel: names and declarations, as in [`Kernel`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParameterList {
    pub names: Vec<Option<String>>,
    pub declarations: Vec<String>,
}

impl ParameterList {
    /// Reads the tokens between the parentheses.
    pub(super) fn read(source: &Source, tokens: &[CxxToken]) -> ParameterList {
        let (names, declarations) = split_parameters(source, tokens).into_iter().unzip();
        ParameterList { names, declarations }
    }

    /// Whether a parameter has this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().flatten().any(|own| own == name)
    }
}

/// Of the lists that `#if` makes of a kernel's parameters, the one that has exactly the `given`
/// names, else the first that has all of them, else the first: which is compiled depends on macros
/// that are not known here.
pub(super) fn best_list(lists: &[ParameterList], given: &[&str]) -> ParameterList {
    let fit = |list: &ParameterList| {
        let has_all = given.iter().all(|name| list.has(name));
        (has_all && list.names.iter().flatten().count() == given.len(), has_all)
    };
    // Of equal ones `max_by_key` takes the last.
    lists.iter().rev().max_by_key(|list| fit(list)).cloned().unwrap_or_default()
}

/// Longer lists of parameters are not looked for, in bytes.
const LONGEST_LIST: usize = 64 << 10;

/// The parameters of each function of this name that a preprocessed text defines.
pub(super) fn defined_parameters(preprocessed: &str, name: &str) -> Vec<ParameterList> {
    let mut found = Vec::new();
    for (at, _) in preprocessed.match_indices(name) {
        let is_whole = |neighbor: Option<char>| !neighbor.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let (before, after) = (&preprocessed[..at], &preprocessed[at + name.len()..]);
        if !is_whole(before.chars().next_back()) || !after.trim_start().starts_with('(') {
            continue;
        }
        let Some(end) = after.find(['{', ';']).filter(|end| *end <= LONGEST_LIST) else { continue };
        if !after[end..].starts_with('{') {
            continue;
        }
        let source = Source::new("", &after.as_bytes()[..end]);
        let code = cxx_tokens(&source.text);
        // Behind a definition's list stands at most an attribute; behind a call's, more of the
        // expression.
        let close = closing_bracket(0..code.len(), |at| source.slice(code[at].span), Depth::pass_token);
        if let Some(close) = close
            && code.get(close + 1).is_none_or(|token| token.kind == CxxKind::Name)
        {
            found.push(ParameterList::read(&source, &code[1..close]));
        }
    }
    found
}

/// Words that are a type by themselves, and so no name of a parameter.
const TYPES: [&str; 15] = [
    "void", "bool", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "auto", "wchar_t",
    "char8_t", "char16_t", "char32_t",
];
/// Words that are no name of a parameter and no type either: after one of these a name can
/// still be the type.
const QUALIFIERS: [&str; 15] = [
    "const",
    "volatile",
    "struct",
    "class",
    "enum",
    "union",
    "typename",
    "register",
    "restrict",
    "__restrict__",
    "__restrict",
    "__grid_constant__",
    "__const__",
    "__volatile__",
    "constexpr",
];

/// Whether a word belongs to a type, however it stands.
pub(super) fn is_type_word(word: &str) -> bool {
    TYPES.contains(&word) || QUALIFIERS.contains(&word)
}

/// What a word that stands alone between commas is defined as, where it is a macro that the
/// source defines once, as for parameters that kernels share.
fn written_out(source: &Source, alone: &CxxToken) -> Option<Vec<CxxToken>> {
    let [body] = macros::bodies_of(source, source.slice(alone.span))[..] else { return None };
    let tokens = cxx_tokens(source.slice(body)).into_iter();
    let code = tokens.filter(|token| !matches!(token.kind, CxxKind::Comment { .. }));
    let place = |span: Span| Span { start: body.start + span.start, end: body.start + span.end };
    Some(code.map(|token| CxxToken { span: place(token.span), ..token }).collect())
}

/// The names and texts of parameters from the tokens between the parentheses.
fn split_parameters(source: &Source, tokens: &[CxxToken]) -> Vec<(Option<String>, String)> {
    let text = |token: &CxxToken| source.slice(token.span);
    let ends = |at: Option<usize>| at.and_then(|at| tokens.get(at)).is_none_or(|token| text(token) == ",");
    let whole = tokens.iter().enumerate().flat_map(|(at, token)| {
        let is_alone = token.kind == CxxKind::Name && ends(at.checked_sub(1)) && ends(Some(at + 1));
        let body = if is_alone { written_out(source, token) } else { None };
        body.unwrap_or_else(|| vec![*token])
    });
    let tokens: &[CxxToken] = &whole.collect::<Vec<_>>();
    let one = |(from, to): (usize, usize)| {
        let words: Vec<&str> = tokens[from..to].iter().map(text).collect();
        (declared_name(source, &tokens[from..to]), words.join(" "))
    };
    let mut is_default = false;
    let pass = |depth: &mut Depth, word: &str| {
        if depth.is_outside() {
            is_default = (is_default || word == "=") && word != ",";
        }
        // In a default value `<` compares as often as not.
        !(is_default && word == "<") && depth.pass_template(word)
    };
    match split_parts(0, tokens.len(), |at| text(&tokens[at]), pass)[..] {
        [only] if matches!(one(only).1.as_str(), "" | "void") => Vec::new(),
        ref ranges => ranges.iter().copied().map(one).collect(),
    }
}

/// The name that one declarator declares.
pub(super) fn declared_name(source: &Source, tokens: &[CxxToken]) -> Option<String> {
    let text = |token: &CxxToken| source.slice(token.span);
    // `void (*name)(int)` and `float (&name)[4]`: the name is in the group that begins with `*` or
    // `&`.
    let group = tokens.windows(2).position(|pair| text(&pair[0]) == "(" && matches!(text(&pair[1]), "*" | "&"));
    if let Some(group) = group {
        let inner = tokens[group..].iter().take_while(|token| text(token) != ")");
        return inner
            .filter(|token| token.kind == CxxKind::Name && !is_type_word(text(token)))
            .last()
            .map(|t| text(t).to_string());
    }
    // The rest: before a default value and array bounds, outside `<>` and `[[]]`, after a type.
    let (mut depth, mut typed, mut name, mut scoped) = (Depth::default(), false, None, false);
    for token in tokens {
        match text(token) {
            word if depth.pass_template(word) || !depth.is_outside() => {}
            "=" => break,
            "::" => {
                scoped = true;
                continue;
            }
            "*" | "&" => name = None,
            word if token.kind == CxxKind::Name => {
                if is_type_word(word) {
                    typed |= TYPES.contains(&word);
                } else if typed && !scoped {
                    name = Some(word.to_string());
                } else {
                    typed = true;
                }
            }
            _ => {}
        }
        scoped = false;
    }
    name
}
