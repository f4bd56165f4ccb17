//! What is legal in a tuning comment but surely meant otherwise: comments and what is known of their kernels -> warnings.

use expect_test::expect_file;
use nvtune::comment::annotations;
use nvtune::diag::{Source, render};
use nvtune::space::{Facts, LaunchBounds, give_advice};
use nvtune::space::{Limits, Space};

/// The warnings for `/*@tune CLAUSES */` above a kernel.
fn warnings(clauses: &str, declaration: &str, facts: &Facts) -> String {
    let text = format!("/*@tune {clauses} */\n__global__ {declaration} {{}}\n");
    let found = annotations(&Source::new("k.cu", text.as_bytes())).unwrap_or_else(|p| panic!("{}", render(&p)));
    let space = Space::new(&found[0], &Limits::default()).unwrap_or_else(|p| panic!("{}", render(&p)));
    space.check_size().expect("small enough to walk");
    render(&give_advice(&found[0], &space, facts))
}

const KERNEL: &str = "void k(int n, const float *x, float *y)";

/// Comments with nothing to say of, whatever is known of the kernel.
#[test]
fn good_comments_have_no_advice() {
    let all = Facts {
        register_cap: Some(64),
        has_launch_bounds: false,
        bounds: Some(LaunchBounds { threads: 256, blocks: 2, registers: 128 }),
        fixed: [true, true, false],
        unread: [false; 3],
        dynamic_shared: false,
        stored: Some(4),
        outputs: vec![("y".into(), 4 << 20)],
        floating: ["s", "x", "y"].map(str::to_owned).into(),
        accessed: None,
        buffers: vec![("x".into(), 4 << 20), ("y".into(), 4 << 20)],
        ignores_grid: true,
        idle: false,
        overruns: Vec::new(),
    };
    let args = "args(n = 1 << 20, x = random[n], y = out[n])";
    let floating = Facts { floating: all.floating.clone(), ..Facts::default() };
    let fixed_work = Facts { ignores_grid: true, ..Facts::default() };
    for (clauses, facts) in [
        ("threads(n) block(64:1024:32) regs(auto)", Facts::default()),
        ("threads(n) block({64, 256}) shared(block.x * 4)", Facts { dynamic_shared: true, ..Facts::default() }),
        // One value is how an axis is kept fixed, as long as another has more.
        ("threads(n) block(256) regs({0, 32})", all.clone()),
        ("threads(n) block({128, 256}) regs(0)", Facts::default()),
        ("threads(n) default(block = 256) regs(auto)", all.clone()),
        ("threads(n) regs(auto) default(block = 256) define(T = {1, 2})", all.clone()),
        // A block that a macro knows of may be one that the code does not ask for.
        ("threads(n) block({8, 16}, {8, 16}) define(T = {8, 16}) require(block.x == T && block.y == T)", all.clone()),
        // A block that an argument tells is one too.
        (
            "threads(n) block({64, 128}) args(n = block.x, x = random[n], y = out[n])",
            Facts { stored: None, ..all.clone() },
        ),
        // In z the code asks.
        ("threads(n) block(8, 8, {1, 2, 4})", all.clone()),
        // Part of a block may be too large for the GPU.
        ("threads(n) block({32, 64}, {8, 16, 32})", Facts::default()),
        ("grid({1, 2}) block(256)", Facts { outputs: Vec::new(), ..all.clone() }),
        // Every thread stores one float: enough.
        (&format!("threads(n) block(256) regs({{0, 64}}) {args}"), all.clone()),
        // Borders that nobody writes make the buffer a third larger.
        (&format!("threads(64 * 64 * 64 * 3) block(256) regs({{0, 64}}) {args}"), all.clone()),
        // Not known how much a thread stores.
        (&format!("threads(n / 2) block(256) {args}"), Facts { stored: None, ..all.clone() }),
        ("threads(n) block(256) regs({0, 48, 64})", Facts { bounds: None, ..all.clone() }),
        // Structures may have room that nobody writes.
        (
            "threads(n / 2) block(256) args(n = 1 << 20, x = random[n], float y = out[n]) regs({0, 64})",
            Facts { bounds: None, ..all.clone() },
        ),
        // Nothing is lost, a rest is wanted, or fractions have no place.
        ("threads(n) block({64, 128}) args(n = 7 / 2, x = fill(8 / 4 + 7.0 / 2)[n], y = fill(7 % 2)[n / 2])", floating),
        // The grid is rounded up, nothing is left over, or a thread takes more than its share.
        (
            "grid((n + block.x - 1) / block.x) block({64, 192}) args(n = 1000, x = random[n], y = zeros[n])",
            fixed_work.clone(),
        ),
        ("grid(n / block.x + 1) block({64, 192}) args(n = 1000, x = random[n], y = zeros[n])", fixed_work.clone()),
        ("grid(n / block.x) block({64, 128}) args(n = 1024, x = random[n], y = zeros[n])", fixed_work.clone()),
        ("grid(n / block.x) block({64, 192}) args(n = 1000, x = random[n], y = zeros[n])", Facts::default()),
        // Threads with strides leave a part of their buffers alone.
        (
            "threads(n / 16) block({64, 128}) args(n = 1 << 20, x = random[n], y = zeros[n])",
            Facts { accessed: Some(4), buffers: all.buffers.clone(), ..Facts::default() },
        ),
        ("threads(n) block({64, 128}) math(ftz) args(n = 1024, x = random[n], y = out[n])", Facts::default()),
        // Bits, not powers.
        ("threads(n ^ 1) block({0x20 ^ 0x40, 64}) require(block.x ^ 3, 0xff ^ 8)", Facts::default()),
    ] {
        assert_eq!(warnings(clauses, KERNEL, &facts), "", "{clauses}");
    }
    // Launch bounds override the command line, with nvcc too.
    let bounded = Facts { has_launch_bounds: true, ..all };
    assert_eq!(warnings("threads(n) block(256) regs({0, 128})", KERNEL, &bounded), "");
}

