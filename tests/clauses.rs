//! The language, clause by clause: for each what is accepted, and what is refused with which words.
//!
//! The tables are clauses; `tests/comments/clauses.txt` holds the messages. `UPDATE_EXPECT=1` writes it anew. Also here: what no
//! mutation of a real comment may do to the reader.

use super::support::full::random_cases;
use expect_test::expect_file;
use nvtune::comment::{Annotation, Source, annotations, render};
use nvtune::space::{Limits, Space};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A clause with inputs that are accepted and refused. The kernel below them is [`KERNEL`], or that which they speak of;
/// what else a comment needs is added where it is missing.
struct Clause {
    name: &'static str,
    accepted: &'static [&'static str],
    refused: &'static [&'static str],
}

const KERNEL: &str = "__global__ void k(int n, float a, const float *x, float *y) {}\n";

/// The kernel below a comment with a `template` clause.
const TEMPLATE: &str = "template <typename T, int M>\n__global__ void k(int n, float a, const float *x, float *y) {}\n";

/// The kernel below a comment that speaks of a structure `p`.
const STRUCTURE: &str = "__global__ void k(const Plan p, float *y) {}\n";

/// A workload that goes with [`KERNEL`].
const ARGS: &str = "args(n = 1000, a = 2, x = random[n], y = out[n])";

