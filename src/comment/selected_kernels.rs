//! A source and which kernels are selected -> the same source with a bare tuning comment above
//! each of them that has none.
//!
//! Invariants: no line moves; a source whose comments can be read still can be.

use super::annotations::annotations;
use crate::cuda::kernels_of;
use crate::diag::Source;
use std::collections::{BTreeMap, BTreeSet};

/// What stands in front of a kernel that is selected.
const MARK: &[u8] = b"/*@tune*/ ";

/// A source in which kernels are marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedKernels {
    pub text: Vec<u8>,
    /// The lines of their names.
    pub lines: BTreeSet<u32>,
}

/// Marks the kernels of a file whose names `selects` selects; `None` if there are none.
/// Templates are not marked: a comment says which instance is tuned. Neither are kernels that
/// share their name, nor those whose declaration does not begin its line.
pub fn mark_selected(path: &str, bytes: &[u8], selects: &dyn Fn(&str) -> bool) -> Option<SelectedKernels> {
    memchr::memmem::find(bytes, b"__global__")?;
    let source = Source::new(path, bytes);
    let kernels = kernels_of(&source);
    if !kernels.iter().any(|listed| selects(&listed.kernel.name)) {
        return None;
    }
    let marked = annotations(&source).ok()?;
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    kernels.iter().for_each(|listed| *names.entry(&listed.kernel.name).or_default() += 1);
    let is_open = |line: u32| marked.iter().all(|annotation| annotation.kernel.line != line);
    let mut starts = Vec::new();
    let mut lines = BTreeSet::new();
    for listed in kernels.iter().filter(|listed| selects(&listed.kernel.name) && is_open(listed.kernel.line)) {
        let kernel = &listed.kernel;
        if let Some(indent) = listed.indent(&source)
            && kernel.template.is_none()
            && names.get(kernel.name.as_str()) == Some(&1)
        {
            starts.push((source.line(listed.start), indent.len()));
            lines.insert(kernel.line);
        }
    }
    let mut text = Vec::with_capacity(bytes.len() + starts.len() * MARK.len());
    for (number, line) in (1..).zip(bytes.split_inclusive(|&byte| byte == b'\n')) {
        let at = starts.iter().find(|(start, _)| *start == number).map_or(0, |(_, indent)| *indent);
        text.extend_from_slice(&line[..at]);
        if starts.iter().any(|(start, _)| *start == number) {
            text.extend_from_slice(MARK);
        }
        text.extend_from_slice(&line[at..]);
    }
    let is_read = || annotations(&Source::new(path, &text)).is_ok();
    (!lines.is_empty() && is_read()).then_some(SelectedKernels { text, lines })
}

#[cfg(test)]
mod tests {
    use super::mark_selected;

    fn marked(text: &str) -> Option<String> {
        let selected = mark_selected("a.cu", text.as_bytes(), &|name| name.starts_with('k'))?;
        Some(String::from_utf8_lossy(&selected.text).into_owned())
    }

    #[test]
    fn selected_kernels_are_marked_where_they_begin() {
        assert_eq!(
            marked(
                "__global__ void k(int n) {}\n\n\tstatic\n__global__ void other(int n) {}\n  __global__\n  void k2() {}"
            )
            .as_deref(),
            Some(
                "/*@tune*/ __global__ void k(int n) {}\n\n\tstatic\n__global__ void other(int n) {}\n  /*@tune*/ __global__\n  void k2() {}"
            )
        );
    }

    #[test]
    fn kernels_that_have_a_comment_or_cannot_have_a_bare_one_are_left() {
        for text in [
            "//@tune block(64)\n__global__ void k(int n) {}\n",
            "template <int N> __global__ void k(int n) {}\n",
            "int f(); __global__ void k(int n) {}\n",
            "__global__ void k(int n) {}\n__global__ void k(float n) {}\n",
            "__global__ void k(int n);\n",
            "//@tune bock(64)\n__global__ void other(int n) {}\n__global__ void k() {}\n",
            "void k() {}\n",
        ] {
            assert_eq!(marked(text), None, "{text}");
        }
    }
}
