//! Source files -> whether a macro's `##` may make a name of pieces in them.
//!
//! Pieces come from bodies of macros and from arguments of their calls. Where it is said that
//! no name is made, the name is in the files as a whole wherever it is used.

use super::tokens::split_directive;
use std::collections::HashSet;

/// Most pieces that are taken to be joined to one name: a prefix, a type, a number and a suffix.
/// If there were more, single letters would make every name.
const MOST_PIECES: usize = 4;

/// The words of files that may be joined; none if no file joins any.
pub struct JoinedNames<'a> {
    words: HashSet<&'a str>,
}

impl<'a> JoinedNames<'a> {
    /// Collects the words of the files, and of other texts that macros stand for.
    pub fn new(texts: &[&'a str], bodies: &[&'a str]) -> Self {
        let mut words: HashSet<&str> = bodies.iter().flat_map(|body| words_of(body)).collect();
        if !texts.iter().any(|text| text.contains("##")) {
            return Self { words: HashSet::new() };
        }
        let mut macros = HashSet::new();
        for definition in texts.iter().flat_map(|text| definitions(text)) {
            macros.extend(words_of(definition).next());
            words.extend(words_of(definition));
        }
        for text in texts {
            for word in words_of(text).filter(|word| macros.contains(word)) {
                let behind = &text[word.as_ptr().addr() - text.as_ptr().addr() + word.len()..];
                words.extend(words_of(arguments(behind)));
            }
        }
        Self { words }
    }

    /// Returns whether two or more words, or numbers, make this name.
    pub fn may_make(&self, name: &str) -> bool {
        if self.words.is_empty() {
            return false;
        }
        // The fewest pieces that make what is before each place.
        let mut fewest: Vec<usize> = vec![0];
        for end in 1..=name.len() {
            let starts = (0..end).filter(|&start| fewest[start] < MOST_PIECES && end - start < name.len());
            let is_piece = |start: &usize| {
                let piece = name.get(*start..end).unwrap_or_default();
                // A number may come from `__LINE__`.
                self.words.contains(piece) || !piece.is_empty() && piece.bytes().all(|byte| byte.is_ascii_digit())
            };
            fewest.push(starts.filter(is_piece).map(|start| fewest[start] + 1).min().unwrap_or(usize::MAX));
        }
        fewest.last().is_some_and(|&fewest| fewest <= MOST_PIECES)
    }
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// What stands behind each `#define` of a text, to the end of its last line.
fn definitions(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('#') {
        let Some(("define", rest)) = split_directive(&text[at..]) else { continue };
        let is_end = |at: &usize| !rest[..*at].trim_end_matches('\r').ends_with('\\');
        let end = rest.match_indices('\n').map(|(at, _)| at).find(is_end).unwrap_or(rest.len());
        found.push(&rest[..end]);
    }
    found
}

/// The arguments in parentheses that a text begins with; empty where it begins with others.
fn arguments(text: &str) -> &str {
    let text = text.trim_start();
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_made_of_words_that_macros_may_join() {
        let join = "#define JOIN(a, b) \\\n    a ## b\n#define ALIAS JOIN\n";
        for (text, name, expected) in [
            ("JOIN(scale, _kernel)", "scale_kernel", true),
            ("ALIAS (scale_, JOIN(kern, el))", "scale_kernel", true),
            ("#define SCALE scale\nJOIN(SCALE, _kernel)", "scale_kernel", true),
            ("JOIN(scale, __LINE__)", "scale25", true),
            ("JOIN(scale_, GIVEN)", "scale_given", true),
            ("JOIN(scale_, kernels)", "scale_kernel", false),
            ("scale(_kernel); JOIN(x, y)", "scale_kernel", false),
            ("scale_kernel", "scale_kernel", false),
            ("JOIN(s, c) JOIN(a, l) e", "scale", false),
            ("JOIN(scale", "scale", false),
            ("", "scale", false),
        ] {
            assert_eq!(JoinedNames::new(&[join, text], &["given"]).may_make(name), expected, "{text}");
            assert!(!JoinedNames::new(&["#define JOIN(a, b) a b\n", text], &[]).may_make(name), "{text}");
        }
    }
}
