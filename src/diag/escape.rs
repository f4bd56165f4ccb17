//! Text for a person -> the same without characters that a terminal would obey.

use std::borrow::Cow;

/// The text with control characters, which a file's name may have and a terminal would obey, as
/// Rust writes them.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| letter.is_control() && !matches!(letter, '\n' | '\t' | '\r'))
}

/// A file's name with all control characters as Rust writes them: a line break in it would begin a message of its own.
pub fn one_line(name: &str) -> Cow<'_, str> {
    escaped(name, char::is_control)
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool + Copy) -> Cow<'_, str> {
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let written =
        |letter: char| if is_escaped(letter) { letter.escape_default().to_string() } else { letter.to_string() };
    Cow::Owned(text.chars().map(written).collect())
}

#[cfg(test)]
mod tests {
    use super::{one_line, printable};

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        for (text, expected) in [
            ("'a.cu'\tis\nfine \u{e9}", "'a.cu'\tis\nfine \u{e9}"),
            ("'\u{1b}[2Ja.cu'", "'\\u{1b}[2Ja.cu'"),
            ("\u{9b}31m", "\\u{9b}31m"),
        ] {
            assert_eq!(printable(text), expected);
        }
    }

    #[test]
    fn name_of_a_file_forges_no_message() {
        assert_eq!(one_line("a\nnvtune: k: \u{e9}.cu"), "a\\nnvtune: k: \u{e9}.cu");
    }
}
