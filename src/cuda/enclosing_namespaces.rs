//! The code before a place -> the names of the namespaces around it.

use super::tokens::{CxxKind, CxxToken};
use crate::diag::Source;

/// Names the namespaces in which the code behind these tokens stands, from the outermost; those
/// without a name are left out.
pub fn enclosing_namespaces(source: &Source, before: &[CxxToken]) -> Vec<String> {
    let code: Vec<&str> = before
        .iter()
        .filter(|token| !matches!(token.kind, CxxKind::Comment { .. }))
        .map(|token| source.slice(token.span))
        .collect();
    let mut open: Vec<Vec<String>> = Vec::new();
    for (at, &word) in code.iter().enumerate() {
        match word {
            "{" => open.push(opened_namespaces(&code[..at])),
            "}" => drop(open.pop()),
            _ => {}
        }
    }
    open.concat()
}

/// Names what a brace behind this code opens: `a` and `b` of `namespace a::b`.
fn opened_namespaces(code: &[&str]) -> Vec<String> {
    let is_part = |word: &&&str| **word == "::" || word.chars().all(|c| c.is_alphanumeric() || c == '_');
    let head: Vec<&str> = code.iter().rev().take_while(is_part).copied().collect();
    let Some(keyword) = head.iter().position(|word| *word == "namespace") else { return Vec::new() };
    let names = head[..keyword].iter().rev().filter(|word| !matches!(**word, "::" | "inline"));
    names.map(|name| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::enclosing_namespaces;
    use crate::cuda::tokens::cxx_tokens;
    use crate::diag::Source;

    #[test]
    fn namespaces_around_the_end_are_named_from_the_outermost() {
        for (text, expected) in [
            ("", vec![]),
            ("namespace a { void f() { if (1) { } }", vec!["a"]),
            ("namespace a::b { inline namespace c { struct s { ", vec!["a", "b", "c"]),
            ("namespace a { } namespace { extern \"C\" { /* namespace d { */", vec![]),
            ("using namespace a; void f() {", vec![]),
        ] {
            let source = Source::new("a.cu", text.as_bytes());
            assert_eq!(enclosing_namespaces(&source, &cxx_tokens(text)), expected, "{text}");
        }
    }
}
