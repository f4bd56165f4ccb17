//! Preprocessed source -> the innermost loops of its kernels that have no pragma, and the same
//! source with a pragma before each of them.
//!
//! A loop is left alone if anything but the end of a statement, a label, `else`, `do` or the
//! parentheses of `if`, `for`, `while` and `switch` stands before it: the pragma might not reach
//! it there. A kernel is left alone if a statement of it cannot be read. No line moves, so that
//! line tables stay what they are.

use super::brackets::{Depth, closing_bracket, matching_bracket};
use super::tokens::{CxxKind, CxxToken, cxx_tokens};
use std::collections::HashSet;

/// A loop that may be unrolled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLoop {
    /// The name of its kernel, without namespaces and template arguments.
    pub kernel: String,
    /// The byte at which it begins.
    pub start: usize,
}

/// Finds the innermost loops of all kernels that have no pragma, in the order of the text.
pub fn innermost_loops(preprocessed: &[u8]) -> Vec<KernelLoop> {
    let text = ascii(preprocessed);
    let tokens: Vec<CxxToken> =
        cxx_tokens(&text).into_iter().filter(|token| !matches!(token.kind, CxxKind::Comment { .. })).collect();
    let code = TokenizedCode { text: &text, tokens };
    let mut loops = Vec::new();
    let mut from = 0;
    while let Some(kernel) = code.next_kernel(from) {
        from = kernel.end;
        loops.extend(code.innermost(&kernel).unwrap_or_default());
    }
    loops
}

/// Writes a pragma before each of these loops.
pub fn with_unroll_pragmas(preprocessed: &[u8], loops: &[KernelLoop], factor: u32) -> Vec<u8> {
    let pragma = format!("_Pragma(\"unroll {factor}\") ");
    let mut text = Vec::with_capacity(preprocessed.len() + loops.len() * pragma.len());
    let mut copied = 0;
    for found in loops {
        text.extend_from_slice(&preprocessed[copied..found.start]);
        text.extend_from_slice(pragma.as_bytes());
        copied = found.start;
    }
    text.extend_from_slice(&preprocessed[copied..]);
    text
}

/// The text with a letter in place of each byte that is not ASCII: it need not be UTF-8, and
/// places must stay what they are.
fn ascii(text: &[u8]) -> String {
    text.iter().map(|&byte| if byte.is_ascii() { char::from(byte) } else { 'x' }).collect()
}

/// The body of a kernel: the tokens between its braces.
struct KernelBody {
    name: String,
    start: usize,
    end: usize,
}

struct TokenizedCode<'t> {
    text: &'t str,
    tokens: Vec<CxxToken>,
}

