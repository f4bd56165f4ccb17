//! What is legal in a tuning comment but surely meant otherwise: comments and what is known of their kernels -> warnings.

use expect_test::{Expect, expect};
use nvtune::comment::{Bounds, Facts, Source, advice, annotations, render};
use nvtune::space::{Limits, Space};

/// The warnings for `/*@tune CLAUSES */` above a kernel.
fn warnings(clauses: &str, declaration: &str, facts: &Facts) -> String {
    let text = format!("/*@tune {clauses} */\n__global__ {declaration} {{}}\n");
    let found = annotations(&Source::new("k.cu", text.as_bytes())).unwrap_or_else(|p| panic!("{}", render(&p)));
    let space = Space::new(&found[0], &Limits::default()).unwrap_or_else(|p| panic!("{}", render(&p)));
    space.check_size().expect("small enough to walk");
    render(&advice(&found[0], &space, facts))
}

fn check(clauses: &str, facts: &Facts, expected: Expect) {
    let shown = warnings(clauses, "void k(int n, const float *x, float *y)", facts);
    assert!(shown.is_empty() || shown.contains("k.cu(1): warning: "), "{shown}");
    expected.assert_eq(&shown);
}

/// Comments with nothing to say of, whatever is known of the kernel.
#[test]
fn good_comments_are_left_alone() {
    let all = Facts {
        register_cap: Some(64),
        bounds: Some(Bounds { threads: 256, blocks: 2, registers: 128 }),
        fixed: [true, true, false],
        stored: Some(4),
        outputs: vec![("y".into(), 4 << 20)],
    };
    let args = "args(n = 1 << 20, x = random[n], y = out[n])";
    for (clauses, facts) in [
        ("threads(n) block(64:1024:32) regs(auto)", Facts::default()),
        // One value is how an axis is kept fixed, as long as another has more.
        ("threads(n) block(256) regs({0, 32})", all.clone()),
        ("threads(n) block({128, 256}) regs(0)", Facts::default()),
        ("threads(n) default(block = 256) regs(auto)", all.clone()),
        ("threads(n) regs(auto) default(block = 256) define(T = {1, 2})", all.clone()),
        // A block that a macro knows of may be one that the code does not ask for.
        ("threads(n) block({8, 16}, {8, 16}) define(T = {8, 16}) require(block.x == T && block.y == T)", all.clone()),
        // In z the code asks.
        ("threads(n) block(8, 8, {1, 2, 4})", all.clone()),
        // Part of a block may be too large for the GPU.
        ("threads(n) block({32, 64}, {8, 16, 32})", Facts::default()),
        ("grid({1, 2}) block(256)", all.clone()),
        // Every thread stores one float: enough.
        (&format!("threads(n) block(256) regs({{0, 64}}) {args}"), all.clone()),
        // Not known how much a thread stores.
        (&format!("threads(n / 2) block(256) {args}"), Facts { stored: None, ..all.clone() }),
        ("threads(n) block(256) regs({0, 48, 64})", Facts { bounds: None, ..all.clone() }),
    ] {
        check(clauses, &facts, expect![[r#"
            k.cu(1): warning: the 256 threads of the baseline store 1024 bytes at most, but the smallest output, `y`, has 4194304: `k` has no loop, so `grid` or the size of `y` is wrong
              /*@tune grid({1, 2}) block(256) */
                      ^~~~

        "#]]);
    }
    // Launch bounds override the command line, with nvcc too.
    let bounded = "__launch_bounds__(256) void k(int n)";
    assert_eq!(warnings("threads(n) block(256) regs({0, 128})", bounded, &all), "");
}

#[test]
fn axes_that_are_none() {
    let nothing = Facts::default();
    check("threads(n) block(256) regs(0)", &nothing, expect![[r#"
        k.cu(1): warning: nothing is left to tune: every axis of `k` has one value; add values to one
          /*@tune threads(n) block(256) regs(0) */
          ^~~~~~~

    "#]]);
    check("threads(n) block({128, 256}) define(T = 4)", &nothing, expect![[r#"
        k.cu(1): warning: macro `T` has one value and is no axis: give it several, or write #define T 4 in the source
          /*@tune threads(n) block({128, 256}) define(T = 4) */
                                                      ^

    "#]]);
    check("threads(n) block({128, 256}) require(block.x > 128)", &nothing, expect![[r#"
        k.cu(1): warning: `require` leaves only the baseline (block=256): nothing but the register cap is left to tune
          /*@tune threads(n) block({128, 256}) require(block.x > 128) */
                                               ^~~~~~~

    "#]]);
    check("threads(n) block({128, 256}) regs(0) require(block.x > 128)", &nothing, expect![[r#"
        k.cu(1): warning: `require` leaves only the baseline (block=256): nothing is left to tune
          /*@tune threads(n) block({128, 256}) regs(0) require(block.x > 128) */
                                                       ^~~~~~~

    "#]]);
    check("threads(n) block({1024, 2048}) regs(0)", &nothing, expect![[r#"
        k.cu(1): warning: what can be launched leaves only the baseline (block=1024): nothing is left to tune
          /*@tune threads(n) block({1024, 2048}) regs(0) */
                             ^~~~~

    "#]]);
    check(
        "threads(n) block({128, 256}) define(T = {8, 16}, U = {1, 2}) require(T * T == block.x)",
        &nothing,
        expect![[r#"
            k.cu(1): warning: `block` has 2 values, but only one of them is in a valid configuration
              /*@tune threads(n) block({128, 256}) define(T = {8, 16}, U = {1, 2}) require(T * T == block.x) */
                                 ^~~~~

            k.cu(1): warning: macro `T` has 2 values, but only one of them is in a valid configuration
              /*@tune threads(n) block({128, 256}) define(T = {8, 16}, U = {1, 2}) require(T * T == block.x) */
                                                          ^

        "#]],
    );
    check("grid({4, 8}) block({64, 128}) require(grid.x == 4)", &nothing, expect![[r#"
        k.cu(1): warning: `grid` has 2 values, but only one of them is in a valid configuration
          /*@tune grid({4, 8}) block({64, 128}) require(grid.x == 4) */
                  ^~~~

    "#]]);
}

#[test]
fn a_block_that_the_code_does_not_ask_for() {
    let x = Facts { fixed: [true, false, false], ..Facts::default() };
    let both = Facts { fixed: [true, true, false], ..Facts::default() };
    check("threads(n) block({128, 256})", &x, expect![[r#"
        k.cu(1): warning: `k` reads threadIdx.x but never blockDim.x, so that its results hang on the block: tie it to a macro, as in require(block.x == TILE), or use blockDim in the kernel
          /*@tune threads(n) block({128, 256}) */
                             ^~~~~

    "#]]);
    check("threads(n) block({8, 16}, {8, 16}) define(T = {8, 16}) require(block.x == T)", &both, expect![[r#"
        k.cu(1): warning: `k` reads threadIdx.y but never blockDim.y, so that its results hang on the block: tie it to a macro, as in require(block.y == TILE), or use blockDim in the kernel
          /*@tune threads(n) block({8, 16}, {8, 16}) define(T = {8, 16}) require(block.x == T) */
                             ^~~~~

    "#]]);
    check("threads(n, n) block(auto)", &both, expect![[r#"
        k.cu(1): warning: `k` reads threadIdx.x and threadIdx.y but never blockDim.x and blockDim.y, so that its results hang on the block: tie it to a macro, as in require(block.x == TILE), or use blockDim in the kernel
          /*@tune threads(n, n) block(auto) */
                                ^~~~~

    "#]]);
}

#[test]
fn caps_against_the_command_line_and_launch_bounds() {
    let command_line = Facts { register_cap: Some(32), ..Facts::default() };
    check("threads(n) block(256) regs({0, 32, 64})", &command_line, expect![[r#"
        k.cu(1): warning: the command line has -maxrregcount=32, but `regs` has a cap of 64, which overrides it: remove one of the two
          /*@tune threads(n) block(256) regs({0, 32, 64}) */
                                        ^~~~

    "#]]);
    check("threads(n) block(256) regs(16:255)", &command_line, expect![[r#"
        k.cu(1): warning: the command line has -maxrregcount=32, but `regs` has caps up to 255, which overrides it: remove one of the two
          /*@tune threads(n) block(256) regs(16:255) */
                                        ^~~~

    "#]]);
    let bounds = Facts { bounds: Some(Bounds { threads: 256, blocks: 8, registers: 32 }), ..Facts::default() };
    check("threads(n) block(256) regs({0, 32, 40})", &bounds, expect![[r#"
        k.cu(1): warning: __launch_bounds__(256, 8) leaves 32 registers a thread, but `regs` has a cap of 40, which gives up its 8 blocks: keep to 32, or drop the second bound
          /*@tune threads(n) block(256) regs({0, 32, 40}) */
                                        ^~~~

    "#]]);
}

#[test]
fn threads_that_cannot_fill_any_output() {
    let facts = Facts { stored: Some(4), outputs: vec![("y".into(), 4 << 20)], ..Facts::default() };
    let args = "args(n = 1 << 20, x = random[n], y = out[n])";
    check(&format!("threads(n / 2) block({{128, 256}}) {args}"), &facts, expect![[r#"
        k.cu(1): warning: the 524288 threads of the baseline store 2097152 bytes at most, but the smallest output, `y`, has 4194304: `k` has no loop, so `threads` or the size of `y` is wrong
          /*@tune threads(n / 2) block({128, 256}) args(n = 1 << 20, x = random[n], y = out[n]) */
                  ^~~~~~~

    "#]]);
    check(&format!("grid(16) block({{128, 256}}) {args}"), &facts, expect![[r#"
        k.cu(1): warning: the 4096 threads of the baseline store 16384 bytes at most, but the smallest output, `y`, has 4194304: `k` has no loop, so `grid` or the size of `y` is wrong
          /*@tune grid(16) block({128, 256}) args(n = 1 << 20, x = random[n], y = out[n]) */
                  ^~~~

    "#]]);
    // One output that can be filled is enough.
    let outputs = vec![("y".into(), 4 << 20), ("sums".into(), 64)];
    check(&format!("grid(16) block({{128, 256}}) {args}"), &Facts { outputs, ..facts }, expect![""]);
}