const CLAUSES: &[Clause] = &[
    Clause {
        name: "block",
        accepted: &[
            "block(auto)",
            "block(256)",
            "block(64:1024:32)",
            "block({32, 64, 128:512:128, pow2(1, 4)})",
            "block({8, 16}, {8, 16}, {1, 2})",
            "block(1:8, 32)",
            "block(2 * 64)",
            "block({2048, 32})",
        ],
        refused: &[
            "block(0)",
            "block({32, -1})",
            "block(4294967296)",
            "block(1025)",
            "block(1, 1, 65)",
            "block(128, 256)",
            "block(auto, auto)",
            "block({auto})",
            "block(32,)",
            "block({32,})",
            "block({32 64})",
            "block([32])",
            "block(32:)",
            "block(:32)",
            "block(64:32:8)",
            "block(32:64:-8)",
            "block(32:64:8:2)",
            "block(pow2(32))",
            "block(pow2(32, 16))",
            "block(block.x)",
            "block({{32}})",
            "block(1.5:4)",
            "block(1:9223372036854775807)",
        ],
    },
    Clause {
        name: "regs",
        accepted: &["regs(auto)", "regs(0)", "regs(64)", "regs({0, 32, 64})", "regs(16:255)", "regs(pow2(16, 128))"],
        refused: &[
            "regs(15)",
            "regs(256)",
            "regs(-1)",
            "regs(0:255)",
            "regs(32, 64)",
            "regs(none)",
            "regs({auto, 32})",
        ],
    },
    Clause {
        name: "cache",
        accepted: &["cache(ca, cg)", "cache(cg)", "cache(none, ca, cg, cs, lu, cv)", "cache(none)", "cache(cg, cg)"],
        refused: &[
            "cache(c)",
            "cache(gc)",
            "cache(none, all)",
            "cache({ca, cg})",
            "cache(auto)",
            "cache(1)",
            "cache(ca cg)",
            "cache(ca,)",
            "cache(\"cg\")",
            "cache(cg) default(cache = cg)",
            "cache(cg) require(cache == 1)",
            "define(cache = {1, 2})",
        ],
    },
    Clause {
        name: "carveout",
        accepted: &[
            "carveout({0, 50, 100})",
            "carveout(0:100:25)",
            "carveout(-1)",
            "carveout({-1, 33})",
            "carveout({0, 50}) default(carveout = 50)",
            "carveout({0, 50}) default(carveout = -1)",
        ],
        refused: &[
            "carveout(101)",
            "carveout(-2)",
            "carveout({0, 50.5})",
            "carveout(auto)",
            "carveout(0, 50)",
            "carveout({})",
            "carveout(n)",
            "carveout(max)",
            "carveout({0, 100}) default(carveout = 50)",
            "carveout(50) default(carveout = 200)",
            "carveout(50) require(carveout > 0)",
            "default(carveout = 50)",
        ],
    },
    Clause {
        name: "define",
        accepted: &[
            "define(TILE = {8, 16, 32})",
            "define(A = 1:4, B = pow2(1, 8), C = {-1, 0})",
            "define(T = 4)",
            "define(LOG = 0:3) require(1 << LOG <= block.x)",
        ],
        refused: &[
            "define(TILE)",
            "define(TILE = )",
            "define(TILE = {})",
            "define(TILE = {1.5})",
            "define(8 = {1, 2})",
            "define(block = {1, 2})",
            "define(a = {1, 2})",
            "define(TILE == {1, 2})",
            "define(A = {1, 2}, A = {3})",
            "define(A = {1, B}, B = {1})",
            "define({1, 2})",
            "define(A = 1:100000)",
        ],
    },
    Clause {
        name: "threads",
        accepted: &[
            "threads(n)",
            "threads(n, n * 2, 3)",
            "threads(ceildiv(n, 4))",
            "threads(max(n, 32))",
            "threads(1e6)",
        ],
        refused: &[
            "threads(n, n, n, n)",
            "threads({1, 2})",
            "threads(1:8)",
            "threads(pow2(1, 8))",
            "threads(n m)",
            "threads(n,)",
            "threads(block)",
            "threads(grid.x)",
            "threads(n) grid(n)",
            "threads(nn)",
            "threads(\"n\")",
            "threads(0)",
            "threads(x) <a>",
            "threads(n - 1001) <a>",
            "threads(n / 7.0) <a>",
            "threads(n / (n - 1000)) <a>",
        ],
    },
    Clause {
        name: "grid",
        accepted: &["grid(n)", "grid(ceildiv(n, block.x), 2)", "grid({132, 264})", "grid(1:4, {1, 2})", "grid({4}, 3)"],
        refused: &[
            "grid(1, 2, 3, 4)",
            "grid(0)",
            "grid({0, 1})",
            "grid({1}, n)",
            "grid(1, {65536})",
            "grid(grid.x)",
            "grid(auto)",
            "grid(n * 0) <a>",
            "grid(n, n * n) <a>",
        ],
    },
    Clause {
        name: "trips",
        accepted: &["trips(12)", "trips(100, block.x / 32, 2.5)", "trips(n) <a>"],
        refused: &[
            "trips(-1)",
            "trips({1, 2})",
            "trips(1:4)",
            "trips(n)",
            "trips(12,)",
            "trips(1 / 0)",
            "trips(rounds)",
            "trips(y) <a>",
        ],
    },
    Clause {
        name: "shared",
        accepted: &["shared(1024)", "shared(block.x * sizeof(float4))", "shared(n > 0 ? block.size * 4 : 0)"],
        refused: &[
            "shared(-1)",
            "shared(1.5)",
            "shared(49153)",
            "shared({1, 2})",
            "shared(1, 2)",
            "shared(sizeof(T))",
            "shared(sizeof float)",
            "shared(y) <a>",
            "shared(block.x *)",
            "shared(a.x)",
        ],
    },
    Clause {
        name: "require",
        accepted: &[
            "require(block.x % 32 == 0)",
            "require(block.x >= 32, block.size <= 512)",
            "require(grid.x < 100 || n < 5) <a>",
            "require(true)",
            "require(1 ? block.x > 0 : 1 / 0)",
        ],
        refused: &[
            "require(block.x = 256)",
            "require(block.x > 256)",
            "require(false)",
            "require(block.x => 32)",
            "require(32 <= block.x <= )",
            "require(block.q > 1)",
            "require(block.x >> 70)",
            "require(1 / 0)",
            "require(0x8000000000000000)",
            "require(9223372036854775807 + 1)",
            "require(5 % 2.0)",
            "require(~1.5)",
            "require(1 ? 2)",
            "require(ceildiv(-1, 2))",
            "require(ceildiv(1))",
            "require(pow(2, 3))",
            "require(min())",
            "require(n > 1)",
            "require((block.x > 1)",
            "require(1 == 1))",
            "require('ab')",
            "require(08)",
            "require(1.2.3)",
        ],
    },
    Clause {
        name: "default",
        accepted: &[
            "default(block = 256)",
            "default(block.x = 32, block.y = 4)",
            "default(block = {16, 16, 1}, regs = 32)",
            "default(TILE = 16) define(TILE = {8, 16})",
            "grid({1, 2}) default(grid = 2)",
        ],
        refused: &[
            "default(256)",
            "default(block 256)",
            "default(block = )",
            "default(block = {})",
            "default(block = {1, 2, 3, 4})",
            "default(block = {256, 0})",
            "default(block = auto)",
            "default(block = {64, 128} 2)",
            "default(block.x = 1, block = 2)",
            "default(block.w = 2)",
            "default(block = 128) block({64, 256})",
            "default(block = 1025)",
            "default(regs = 8)",
            "default(regs = 48) regs({32, 64})",
            "default(T = 8)",
            "default(T = 3) define(T = {1, 2})",
            "default(T = 1) define(TILE = {1, 2})",
            "grid({1, 2}) default(grid = 3)",
            "default(regs.x = 3)",
        ],
    },
    Clause {
        name: "args",
        accepted: &[
            "args(n = 1 << 20, a = 2.0f, x = random[n], y = out[n])",
            "args(n = 4, a = -1e-3, x = random(-1, 1)[2 * n], y = fill(0.5)[n])",
            "args(y = iota[8], x = zeros[8], a = 0.5, n = 8)",
            "args(n = 8, a = 0, x = each(index % n * 0.5)[n], y = each(index > 0 ? n / index : 0)[n])",
            "args(n = 8, a = 0, x = each(sin(index) * cos(0.5))[n], y = each(floor(pow(2, sqrt(index)) + log(exp(1.0))))[n])",
            "args(n = block.x * 2, a = n, x = 0, y = out[block.size])",
            "args(n = 4, a = 1, x = nullptr, y = NULL)",
            "args(n = 4, a = 1, x = file(\"data/x.bin\"), y = file(\"y.npy\")[2 * n])",
            "threads(p.n) args(p = {n = 1 << 9, data = random[p.n]}, y = out[p.n])",
            "args(n = 4, a = 1, x = {34, -5, 4e-3}, y = {n, 2 * n, n > 3 ? 1 : 0}[2 * n]) check(y)",
            "threads(1) args(p = {n = {1, 2}, data = {0.5}[9]}, y = {0})",
            "threads(p.in.x) args(y = out[9], p = {in = {x = 7, y = -p.in.x}, data = 0, n = p.in.x})",
            "threads(p.n) args(p = {data = file(\"x.npy\"), n = 4}, y = zeros[1]) shared(p.n * 4) require(p.n > 3)",
            "args(n = 1)",
            "threads(p.n) args(p = {n = 1 << 20})",
        ],
        refused: &[
            "args(n = 1, y = out[n])",
            "args(n = 1, y = nullptr)",
            "threads(p.n) args(p = {n = 1 << 20, data = random[p.n]})",
            "args(n = 1, a = 1, x = each[1], y = out[1])",
            "args(n = 1, a = 1, x = each(index, 2)[1], y = out[1])",
            "args(n = 1, a = 1, x = each()[1], y = out[1])",
            "args(n = sqrt(2), a = pow(2, 3), x = each(sin(1, 2) + pow(2))[1], y = zeros[exp(1)])",
            "args(n = 1, a = 1, x = each(sine(1))[1], y = each(sin())[1])",
            "args(n = 1, a = 1, x = each(index, y = out[1])",
            "args(n, a = 1, x = out[1], y = out[1])",
            "args(n = , a = 1, x = out[1], y = out[1])",
            "args(n = 1, a = 1, x = out[], y = out[1])",
            "args(n = 1, a = 1, x = out, y = out[1])",
            "args(n = 1, a = 1, x = out[1, y = out[1])",
            "args(n = 1, a = 1, x = out[1][2], y = out[1])",
            "args(n = 1, a = 1, x = noise[1], y = out[1])",
            "args(n = 1, a = 1, x = noise(3)[1], y = out[1])",
            "args(n = 1, a = 1, x = fill[1], y = out[1])",
            "args(n = 1, a = 1, x = fill(1, 2)[1], y = out[1])",
            "args(n = 1, a = 1, x = random(1)[1], y = out[1])",
            "args(n = 1, a = 1, x = random(3,)[1], y = out[1])",
            "args(n = 1, a = 1, x = zeros(1)[1], y = out[1])",
            "args(n = {1, 2}, a = 1, x = out[1], y = out[1])",
            "args(n = 1:2, a = 1, x = out[1], y = out[1])",
            "args(n = 1, a = {2}, x = out[1], y = {1, 2})",
            "args(n = 1, a = 1, x = {1, 2,}, y = {1 2})",
            "args(n = 1, a = 1, x = {{1}, {2}}, y = {1} + 1)",
            "args(n = 1, a = 1, x = {1, 2}[], y = {1, 2}[3][4])",
            "args(n = 1, a = 1, x = {out[1]}, y = {1:4})",
            "args(n = Mode::A, a = 1, x = out[n], y = out[1])",
            "args(n = 1, n = 2, a = 1, x = out[1], y = out[1])",
            "args(n = 1, a = 1, x = out[1], y = out[1], z = 3)",
            "args(n = a, a = n, x = out[1], y = out[1])",
            "args(n = x, a = 1, x = out[1], y = out[1])",
            "args(1 = n, a = 1, x = out[1], y = out[1])",
            "args(n = 1, a = 1, x = file, y = out[1])",
            "args(n = 1, a = 1, x = file[n], y = out[1])",
            "args(n = 1, a = 1, x = file(x.bin), y = out[1])",
            "args(n = 1, a = 1, x = file(\"\"), y = out[1])",
            "args(n = 1, a = 1, x = file(\"x.bin\", 4), y = out[1])",
            "args(n = 1, a = 1, x = file(\"x.bin\")[], y = out[1])",
            "args(n = 1, a = 1, x = file(\"x.bin\") n, y = out[1])",
            "args(n = 1, a = 1, x = file(\"x.bin)[n], y = out[1])",
            "threads(1) args(p = {}[4], y = out[1])",
            "threads(1) args(p = {n,}, y = out[1])",
            "threads(1) args(p = {n = m}, y = out[1])",
            "threads(1) args(p = {n = }, y = out[1])",
            "threads(1) args(p = {n = 1 data = 0}, y = out[1])",
            "threads(1) args(p = {n = 1, n = 2}, y = out[1])",
            "threads(1) args(p = {n = 1} + 1, y = out[1])",
            "threads(1) args(p = {n = {{1, 2}}}, y = out[1])",
            "threads(1) args(p = {n = {{x = 1}, {x = 2}}}, y = out[1])",
            "threads(1) args(p = {in.x = 1}, y = out[1])",
            "threads(1) args(p = {data = noise[4]}, y = out[1])",
            "threads(1) args(p = {n = p.n}, y = out[1])",
            "threads(p.m) args(p = {n = 1}, y = out[1])",
            "threads(p) args(p = {n = 1}, y = out[1])",
            "threads(p.data) args(p = {data = out[1]}, y = out[1])",
            "threads(1) args(p = {n = q.n}, y = out[1])",
            "threads(1) args(p = {a = {a = {a = {a = {a = {a = {a = {a = {a = 1}}}}}}}}}, y = out[1])",
        ],
    },
    Clause {
        name: "check",
        accepted: &[
            "check(y)",
            "check(x, y)",
            "check(y, rtol = 1e-5)",
            "check(y, atol = 0, rtol = 0)",
            "check(none)",
            "check(p.data, y, atol = 1) threads(p.n) args(p = {n = 4, data = zeros[4]}, y = out[4])",
        ],
        refused: &[
            "check(z)",
            "check(n) <a>",
            "check(y, y)",
            "check(y, rtol)",
            "check(y, rtol = )",
            "check(y, rtol = -1)",
            "check(y, rtol = n)",
            "check(y, rtol = 1, rtol = 2)",
            "check(y, eps = 1)",
            "check(rtol = 1e-5)",
            "check(none, y)",
            "check(y = 1)",
            "check(y.z)",
            "check(y.)",
            "check(p) threads(4) args(p = {data = zeros[4]}, y = out[4])",
            "check(p.n) threads(4) args(p = {n = 1, data = zeros[4]}, y = out[4])",
            "check(p.date) threads(4) args(p = {data = zeros[4]}, y = out[4])",
            "check(p.data, p.data) threads(4) args(p = {data = zeros[4]}, y = out[4])",
        ],
    },
    Clause {
        name: "symbol",
        accepted: &[
            "symbol(ck = random[16])",
            "symbol(ns::ck = fill(2)[4], steps = 3 * 8)",
            "symbol(unsigned char a::b::ck = iota[n]) <a>",
            "symbol(::ck = 1, float ::ns::dk = 2)",
            "symbol(float4 ck = file(\"ck.npy\"), half h = 0.5)",
            "symbol(ck = {1, 2}, lut = {1, 2, 3}[16])",
            "symbol(mask<float> = {1}, float ns::lut<Pair<int, 4>, 2>= zeros[2], lut<Pair<int>> = 3)",
        ],
        refused: &[
            "symbol(ck)",
            "symbol(4 = 5)",
            "symbol(= 5)",
            "symbol(ck = )",
            "symbol(ck = zeros)",
            "symbol(ck = noise[4])",
            "symbol(ck = {1 2})",
            "symbol(mask> = 1)",
            "symbol(<float> = 1)",
            "symbol(ck = zeros[1], ck = zeros[2])",
            "symbol(ck[4] = zeros[4])",
            "symbol(ns:ck = 1)",
            "symbol(ck = 1 2)",
            "symbol(ck = 1,)",
        ],
    },
    Clause {
        name: "template",
        accepted: &[
            "template(float, 16)",
            "template(float, 4) template(double, -4) template(ns::View<int, 2> *, sizeof(int))",
            "template(unsigned char, 2 * TILE) define(TILE = {8, 16})",
            "template(float, 2 * WIDTH + 1)",
            "template(const float *, (3 > 2) ? 1 : 0) name(k3)",
        ],
        refused: &[
            "template(float,)",
            "template(, 4)",
            "template(float, 4) template(float, 4)",
            "template(float, TILE) template(double, TILE) define(TILE = {8, 16})",
            "template(float, 4",
            "template float",
        ],
    },
    Clause {
        name: "launch",
        accepted: &["launch(header)", "launch(remap)", "launch(cooperative)", "launch(header, cooperative)"],
        refused: &[
            "launch(stub)",
            "launch(header, remap)",
            "launch(cooperative, remap)",
            "launch(header cooperative)",
            "launch(1)",
            "launch(remp)",
        ],
    },
    Clause {
        name: "strategy",
        accepted: &["strategy(es)", "strategy(ros)", "strategy(pos)", "strategy(posf)", "strategy(ryoo)"],
        refused: &["strategy(po)", "strategy(random)", "strategy(es, pos)", "strategy(\"es\")"],
    },
    Clause {
        name: "budget",
        accepted: &["budget(30)", "budget(0.5)", "budget(2 * 60)"],
        refused: &["budget(0)", "budget(-1)", "budget(30 s)", "budget(n)", "budget({1, 2})"],
    },
    Clause {
        name: "name",
        accepted: &["name(axpy)", "name(_k2)"],
        refused: &["name(2k)", "name(a-b)", "name(\"k\")", "name(größe)", "name(a, b)"],
    },
];

