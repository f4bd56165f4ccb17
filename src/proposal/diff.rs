//! A file's bytes and lines that are inserted -> the new bytes, and the unified diff.

use super::proposed::Proposal;

/// Lines of context around a change, as `diff -u` has them.
const CONTEXT: usize = 3;

/// The file with the comments of these proposals; its line endings are kept.
pub fn insert_lines(bytes: &[u8], proposals: &[&Proposal]) -> Vec<u8> {
    let lines = split_lines(bytes);
    let ending = line_ending(&lines);
    let mut text = Vec::with_capacity(bytes.len() + 1024);
    for (index, line) in lines.iter().enumerate() {
        for proposal in proposals.iter().filter(|proposal| proposal.line as usize == index + 1) {
            for added in &proposal.lines {
                text.extend_from_slice(added.as_bytes());
                text.extend_from_slice(ending);
            }
        }
        text.extend_from_slice(line);
    }
    text
}

/// The unified diff that makes `insert_lines` of a file.
pub fn unified_diff(path: &str, bytes: &[u8], proposals: &[&Proposal]) -> Vec<u8> {
    let lines = split_lines(bytes);
    let ending = line_ending(&lines);
    let (old, new) = match path.starts_with('/') {
        true => (path.to_owned(), path.to_owned()),
        false => (format!("a/{path}"), format!("b/{path}")),
    };
    let mut diff = format!("--- {old}\n+++ {new}\n").into_bytes();
    let mut sorted: Vec<&Proposal> = proposals.to_vec();
    sorted.sort_by_key(|proposal| proposal.line);
    let (mut rest, mut added) = (sorted.as_slice(), 0);
    while let Some(first) = rest.first() {
        // Changes whose context touches are one hunk.
        let is_near = |pair: &[&Proposal]| pair[1].line as usize <= pair[0].line as usize + 2 * CONTEXT;
        let length = 1 + rest.windows(2).take_while(|pair| is_near(pair)).count();
        let (hunk, after) = rest.split_at(length);
        rest = after;
        let last = hunk.last().unwrap_or(first);
        let start = (first.line as usize - 1).saturating_sub(CONTEXT);
        let end = (last.line as usize - 1 + CONTEXT).min(lines.len());
        let new_lines: usize = hunk.iter().map(|proposal| proposal.lines.len()).sum();
        let (old, new) = (end - start, end - start + new_lines);
        diff.extend(format!("@@ -{},{old} +{},{new} @@\n", start + 1, start + 1 + added).into_bytes());
        added += new_lines;
        for (index, line) in lines.iter().enumerate().take(end).skip(start) {
            for proposal in hunk.iter().filter(|proposal| proposal.line as usize == index + 1) {
                proposal.lines.iter().for_each(|line| diff.extend([b"+", line.as_bytes(), ending].concat()));
            }
            diff.extend([b" ", *line].concat());
            if !line.ends_with(b"\n") {
                diff.extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
    }
    diff
}

/// The lines of a file with their endings.
fn split_lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n').collect()
}

/// What most lines end with.
fn line_ending(lines: &[&[u8]]) -> &'static [u8] {
    let windows = lines.iter().filter(|line| line.ends_with(b"\r\n")).count();
    if windows * 2 > lines.len() { b"\r\n" } else { b"\n" }
}

#[cfg(test)]
mod tests {
    use super::super::proposed::{Basis, Proposal};
    use super::{insert_lines, unified_diff};

    fn at(line: u32, lines: &[&str]) -> Proposal {
        let lines = lines.iter().map(|line| line.to_string()).collect();
        Proposal { kernel: "k".to_owned(), line, lines, basis: Basis::Launch }
    }

    #[test]
    fn hunks_have_three_lines_of_context_and_join_where_that_touches() {
        let text: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let (one, two, three) = (at(1, &["a"]), at(7, &["b", "c"]), at(20, &["d"]));
        let diff = unified_diff("k.cu", text.as_bytes(), &[&one, &two, &three]);
        let diff = String::from_utf8_lossy(&diff);
        let expected = "--- a/k.cu\n+++ b/k.cu\n@@ -1,9 +1,12 @@\n+a\n 1\n 2\n 3\n 4\n 5\n 6\n+b\n+c\n 7\n 8\n 9\n\
            @@ -17,4 +20,5 @@\n 17\n 18\n 19\n+d\n 20\n";
        assert_eq!(diff, expected);
    }

    #[test]
    fn line_endings_and_a_missing_last_one_are_kept() {
        let text = b"// \xe9\r\n__global__ void k() {}\r\nx";
        let one = at(2, &["//@tune"]);
        assert_eq!(insert_lines(text, &[&one]), b"// \xe9\r\n//@tune\r\n__global__ void k() {}\r\nx");
        let expected =
            b"--- /d/k.cu\n+++ /d/k.cu\n@@ -1,3 +1,4 @@\n // \xe9\r\n+//@tune\r\n __global__ void k() {}\r\n x\n\
            \\ No newline at end of file\n";
        assert_eq!(unified_diff("/d/k.cu", text, &[&one]), expected);
    }
}
