//! Messages in nvcc's own form.
//!
//! A diagnostic knows its place and the text of its line, so that it prints without the source:
//!
//! ```text
//! saxpy.cu(1): error: unknown clause `bock`; did you mean `block`? [N0101]
//!   //@tune bock(256)
//!           ^~~~
//! ```
//!
//! As nvcc does, the line is shown after two blanks, a tab counts as one blank, notes follow,
//! and a blank line ends it.

use super::code::MessageCode;
use super::escape::one_line;
use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    Error,
    Warning,
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        })
    }
}

/// A message at a place of a source file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Diagnostic {
    pub path: String,
    /// 1-based.
    pub line: u32,
    /// 1-based, in characters.
    pub column: u32,
    /// Characters underlined, at least 1.
    pub length: u32,
    /// The source line.
    pub text: String,
    pub severity: Severity,
    /// Absent in a note that belongs to another diagnostic.
    pub code: Option<MessageCode>,
    pub message: String,
    pub notes: Vec<Diagnostic>,
}

impl Diagnostic {
    /// The diagnostic with a note after it.
    pub fn with(mut self, note: Diagnostic) -> Diagnostic {
        self.notes.push(note);
        self
    }

    /// The same as a warning, if it is an error.
    pub fn as_warning(mut self) -> Diagnostic {
        if self.severity == Severity::Error {
            self.severity = Severity::Warning;
        }
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map(|code| format!(" [{code}]")).unwrap_or_default();
        writeln!(f, "{}({}): {}: {}{code}", one_line(&self.path), self.line, self.severity, self.message)?;
        writeln!(f, "  {}", self.text.replace('\t', " ").trim_end())?;
        // Not by a width, which the formatter bounds.
        let (blanks, tail) = (self.column as usize + 1, self.length.saturating_sub(1) as usize);
        writeln!(f, "{}^{}", " ".repeat(blanks), "~".repeat(tail))?;
        for note in &self.notes {
            fmt::Display::fmt(note, f)?;
        }
        if self.severity != Severity::Note {
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Most messages of a compile that are shown; nvcc's front end stops at 100 errors, too.
const MOST_SHOWN: usize = 100;

/// All messages of one file, in the order of their places, with the line that nvcc ends with
/// when there are errors.
pub fn render(diagnostics: &[Diagnostic]) -> String {
    let path = diagnostics.first().map_or("", |first| &first.path);
    render_messages(diagnostics) + &render_count(errors(diagnostics), path)
}

/// All messages, file by file, in the order of their places.
pub(super) fn render_messages(diagnostics: &[Diagnostic]) -> String {
    let file = |path: &String| diagnostics.iter().position(|diagnostic| diagnostic.path == *path);
    let mut sorted: Vec<&Diagnostic> = diagnostics.iter().collect();
    sorted.sort_by_key(|diagnostic| (file(&diagnostic.path), diagnostic.line, diagnostic.column));
    let mut text: String = sorted.iter().take(MOST_SHOWN).map(ToString::to_string).collect();
    if let Some(more @ 1..) = sorted.len().checked_sub(MOST_SHOWN) {
        text.push_str(&format!("{more} more messages are not shown.\n"));
    }
    text
}

/// How many of the messages are errors.
pub(super) fn errors(diagnostics: &[Diagnostic]) -> usize {
    diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count()
}

/// The line that nvcc ends with after errors in the compilation of `source`; empty where there
/// are none.
pub(super) fn render_count(errors: usize, source: &str) -> String {
    let plural = if errors == 1 { "" } else { "s" };
    match errors {
        0 => String::new(),
        _ => format!("{errors} error{plural} detected in the compilation of \"{}\".\n", one_line(source)),
    }
}

/// Most characters of a list of names that a message shows.
const MOST_LISTED: usize = 60;

/// `; did you mean ...?` if one of the names is near what was typed, else all of them, or where
/// a long list stands.
pub(crate) fn suggestion<'a>(typed: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(typed, names.clone()) {
        Some(name) => format!("; did you mean `{name}`?"),
        None => {
            let names: Vec<&str> = names.into_iter().collect();
            match names.join(", ") {
                list if list.is_empty() => list,
                list if list.len() <= MOST_LISTED => format!(": known are {list}"),
                _ => "; `nvtune help comments` says which there are".to_owned(),
            }
        }
    }
}

/// The name that begins with what was typed, or has the smallest edit distance, if it is near
/// enough to be a slip.
pub(crate) fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (typed.chars().count() / 3).max(1);
    let typed = typed.to_lowercase();
    let steps = |name: &str| {
        let begins = typed.len() >= 3 && name.to_lowercase().starts_with(&typed);
        if begins { 1 } else { edit_distance(&typed, &name.to_lowercase()) }
    };
    names
        .into_iter()
        .map(|name| (steps(name), name))
        .filter(|(steps, name)| *steps <= limit && *steps < name.chars().count())
        .min_by_key(|(steps, _)| *steps)
        .map(|(_, name)| name)
}

/// Edit distance: insertions, deletions, substitutions and swaps of neighbours.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let substituted = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = substituted.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{edit_distance, nearest};

    #[test]
    fn distances_count_single_slips() {
        for (a, b, steps) in
            [("block", "bock", 1), ("regs", "reg", 1), ("threads", "therads", 1), ("", "ab", 2), ("x", "x", 0)]
        {
            assert_eq!(edit_distance(a, b), steps, "{a} {b}");
        }
        assert_eq!(nearest("bock", ["block", "budget"]), Some("block"));
        assert_eq!(nearest("rand", ["zeros", "random"]), Some("random"));
        assert_eq!(nearest("zzz", ["block", "budget"]), None);
    }
}