/// A source with this comment: what it needs besides and does not have is put before it. `<a>` stands for [`ARGS`].
fn source(clauses: &str) -> Source {
    let mut text = String::from("//@tune");
    let clauses = clauses.replace("<a>", ARGS);
    if !clauses.contains("block(") && !clauses.contains("default(block") {
        text.push_str(" block(256)");
    }
    if !clauses.contains("threads(") && !clauses.contains("grid(") {
        text.push_str(" threads(n)");
    }
    let kernel = match () {
        () if clauses.contains("template") => TEMPLATE,
        () if clauses.contains("p = {") => STRUCTURE,
        () => KERNEL,
    };
    Source::new("a.cu", format!("{text} {clauses}\n{kernel}").as_bytes())
}

fn read(source: &Source) -> Result<Vec<(Annotation, Space)>, String> {
    let found = annotations(source).map_err(|problems| render(&problems))?;
    let spaces = found.into_iter().map(|annotation| match Space::new(&annotation, &Limits::default()) {
        Ok(space) => Ok((annotation, space)),
        Err(problems) => Err(render(&problems)),
    });
    spaces.collect()
}

#[test]
fn every_clause_has_cases() {
    // The message for what is no clause lists those that are.
    let message = read(&source("frobnicate(1)")).expect_err("no clause of the language");
    let (_, known) = message.split_once(": known are ").expect("the message lists the clauses");
    let known: BTreeSet<&str> = known.lines().next().unwrap_or_default().split(", ").collect();
    assert_eq!(known, CLAUSES.iter().map(|clause| clause.name).collect::<BTreeSet<_>>());
}

