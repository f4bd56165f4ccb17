//! Source files -> whether a macro's `##` may make a name of pieces in them.
//!
//! Where it is said not to, a name is in the files as a whole wherever it is used.

use std::collections::HashSet;

/// Most pieces that are taken to be joined to one name: a prefix, a type, a number and a suffix.
/// If there were more, single letters would make every name.
const MOST_PIECES: usize = 4;

/// The words of files that may be joined; none if no file joins any.
pub struct JoinedNames<'a> {
    words: HashSet<&'a str>,
}

impl<'a> JoinedNames<'a> {
    /// Collects the words of the files.
    pub fn new(texts: &[&'a str]) -> Self {
        let joins = texts.iter().any(|text| text.contains("##"));
        let is_end = |c: char| !c.is_alphanumeric() && c != '_';
        let words = texts.iter().filter(|_| joins).flat_map(|text| text.split(is_end));
        Self { words: words.collect() }
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
                self.words.contains(piece) || piece.bytes().all(|byte| byte.is_ascii_digit())
            };
            fewest.push(starts.filter(is_piece).map(|start| fewest[start] + 1).min().unwrap_or(usize::MAX));
        }
        fewest.last().is_some_and(|&fewest| fewest <= MOST_PIECES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_made_of_words_if_a_file_joins_words() {
        let join = "#define JOIN(a, b) a ## b\n";
        for (text, name, expected) in [
            ("JOIN(scale, _kernel)", "scale_kernel", true),
            ("JOIN(scale_, JOIN(kern, el))", "scale_kernel", true),
            ("JOIN(scale, __LINE__)", "scale25", true),
            ("scale(_kernels)", "scale_kernel", false),
            ("scale_kernel", "scale_kernel", false),
            ("int unrelated, s, c, a, l, e;", "scale", false),
            ("", "scale", false),
        ] {
            assert_eq!(JoinedNames::new(&[join, text]).may_make(name), expected, "{text}");
            assert!(!JoinedNames::new(&["#define JOIN(a, b) a b\n", text]).may_make(name), "{text}");
        }
    }
}
