//! Host code of any form is read in bounded time, without a panic.

use super::support::full::{is_full, random_cases};

use nvtune::comment::{annotations, near_misses};
use nvtune::cuda::{ANY_COUNT, HostCode, HostProgram, ParameterKind, compiled_files, compiled_text, kernels_of};
use nvtune::diag::{Source, render};
use nvtune::proposal::propose;
use nvtune::space::{Limits, Space};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Code with many forms of launch.
const LAUNCHES: &str = "#include \"a.tune.h\"\n#\n#define PER 4\n#define BLOCKS(n) ((n + PER - 1) / PER)\n\
    template <int T> __global__ void k(int n, float *x) { if (n > T) x[0] = PER; }\n\
    struct Run final { dim3 grid; Run(int n) : grid{unsigned(n / PER)}, own(n) {} int own; void go(float *x) { k<3><<<this->grid, 64>>>(own, x); } };\n\
    static int blocks(int n) { const int per = 256 * PER; return n < 1 ? 1 : (n + per - 1) / per; }\n\
    template <class F, int N> void with(F f, dim3 g) { f<<<g, N>>>(1, nullptr); }\n\
    void go(int n, float *x, dim3 given) {\n#if N\n k<1><<<1, 2>>>(n, x);\n#endif\n\
    auto [a, b] = shape(n); dim3 g(BLOCKS(n), std::min(a, blocks(n))), block = {64u}; if (n) g.x = a; void (*run)(int) = go;\n\
    auto per = [&](int m) -> int { return m / PER; }; for (int i = 0, m = n; i < m; ++i) k<2><<<per(i), block, 0, s>>>(n, x);\n\
    with<decltype(k<2>), 32>(k<2>, g); cudaLaunchKernel((void *)k<2>, g, given, args, 0, 0); k<7><<<nvtune::k::grid(n), K_BLOCK_X>>>(n, x); }\n";

/// Asks all that can be asked of host code and returns the number of launches found.
fn asked(text: &str) -> usize {
    let source = Source::new("a.cu", text.as_bytes());
    let _ = (near_misses(&source), compiled_text(text, &BTreeSet::from([3, 9])), compiled_files(text.as_bytes()));
    let _ = kernels_of(&source);
    let program = HostProgram::new(&[("a.cu".to_owned(), text.to_owned())], &[], &[]);
    let kinds = [ParameterKind::Scalar { is_float: false }, ParameterKind::Pointer];
    let _ = program.evaluated_launches("k", &ANY_COUNT, &kinds, 1024);
    let _ = propose(&source, &program, &Vec::new, &|_| false);
    let code = HostCode::new([Arc::new(source)]);
    let _ = (code.without_stub("k"), code.has_name("PER"));
    code.launches_of("k").len()
}

#[test]
fn all_forms_of_launch_are_found() {
    assert_eq!(asked(LAUNCHES), 4);
}

#[test]
fn macro_without_a_semicolon_hides_no_launch() {
    let kernel = "#define CHECK { if (cudaGetLastError()) return; }\n__global__ void k(int n, float *x) {}\n";
    for statements in [
        "z<<<g, 128>>>(n, x);\n CHECK\n\n k<<<g, 128>>>(n, x);",
        "z<<<g, 128>>>(n, x);\n CHECK // of z\n /* and now */ k<<<g, 128>>>(n, x);\r\n CHECK\r\n k<float, 3><<<g, 128>>>(n, x);",
        "CHECK k<<<g, 128>>>(n, x);",
        "CHECK_ALL(f(n, x))\n k<<<g, 128>>>(n, x);",
        "for (;;) { FOR_ALL(j, 10) k<<<g, 128>>>(n, x); }",
        "int m = n;\n CHECK\n dim3 h(m);\n k<<<h, 128>>>(n, x);",
    ] {
        let text = format!("{kernel}void go(int n, float *x, int g) {{\n {statements}\n}}\n");
        let expected = statements.matches(" k<").count().max(usize::from(statements.contains("k<<<")));
        assert_eq!(asked(&text), expected, "{statements}");
    }
    // What is not a statement stays as it is.
    assert_eq!(asked("int sizes[] = {\n COUNT\n};\nvoid go(int n, float *x) { k<<<sizes[0], 64>>>(n, x); }\n"), 1);
}

#[test]
fn truncated_host_code_is_answered() {
    let step = if is_full() { 1 } else { 15 };
    for (at, c) in LAUNCHES.char_indices().step_by(step) {
        asked(&LAUNCHES[..at]);
        asked(&LAUNCHES[at..]);
        asked(&[&LAUNCHES[..at], &LAUNCHES[at + c.len_utf8()..]].concat());
    }
}

#[test]
fn words_of_host_code_in_any_order_are_answered() {
    let words: Vec<&str> =
        LAUNCHES.split_inclusive([' ', '(', ')', '{', '}', '<', '>', ',', ';', '\n', '[', ']']).collect();
    let mut state = 1u64;
    for _ in 0..random_cases(200, 4000) {
        let mut soup = String::new();
        for _ in 0..60 {
            // Knuth's MMIX generator.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            soup.push_str(words[(state >> 33) as usize % words.len()]);
        }
        asked(&soup);
    }
}

