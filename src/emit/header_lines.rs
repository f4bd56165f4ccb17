//! Breaks the lines of the generated header at 120 columns.

use std::fmt::Write as _;

/// Maximum columns of a line, if its words allow it.
const MAX_COLUMNS: usize = 120;

/// Returns words as lines of a comment: the first begins with `first`, the others with `rest`.
pub(super) fn fold_comment(first: &str, rest: &str, words: &str) -> String {
    // Text of the source may not end the comment, nor seem to begin another.
    let words = words.replace("*/", "* /").replace("/*", "/ *");
    let (mut text, mut line, mut is_begun) = (String::new(), first.to_owned(), false);
    for word in words.split_whitespace() {
        if is_begun && line.chars().count() + 1 + word.chars().count() > MAX_COLUMNS {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}", line.trim_end());
            (line, is_begun) = (rest.to_owned(), false);
        }
        if is_begun {
            line.push(' ');
        }
        line += word;
        is_begun = true;
    }
    let _ = writeln!(text, "{}", line.trim_end());
    text
}

/// Breaks a line of code at blanks, after a comma if there is one in the second half of the line,
/// so that no part is too long.
pub(super) fn fold_code(line: &str) -> String {
    let (is_directive, is_message) = (line.starts_with('#'), line.starts_with("#error"));
    let end = if is_directive { "\\" } else { "" };
    // Blanks at the beginning would be part of a message.
    let indent = if is_message { 0 } else { line.chars().take_while(|character| *character == ' ').count() + 4 };
    let (mut text, mut rest) = (String::new(), line.to_owned());
    while rest.chars().count() > MAX_COLUMNS {
        let begun = rest.len() - rest.trim_start().len();
        let blanks: Vec<(usize, usize)> = rest
            .char_indices()
            .enumerate()
            .filter(|(_, (at, character))| *character == ' ' && *at > begun)
            .map(|(column, (at, _))| (column, at))
            .collect();
        let fits = |column: usize| column + 1 + end.len() <= MAX_COLUMNS;
        let is_list = |at: usize| rest[..at].ends_with(',');
        let near = blanks.iter().rev().find(|(column, at)| fits(*column) && *column > MAX_COLUMNS / 2 && is_list(*at));
        let last = || blanks.iter().rev().find(|(column, _)| fits(*column)).or(blanks.first());
        let Some((_, at)) = near.or_else(last) else { break };
        let (first, second) = rest.split_at(at + 1);
        let first = if is_message { first } else { first.trim_end() };
        let blank = if is_directive && !is_message { " " } else { "" };
        let next = format!("{:indent$}{second}", "");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{first}{blank}{end}");
        rest = next;
    }
    text + &rest
}

#[cfg(test)]
mod tests {
    use super::{MAX_COLUMNS, fold_code};

    #[test]
    fn long_line_is_broken_after_a_comma() {
        let line = format!("  f({}, {} + 1);", "a".repeat(80), "b".repeat(60));
        assert_eq!(fold_code(&line), format!("  f({},\n      {} + 1);", "a".repeat(80), "b".repeat(60)));
    }

    #[test]
    fn long_message_is_joined_to_the_same_words() {
        let line = format!("#error \"{}\"", "word ".repeat(60).trim_end());
        let folded = fold_code(&line);
        assert!(folded.lines().count() > 2 && folded.lines().all(|line| line.len() <= MAX_COLUMNS), "{folded}");
        assert_eq!(folded.replace("\\\n", ""), line);
    }

    #[test]
    fn word_longer_than_a_line_is_kept() {
        let line = format!("#define {} 1", "A".repeat(200));
        assert_eq!(fold_code(&line), format!("#define \\\n    {} \\\n    1", "A".repeat(200)));
    }
}
