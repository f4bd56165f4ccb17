//! A code -> the entry of its message in the book.

use crate::cli::exit_status::{CommandFailure, exit_code};
use crate::cli::wrap::{columns, wrapped};
use crate::diag::MessageCode;
use crate::put_on;

/// The chapter with an entry for each code.
const MESSAGES: &str = include_str!("../../../docs/messages.md");

/// Tells whether a word has the form of a code: N and four digits, with or without brackets, or
/// what somebody may have meant as one.
pub fn is_code(word: &str) -> bool {
    let name = word.trim_matches(['[', ']']);
    let digits = name.trim_start_matches(['N', 'n']);
    !name.is_empty() && digits.chars().all(|c| c.is_ascii_digit()) || !word.contains(['.', '/'])
}

/// Prints the entry of a code, given as it is printed, with or without brackets.
pub fn run(code: &str) -> u8 {
    let name = code.trim_matches(['[', ']']).to_uppercase();
    exit_code(match code_entry(&name) {
        Some(entry) => {
            put_on!("{}", wrapped(&entry, INDENT, columns()));
            Ok(0)
        }
        None => Err(CommandFailure::new(
            MessageCode::WrongArgument,
            format!("no message has the code '{code}'; a code is N and four digits, as in N0031"),
        )),
    })
}

/// Blanks before what follows a line break within a line that is too long.
const INDENT: usize = 2;

/// Returns the text below the heading of a code, the title first. Each item is one line.
fn code_entry(name: &str) -> Option<String> {
    let (_, rest) = MESSAGES.split_once(&format!("\n### {name}: "))?;
    let text = rest.split("\n#").next().unwrap_or(rest);
    let mut entry = format!("{name}: ");
    for line in text.lines().filter(|line| !line.starts_with("```")) {
        match line.strip_prefix("  ") {
            Some(more) => {
                entry.pop();
                entry.push_str(&format!(" {more}\n"));
            }
            None => entry.push_str(&format!("{line}\n")),
        }
    }
    entry.truncate(entry.trim_end().len());
    entry.push('\n');
    Some(entry)
}

#[cfg(test)]
mod tests {
    use super::code_entry;
    use crate::diag::MessageCode;

    #[test]
    fn every_code_is_explained() {
        for code in MessageCode::ALL {
            let entry = code_entry(&code.to_string()).unwrap_or_else(|| panic!("{code} has no entry"));
            assert!(entry.starts_with(&format!("{code}: {}\n", code.title())), "{entry}");
            for part in ["\n- Cause: ", "\n- Result: ", "\n- Remedy: "] {
                assert_eq!(entry.matches(part).count(), 1, "{part}{entry}");
            }
        }
        assert_eq!(code_entry("N9999"), None);
    }
}
