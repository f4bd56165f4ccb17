//! A preprocessed text -> which lines of each file the compiler is given, and the text of a file without those that `#if` leaves out.
//!
//! What always holds: a branch is left out only if it has code, and none of its lines is in the preprocessed text.

use super::cxx::{CxxKind, cxx_tokens};
use super::source::Source;
use std::collections::{BTreeMap, BTreeSet};

/// What of a file came through the preprocessor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompiledFile {
    /// The lines with anything on them, from 1.
    pub lines: BTreeSet<u32>,
    /// A header of the system's, as the preprocessor says.
    pub is_system: bool,
}

/// The files of a preprocessed text, as its line markers name them.
pub fn compiled_files(preprocessed: &[u8]) -> BTreeMap<String, CompiledFile> {
    let mut files: BTreeMap<String, CompiledFile> = BTreeMap::new();
    let (mut line, mut lines) = (0u32, BTreeSet::new());
    let mut current = String::new();
    for text in preprocessed.split(|&byte| byte == b'\n') {
        if let Some((next, name, is_system)) = text.starts_with(b"# ").then(|| marker(text)).flatten() {
            let file = files.entry(std::mem::take(&mut current)).or_default();
            file.lines.append(&mut lines);
            files.entry(name.clone()).or_default().is_system |= is_system;
            (current, line) = (name, next);
        } else {
            if !text.trim_ascii().is_empty() {
                lines.insert(line);
            }
            line = line.saturating_add(1);
        }
    }
    files.entry(current).or_default().lines.append(&mut lines);
    // `<built-in>` and `<command-line>` are no files, nor is what stands before the first marker.
    files.retain(|name, _| !name.is_empty() && !name.starts_with('<'));
    files
}

/// Line, file and whether it is the system's, of `# 12 "a b.h" 1 3 4`.
fn marker(text: &[u8]) -> Option<(u32, String, bool)> {
    let text = std::str::from_utf8(text).ok()?;
    let (line, rest) = text.strip_prefix("# ")?.split_once(" \"")?;
    let (name, flags) = rest.rsplit_once('"')?;
    let name = name.replace("\\\"", "\"").replace("\\\\", "\\");
    Some((line.parse().ok()?, name, flags.split(' ').any(|flag| flag == "3")))
}

/// A branch of an `#if`: its first line and, once it is known, the one behind its last.
#[derive(Clone, Copy)]
struct Branch {
    begin: u32,
    end: u32,
}

/// A text with blanks in place of the branches that are not compiled; places in it stay what they are.
pub fn compiled_text(text: &str, lines: &BTreeSet<u32>) -> String {
    let is_code = |kind: CxxKind| !matches!(kind, CxxKind::Comment { .. });
    let source = Source::new("", text.as_bytes());
    let starts: Vec<usize> = std::iter::once(0).chain(source.text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let line = |at: usize| u32::try_from(starts.partition_point(|&start| start <= at)).unwrap_or(u32::MAX);
    let code: BTreeSet<u32> = cxx_tokens(&source.text)
        .iter()
        .filter(|token| is_code(token.kind))
        .map(|token| line(token.span.start))
        .collect();
    let is_left_out = |branch: &Branch| {
        let within = branch.begin..branch.end;
        code.range(within.clone()).next().is_some() && lines.range(within).next().is_none()
    };
    let left_out: Vec<Branch> = branches(&source.text).into_iter().filter(is_left_out).collect();
    let mut kept = String::with_capacity(text.len());
    for (number, of_line) in (1u32..).zip(text.split_inclusive('\n')) {
        match left_out.iter().any(|branch| (branch.begin..branch.end).contains(&number)) {
            true => kept.extend(of_line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' })),
            false => kept.push_str(of_line),
        }
    }
    kept
}

/// The branches of all `#if` of a text, without the lines of the directives themselves.
fn branches(text: &str) -> Vec<Branch> {
    let (mut found, mut open): (Vec<Branch>, Vec<u32>) = (Vec::new(), Vec::new());
    for (number, line) in (1u32..).zip(text.lines()) {
        let Some(directive) = line.trim_start().strip_prefix('#').map(str::trim_start) else { continue };
        let word = directive.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        let is_begin = matches!(word, "if" | "ifdef" | "ifndef");
        let is_next = matches!(word, "elif" | "elifdef" | "elifndef" | "else");
        if is_next || word == "endif" {
            found.extend(open.pop().map(|begin| Branch { begin, end: number }));
        }
        if is_begin || is_next {
            open.push(number + 1);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_by_the_markers() {
        let text = b"# 0 \"a.cu\"\n# 0 \"<command-line>\"\n# 1 \"/usr/include/stdc.h\" 1 3 4\nint c;\n# 0 \"<command-line>\" 2\n# 1 \"a.cu\"\n\
            int a;\n\n\n# 7 \"a.cu\"\nint b;\n# 1 \"in \\\"c/x.h\" 1\n\nint x;\n# 9 \"a.cu\" 2\nint d;\n";
        let found = compiled_files(text);
        let shown: Vec<_> =
            found.iter().map(|(name, file)| (name.as_str(), file.is_system, Vec::from_iter(&file.lines))).collect();
        let expected = [
            ("/usr/include/stdc.h", true, vec![&1]),
            ("a.cu", false, vec![&1, &7, &9]),
            ("in \"c/x.h", false, vec![&2]),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn branches_that_are_not_compiled_are_blank() {
        let text = "#if A\nint a;\n#elif B\nint b; // \u{e9}\n  #  if C\nint c;\n#  endif\n#else\nint d;\n#endif\n#ifndef N\n#define N 4\n#endif\n";
        let kept = |lines: &[u32]| {
            let text = compiled_text(text, &lines.iter().copied().collect());
            let words =
                text.split_whitespace().filter(|word| word.ends_with(';')).map(|word| &word[..1]).collect::<String>();
            (words, text.contains("define N"), text.lines().count())
        };
        for (lines, expected) in [(&[2][..], "a"), (&[4], "b"), (&[4, 6], "bc"), (&[9], "d"), (&[], "")] {
            assert_eq!(kept(lines), (expected.to_owned(), true, 13), "{lines:?}");
        }
        assert_eq!(compiled_text(text, &BTreeSet::from([2])).len(), text.len());
    }
}
