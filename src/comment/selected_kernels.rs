//! A source and which kernels are selected -> the same source with a tuning comment above each
//! of them that has none.
//!
//! Invariants: no line moves; a source whose comments can be read still can be.

use super::alternatives::Conditions;
use super::annotation::Annotation;
use super::annotations::annotations;
use super::template_clause::has_no_parameters;
use crate::cuda::{ListedKernel, kernels_of};
use crate::diag::{Diagnostic, MessageCode, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// A source in which kernels are marked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectedKernels {
    pub text: Vec<u8>,
    /// The lines of their names.
    pub lines: BTreeSet<u32>,
    /// A warning for each kernel that needs a comment of its own.
    pub unmarked: Vec<Diagnostic>,
}

/// Marks the kernels of a file whose names `selects` selects; `None` if it has none, or comments
/// with errors.
pub fn mark_selected(path: &str, bytes: &[u8], selects: &dyn Fn(&str) -> bool) -> Option<SelectedKernels> {
    memchr::memmem::find(bytes, b"__global__")?;
    let source = Source::new(path, bytes);
    let kernels = kernels_of(&source);
    if !kernels.iter().any(|listed| selects(&listed.kernel.name)) {
        return None;
    }
    let commented = annotations(&source).ok()?;
    let is_open = |line: u32| commented.iter().all(|annotation| annotation.kernel.line != line);
    let (mut marks, mut unmarked) = (Vec::new(), Vec::new());
    for (listed, name) in kernels.iter().zip(distinct_names(&source, &kernels, &commented)) {
        let kernel = &listed.kernel;
        // A specialization whose arguments follow from its parameters: its template's instance.
        let is_instance = kernel.arguments.is_none() && has_no_parameters(&source, kernel);
        if !selects(&kernel.name) || !is_open(kernel.line) || is_instance {
            continue;
        }
        let clause = if kernel.name == name { String::new() } else { format!("name({name})") };
        match MarkedKernel::new(&source, listed, &clause) {
            Ok(mark) => marks.push(mark),
            Err(reason) => unmarked.push(warning(&source, listed, &reason)),
        }
    }
    // What is wrong with some of them may have no line of theirs: then all are left out.
    for is_last in [false, true] {
        let Err(problems) = annotations(&Source::new(path, &marked_text(bytes, &marks))) else { break };
        let problem_of = |mark: &MarkedKernel<'_>| problems.iter().find(|problem| mark.lines().contains(&problem.line));
        marks.retain(|mark| {
            let reason = match problem_of(mark).map(|problem| problem.code) {
                Some(Some(MessageCode::NameClash)) => "another kernel has its name: write a comment with name(...)",
                None if !is_last => return true,
                _ => "its declaration is not understood: write a comment",
            };
            unmarked.push(warning(&source, mark.listed, reason));
            false
        });
    }
    let lines = marks.iter().map(|mark| mark.listed.kernel.line).collect();
    Some(SelectedKernels { text: marked_text(bytes, &marks), lines, unmarked })
}

/// The comment that a kernel gets.
struct MarkedKernel<'a> {
    listed: &'a ListedKernel,
    /// The line of the declaration, and how many blanks it begins with.
    line: u32,
    indent: usize,
    comment: String,
}

impl<'a> MarkedKernel<'a> {
    /// Makes the comment of these clauses.
    ///
    /// # Errors
    /// Why the kernel needs a comment of its own.
    fn new(source: &Source, listed: &'a ListedKernel, clauses: &str) -> Result<Self, String> {
        let Some(indent) = listed.indent(source) else {
            return Err("other code is on the line where it begins: break it there".to_owned());
        };
        let comment = match clauses {
            "" => "/*@tune*/ ".to_owned(),
            clauses => format!("/*@tune {clauses}*/ "),
        };
        Ok(Self { listed, line: source.line(listed.start), indent: indent.len(), comment })
    }

    /// The lines of the declaration up to the kernel's name.
    fn lines(&self) -> RangeInclusive<u32> {
        self.line..=self.listed.kernel.line
    }
}