/// One kind of fact after the other; what is said of each comment is in `tests/comments/advice.txt`.
#[test]
fn doubtful_comments_have_advice() {
    let nothing = Facts::default();
    let fixed_x = Facts { fixed: [true, false, false], ..Facts::default() };
    let fixed = Facts { fixed: [true, true, false], ..Facts::default() };
    let command_line = Facts { register_cap: Some(32), ..Facts::default() };
    let bounds = Facts { bounds: Some(LaunchBounds { threads: 256, blocks: 8, registers: 32 }), ..Facts::default() };
    let stores = Facts { stored: Some(4), outputs: vec![("y".into(), 4 << 20)], ..Facts::default() };
    let idle = Facts { idle: true, ..Facts::default() };
    let floating = Facts { floating: ["x", "y"].map(str::to_owned).into(), ..Facts::default() };
    let unread = Facts { unread: [false, true, true], ..Facts::default() };
    let dynamic = Facts { dynamic_shared: true, ..Facts::default() };
    let small =
        Facts { accessed: Some(12), buffers: vec![("x".into(), 4 << 20), ("y".into(), 8 << 20)], ..Facts::default() };
    let fixed_work = Facts { ignores_grid: true, ..Facts::default() };
    let cases: [(&str, &Facts); 34] = [
        ("threads(n) block(256) regs(0)", &nothing),
        ("threads(n) block({128, 256}) define(T = 4)", &nothing),
        ("threads(n) block({128, 256}) require(block.x > 128)", &nothing),
        ("threads(n) block({128, 256}) regs(0) require(block.x > 128)", &nothing),
        ("threads(n) block({1024, 2048}) regs(0)", &nothing),
        ("threads(n) block({128, 256}) define(T = {8, 16}, U = {1, 2}) require(T * T == block.x)", &nothing),
        ("grid({4, 8}) block({64, 128}) require(grid.x == 4)", &nothing),
        ("threads(n) block({128, 256})", &fixed_x),
        ("threads(n) block({8, 16}, {8, 16}) define(T = {8, 16}) require(block.x == T)", &fixed),
        ("threads(n, n) block(auto)", &fixed),
        ("threads(n) block(256) regs({0, 32, 64})", &command_line),
        ("threads(n) block(256) regs(16:255)", &command_line),
        ("threads(n) block(256) regs({0, 32, 40})", &bounds),
        ("threads(n / 2) block({128, 256}) args(n = 1 << 20, x = random[n], y = out[n])", &stores),
        ("grid(16) block({128, 256}) args(n = 1 << 20, x = random[n], y = out[n])", &stores),
        ("threads(2^20) block({128, 2^8}) define(T = {10^6, 1}) args(n = 3^4, x = random[n], y = out[n])", &nothing),
        ("threads(n) block({128, 256}) require(block.x != 7 ^ 99, 2 ^ 64 > 10^19)", &nothing),
        ("threads(64) block({32, 64}) args(n = 4 / 5, x = random[8], y = out[8])", &idle),
        ("threads(64) block({32, 64}) args(n = 1, x = random[8], y = {pos = zeros[3]})", &idle),
        ("threads(n) block({32, 64}) args(n = 7, x = fill(n / 4)[n], y = random(-1 / 2, 1 / 2)[n])", &floating),
        ("threads(n) block({32, 64}) args(n = 7, x = {0.5, 3 * (1 / 3), n > 4 ? 1 / n : 1}, y = out[n])", &floating),
        ("threads(n) block({32, 64}) args(n = 7, x = fill(-(22 / 7) - 1)[n], y = out[n])", &floating),
        ("threads(n, n) block({32, 64}, {1, 2}) default(block = {32, 1})", &unread),
        ("threads(n) block({128, 256})", &dynamic),
        // Values beyond what a GPU can launch.
        ("threads(n) block(64:2048:64)", &nothing),
        ("threads(n) block({64, 128}, {8, 16, 32})", &nothing),
        ("threads(n) block(8, {1, 2}, {1, 2, 96})", &nothing),
        ("grid(1, {1, 2, 70000}) block({64, 128})", &nothing),
        // Work that no thread does.
        ("threads(n / 256) block({64, 128}) args(n = 1 << 20, x = random[n], y = random[2 * n])", &small),
        ("grid(n / block.x) block({64, 192, 256}) args(n = 1 << 20, x = random[n], y = random[n])", &fixed_work),
        ("grid(2 * (n / 256)) block({64, 128}) args(n = 1000, x = random[n], y = random[n])", &fixed_work),
        ("grid(max(1, n / (block.x * 4))) block({64, 192})", &fixed_work),
        ("grid(n / T, 2) block({64, 128}) define(T = {64, 96}) args(n = 128, x = random[n], y = out[n])", &fixed_work),
        // Options that only compared results may choose.
        ("threads(n) block({64, 128}) math(ftz, fast_div)", &nothing),
    ];
    let mut shown = String::new();
    for (clauses, facts) in cases {
        let said = warnings(clauses, KERNEL, facts);
        assert!(said.contains("k.cu(1): warning: "), "{clauses}");
        shown.push_str(&said);
    }
    expect_file!["comments/advice.txt"].assert_eq(&shown);
    // One output that can be filled is enough.
    let outputs = vec![("y".into(), 4 << 20), ("sums".into(), 64)];
    let (clauses, _) = cases[14];
    assert_eq!(warnings(clauses, KERNEL, &Facts { outputs, ..stores.clone() }), "");
}
