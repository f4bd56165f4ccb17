//! The arguments of a `template` clause <-> the name that the compiler gives an instance.
//!
//! cicc spells instances from canonical types: `ns::k<float, (int)-4, (bool)1, (unsigned
//! int)7u>`, `k<    ::__half>`. Both sides are read as tokens; names of types agree where one
//! ends in the other (`Op` and `ns::Op`). A typedef that is not in `TYPEDEFS` is for the
//! compiler to see through (see [`alias`](crate::workload::template_args)).

use super::brackets::{matching_bracket, split_at_commas};
use super::tokens::{CxxKind, CxxToken, cxx_tokens, is_word};
use crate::diag::Span;
use std::collections::BTreeMap;

/// Names that stand for builtin types on 64-bit systems other than Windows, and CUDA's short
/// names.
const TYPEDEFS: [(&str, &str); 30] = [
    ("unsigned", "unsigned int"),
    ("signed", "int"),
    ("signed int", "int"),
    ("short int", "short"),
    ("unsigned short int", "unsigned short"),
    ("long int", "long"),
    ("unsigned long int", "unsigned long"),
    ("long long int", "long long"),
    ("unsigned long long int", "unsigned long long"),
    ("int8_t", "signed char"),
    ("uint8_t", "unsigned char"),
    ("int16_t", "short"),
    ("uint16_t", "unsigned short"),
    ("int32_t", "int"),
    ("uint32_t", "unsigned int"),
    ("int64_t", "long"),
    ("uint64_t", "unsigned long"),
    ("size_t", "unsigned long"),
    ("ptrdiff_t", "long"),
    ("intptr_t", "long"),
    ("uintptr_t", "unsigned long"),
    ("uchar", "unsigned char"),
    ("ushort", "unsigned short"),
    ("uint", "unsigned int"),
    ("ulong", "unsigned long"),
    ("half", "__half"),
    ("half2", "__half2"),
    ("nv_bfloat16", "__nv_bfloat16"),
    ("nv_bfloat162", "__nv_bfloat162"),
    ("byte", "std::byte"),
];

/// What builtin types of several words are made of.
const PARTS: [&str; 8] = ["unsigned", "signed", "char", "short", "int", "long", "double", "float"];

/// Words that say nothing of which type it is.
const IGNORED: [&str; 5] = ["struct", "class", "enum", "union", "typename"];

/// Beginnings of the names that the compiler gives to namespaces without one.
const UNNAMED: [&str; 3] = ["_GLOBAL__N_", "_NV_ANON_NAMESPACE", "_INTERNAL_"];

/// Whether this is the compiler's name of a namespace without one.
pub(crate) fn is_unnamed(scope: &str) -> bool {
    UNNAMED.iter().any(|prefix| scope.starts_with(prefix))
}

/// Returns the template arguments in a qualified name, each as written; `None` for a name
/// without any.
pub(crate) fn template_arguments(qualified: &str) -> Option<Vec<&str>> {
    let (_, inner) = qualified.split_once('<')?;
    let inner = inner.trim_end().strip_suffix('>')?;
    Some(split_at_commas(inner))
}

/// Returns whether an argument of the comment names what the compiler spells as
/// `compiled`.
pub(crate) fn arguments_agree(written: &str, compiled: &str) -> bool {
    let (written, compiled) = (type_tokens(written), type_tokens(compiled));
    written.len() == compiled.len()
        && written.iter().zip(&compiled).all(|(written, compiled)| {
            written == compiled
                || compiled.strip_suffix(written.as_str()).is_some_and(|scope| scope.ends_with("::"))
                    && written.starts_with(|c: char| c.is_alphabetic() || c == '_')
        })
}

/// Returns whether a list of arguments names what the compiler spells as `compiled`, all of it.
pub(crate) fn argument_lists_agree(written: &[impl AsRef<str>], compiled: &[impl AsRef<str>]) -> bool {
    let mut pairs = written.iter().zip(compiled);
    written.len() == compiled.len()
        && pairs.all(|(written, compiled)| arguments_agree(written.as_ref(), compiled.as_ref()))
}

