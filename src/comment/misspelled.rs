//! Comments and pragmas that are surely meant as tuning comments and are none: `//@tunes
//! block(auto)`, `// @ tune ...`, `/// @tune ...`, a line of a comment that begins otherwise, a
//! comment behind code, `#pragma tune`.
//!
//! Source text -> warnings. Invariant: a tuning comment gets none, nor does a comment in which
//! no clause follows the word.

use super::clause::is_clause;
use super::marker::{nearly, occurrences, opening, tune_pragma};
use crate::cuda::tokens::{CxxKind, CxxToken, cxx_tokens};
use crate::diag::Diagnostic;
use crate::diag::{MessageCode, Source, Span};

/// A warning for each of them, in the order of the text.
pub fn near_misses(source: &Source) -> Vec<Diagnostic> {
    let bytes = source.text.as_bytes();
    let words: Vec<Span> = occurrences(bytes, b'@')
        .filter_map(|start| Some(Span { start, end: start + nearly(&bytes[start..])? }))
        .filter(|word| is_before_clause(&source.text[word.end..]))
        .collect();
    let pragmas = pragmas(source);
    if words.is_empty() && pragmas.is_empty() {
        return Vec::new();
    }
    // Directives are no tokens.
    let code = cxx_tokens(&source.text);
    let is_code =
        |pragma: &&Span| !code.iter().any(|token| token.span.start <= pragma.start && pragma.end <= token.span.end);
    let message = "this pragma does nothing: write it as a comment, //@tune, directly above the kernel";
    let mut found: Vec<Diagnostic> = pragmas
        .iter()
        .filter(is_code)
        .map(|pragma| source.warning(MessageCode::Misspelled, *pragma, message))
        .collect();
    let comments: Vec<CxxToken> =
        code.iter().filter(|token| matches!(token.kind, CxxKind::Comment { .. })).copied().collect();
    found.extend(words.into_iter().filter_map(|word| near_miss(source, &comments, word)));
    found.sort_by_key(|warning| (warning.line, warning.column));
    found
}

/// The pragmas that `tune`, or a misspelling of it before a clause, begins.
fn pragmas(source: &Source) -> Vec<Span> {
    let bytes = source.text.as_bytes();
    let pragma = |start: usize| {
        let line = source.text[..start].rsplit('\n').next().unwrap_or_default();
        let rest = source.text[start + 1..].trim_start_matches([' ', '\t']).strip_prefix("pragma")?;
        let word = tune_pragma(rest.as_bytes())?;
        let (name, rest) = rest.split_at(word);
        let is_alone = rest.split('\n').next().unwrap_or_default().trim().is_empty();
        let is_word = ["tune", "nvtune"].contains(&name.trim_start_matches([' ', '\t', '@']));
        let is_meant = is_before_clause(rest) || is_word && is_alone;
        (is_meant && line.trim().is_empty()).then(|| Span { start, end: bytes.len() - rest.len() })
    };
    occurrences(bytes, b'#').filter_map(pragma).collect()
}

fn near_miss(source: &Source, comments: &[CxxToken], word: Span) -> Option<Diagnostic> {
    // What is no comment is a string.
    let comment = comments.iter().find(|token| token.span.start < word.start && word.end <= token.span.end)?;
    let CxxKind::Comment { alone } = comment.kind else { return None };
    let text = source.slice(comment.span);
    if let Some(length) = opening(text) {
        let is_first = comment.span.start + length == word.end;
        let message =
            "this tuning comment stands behind code and does nothing: put it on a line of its own, above the kernel";
        return (is_first && !alone).then(|| source.warning(MessageCode::Misspelled, word, message));
    }
    let head = source.slice(Span { start: comment.span.start, end: word.start });
    let line = head.rsplit('\n').next().unwrap_or(head);
    let is_bare = line.chars().all(|c| c.is_whitespace() || matches!(c, '/' | '*' | '!' | '<'));
    let right = if text.starts_with("//") { "//@tune" } else { "/*@tune" };
    is_bare.then(|| {
        source.warning(
            MessageCode::Misspelled,
            word,
            format!("this comment does nothing: a tuning comment begins with {right}"),
        )
    })
}

/// Whether a clause begins the text, as `block(` does.
fn is_before_clause(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '/' | ':'));
    let name = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(text, |end| &text[..end]);
    is_clause(&name.to_ascii_lowercase()) && text[name.len()..].trim_start().starts_with('(')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_tuning_comment_is_warned_of_with_its_right_form() {
        for (text, said) in [
            ("//@Tune block(auto)", Some("//@tune")),
            ("  // @TUNE\tregs (auto)", Some("//@tune")),
            ("//@ tune threads(n)", Some("//@tune")),
            ("/// @tune threads(n)", Some("//@tune")),
            ("//!@tune Threads(n)", Some("//@tune")),
            ("/*@TUNE\n  block(auto)\n*/", Some("/*@tune")),
            ("/**\n * Adds.\n * @tune block(auto)\n */", Some("/*@tune")),
            ("/** @tune: block(auto) */", Some("/*@tune")),
            ("void f() { //@tune block(auto)", Some("behind code")),
            // Tuning comments, and what may be meant otherwise.
            ("//@tune block(auto)\n// @tune regs(auto)", None),
            ("/*@tune block(auto)\n @tune regs(auto) */", None),
            ("//@Tune", None),
            ("//@Tune the block by hand", None),
            ("// as //@Tune block(auto) did", None),
            ("//@tuned block(auto)", Some("//@tune")),
            ("//@tunes block(auto)", Some("//@tune")),
            ("// @nvtune regs(auto)", Some("//@tune")),
            ("/*@ttune threads(n) */", Some("/*@tune")),
            ("#pragma tune block(auto)", Some("this pragma")),
            ("  # pragma nvtune", Some("this pragma")),
            ("#pragma @tunes regs(auto)", Some("this pragma")),
            ("#pragma tunes", None),
            ("#pragma unroll(4)", None),
            ("// #pragma tune block(auto)", None),
            ("//@tuned by hand for block(256)", None),
            ("const char *s = \"//@Tune block(auto)\";", None),
            ("//@param tune block(auto)", None),
            ("// tune block(auto)", None),
        ] {
            let found = near_misses(&Source::new("a.cu", format!("\n{text}\n__global__ void k() {{}}\n").as_bytes()));
            assert_eq!(found.len(), usize::from(said.is_some()), "{text}: {found:?}");
            for warning in found {
                assert!(warning.message.contains(said.unwrap_or_default()), "{text}: {}", warning.message);
                assert!(warning.text.to_ascii_lowercase().contains("tune"), "{text}: {}", warning.text);
            }
        }
    }
}