#[test]
fn accepted_clauses_are_read() {
    for clause in CLAUSES {
        for case in clause.accepted {
            let source = source(case);
            let spaces = read(&source).unwrap_or_else(|problems| panic!("{case}\n{problems}"));
            assert_eq!(spaces.len(), case.matches("template(").count().max(1), "{case}");
            for (annotation, space) in spaces {
                assert!(annotation.clauses.iter().any(|(name, _)| name == clause.name), "{case}");
                assert!(space.contains(space.baseline()), "{case}");
            }
        }
    }
}

#[test]
fn refused_clauses_have_place_and_reason() {
    let mut shown = String::new();
    let mut refused = 0;
    for clause in CLAUSES {
        shown.push_str(&format!("######## {}\n", clause.name));
        for case in clause.refused {
            let problems = read(&source(case)).err().unwrap_or_else(|| panic!("accepted: {case}"));
            refused += 1;
            shown.push_str(&format!("======== {case}\n"));
            // The place is below the line: the line that nvcc ends with adds nothing here.
            shown.extend(
                problems
                    .lines()
                    .filter(|line| !line.contains("detected in the compilation"))
                    .map(|line| if line.is_empty() { String::new() } else { format!("{line}\n") }),
            );
        }
    }
    assert!(refused >= 120, "{refused}");
    expect_file!["comments/clauses.txt"].assert_eq(&shown);
}