/// A text with the comments in front of their kernels.
fn marked_text(bytes: &[u8], marks: &[MarkedKernel<'_>]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len() + marks.len() * 32);
    for (number, line) in (1..).zip(bytes.split_inclusive(|&byte| byte == b'\n')) {
        match marks.iter().find(|mark| mark.line == number) {
            Some(MarkedKernel { indent, comment, .. }) => {
                text.extend_from_slice(&line[..*indent]);
                text.extend_from_slice(comment.as_bytes());
                text.extend_from_slice(&line[*indent..]);
            }
            None => text.extend_from_slice(line),
        }
    }
    text
}

fn warning(source: &Source, listed: &ListedKernel, reason: &str) -> Diagnostic {
    let kernel = &listed.kernel;
    let message = format!("NVTUNE_KERNELS does not mark `{}`: {reason}", kernel.name);
    source.warning(MessageCode::KernelNotMarked, kernel.span, message)
}

/// What each kernel is called: as in the source, or with the first number behind it by which it
/// has a name of its own. Those of which an `#if` lets one through share their name.
fn distinct_names(source: &Source, kernels: &[ListedKernel], commented: &[Annotation]) -> Vec<String> {
    let conditions = Conditions::new(&source.text);
    let mut users: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for annotation in commented {
        users.entry(annotation.name.clone()).or_default().push(annotation.kernel.line);
    }
    let is_commented = |line: u32| commented.iter().any(|annotation| annotation.kernel.line == line);
    let in_source: BTreeSet<&str> = kernels.iter().map(|listed| listed.kernel.name.as_str()).collect();
    let mut names = Vec::new();
    for ListedKernel { kernel, .. } in kernels {
        let own = kernel.name.clone();
        // Specializations and what has a comment are called otherwise.
        if kernel.arguments.is_some() || has_no_parameters(source, kernel) || is_commented(kernel.line) {
            names.push(own);
            continue;
        }
        let is_free = |name: &String| {
            let lines = users.get(name).into_iter().flatten();
            lines.into_iter().all(|line| conditions.exclude(*line, kernel.line))
        };
        let numbered = (2..).map(|number| format!("{own}_{number}"));
        let numbered = numbered.filter(|name| !in_source.contains(name.as_str()));
        let name = std::iter::once(own.clone()).chain(numbered).find(is_free).unwrap_or(own);
        users.entry(name.clone()).or_default().push(kernel.line);
        names.push(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::{SelectedKernels, mark_selected};

    fn selected(text: &str) -> Option<SelectedKernels> {
        mark_selected("a.cu", text.as_bytes(), &|name| name.starts_with('k'))
    }

    fn marked(text: &str) -> String {
        String::from_utf8(selected(text).expect("kernels are selected").text).expect("text")
    }

    #[test]
    fn selected_kernels_are_marked_where_they_begin() {
        assert_eq!(
            marked(
                "__global__ void k(int n) {}\n\n\tstatic\n__global__ void other(int n) {}\n  __global__\n  void k2() {}"
            ),
            "/*@tune*/ __global__ void k(int n) {}\n\n\tstatic\n__global__ void other(int n) {}\n  /*@tune*/ __global__\n  void k2() {}"
        );
    }

    #[test]
    fn overloads_have_names_of_their_own_and_alternatives_share_one() {
        for (text, expected) in [
            (
                "__global__ void k(int n) {}\n__global__ void k(float n) {}\n__global__ void k_2() {}\n",
                "/*@tune*/ __global__ void k(int n) {}\n/*@tune name(k_3)*/ __global__ void k(float n) {}\n/*@tune*/ __global__ void k_2() {}\n",
            ),
            (
                "#if A\n__global__ void k(int n) {}\n#else\n__global__ void k(int n) {}\n#endif\n__global__ void k() {}\n",
                "#if A\n/*@tune*/ __global__ void k(int n) {}\n#else\n/*@tune*/ __global__ void k(int n) {}\n#endif\n/*@tune name(k_2)*/ __global__ void k() {}\n",
            ),
            // Both may be compiled.
            (
                "#if A\n__global__ void k(int n) {}\n#endif\n#if B\n__global__ void k() {}\n#endif\n",
                "#if A\n/*@tune*/ __global__ void k(int n) {}\n#endif\n#if B\n/*@tune name(k_2)*/ __global__ void k() {}\n#endif\n",
            ),
            (
                "//@tune block(64) threads(n)\n__global__ void k(int n) {}\n__global__ void k() {}\n",
                "//@tune block(64) threads(n)\n__global__ void k(int n) {}\n/*@tune name(k_2)*/ __global__ void k() {}\n",
            ),
            (
                "template <> __global__ void k<int>(int n) {}\n__global__ void k(float n) {}\n",
                "/*@tune*/ template <> __global__ void k<int>(int n) {}\n/*@tune*/ __global__ void k(float n) {}\n",
            ),
        ] {
            assert_eq!(marked(text), expected);
        }
    }

    #[test]
    fn templates_and_their_specializations_are_marked() {
        for (text, expected) in [
            (
                "template <class T> __global__ void k(T x) {}\ntemplate <class T> __global__ void k(T x, int n) {}\n",
                "/*@tune*/ template <class T> __global__ void k(T x) {}\n/*@tune name(k_2)*/ template <class T> __global__ void k(T x, int n) {}\n",
            ),
            (
                "template <class T> __global__ void k(T x) {}\ntemplate <> __global__ void k<int>(int x) {}\n",
                "/*@tune*/ template <class T> __global__ void k(T x) {}\n/*@tune*/ template <> __global__ void k<int>(int x) {}\n",
            ),
            // The compiler finds the arguments.
            (
                "template <class T> __global__ void k(T x) {}\ntemplate <> __global__ void k(float x) {}\n",
                "/*@tune*/ template <class T> __global__ void k(T x) {}\ntemplate <> __global__ void k(float x) {}\n",
            ),
        ] {
            assert_eq!(marked(text), expected);
        }
    }

    #[test]
    fn kernels_that_need_a_comment_are_warned_of_and_others_marked() {
        let text = "int f(); __global__ void k(int n) {}\n__global__ void k2() {}\n";
        let found = selected(text).expect("kernels are selected");
        assert_eq!(found.lines.into_iter().collect::<Vec<_>>(), [2]);
        let said: Vec<&str> = found.unmarked.iter().map(|warning| warning.message.as_str()).collect();
        assert_eq!(
            said,
            ["NVTUNE_KERNELS does not mark `k`: other code is on the line where it begins: break it there"]
        );
    }

    #[test]
    fn kernels_whose_comments_are_refused_are_left_and_others_marked() {
        let found = selected(
            "template <class T> __global__ void kd(T x) {}\n\
             template <> __global__ void kd<int>(int x) {}\n\
             template <> __global__ void kd<int>(int *x) {}\n\
             __global__ void k2() {}\n",
        )
        .expect("kernels are selected");
        assert_eq!(found.lines.into_iter().collect::<Vec<_>>(), [1, 2, 4]);
        let said: Vec<(u32, &str)> =
            found.unmarked.iter().map(|warning| (warning.line, warning.message.as_str())).collect();
        let [(3, refused)] = said[..] else { panic!("{said:?}") };
        assert!(refused.ends_with("`kd`: another kernel has its name: write a comment with name(...)"), "{refused}");
    }

    #[test]
    fn files_without_selected_kernels_or_with_wrong_comments_are_left() {
        for text in [
            "__global__ void k(int n);\n",
            "//@tune bock(64)\n__global__ void other(int n) {}\n__global__ void k() {}\n",
            "void k() {}\n",
        ] {
            assert_eq!(selected(text), None, "{text}");
        }
        let commented = "//@tune block(64) threads(n)\n__global__ void k(int n) {}\n";
        assert_eq!(selected(commented).map(|found| found.lines.len()), Some(0));
    }
}