/// Levels of nested code: recursion without a bound would overflow the stack of a test, which has 2 MiB.
fn depth() -> usize {
    if is_full() { 30_000 } else { 2_000 }
}

/// Returns `n / PER` between so many brackets.
fn nested(open: &str, close: &str) -> String {
    format!("{}n / PER{}", open.repeat(depth()), close.repeat(depth()))
}

/// Returns a text that names 400 things, each by the one before.
fn chain(first: &str, next: impl Fn(usize) -> String) -> String {
    (0..400).fold(first.to_owned(), |all, at| all + &next(at))
}

fn launch_in_grid_expression(grid: &str) -> String {
    format!("void go(int n) {{ k<<<{grid}, 64>>>(n); }}")
}

#[test]
fn launch_in_deep_brackets_is_found() {
    assert_eq!(asked(&launch_in_grid_expression(&nested("(", ")"))), 1);
}

#[test]
fn launch_in_deep_calls_is_found() {
    assert_eq!(asked(&launch_in_grid_expression(&nested("f(", ")"))), 1);
}

#[test]
fn launch_in_deep_conditional_expression_is_found() {
    assert_eq!(asked(&launch_in_grid_expression(&nested("n ? 1 : ", ""))), 1);
}

#[test]
fn launch_in_deep_blocks_is_found() {
    let (open, close) = ("{".repeat(depth()), "}".repeat(depth()));
    assert_eq!(asked(&format!("void go(int n) {{ {open} k<<<1, 64>>>(n); {close} }}")), 1);
}

#[test]
fn launch_by_long_chain_of_constants_is_found() {
    let doubled = chain("const int A0 = 2;", |at| format!("const int A{} = A{at} * A{at};", at + 1));
    assert_eq!(asked(&format!("void go(int n) {{ {doubled} k<<<A400, A400>>>(n); }}")), 1);
}

#[test]
fn launch_by_long_chain_of_variables_is_found() {
    let named = chain("dim3 B0(64);", |at| format!("dim3 B{} = B{at};", at + 1));
    assert_eq!(asked(&format!("void go(int n) {{ {named} k<<<B400, B400>>>(n); }}")), 1);
}

#[test]
fn launch_by_long_chain_of_macros_is_found() {
    let defined = chain("#define C0 n\n", |at| format!("#define C{} (C{at} + C{at})\n", at + 1));
    assert_eq!(asked(&format!("{defined}void go(int n) {{ k<<<C400, C400>>>(n); }}")), 1);
}

const KERNEL: &str = "__global__ void k(int n) {}\n";

#[test]
fn error_in_wide_comment_shows_whole_line() {
    let wide = format!("//@tune{}bock(256) threads(n)\n{KERNEL}", " ".repeat(60_000));
    let shown = render(&annotations(&Source::new("a.cu", wide.as_bytes())).expect_err("refused"));
    assert!(shown.starts_with("a.cu(1): error: unknown clause `bock`") && shown.len() > 120_000, "{}", &shown[..100]);
}

#[test]
fn mistyped_marker_after_wide_comment_is_found() {
    let near = format!("/*{}*/ //@Tune block(256)\n{KERNEL}", " ".repeat(70_000));
    assert_eq!(near_misses(&Source::new("a.cu", near.as_bytes())).len(), 1);
}

/// A chain of constants has a value whatever its length, and whichever of them is asked for first.
#[test]
fn long_chain_of_macros_has_value_in_any_order() {
    let length = if is_full() { 3000 } else { 1000 };
    let chain = (0..length).fold("#define C0 1\n".to_owned(), |all, at| {
        all + &format!("#define C{} C{at}{}\n", at + 1, "+1".repeat(at % 400))
    });
    let value = |number: usize| 1 + (0..number as i64).map(|at| at % 400).sum::<i64>();
    for [first, second] in [[length, 40], [40, length]] {
        let text = format!(
            "{chain}#define SELF (SELF + 1)\n//@tune threads(n) block(64) define(X = {{C{first}, C{second}, 64}}) args(n = 1)\n{KERNEL}"
        );
        let found = annotations(&Source::new("a.cu", text.as_bytes())).expect("accepted").remove(0);
        assert_eq!(found.clauses.macros[0].values, [value(first), value(second), 64]);
    }
}

#[test]
fn range_at_limits_of_integers_does_not_overflow() {
    for (values, expected) in [
        ("-9223372036854775807:9223372036854775807:9223372036854775807", &[-i64::MAX, 0, i64::MAX][..]),
        ("9223372036854775800:9223372036854775807:5", &[9223372036854775800, 9223372036854775805]),
    ] {
        let text = format!("//@tune threads(n) block(64) define(X = {values}) args(n = 1)\n{KERNEL}");
        let found = annotations(&Source::new("a.cu", text.as_bytes())).expect("accepted").remove(0);
        assert_eq!(found.clauses.macros[0].values, expected);
        assert!(Space::new(&found, &Limits::default()).is_ok());
    }
}
