//! A preprocessed source -> what of it its device code needs. Most of the compiler's time goes to
//! the rest: headers and host code.
//!
//! Declarations are found by name alone, whatever their scope: if a kept declaration has a name,
//! all declarations of that name are kept. That keeps too much, and rarely too little.
//!
//! Invariant: lines keep their numbers, and declarations their order. That the result compiles, and
//! to the same code, is for the caller to check.

use super::namespace_declarations::{Name, NamespaceDeclaration, NamespaceDeclarations, Role};
use super::tokens::CxxToken;

/// Returns a source with blanks in place of the declarations that its device code does not need;
/// `None` if the source is not understood.
pub fn device_source(preprocessed: &str) -> Option<String> {
    let read = NamespaceDeclarations::read(preprocessed)?;
    let mut text = preprocessed.as_bytes().to_vec();
    for (declaration, _) in read.all.iter().zip(needed(&read)).filter(|(_, is_needed)| !is_needed) {
        blank(&mut text, declaration, &read.tokens);
    }
    String::from_utf8(text).ok()
}

/// Returns for each declaration whether device code needs it.
fn needed(read: &NamespaceDeclarations<'_>) -> Vec<bool> {
    let mut by_name: Vec<Vec<usize>> = vec![Vec::new(); read.name_count()];
    for (index, declaration) in read.all.iter().enumerate().filter(|(_, found)| found.role != Role::Assertion) {
        declaration.names.iter().for_each(|&name| by_name[name as usize].push(index));
    }
    let (mut needed, mut open) = (vec![false; read.all.len()], roots(read));
    while let Some(index) = open.pop() {
        if !std::mem::replace(&mut needed[index], true) {
            // Each name is looked up once.
            read.names_in(&read.all[index]).for_each(|name| open.append(&mut by_name[name as usize]));
        }
    }
    needed
}

/// Returns the declarations that are needed whether they are named or not.
fn roots(read: &NamespaceDeclarations<'_>) -> Vec<usize> {
    let is_root = |&index: &usize| matches!(read.all[index].role, Role::Root | Role::KernelTemplate);
    let mut roots: Vec<usize> = (0..read.all.len()).filter(is_root).collect();
    let templates = read.all.iter().filter(|found| found.role == Role::KernelTemplate);
    let mut open: Vec<Name> = templates.flat_map(|found| found.names.iter().copied()).collect();
    if open.is_empty() {
        return roots;
    }
    // What may instantiate a kernel's template, directly or not.
    let mut by_use: Vec<Vec<usize>> = vec![Vec::new(); read.name_count()];
    for (index, declaration) in read.all.iter().enumerate().filter(|(_, found)| found.role != Role::Assertion) {
        read.names_in(declaration).for_each(|name| by_use[name as usize].push(index));
    }
    while let Some(name) = open.pop() {
        for index in std::mem::take(&mut by_use[name as usize]) {
            roots.push(index);
            open.extend(&read.all[index].names);
        }
    }
    roots
}