/// Reads a number that the compiler spells with cast and suffix: `(unsigned long
/// long)8ull`.
pub(crate) fn enumerator_value(compiled: &str) -> Option<u64> {
    match type_tokens(compiled).as_slice() {
        [number] => number.parse().ok(),
        _ => None,
    }
}

/// What the compiler spells so, as a source has it: `(bool)1` is `true`, `(unsigned int)7u` is
/// `7`, `    ::ns::Op<(int)4> ` is `ns::Op<4>`. An enumerator keeps its cast, for its name is
/// unknown.
pub(crate) fn as_written(compiled: &str) -> String {
    let mut found: Vec<&str> = Vec::new();
    for word in split_words(compiled) {
        let is_global = word == "::" && found.last().is_none_or(|last| !last.ends_with(is_word) && *last != ">");
        let is_number = word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
        let open = found.iter().rposition(|word| *word == "(").filter(|_| is_number && found.last() == Some(&")"));
        let number = if is_number { word.trim_end_matches(['u', 'U', 'l', 'L']) } else { word };
        match open.map(|open| (open, &found[open + 1..found.len() - 1])) {
            Some((open, ["bool"])) => {
                found.truncate(open);
                found.push(if number == "0" { "false" } else { "true" });
            }
            Some((open, kind)) if kind.iter().all(|word| PARTS.contains(word)) => {
                found.truncate(open);
                found.push(number);
            }
            _ if is_global => {}
            _ => found.push(number),
        }
    }
    let mut text = String::new();
    for (index, word) in found.iter().enumerate() {
        let before = index.checked_sub(1).map_or("", |before| found[before]);
        let is_name = word.starts_with(is_word);
        let is_apart = match (before, *word) {
            (",", _) => true,
            ("*" | "&" | ">", _) => is_name,
            (_, "*" | "&" | "(") => before.ends_with(is_word),
            _ => is_name && before.ends_with(is_word),
        };
        if is_apart || before == ">" && matches!(*word, "*" | "&") {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

/// Returns names, numbers with their sign, `::`, and marks one by one.
fn split_words(text: &str) -> Vec<&str> {
    let mut spans: Vec<Span> = Vec::new();
    for CxxToken { kind, span } in cxx_tokens(text) {
        match spans.last_mut() {
            Some(last) if kind != CxxKind::Mark && &text[last.start..span.start] == "-" => last.end = span.end,
            _ => spans.push(span),
        }
    }
    spans.into_iter().map(|span| &text[span.start..span.end]).collect()
}

/// Names with their scopes, builtin types in one spelling, numbers without casts and suffixes,
/// and marks.
fn type_tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    for token in split_words(text) {
        if IGNORED.contains(&token) {
            continue;
        }
        let is_number = token.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
        match tokens.last_mut() {
            // A scope belongs to the name: `ns::Op` is one token, and so is `::Op`, without its
            // colons.
            Some(last) if token == "::" && last.ends_with(is_word) => last.push_str("::"),
            None | Some(_) if token == "::" => {}
            Some(last) if last.ends_with("::") => last.push_str(token),
            _ if is_number => {
                remove_cast(&mut tokens);
                tokens.push(token.trim_end_matches(['u', 'U', 'l', 'L']).to_owned());
            }
            _ if token == "true" => tokens.push("1".to_owned()),
            _ if token == "false" => tokens.push("0".to_owned()),
            _ => tokens.push(token.to_owned()),
        }
    }
    join_tokens(tokens)
}

/// Takes `(type)` from the end; that of an enumeration without a name has brackets of its own:
/// `(::[unnamed type (instance 6)])`.
fn remove_cast(tokens: &mut Vec<String>) {
    if let Some(open) = matching_bracket((0..tokens.len()).rev(), |at| tokens[at].as_str(), ")", "(") {
        tokens.truncate(open);
    }
}

/// Builtin types of several words as one token, typedefs seen through, `const` before what it
/// qualifies.
fn join_tokens(tokens: Vec<String>) -> Vec<String> {
    let is_name = |token: &str| token.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let mut found: Vec<String> = Vec::new();
    for token in tokens {
        match found.last_mut() {
            Some(last) if PARTS.contains(&token.as_str()) && last.split(' ').all(|part| PARTS.contains(&part)) => {
                last.push(' ');
                last.push_str(&token);
            }
            Some(last) if token == "const" && is_name(last) && last != "const" => {
                let name = std::mem::replace(last, token);
                found.push(name);
            }
            _ => found.push(token),
        }
    }
    for token in &mut found {
        let plain = token.strip_prefix("std::").unwrap_or(token);
        if let Some((_, name)) = TYPEDEFS.iter().find(|(known, _)| *known == plain) {
            *token = (*name).to_owned();
        }
    }
    found
}

/// What the compiler calls the arguments of a `template` clause, by position, as far as it was
/// asked.
pub type Spelled = BTreeMap<usize, String>;

#[cfg(test)]
mod tests {
    use super::{arguments_agree, as_written, template_arguments};

    #[test]
    fn arguments_are_told_as_a_source_has_them() {
        for (compiled, written) in [
            ("(bool)1", "true"),
            ("(bool)0", "false"),
            ("(unsigned int)7u", "7"),
            (" (long long)-9ll", "-9"),
            ("( ::ns::Mode)1", "(ns::Mode)1"),
            ("    ::__half", "__half"),
            (" ::ns::Op<float>  *", "ns::Op<float> *"),
            (" ::Tile<(int)8,  ::View<(bool)1> > ", "Tile<8, View<true>>"),
            ("const unsigned  char *const", "const unsigned char * const"),
            ("float [4]", "float[4]"),
            ("void (int, float *)", "void (int, float *)"),
            ("ns::lut<int, (int)4>", "ns::lut<int, 4>"),
        ] {
            assert_eq!(as_written(compiled), written, "{compiled}");
        }
    }

    #[test]
    fn arguments_are_compared_as_the_compiler_spells_them() {
        for (written, compiled) in [
            ("float", "float"),
            ("16", "(int)16"),
            ("-4", "(int)-4"),
            ("true", "(bool)1"),
            ("7", "(unsigned int)7u"),
            ("-9", "(long long)-9ll"),
            ("8", "(   ::[unnamed type (instance 6)])8"),
            ("half", "    ::__half"),
            ("__half2", "    ::__half2"),
            ("uint64_t", "unsigned long"),
            ("std :: uint8_t", "unsigned char"),
            ("unsigned", "unsigned int"),
            ("Op < float > *", " ::ns::Op<float>  *"),
            ("ns :: Op < float > *", " ::ns::Op<float>  *"),
            ("Tile < 8 , 16 >", " ::Tile<(int)8, (int)16> "),
            ("float const *", "const float *"),
            ("struct View < double >", " ::View<double> "),
        ] {
            assert!(arguments_agree(written, compiled), "{written} and {compiled}");
        }
        for (written, compiled) in [
            ("float", "double"),
            ("1", "(int)16"),
            ("6", "(int)16"),
            ("Op < float >", " ::ns::Op<double> "),
            ("p", " ::ns::Op"),
            ("other :: Op", " ::ns::Op"),
            ("float *", "float"),
            ("long", "unsigned long"),
        ] {
            assert!(!arguments_agree(written, compiled), "{written} and {compiled}");
        }
    }

    #[test]
    fn arguments_are_taken_from_names() {
        assert_eq!(template_arguments("ns::k<float, (int)4 >"), Some(vec!["float", "(int)4"]));
        assert_eq!(template_arguments("k< ::Map<int, float> , (bool)1>"), Some(vec!["::Map<int, float>", "(bool)1"]));
        assert_eq!(template_arguments("plain"), None);
        assert_eq!(template_arguments("broken<"), None);
    }
}