/// Pieces that mutations put in: those that the language is made of, and what is none of it.
const PIECES: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "=",
    "==",
    "*/",
    "/*",
    "//",
    "//@tune ",
    "\n",
    " ",
    "\"",
    "'",
    "\\",
    ";",
    ".",
    "0",
    "1",
    "-1",
    "64",
    "9223372036854775807",
    "1e308",
    "0x",
    "n",
    "x",
    "block.x",
    "block.size",
    "grid.x",
    "auto",
    "none",
    "pow2(1, 64)",
    "1:65536",
    "1:65536:3",
    "ceildiv(",
    "min(",
    "sizeof(float)",
    "random[",
    "fill(2)[",
    "?",
    "<<",
    "&&",
    "%",
    "__global__ ",
    "template <int N> ",
    "int z, ",
    "é",
    "\u{0}",
    "\u{feff}",
];

/// Comments as they are written: those of the suite and of this table.
fn real() -> Vec<String> {
    let suite = ["saxpy", "nbody", "matmul_naive", "matmul_tiled", "black_scholes"];
    let file = |name: &str| format!("{}/kernels/{name}/{name}.cu", env!("CARGO_MANIFEST_DIR"));
    let mut all: Vec<String> =
        suite.iter().map(|name| std::fs::read_to_string(file(name)).expect("the suite is there")).collect();
    // The comment and the kernel's head are enough.
    all.iter_mut().for_each(|text| {
        let start = text.find("@tune").map_or(0, |at| at - 2);
        let end = text[start..].find('{').map_or(text.len(), |_| (start + 900).min(text.len()));
        *text = text.chars().skip(text[..start].chars().count()).take(end - start).collect();
    });
    all.extend(CLAUSES.iter().flat_map(|clause| clause.accepted).map(|case| source(case).text));
    all
}