/// Puts blanks in place of a declaration and of pragmas about it. Line markers and pragmas about more
/// than one declaration are kept.
fn blank(text: &mut [u8], declaration: &NamespaceDeclaration, tokens: &[CxxToken]) {
    // A raw string may have lines that look like directives.
    for token in &tokens[declaration.tokens.clone()] {
        text[token.span.start..token.span.end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    let begin = declaration.tokens.start.checked_sub(1).map_or(0, |before| tokens[before].span.end);
    let end = tokens[declaration.tokens.end - 1].span.end;
    for line in text[begin..end].split_mut(|&byte| byte == b'\n') {
        if !line.starts_with(b"#") || is_about_one_declaration(line) {
            line.fill(b' ');
        }
    }
}

fn is_about_one_declaration(directive: &[u8]) -> bool {
    let pragma = directive.strip_prefix(b"#pragma ");
    pragma.is_some_and(|pragma| !["pack", "GCC visibility"].iter().any(|word| pragma.starts_with(word.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of what is left of a text, in one line.
    fn left(text: &str) -> String {
        let device_code = device_source(text).expect("it is understood");
        assert_eq!(device_code.lines().count(), text.lines().count(), "{text}");
        device_code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    const KERNEL: &str = "__attribute__((global)) void k(float *x) { *x = used(*x); }";

    #[test]
    fn declarations_that_a_kernel_needs_are_kept() {
        for (needed, others) in [
            ("float used(float x);", "float unused(float x);"),
            ("int f(float); float used(float x) { return f(x); }", "int g(float); void h() { g(1); }"),
            ("namespace a { template <class T> T used(T x) { return x; } }", "namespace b { struct used_too {}; }"),
            ("template <class T, int N = (2 > 1)> struct S {}; float used(float); S<int> used(int);", "S<int> s;"),
            ("typedef float real; real used(real);", "typedef double wide, *narrow;"),
            ("using real = float; real used(real);", "template <class T> using other = T;"),
            ("enum { one, two }; float used(float x) { return two; }", "enum other { three };"),
            (
                "struct V { float x; }; V operator+(V a, V b); float used(float x) { return (V{x} + V{x}).x; }",
                "struct W {}; W operator+(W, W);",
            ),
            (
                "struct V { operator float() const; }; inline V::operator float() const { return 1; } float used(float) { return V{}; }",
                "struct W { W(); }; W::W() {}",
            ),
            ("template <class T> T operator*(T, int); float used(float);", "int (*pointer)(int), other = 3;"),
            ("const int size[] = {1, 2}, more = 4; float used(float x) { return more; }", "const int none{5};"),
            ("extern \"C\" { float used(float x); }", "extern \"C\" int printf(const char *, ...);"),
            (
                "template <typename T, bool = sizeof(T) >= 4> struct S { S(int); }; template <> struct S<int> {}; S<int> used(float);",
                "template <typename T> constexpr bool is_v = is<T, 1>::value;",
            ),
            ("using namespace std; float used(float);", "static_assert(sizeof(used(1)) == 4, \"\");"),
        ] {
            for text in [format!("{needed} {others} {KERNEL}"), format!("{others} {needed} {KERNEL}")] {
                let kept: Vec<String> = left(&text).split_whitespace().map(str::to_owned).collect();
                // Namespaces stay, empty ones too.
                let without =
                    |word: &&String| !["namespace", "b", "{", "}", "extern", "\"C\""].contains(&word.as_str());
                let expected = format!("{needed} {KERNEL}");
                let expected: Vec<String> = expected.split_whitespace().map(str::to_owned).collect();
                let words = |words: &[String]| words.iter().filter(without).cloned().collect::<Vec<_>>().join(" ");
                assert_eq!(words(&kept), words(&expected), "{text}");
            }
        }
    }

    #[test]
    fn device_code_that_nothing_names_is_kept() {
        for (text, stays) in [
            ("__attribute__((global)) void k() {}", true),
            ("__attribute__((device)) int x;", true),
            ("static __attribute__((constant)) int x[4];", true),
            ("extern __attribute__((device)) int x;", false),
            ("__attribute__((device)) void f() {}", true),
            ("__attribute__((device)) void f();", false),
            ("static __attribute__((device)) void f() {}", false),
            ("__attribute__((device)) inline void f() {}", false),
            ("template <class T> __attribute__((device)) void f(T) {}", false),
            ("template <> __attribute__((device)) void f(int) {}", true),
            ("template void f<int>(int);", true),
            ("struct S { __attribute__((device)) void f() {} };", false),
            ("void host() {}", false),
        ] {
            assert_eq!(!left(text).is_empty(), stays, "{text}");
        }
    }

    #[test]
    fn what_may_instantiate_a_kernel_template_is_kept() {
        let template = "template <class T> __attribute__((global)) void k(T *x) {}";
        let host = "void go(int *x) { k<<<1, 1>>>(x); } struct Caller { void call() { go(nullptr); } };";
        assert_eq!(left(&format!("{template} {host} void other() {{}}")), format!("{template} {host}"));
        // By `<<<` alone the launch's own functions are needed.
        let launch = "int __cudaPushCallConfiguration(int);";
        assert_eq!(left(&format!("{launch} {template} {host}")), format!("{launch} {template} {host}"));
    }

    #[test]
    fn line_markers_and_pragmas_about_more_are_kept() {
        let text = "# 1 \"a.h\" 1 3\n#pragma nv_exec_check_disable\nint f();\n#pragma pack(1)\nint g();\n# 9 \"a.cu\" 2\n\
                    const int count = 4;\n__attribute__((global)) void k() {\n#pragma unroll count\nfor (;;) {} }\n";
        let expected = "# 1 \"a.h\" 1 3 #pragma pack(1) # 9 \"a.cu\" 2 const int count = 4; \
                        __attribute__((global)) void k() { #pragma unroll count for (;;) {} }";
        assert_eq!(left(text), expected);
        assert_eq!(left("const char *s = R\"(\n#include <x>\n#pragma pack(1)\n)\";\n"), "");
    }

    #[test]
    fn source_that_is_not_understood_gives_none() {
        for text in ["void f() {", "int a; }; )", "template <class T> requires (sizeof(T) > 1) void f(T) {}", "int a"] {
            assert_eq!(device_source(text), None, "{text}");
        }
    }
}
