//! A preprocessed text -> which lines of each file the compiler is given, and the text of a
//! file without those that `#if` leaves out.
//!
//! Invariant: a branch is left out only if it has code, and none of its lines is in the
//! preprocessed text.

use super::line_markers::LineMarker;
use super::tokens::{CxxKind, cxx_tokens, split_directive};
use crate::diag::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// By this macro the device's code differs from the host's, of which the preprocessed text is.
const OF_DEVICE: &str = "__CUDA_ARCH__";

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
        if let Some(marker) = LineMarker::parse(text) {
            files.entry(current).or_default().lines.append(&mut lines);
            (current, line) = (marker.file.into_owned(), marker.line);
            files.entry(current.clone()).or_default().is_system |= marker.is_system;
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

/// A branch of an `#if`.
pub(crate) struct Branch {
    /// Its first line and the one behind its last, without the directives.
    pub(crate) lines: Range<u32>,
    /// In how many others it is.
    depth: usize,
    /// Of which `#if`, by its line.
    pub(crate) group: u32,
    /// It may be for one side of a compile alone.
    is_of_device: bool,
    /// It stands among the arguments of a call, which the preprocessor writes in another place
    /// if that is a macro's. Where another branch came through in its place, it does not.
    is_in_call: bool,
}

/// For which side of a compile a text was preprocessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What `__CUDA_ARCH__` decides may be otherwise for the device.
    Host,
    Device,
}

/// A text with blanks in place of the branches that are not compiled for the host; places in it
/// stay what they are.
pub fn compiled_text(text: &str, lines: &BTreeSet<u32>) -> String {
    let left_out = left_out(text, lines, Side::Host);
    if left_out.is_empty() {
        return text.to_owned();
    }
    let mut kept = String::with_capacity(text.len());
    for (number, of_line) in (1u32..).zip(text.split_inclusive('\n')) {
        match left_out.contains(&number) {
            true => kept.extend(of_line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' })),
            false => kept.push_str(of_line),
        }
    }
    kept
}

/// The lines of the branches that are certainly not compiled, where these lines came through
/// the preprocessor.
pub fn left_out(text: &str, lines: &BTreeSet<u32>, side: Side) -> BTreeSet<u32> {
    let source = Source::new("", text.as_bytes());
    let Some((branches, code)) = compiled_branches(&source.text) else { return BTreeSet::new() };
    // Code of the branch itself, not of those in it, tells whether it is compiled.
    let has_own = |branch: &Branch| {
        let within = |of: &&Branch| of.depth > branch.depth && branch.lines.contains(&of.lines.start);
        let inner: Vec<&Branch> = branches.iter().filter(within).collect();
        code.range(branch.lines.clone()).any(|line| !inner.iter().any(|of| of.lines.contains(line)))
    };
    let came_through = |branch: &Branch| lines.range(branch.lines.clone()).next().is_some();
    let is_certain = |branch: &Branch| {
        let certain = match branch.is_in_call {
            true => branches.iter().any(|other| other.group == branch.group && came_through(other)),
            false => true,
        };
        certain && (side == Side::Device || !branch.is_of_device)
    };
    let is_left_out = |branch: &&Branch| !came_through(branch) && is_certain(branch) && has_own(branch);
    branches.iter().filter(is_left_out).flat_map(|branch| branch.lines.clone()).collect()
}

/// Returns the branches of each `#if` of a text, and the lines with code. Returns `None`
/// if directives renumber the lines.
pub(crate) fn compiled_branches(text: &str) -> Option<(Vec<Branch>, BTreeSet<u32>)> {
    let tokens = cxx_tokens(text);
    let mut tokens_behind = tokens.iter().peekable();
    let (mut found, mut open): (Vec<Branch>, Vec<Branch>) = (Vec::new(), Vec::new());
    let (mut code, mut parentheses, mut start, mut covered) = (BTreeSet::new(), 0usize, 0usize, 0usize);
    for (number, line) in (1u32..).zip(text.split_inclusive('\n')) {
        let end = start + line.len();
        if let Some((word, rest)) = split_directive(line).filter(|_| covered <= start) {
            if word == "line" || word.is_empty() && rest.starts_with(|c: char| c.is_ascii_digit()) {
                return None;
            }
            let is_begin = matches!(word, "if" | "ifdef" | "ifndef");
            let is_next = matches!(word, "elif" | "elifdef" | "elifndef" | "else");
            let is_of_device = rest.contains(OF_DEVICE);
            if let Some(branch) = open.pop_if(|_| is_next || word == "endif") {
                let (group, depth, is_in_call) = (branch.group, branch.depth, branch.is_in_call);
                let is_of_device = branch.is_of_device || is_of_device;
                found.push(Branch { lines: branch.lines.start..number, ..branch });
                if is_next {
                    open.push(Branch { lines: number + 1..u32::MAX, depth, group, is_of_device, is_in_call });
                }
            } else if is_begin {
                let is_of_device = is_of_device || open.last().is_some_and(|around| around.is_of_device);
                let (depth, is_in_call) = (open.len(), parentheses > 0);
                open.push(Branch { lines: number + 1..u32::MAX, depth, group: number, is_of_device, is_in_call });
            }
        }
        while let Some(token) = tokens_behind.next_if(|token| token.span.start < end) {
            covered = token.span.end;
            if matches!(token.kind, CxxKind::Comment { .. }) {
                continue;
            }
            code.insert(number);
            match text.get(token.span.start..token.span.end) {
                Some("(") => parentheses += 1,
                Some(")") => parentheses = parentheses.saturating_sub(1),
                _ => {}
            }
        }
        start = end;
    }
    Some((found, code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_markers() {
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

    #[test]
    fn what_is_not_certain_stays() {
        for text in [
            // Its only code is that of another branch within.
            "#ifndef H\n#define H\n#define W 4\n#ifdef HIP\nint hip;\n#endif\n#endif\n",
            // For the device alone; among the arguments of a call; lines that have other numbers.
            "#ifdef __CUDA_ARCH__\nint a;\n#ifdef X\nint b;\n#endif\n#endif\n",
            "#if X\n#elif __CUDA_ARCH__ >= 800\nint a;\n#endif\n",
            "DO(\n#ifdef X\nint a;\n#else\nint b;\n#endif\n)\n",
            "#line 1000\n#ifdef X\nint a;\n#endif\n",
        ] {
            let kept = compiled_text(text, &BTreeSet::new());
            let left = |word: &str| kept.split_whitespace().filter(|known| *known == word).count();
            let expected = |word: &str| text.split_whitespace().filter(|known| *known == word).count();
            assert_eq!(["define", "a;", "b;"].map(left), ["define", "a;", "b;"].map(expected), "{text}");
        }
        // Where another branch came through, the call is no macro's.
        let text = "go([&] {\n#ifdef X\nint a;\n#else\nint b;\n#endif\n});\nDO({\n#ifdef X\nint c;\n#else\nint d;\n#endif\n});\n";
        let kept = compiled_text(text, &BTreeSet::from([1, 5, 7, 8]));
        assert_eq!(["a;", "b;", "c;", "d;"].map(|word| kept.contains(word)), [false, true, true, true], "{kept}");
        // No directives: of a comment, a raw string.
        let text = "#ifdef X\nint a; /*\n#endif\n*/ const char *s = R\"(\n#else\n)\";\nint b;\n#endif\nint c;\n";
        assert_eq!(
            compiled_text(text, &BTreeSet::from([9])).split_whitespace().collect::<String>(),
            "#ifdefX#endifintc;"
        );
    }
}