/// Where, how many characters go, and which piece comes.
type Mutation = (prop::sample::Index, usize, prop::sample::Index);

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: prop::test_runner::RngSeed::Fixed(13),
        ..ProptestConfig::with_cases(random_cases(8_000, 80_000))
    })]

    /// Whatever is done to a real comment, it is read or refused with a place, in bounded time; the same each time.
    #[test]
    fn mutated_comment_is_read_or_refused(
        which in any::<prop::sample::Index>(),
        mutations in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, any::<prop::sample::Index>()), 1..5),
    ) {
        let mut text: Vec<char> = REAL.with(|real| which.get(real).chars().collect());
        for (at, length, piece) in &mutations {
            let (at, length, piece): &(_, _, _) = &(at, length, piece);
            mutate(&mut text, &(**at, **length, **piece));
        }
        let text: String = text.into_iter().collect();
        let source = Source::new("a.cu", text.as_bytes());
        match read(&source) {
            Err(problems) => prop_assert!(problems.contains("a.cu(") && problems.contains(": error: "), "{}", problems),
            Ok(spaces) => for (_, space) in spaces {
                prop_assert!(space.contains(space.baseline()));
                if space.check_size().is_ok() {
                    for configuration in space.iter().take(20) {
                        prop_assert!(space.contains(&configuration));
                        let _ = space.launch(&configuration);
                    }
                }
            },
        }
    }
}

thread_local! {
    static REAL: Vec<String> = real();
}

fn mutate(text: &mut Vec<char>, (at, length, piece): &Mutation) {
    let at = at.index(text.len() + 1);
    let end = (at + length).min(text.len());
    text.splice(at..end, piece.get(PIECES).chars());
}
