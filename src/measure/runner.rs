//! Splits the text of `NVTUNE_RUNNER` into words, without a shell.
//!
//! Words are separated by white space. Single quotes keep everything; double quotes and a
//! backslash keep white space and quotes, as in a shell. Nothing is expanded.

use thiserror::Error;

/// A runner that cannot be split.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RunnerError {
    #[error("a {0} quote is not closed")]
    Unclosed(&'static str),
    #[error("a backslash at the end keeps nothing")]
    Backslash,
    #[error("it is not UTF-8 text")]
    NotText,
}

/// Splits a command into its words; none for an empty text.
pub fn split(text: &str) -> Result<Vec<String>, RunnerError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        None => return Err(RunnerError::Unclosed("single")),
                        Some('\'') => break,
                        Some(c) => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        None => return Err(RunnerError::Unclosed("double")),
                        Some('"') => break,
                        Some('\\') => match characters.next() {
                            None => return Err(RunnerError::Backslash),
                            Some(c @ ('"' | '\\' | '$' | '`')) => word.push(c),
                            Some(c) => word.extend(['\\', c]),
                        },
                        Some(c) => word.push(c),
                    }
                }
            }
            '\\' => match characters.next() {
                None => return Err(RunnerError::Backslash),
                Some(c) => word.get_or_insert_default().push(c),
            },
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let unclosed = |which| Err(RunnerError::Unclosed(which));
        for (text, expected) in [
            ("", Ok(vec![])),
            ("ssh gpu01", Ok(vec!["ssh", "gpu01"])),
            ("  srun\t--gres=gpu:1 ", Ok(vec!["srun", "--gres=gpu:1"])),
            (
                r#"ssh -o 'ProxyCommand=nc %h' "a \"b\" \n" c\ d '' $HOME"#,
                Ok(vec!["ssh", "-o", "ProxyCommand=nc %h", r#"a "b" \n"#, "c d", "", "$HOME"]),
            ),
            ("ssh 'gpu", unclosed("single")),
            ("ssh \"gpu", unclosed("double")),
            ("ssh gpu\\", Err(RunnerError::Backslash)),
        ] {
            let expected = expected.map(|words| words.iter().map(|s| s.to_string()).collect());
            assert_eq!(split(text), expected, "{text}");
        }
    }
}
