//! Spaces: sizes against brute force, the documented examples, baselines, macro sets and launches.

use nvtune::comment::{Annotation, annotations};
use nvtune::diag::{Source, render};
use nvtune::launch::{Configuration, Math, MathOption};
use nvtune::space::{Limits, Space};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn annotation(clauses: &str) -> Annotation {
    // The structure's parameter is there where the clauses use it.
    let rows = if clauses.contains("in.") { ", Rows in" } else { "" };
    let text = format!("/*@tune {clauses} */\n__global__ void k(int n, int m, float *x{rows}) {{}}\n");
    let found =
        annotations(&Source::new("k.cu", text.as_bytes())).unwrap_or_else(|problems| panic!("{}", render(&problems)));
    found.into_iter().next().expect("the source has one kernel")
}

fn space(clauses: &str) -> Space {
    Space::new(&annotation(clauses), &limits()).unwrap_or_else(|problems| panic!("{}", render(&problems)))
}

fn limits() -> Limits {
    Limits { auto_caps: vec![0, 32, 64, 128], ..Limits::default() }
}

/// Clauses; configurations; macro sets; the baseline's block, cap, grid and macros.
type Row<'a> = (&'a str, u64, usize, ([u32; 3], u32, Option<[u32; 3]>, &'a [i64]));

#[test]
fn documented_spaces_have_sizes_and_baselines() {
    let rows: &[Row] = &[
        ("threads(n) block(64:1024:32) regs(auto)", 31 * 4, 1, ([256, 1, 1], 0, None, &[])),
        ("threads(n, m) block({16,32,64},{1,2,4,8})", 12 * 4, 1, ([32, 8, 1], 0, None, &[])),
        // 8 x 8 = 64 threads have 32x2 and 64x1, and so on: 2 + 4 + 6 shapes.
        (
            "threads(n) block({8,16,32,64},{1,2,4,8,16,32}) regs(0) define(TILE={8,16,32}, UNROLL={1,2,4}) require(TILE*TILE == block.x*block.y)",
            (4 + 4 + 2) * 3,
            9,
            ([8, 8, 1], 0, None, &[8, 1]),
        ),
        ("threads(n) block({512, 128}) regs({32, 64})", 2 * 3, 1, ([128, 1, 1], 0, None, &[])),
        ("threads(n) block(auto) regs(0)", 32, 1, ([256, 1, 1], 0, None, &[])),
        ("threads(n, m) block(auto) regs(0)", 33, 1, ([16, 16, 1], 0, None, &[])),
        ("threads(n, m) block(auto) regs(0) default(block = {8, 8})", 34, 1, ([8, 8, 1], 0, None, &[])),
        ("threads(n, m) block(auto) regs(0) require(block.y == 1)", 32, 1, ([256, 1, 1], 0, None, &[])),
        ("threads(n, m) block(auto) regs(0) require(block.y < 2 && block.x >= 64)", 31, 1, ([256, 1, 1], 0, None, &[])),
        ("threads(n, m, 8) block(auto) regs(0) require(block.z * 2 < 3)", 33, 1, ([16, 16, 1], 0, None, &[])),
        (
            "threads(n, m) block(auto) regs(0) require(1 == block.y, n > 0) args(n = 1, m = 1, x = out[1])",
            32,
            1,
            ([256, 1, 1], 0, None, &[]),
        ),
        (
            "grid(ceildiv(n, block.x), ceildiv(m, block.y)) block(auto) regs(0) require(block.y == 1)",
            32,
            1,
            ([256, 1, 1], 0, None, &[]),
        ),
        ("threads(n, m, 8) block(auto) regs(0)", 80, 1, ([8, 8, 4], 0, None, &[])),
        // A block for each of some things has no more threads for it.
        ("grid(ceildiv(n, block.x), m, 8) block(auto) regs(0)", 32, 1, ([256, 1, 1], 0, None, &[])),
        (
            "grid(ceildiv(n, block.x), m) block(auto) regs(0) default(block = {32, 8})",
            33,
            1,
            ([32, 8, 1], 0, None, &[]),
        ),
        ("grid(n, m) block(auto) regs(0) default(block = 128)", 32, 1, ([128, 1, 1], 0, None, &[])),
        ("grid(n, m) block(auto) regs(0)", 33, 1, ([16, 16, 1], 0, None, &[])),
        (
            "grid(n, m) block(auto) regs(0) require(block.y <= 4) default(block = 128)",
            22,
            1,
            ([128, 1, 1], 0, None, &[]),
        ),
        (
            "grid(ceildiv(n, block.x), T) block(auto) regs(0) define(T = {1, 2})",
            33 * 2,
            2,
            ([16, 16, 1], 0, None, &[1]),
        ),
        ("grid(ceildiv(n, block.x), m, ceildiv(n, block.z)) block(auto) regs(0)", 33, 1, ([16, 1, 16], 0, None, &[])),
        // `block.size` is of every shape.
        (
            "grid(ceildiv(n, block.x), m) block(auto) regs(0) require(block.size <= 512)",
            16,
            1,
            ([256, 1, 1], 0, None, &[]),
        ),
        ("grid(m, ceildiv(n, block.size)) block(auto) regs(0)", 32, 1, ([256, 1, 1], 0, None, &[])),
        // Whichever dimension of the grid counts an extent: it is one of the block's.
        ("grid(m, ceildiv(n, block.x)) block(auto) regs(0)", 32, 1, ([256, 1, 1], 0, None, &[])),
        ("grid(ceildiv(n, block.y)) block(auto) regs(0) default(block = {32, 4})", 33, 1, ([32, 4, 1], 0, None, &[])),
        ("threads(n) default(block = 96, regs = 32) regs({16, 32})", 3, 1, ([96, 1, 1], 32, None, &[])),
        ("threads(n) default(block = 96, regs = 40)", 5, 1, ([96, 1, 1], 40, None, &[])),
        // What nvcc does is always among them, and is the baseline.
        ("threads(n) block({64, 128}) regs(0) cache(ca, cg)", 2 * 3, 1, ([128, 1, 1], 0, None, &[])),
        (
            "threads(n) block(64) regs({0, 32}) cache(none, cg) carveout({0, 50, 100})",
            2 * 2 * 4,
            1,
            ([64, 1, 1], 0, None, &[]),
        ),
        ("threads(n) block(64) regs(0) carveout(-1:1) require(block.x == 64)", 3, 1, ([64, 1, 1], 0, None, &[])),
        ("grid({132, 264}) block({64, 128}) regs(0)", 4, 1, ([128, 1, 1], 0, Some([132, 1, 1]), &[])),
        (
            "grid({4, 8}, {1, 2, 3}) block(32) regs(0) default(grid = {8, 2})",
            6,
            1,
            ([32, 1, 1], 0, Some([8, 2, 1]), &[]),
        ),
        ("threads(n) block({1024, 2048}, {1, 2}) regs(0)", 1, 1, ([1024, 1, 1], 0, None, &[])),
        ("threads(n) block(auto) regs(0) shared(block.x * 512)", 3, 1, ([96, 1, 1], 0, None, &[])),
        ("threads(n) block({64, 128}) regs(0) define(T = {1, 2}) default(T = 2)", 4, 2, ([128, 1, 1], 0, None, &[2])),
        (
            "threads(n) block({64, 256}) regs(0) args(n = T * 1000, m = 0, x = out[n]) define(T = {1, 2}) require(grid.x < 9)",
            2,
            2,
            ([256, 1, 1], 0, None, &[1]),
        ),
    ];
    for (clauses, len, sets, (block, cap, grid, macros)) in rows {
        let space = space(clauses);
        assert_eq!(space.len(), *len, "{clauses}");
        let baseline = space.baseline();
        let values: Vec<i64> = baseline.macros.values().copied().collect();
        assert_eq!(
            (baseline.block, baseline.cap, baseline.grid, &values[..]),
            (*block, *cap, *grid, *macros),
            "{clauses}"
        );
        consistent(&space, *sets);
    }
}

/// A dimension of the launch may be one of threads or of blocks alone, and a macro that divides it the
/// block's extent, or what a thread does in a loop. The kernel's body decides.
#[test]
fn automatic_block_has_no_extent_that_the_kernel_does_not_read() {
    const OF_MACRO: &str = "grid(ceildiv(n, block.x), ceildiv(m, T)) define(T = {1, 2})";
    for (clauses, body, expected) in [
        (OF_MACRO, "x[blockIdx.y * T + threadIdx.y] = threadIdx.x;", [16, 16, 1]),
        (OF_MACRO, "for (int y = 0; y < T; ++y) x[blockIdx.y * T + y] = threadIdx.x;", [256, 1, 1]),
        (OF_MACRO, "const uint3 at = threadIdx; x[at.y] = threadIdx.x;", [16, 16, 1]),
        (OF_MACRO, "store(x);", [16, 16, 1]),
        ("threads(n, m)", "x[blockIdx.y * n + threadIdx.x] = 1;", [256, 1, 1]),
        ("threads(n, m)", "x[blockIdx.y * blockDim.y + threadIdx.x] = 1;", [16, 16, 1]),
        ("threads(n, m) require(block.y <= 8)", "x[blockIdx.y * n + threadIdx.x] = 1;", [32, 8, 1]),
        ("threads(n, m) default(block = {32, 8})", "x[blockIdx.y * n + threadIdx.x] = 1;", [32, 8, 1]),
        ("grid(n, m)", "x[blockIdx.y * n + threadIdx.x] = 1;", [256, 1, 1]),
        ("grid(n, m)", "x[blockIdx.y * n + threadIdx.y] = 1;", [16, 16, 1]),
    ] {
        let text = format!(
            "//@tune {clauses} block(auto)\n\
             __global__ void k(int n, int m, float *x) {{ {body} }}\n"
        );
        let found = annotations(&Source::new("k.cu", text.as_bytes()));
        let found = found.unwrap_or_else(|problems| panic!("{}", render(&problems)));
        let space = Space::new(&found[0], &limits()).unwrap_or_else(|problems| panic!("{}", render(&problems)));
        assert_eq!(space.baseline().block, expected, "{clauses}: {body}");
    }
}

/// What holds of every space.
fn consistent(space: &Space, sets: usize) {
    let all: Vec<Configuration> = space.iter().collect();
    let distinct: BTreeSet<&Configuration> = all.iter().collect();
    assert_eq!(all.len() as u64, space.len());
    assert_eq!(distinct.len(), all.len());
    assert!(distinct.contains(space.baseline()));
    assert!(all.iter().all(|configuration| space.contains(configuration)));
    let found = space.macro_sets();
    let expected: BTreeSet<_> = all.iter().map(|configuration| &configuration.macros).collect();
    assert_eq!(found.iter().collect::<BTreeSet<_>>(), expected);
    assert_eq!(found.len(), sets);
    assert_eq!(found.first(), Some(&space.baseline().macros));
}

#[test]
fn launches_follow_clauses() {
    let args = "args(n = 1000, m = n / 3, x = out[n])";
    for (clauses, expected) in [
        ("threads(n) block({96, 128}) shared(block.size * 4)", "grid [8, 1, 1] block [128, 1, 1] shared 512"),
        ("threads(n, m) default(block = {32, 4})", "grid [32, 84, 1] block [32, 4, 1] shared 0"),
        ("grid(ceildiv(n, block.x * W), 2) block(128) define(W = {2, 4})", "grid [4, 2, 1] block [128, 1, 1] shared 0"),
        ("grid({7, 8}) block(128) shared(grid.x)", "grid [7, 1, 1] block [128, 1, 1] shared 7"),
        ("threads(n) block(128) shared(grid.x > 4 ? 16 : m)", "grid [8, 1, 1] block [128, 1, 1] shared 16"),
    ] {
        let space = space(&format!("{clauses} {args}"));
        let launch = space.launch(space.baseline()).unwrap_or_else(|problem| panic!("{problem}"));
        let shown = format!("grid {:?} block {:?} shared {}", launch.grid, launch.block, launch.shared);
        assert_eq!(shown, expected, "{clauses}");
        assert!(space.iter().all(|configuration| space.launch(&configuration).is_ok()), "{clauses}");
    }
    for (clauses, what, remedy) in [
        ("threads(n) block(128)", "n", "n = ..."),
        ("threads(128) block(128) shared(4 * m) args(n = 1)", "m", "m = ..."),
        // Fields, of which only the compiler knows.
        ("threads(in.rows) block(128)", "in.rows", "in = {rows = ...}"),
        ("grid(ceildiv(in.size.y, 8)) block(128)", "in.size.y", "in = {size = {y = ...}}"),
    ] {
        let unmeasured = space(clauses);
        let problem = unmeasured.launch(unmeasured.baseline()).expect_err("something has no value");
        let expected = format!("the launch of `k` is not known: `{what}` has no value; add args({remedy})");
        assert_eq!(problem.message, expected, "{clauses}");
    }
}

#[test]
fn arguments_refer_to_each_other_in_any_order() {
    let said = |clauses: &str| {
        Space::new(&annotation(clauses), &limits()).map(|space| {
            let launch = space.launch(space.baseline()).unwrap_or_else(|problem| panic!("{problem}"));
            (launch.grid[0], launch.shared)
        })
    };
    for (clauses, expected) in [
        ("threads(m) block(128) shared(n) args(m = n / 3, n = 3000, x = out[m])", (8, 3000)),
        ("threads(m) block(128) shared(n) args(x = out[m], m = 1000, n = m * 3)", (8, 3000)),
        // What depends on the grid, too, before what it depends on.
        ("threads(1000) block(128) shared(m) args(m = n * 2, n = grid.x, x = out[n])", (8, 16)),
        ("grid({7, 8}) block(128) shared(m) args(m = n * 2, n = grid.x, x = out[n])", (7, 14)),
    ] {
        assert_eq!(said(clauses).ok(), Some(expected), "{clauses}");
    }
    let circular = "cannot be used here: it depends on this expression, so that neither has a value";
    let of_grid = "cannot be used here: it depends on the grid, and the grid on this expression";
    for (clauses, name, why) in [
        ("threads(n) block(128) args(n = n, m = 1, x = out[1])", "n", circular),
        ("threads(n) block(128) args(n = m + 1, m = n - 1, x = out[1])", "m", circular),
        ("threads(9) block(128) args(n = m + grid.x, m = n - 1, x = out[1])", "m", circular),
        ("grid(9, n) block(auto) default(block = 128) args(n = m + 1, m = n - 1, x = out[1])", "m", circular),
        ("threads(n) block(128) args(n = m, m = grid.x, x = out[1])", "n", of_grid),
    ] {
        let problems = said(clauses).expect_err(clauses);
        let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(messages, [format!("`{name}` {why}")], "{clauses}");
    }
}

#[test]
fn math_options_are_tried_alone_and_together() {
    let labels = |build: Math, clauses: &str| -> Vec<String> {
        let annotation = annotation(clauses);
        let limits = Limits { build_math: build, ..limits() };
        let space = Space::new(&annotation, &limits).expect("a space");
        assert!(space.baseline().math.is_none());
        let sets = space.front_ends();
        assert_eq!(sets.len(), space.iter().count());
        for (configuration, set) in space.iter().zip(sets) {
            assert!(space.contains(&configuration));
            assert_eq!(configuration.front_end(), set);
        }
        space.iter().map(|configuration| configuration.to_string().replace("block=64", "")).collect()
    };
    let clauses = "grid(4) block(64) regs(0) math(fast_div, ftz)";
    assert_eq!(labels(Math::NONE, clauses), ["", " math=fast_div", " math=ftz", " math=ftz+fast_div"]);
    // What the build has is no option.
    assert_eq!(labels(Math::from_iter([MathOption::Ftz]), clauses), ["", " math=fast_div"]);
    assert_eq!(labels(Math::from_iter([MathOption::Ftz, MathOption::FastDiv]), clauses), [""]);
    let single = "grid(4) block(64) regs(0) define(T = {1, 2}) math(ftz)";
    assert_eq!(labels(Math::NONE, single), [" T=1", " math=ftz T=1", " T=2", " math=ftz T=2"]);
}

#[test]
fn factors_of_loops_vary_within_math_options() {
    let annotation = annotation("grid(4) block(64) regs(0) unroll({2, 8}) math(ftz)");
    let labels = |limits: &Limits| -> Vec<String> {
        let space = Space::new(&annotation, limits).expect("a space");
        assert_eq!(space.baseline().unroll, None);
        let sets: Vec<_> = space.iter().map(|configuration| configuration.front_end()).collect();
        assert_eq!(sets, space.front_ends());
        space.iter().map(|configuration| configuration.to_string().replace("block=64", "")).collect()
    };
    let ftz = [" math=ftz", " math=ftz unroll=2", " math=ftz unroll=8"];
    assert_eq!(labels(&limits()), ["", " unroll=2", " unroll=8"].into_iter().chain(ftz).collect::<Vec<_>>());
    // A kernel without loops has nothing to unroll.
    assert_eq!(labels(&Limits { has_loops: false, ..limits() }), ["", " math=ftz"]);
}

#[test]
fn cache_operators_vary_fastest() {
    let space = space("grid(4) block(64) regs({0, 32}) cache(cg) carveout({0, 100}) default(carveout = 100)");
    let words: Vec<String> = space.iter().map(|configuration| configuration.to_string()).collect();
    let of = |cap: &str| {
        ["", " carveout=0", " carveout=100", " cache=cg", " cache=cg carveout=0", " cache=cg carveout=100"]
            .map(|policy| format!("block=64{cap}{policy}"))
    };
    assert_eq!(words, [of(""), of(" regs=32")].concat());
    assert_eq!(space.baseline().to_string(), "block=64 carveout=100");
    for configuration in space.iter() {
        let launch = space.launch(&configuration).unwrap_or_else(|problem| panic!("{problem}"));
        assert_eq!(launch.carveout, configuration.carveout);
        let json = serde_json::to_string(&configuration).expect("JSON");
        assert_eq!(serde_json::from_str::<Configuration>(&json).expect("a configuration"), configuration);
    }
    // A record of before these axes.
    let old: Configuration = serde_json::from_str(r#"{"block": [64, 1, 1], "cap": 0}"#).expect("a configuration");
    assert!(space.contains(&old));
    assert_eq!(serde_json::to_string(&old).expect("JSON"), r#"{"block":[64,1,1],"cap":0}"#);
    // A value of an axis that another space does not have is none of its configurations.
    let plain = self::space("grid(4) block(64) regs({0, 32})");
    assert!(plain.contains(&old) && space.iter().filter(|configuration| plain.contains(configuration)).count() == 2);
}

#[test]
fn launch_bounds_limit_blocks() {
    let annotation = annotation("threads(n) block(64:1024:64) regs(0)");
    let bounded = Limits { max_threads: Some(192), ..limits() };
    let space = Space::new(&annotation, &bounded).unwrap_or_else(|problems| panic!("{}", render(&problems)));
    assert_eq!(space.len(), 3);
    assert_eq!(space.baseline().block, [192, 1, 1]);
    assert!(!space.contains(&Configuration { block: [256, 1, 1], ..space.baseline().clone() }));
    // A configuration from elsewhere has no launch here.
    assert!(space.launch(&Configuration { block: [256, 1, 1], ..space.baseline().clone() }).is_err());
}

/// More than 10^17 points: counting them one by one would not end.
#[test]
fn size_is_known_without_enumeration() {
    let clauses = "threads(n) block(32:1024:32, {1,2,4,8,16,32,64}) regs(16:255)
        define(TILE = {8,16,32,64}, UNROLL = 1:16, WORK = 1:12, FREE = 0:65535, OTHER = 0:65535, SMALL = 1:64)
        require(TILE * TILE <= block.size, UNROLL * WORK <= 64, WORK <= TILE || UNROLL == 1, SMALL % 2 == 0)";
    let space = Space::new(&annotation(clauses), &limits()).unwrap_or_else(|problems| panic!("{}", render(&problems)));

    // The same by hand.
    let shapes =
        (1..=32).flat_map(|warps| [1u64, 2, 4, 8, 16, 32, 64].map(|y| warps * 32 * y)).filter(|&size| size <= 1024);
    let mut expected = 0;
    for size in shapes {
        for tile in [8, 16, 32, 64] {
            for unroll in 1..=16 {
                let works =
                    (1..=12).filter(|work| unroll * work <= 64 && (*work <= tile || unroll == 1)).count() as u64;
                expected += if tile * tile <= size { works * 241 } else { 0 };
            }
        }
    }
    assert_eq!(space.len(), expected * 65536 * 65536 * 32);
}

#[test]
fn endless_search_is_error() {
    let clauses = "grid(4) block(32) define(A = 0:65535, B = 0:65535) require(A + B > 200000)";
    let problems = Space::new(&annotation(clauses), &limits()).expect_err("no values fulfil the constraint");
    assert_eq!(
        problems[0].message,
        "no configuration fulfils the constraints among the first 2000000 tried: give default(...) or shorter lists"
    );
}

#[test]
fn space_is_enumerated_lazily() {
    // 65535 * 65536 * 65536 * 242 points: only asking for the first few can end.
    let space =
        space("grid(1:65535) block(32) regs(16:255) define(A = 0:65535, B = 0:65535) require(B == A % 7 || A > 5)");
    let first: Vec<i64> = space.iter().take(3).map(|configuration| i64::from(configuration.cap)).collect();
    assert_eq!(first, [0, 16, 17]);
}

/// One dimension of a space and a constraint in the words of the comment and of Rust.
type Rule = (&'static str, fn(&[i64; 5]) -> bool);

/// Over block.x, block.y, A, B, cap.
const RULES: [Rule; 8] = [
    ("A * B <= block.x", |[x, _, a, b, _]| a * b <= *x),
    ("block.size % 3 != 1", |[x, y, ..]| x * y % 3 != 1),
    ("A != B", |[_, _, a, b, _]| a != b),
    ("n % (A + 1) == 0", |[_, _, a, ..]| 720 % (a + 1) == 0),
    ("grid.x * B > 20", |[x, _, _, b, _]| (720 + x - 1) / x * b > 20),
    ("(A ^ B) < 6 && !(block.y == 2)", |[_, y, a, b, _]| (a ^ b) < 6 && *y != 2),
    // A division by zero excludes a configuration, as long as it is not the baseline.
    ("12 / B >= 3", |[_, _, _, b, _]| *b != 0 && 12 / b >= 3),
    ("max(A, B, 3) <= min(block.x, 7) ? 1 : block.y >= 2", |[x, y, a, b, _]| {
        if *a.max(b).max(&3) <= *x.min(&7) { true } else { *y >= 2 }
    }),
];

proptest! {
    #[test]
    fn size_equals_brute_force(
        xs in prop::collection::btree_set(1i64..40, 1..6),
        ys in prop::collection::btree_set(1i64..5, 1..4),
        a in prop::collection::btree_set(0i64..9, 1..6),
        b in prop::collection::btree_set(0i64..9, 1..6),
        caps in prop::collection::btree_set(16i64..256, 0..4),
        rules in prop::collection::btree_set(0usize..RULES.len(), 0..4),
    ) {
        let list = |values: &BTreeSet<i64>| format!("{{{}}}", values.iter().map(i64::to_string).collect::<Vec<_>>().join(", "));
        let caps: BTreeSet<i64> = caps.into_iter().chain([0]).collect();
        let mut clauses = format!(
            "threads(n) block({}, {}) regs({}) define(A = {}, B = {}) args(n = 720, m = n, x = out[n])",
            list(&xs), list(&ys), list(&caps), list(&a), list(&b)
        );
        if !rules.is_empty() {
            let texts: Vec<&str> = rules.iter().map(|&rule| RULES[rule].0).collect();
            clauses.push_str(&format!(" require({})", texts.join(", ")));
        }
        let mut expected = Vec::new();
        for &a in &a { for &b in &b { for &x in &xs { for &y in &ys { for &cap in &caps {
            let point = [x, y, a, b, cap];
            if x * y <= 1024 && rules.iter().all(|&rule| RULES[rule].1(&point)) {
                expected.push(point);
            }
        }}}}}
        match Space::new(&annotation(&clauses), &limits()) {
            Ok(space) => {
                let found: Vec<[i64; 5]> = space.iter().map(|c| {
                    [i64::from(c.block[0]), i64::from(c.block[1]), c.macros["A"], c.macros["B"], i64::from(c.cap)]
                }).collect();
                prop_assert_eq!(&found, &expected);
                let sets: BTreeSet<(i64, i64)> = expected.iter().map(|point| (point[2], point[3])).collect();
                consistent(&space, sets.len());
            }
            Err(problems) => prop_assert!(expected.is_empty(), "{}", render(&problems)),
        }
    }
}
