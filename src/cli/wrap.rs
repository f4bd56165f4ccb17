//! Text -> lines that fit a terminal, broken between words.

use std::io::IsTerminal;

/// Returns the columns of the terminal that standard output is, else those that COLUMNS names;
/// `None` if neither is known.
pub fn columns() -> Option<usize> {
    let output = std::io::stdout();
    let terminal = output.is_terminal().then(|| rustix::termios::tcgetwinsize(&output).ok()).flatten();
    let terminal = terminal.map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0);
    terminal.or_else(|| std::env::var("COLUMNS").ok()?.parse().ok().filter(|&columns| columns > 0))
}

/// Breaks the lines of a text that have more than `columns`; what follows a break is indented
/// by `indent`. No word is broken.
pub fn wrapped(text: &str, indent: usize, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let lines = text.split('\n').map(|line| break_line(line, indent, columns));
    lines.collect::<Vec<_>>().join("\n")
}

fn break_line(line: &str, indent: usize, columns: usize) -> String {
    let mut done = String::new();
    let mut rest = line.to_owned();
    while rest.chars().count() > columns {
        // A break within the indentation would give an empty line.
        let start = rest.len() - rest.trim_start().len();
        let limit = rest.char_indices().nth(columns).map_or(rest.len(), |(at, _)| at);
        let fitting = rest[..=limit].rfind(' ').filter(|&at| at > start);
        let Some(at) = fitting.or_else(|| Some(start + rest[start..].find(' ')?)) else { break };
        done.push_str(rest[..at].trim_end());
        done.push('\n');
        rest = format!("{}{}", " ".repeat(indent), rest[at..].trim_start());
    }
    done + &rest
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_break_between_words_and_keep_their_indentation() {
        for (text, columns, expected) in [
            ("one two three", None, "one two three"),
            ("one two three", Some(80), "one two three"),
            ("one two three", Some(7), "one two\n  three"),
            ("one two three", Some(6), "one\n  two\n  three"),
            ("  one   two\nthree four", Some(9), "  one\n  two\nthree\n  four"),
            ("a unbreakable b", Some(5), "a\n  unbreakable\n  b"),
            ("größe größe", Some(6), "größe\n  größe"),
            ("", Some(1), ""),
        ] {
            assert_eq!(wrapped(text, 2, columns), expected, "{text} in {columns:?}");
        }
    }
}