impl<'t> TokenizedCode<'t> {
    /// The text of a token; nothing behind the last.
    fn word(&self, at: usize) -> &'t str {
        self.tokens.get(at).and_then(|token| self.text.get(token.span.start..token.span.end)).unwrap_or_default()
    }

    fn words_are(&self, at: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(offset, word)| self.word(at + offset) == *word)
    }

    /// The token behind the bracket that closes the one at `at`.
    fn behind_bracket(&self, at: usize) -> Option<usize> {
        Some(closing_bracket(at..self.tokens.len(), |at| self.word(at), Depth::pass_token)? + 1)
    }

    /// The token behind the parentheses at `at`.
    fn behind_parentheses(&self, at: usize) -> Option<usize> {
        (self.word(at) == "(").then(|| self.behind_bracket(at)).flatten()
    }

    /// The first kernel that is defined from a token on.
    fn next_kernel(&self, from: usize) -> Option<KernelBody> {
        let is_kernel = |at: &usize| self.words_are(*at, &["__attribute__", "(", "(", "global", ")", ")"]);
        (from..self.tokens.len()).filter(is_kernel).find_map(|at| self.kernel_body(at))
    }

    /// The body of the kernel whose declaration has its attribute at `at`; `None` if it is not
    /// defined there.
    fn kernel_body(&self, at: usize) -> Option<KernelBody> {
        let (mut at, mut name) = (at, None);
        loop {
            at = match self.word(at) {
                "" | ";" | "}" => return None,
                "{" => return Some(KernelBody { name: name?, start: at + 1, end: self.behind_bracket(at)? - 1 }),
                "__attribute__" => self.behind_parentheses(at + 1)?,
                "(" => {
                    name = name.or_else(|| self.function_name(at));
                    self.behind_bracket(at)?
                }
                "[" => self.behind_bracket(at)?,
                _ => at + 1,
            }
        }
    }

    /// The name before the parentheses at `at`, or before the template arguments before them.
    fn function_name(&self, at: usize) -> Option<String> {
        let mut last = at.checked_sub(1)?;
        if self.word(last) == ">" {
            last = matching_bracket((0..=last).rev(), |at| self.word(at), ">", "<")?.checked_sub(1)?;
        }
        let is_name = self.tokens.get(last).is_some_and(|token| token.kind == CxxKind::Name);
        is_name.then(|| self.word(last).to_owned())
    }

    /// The innermost loops of a kernel that may have a pragma; `None` if it cannot be read.
    fn innermost(&self, kernel: &KernelBody) -> Option<Vec<KernelLoop>> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        // The `while` of `do` is none of its own.
        let mut tails: HashSet<usize> = HashSet::new();
        for at in kernel.start..kernel.end {
            let end = match self.word(at) {
                "for" => self.statement_end(at)?,
                "while" if !tails.contains(&at) => self.statement_end(at)?,
                "do" => {
                    let tail = self.statement_end(at + 1)?;
                    tails.insert(tail);
                    // A macro's statements, executed once.
                    let once = [&["(", "0", ")"], &["(", "false", ")"]];
                    if once.iter().any(|once| self.words_are(tail + 1, *once)) {
                        continue;
                    }
                    self.statement_end(at)?
                }
                _ => continue,
            };
            found.push((at, end));
        }
        let is_innermost = |(at, end): &(usize, usize)| !found.iter().any(|(other, _)| at < other && other < end);
        let innermost = found.iter().filter(|found| is_innermost(found) && self.may_have_pragma(found.0));
        let start = |at: usize| self.tokens[at].span.start;
        Some(innermost.map(|&(at, _)| KernelLoop { kernel: kernel.name.clone(), start: start(at) }).collect())
    }

    /// The token behind the statement at `at`.
    fn statement_end(&self, at: usize) -> Option<usize> {
        match self.word(at) {
            "" | "}" | ")" | "]" => None,
            "{" => self.behind_bracket(at),
            "for" | "while" | "switch" => self.statement_end(self.behind_parentheses(at + 1)?),
            "if" => {
                let condition = at + 1 + usize::from(self.word(at + 1) == "constexpr");
                let end = self.statement_end(self.behind_parentheses(condition)?)?;
                if self.word(end) == "else" { self.statement_end(end + 1) } else { Some(end) }
            }
            "do" => {
                let tail = self.statement_end(at + 1)?;
                let end = self.behind_parentheses(tail + 1).filter(|_| self.word(tail) == "while")?;
                (self.word(end) == ";").then_some(end + 1)
            }
            "case" | "default" => {
                let colon = (at..self.tokens.len()).find(|&at| matches!(self.word(at), ":" | "?" | ";" | "{"))?;
                (self.word(colon) == ":").then(|| self.statement_end(colon + 1)).flatten()
            }
            "try" => None,
            _ if self.word(at + 1) == ":" => self.statement_end(at + 2),
            _ => {
                let mut depth = Depth::default();
                let is_end = |at: &usize| {
                    let word = self.word(*at);
                    !depth.pass_token(word) && depth.is_outside() && word == ";"
                };
                (at..self.tokens.len()).find(is_end).map(|end| end + 1)
            }
        }
    }

    /// Whether a pragma before the loop at `at` would be the loop's, and none is there.
    fn may_have_pragma(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else { return false };
        let between = self.text.get(self.tokens[before].span.end..self.tokens[at].span.start).unwrap_or_default();
        if between.contains("pragma") {
            return false;
        }
        match self.word(before) {
            ";" | "{" | "}" | ":" | "else" | "do" => true,
            ")" => {
                let open = matching_bracket((0..=before).rev(), |at| self.word(at), ")", "(");
                let word = open.and_then(|open| open.checked_sub(1)).map_or("", |before| self.word(before));
                matches!(word, "if" | "constexpr" | "for" | "while" | "switch")
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loops of a kernel with this body, each by the text that it begins with.
    fn loops(body: &str) -> Vec<String> {
        let text = format!("void f() {{ for (;;) {{}} }}\n__attribute__((global)) void k(int n)\n{{ {body} }}\n");
        let found = innermost_loops(text.as_bytes());
        assert!(found.iter().all(|found| found.kernel == "k"), "{found:?}");
        let start = |found: &KernelLoop| text[found.start..].split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        found.iter().map(start).collect()
    }

    #[test]
    fn innermost_loops_are_found() {
        for (body, expected) in [
            ("for (;n--;) { a(); }", vec!["for (;n--;)"]),
            ("for (a;;) { for (b;;) c; for (d;;) { } }", vec!["for (b;;)", "for (d;;)"]),
            ("for (a;;) for (b;;) while (n--) c;", vec!["while (n--)"]),
            ("if (n) for (a;;) b; else while (n) n--;", vec!["for (a;;)", "while (n)"]),
            ("do { while (n) n--; } while (n);", vec!["while (n)"]),
            ("do x++; while (x < n); while (n) n--;", vec!["do x++;", "while (n)"]),
            ("for (a;;) if (b) c; else { d; } for (e;;) f;", vec!["for (a;;)", "for (e;;)"]),
            ("for (float x : { 1.f, 2.f }) a[i] = x;", vec!["for (float"]),
            ("switch (n) { case 3: for (a;;) b; break; default: while (n) n--; }", vec!["for (a;;)", "while (n)"]),
            ("again: for (a;;) b; goto again;", vec!["for (a;;)"]),
            ("for (a;;) { [&] { while (n) n--; }(); }", vec!["while (n)"]),
            ("for (a;;) { do { b; } while (0); }", vec!["for (a;;)"]),
            ("if constexpr (N > 3) for (a;;) b;", vec!["for (a;;)"]),
            ("for (a;;) s = \"while (\"; // for (b;;)\n", vec!["for (a;;)"]),
        ] {
            assert_eq!(loops(body), expected, "{body}");
        }
    }

    #[test]
    fn loops_with_pragma_or_in_unknown_places_are_left_alone() {
        for body in [
            "\n#pragma unroll\n for (a;;) b;",
            "\n#pragma unroll 4\n# 3 \"a.cu\"\n for (a;;) b;",
            "_Pragma(\"unroll\") for (a;;) b;",
            "[[likely]] for (a;;) b;",
            "__attribute__((opencl_unroll_hint)) for (a;;) b;",
            "try { for (a;;) b; } catch (...) { } for (c;;) try { } catch (...) { }",
            "for (a;;) { b;",
        ] {
            assert_eq!(loops(body), Vec::<String>::new(), "{body}");
        }
    }

    #[test]
    fn kernels_are_told_apart_from_other_functions() {
        let text = "template <int N> __attribute__((global)) void __attribute__((launch_bounds(256)))\nt(float (&a)[3]);\n\
                    namespace n { template <> __attribute__((global)) void t<3>(int x = (2)) { while (x) x--; } }\n\
                    __attribute__((device)) void d() { while (true) { } }\n\
                    static void __attribute__((global)) s() { for (;;) { } }\n";
        let names: Vec<String> = innermost_loops(text.as_bytes()).into_iter().map(|found| found.kernel).collect();
        assert_eq!(names, ["t", "s"]);
    }

    #[test]
    fn pragmas_move_no_line() {
        let text = b"// \xfc\n__attribute__((global)) void k() {\n  for (;;) { }\n  if (x) while (y) { }\n}\n";
        let made = with_unroll_pragmas(text, &innermost_loops(text), 4);
        let expected = b"// \xfc\n__attribute__((global)) void k() {\n  _Pragma(\"unroll 4\") for (;;) { }\n  if (x) _Pragma(\"unroll 4\") while (y) { }\n}\n";
        assert_eq!(String::from_utf8_lossy(&made), String::from_utf8_lossy(expected));
    }
}
