//! A source -> the kernels that it defines, marked or not, and the line above which a tuning
//! comment belongs.

use super::enclosing_namespaces::enclosing_namespaces;
use super::kernel::{Kernel, find_kernel};
use super::macros;
use super::tokens::{CxxKind, CxxToken, cxx_tokens};
use crate::diag::{Source, Span};
use std::ops::Range;

/// A kernel of a source.
#[derive(Clone, Debug)]
pub struct ListedKernel {
    pub kernel: Kernel,
    /// The first byte of its declaration.
    pub start: usize,
    /// The bytes of its body.
    pub body: Range<usize>,
}

impl ListedKernel {
    /// The blanks before its declaration; `None` if other code is on that line.
    pub fn indent<'s>(&self, source: &'s Source) -> Option<&'s str> {
        let head = &source.text[..self.start];
        let line = &head[head.rfind('\n').map_or(0, |end| end + 1)..];
        line.trim().is_empty().then_some(line)
    }
}

/// Lists the kernels that a source defines, in order. What macros make is not among them.
pub fn kernels_of(source: &Source) -> Vec<ListedKernel> {
    let is_code = |token: &CxxToken| !matches!(token.kind, CxxKind::Comment { .. });
    let code: Vec<CxxToken> = cxx_tokens(&source.text).into_iter().filter(is_code).collect();
    let text = |at: usize| source.slice(code[at].span);
    let names = macros::of_kernels(source);
    let is_global =
        |at: &usize| code[*at].kind == CxxKind::Name && (text(*at) == "__global__" || names.contains(&text(*at)));
    let places: Vec<usize> = (0..code.len()).filter(is_global).collect();
    let mut listed = Vec::new();
    for (number, &place) in places.iter().enumerate() {
        let start = (0..place).rev().find(|&at| matches!(text(at), ";" | "{" | "}")).map_or(0, |at| at + 1);
        let end = places.get(number + 1).copied().unwrap_or(code.len());
        let Some(first) = code.get(start) else { continue };
        let none: &[Source] = &[];
        let Ok(kernel) = find_kernel(source, &[], &code[start..end], &[], &|| none, first.span) else { continue };
        let kernel = Kernel { namespaces: enclosing_namespaces(source, &code[..start]), ..kernel };
        // A declaration has several words of `__global__` only by mistake.
        if listed.last().is_some_and(|other: &ListedKernel| other.kernel.span == kernel.span) {
            continue;
        }
        let after = code.partition_point(|token| token.span.start < kernel.span.end);
        let body = body(source, &code[after..end]);
        listed.push(ListedKernel { start: first.span.start, body, kernel });
    }
    listed
}

/// The bytes from the first `{` to its `}`.
fn body(source: &Source, code: &[CxxToken]) -> Range<usize> {
    let mut depth = 0_usize;
    let mut open = None;
    for CxxToken { span: Span { start, end }, .. } in code {
        match &source.text[*start..*end] {
            "{" => {
                open.get_or_insert(*start);
                depth += 1;
            }
            "}" if depth == 1 => return open.unwrap_or(*start)..*end,
            "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    0..0
}

#[cfg(test)]
mod tests {
    use super::kernels_of;
    use crate::diag::Source;

    #[test]
    fn definitions_are_listed_with_the_line_of_their_declaration() {
        let text = "\
            #define KERNEL extern \"C\" __global__ void\n\
            __global__ void declared(int n);\n\
            // a remark\n\
            \ttemplate <int N>\n__global__ void k(int n) { if (n) { n = N; } }\n\
            namespace a { static __global__ void __launch_bounds__(64) inner(float *x) {} }\n\
            KERNEL made(float *x) {}\n\
            void host() { declared<<<1, 2>>>(3); }\n";
        let source = Source::new("a.cu", text.as_bytes());
        let found: Vec<(String, u32, Option<&str>, &str)> = kernels_of(&source)
            .iter()
            .map(|listed| {
                let line = source.line(listed.start);
                (listed.kernel.name.clone(), line, listed.indent(&source), &source.text[listed.body.clone()])
            })
            .collect();
        assert_eq!(
            found,
            [
                ("k".to_owned(), 4, Some("\t"), "{ if (n) { n = N; } }"),
                ("inner".to_owned(), 6, None, "{}"),
                ("made".to_owned(), 7, Some(""), "{}"),
            ]
        );
    }
}
