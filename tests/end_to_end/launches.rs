//! What is said of the launches that a source writes itself, and of points that they keep from being chosen.

use super::project::{Project, compile, run, succeed};
use super::remap::tuned;
use super::results::nvtune;
use crate::support::full::{cases, is_full};
use expect_test::expect;
use std::io::Read;
use std::process::{Command, Stdio};

/// All that is said of a build.
fn built(project: &Project, text: &str, entries: &str) -> String {
    project.write("launches.cu", text);
    let ran = tuned(project, &compile("launches.cu", "launches.o"), entries);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stderr
}

/// The same without the lines of results.
fn said(project: &Project, text: &str, entries: &str) -> String {
    warnings(&built(project, text, entries))
}

/// Of what a build says, the lines of one kernel: those that begin with its name, the first of them its result, and those that name it.
fn said_of(said: &str, kernel: &str) -> String {
    let (own, quoted) = (format!("nvtune: {kernel}: "), format!("`{kernel}`"));
    let lines = said.lines().filter(|line| line.starts_with(&own) || line.contains(&quoted));
    let lines = lines.fold(String::new(), |all, line| all + line + "\n");
    assert!(lines.contains(&own), "`{kernel}` is not tuned: {said}");
    lines
}

#[test]
#[ignore = "long: in the full run"]
fn baseline_that_the_source_does_not_launch_is_a_warning() {
    let project = Project::new(&[]);
    let of = |default: &str, host: &str| {
        let text = format!(
            "//@tune threads(n) block(64:1024:64) regs({{0}}) {default}\n//@tune args(n = 1 << 20, x = random[n])\n\
             __global__ void k(int n, float *x) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }}\n{host}\n"
        );
        said(&project, &text, r#"{"time_us": 10.0, "spread": 0.01}"#)
    };
    expect![[r#"
        launches.cu(4): warning: this launch of `k` has blocks of 256, but the baseline has 512: write default(block = 256) [N0181]
          void run(int n, float *x) { k<<<(n + 255) / 256, 256>>>(n, x); }
                                      ^
        launches.cu(1): note: the baseline is given here
          //@tune threads(n) block(64:1024:64) regs({0}) default(block = 512)
                                                                         ^~~

    "#]]
    .assert_eq(&of("default(block = 512)", "void run(int n, float *x) { k<<<(n + 255) / 256, 256>>>(n, x); }"));
    let wide = of("", "void run(int n, float *x) { k<<<n / 100, dim3(10, 10)>>>(n, x); }");
    let remedy = "has blocks of 10x10, but the baseline has 256: write default(block = {10, 10}), and add that block to `block` [N0181]";
    assert!(wide.contains(remedy), "{wide}");
    for host in [
        "void run(int n, float *x) { k<<<n / 512, 512>>>(n, x); k<<<n / 256, 256>>>(n, x); }",
        "void run(int n, int b, float *x) { k<<<n / 256, 256>>>(n, x); k<<<n / b, b>>>(n, x); }",
        "#include \"launches.tune.h\"\nvoid run(int n, float *x) { k<<<nvtune::k::grid(n), 256>>>(n, x); }",
    ] {
        assert_eq!(of("default(block = 512)", host), "", "{host}");
    }
}

/// The lines of results of a build without a GPU, and what `nvtune report` notes, both without times.
fn results(project: &Project, text: &str) -> String {
    project.write("held.cu", text);
    let ran = run(&mut project.nvtune(&compile("held.cu", "held.o")));
    assert!(ran.code == Some(0) && !ran.stderr.contains("warning"), "{}", ran.stderr);
    let report = run(&mut nvtune(project, &["report", "held.tune.json"]));
    let lines = ran.stderr.lines().chain(report.stdout.lines().filter(|line| line.starts_with("  note: ")));
    lines.map(|line| format!("{}\n", line.split("; 0 of").next().unwrap_or_default())).collect()
}

#[test]
#[ignore = "long: in the full run"]
fn space_that_is_mostly_excluded_is_explained_with_the_remedy() {
    let project = Project::new(&[]);
    // Threads of a block meet: that they may in another block is not known.
    let block = results(
        &project,
        "//@tune grid(rows) block({64, 128, 256, 512, 1024}) regs({0}) default(block = 256)\n\
         //@tune args(rows = 4096, x = random[rows * 256])\n\
         __global__ void meet(int rows, float *x) {\n\
         __shared__ float first; if (threadIdx.x == 0) first = x[blockIdx.x * 256];\n\
         __syncthreads(); for (int i = threadIdx.x; i < 256; i += blockDim.x) x[blockIdx.x * 256 + i] += first; }\n\
         void go(int n, float *x) { meet<<<n, 256>>>(n, x); }\n",
    );
    expect![[r#"
        nvtune: meet: block=256 (kept: no configuration that may be chosen is faster)
        nvtune: meet: note: 4 of 5 points may not be chosen: an untimed block needs launch(remap), a promise that it works, or launches by the header [N0035]
          note: 4 of 5 points may not be chosen: an untimed block needs launch(remap), a promise that it works, or launches by the header [N0035]
    "#]]
    .assert_eq(&block);
    let uneven = results(
        &project,
        "//@tune threads(n) block({96, 160, 192, 224, 256}) regs({0}) default(block = 256)\n\
         //@tune args(n = 1 << 16, x = random[n])\n\
         __global__ void twice(int n, float *x) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }\n",
    );
    expect![[r#"
        nvtune: twice: block=256 (kept: no configuration that may be chosen is faster)
        nvtune: twice: note: 4 of 5 points may not be chosen: untimed, block and macros must divide the problem [N0035]
          note: 4 of 5 points may not be chosen: untimed, block and macros must divide the problem [N0035]
    "#]]
    .assert_eq(&uneven);
    let grid = results(
        &project,
        "//@tune grid({64, 128, 256}) block(256) regs({0}) default(grid = 128)\n\
         //@tune args(rows = 4096, x = random[rows * 256])\n\
         __global__ void walk(int rows, float *x) {\n\
         __shared__ float first;\n\
         for (int row = blockIdx.x; row < rows; row += gridDim.x) {\n\
         if (threadIdx.x == 0) first = x[row * 256];\n\
         __syncthreads(); x[row * 256 + threadIdx.x] += first; __syncthreads(); } }\n\
         void go(int n, float *x) { walk<<<128, 256>>>(n, x); }\n",
    );
    let said = "nvtune: walk: note: 2 of 3 points may not be chosen: an untimed grid needs launch(remap)";
    assert!(grid.contains(said), "{grid}");
    let launch = "void go(int n, float *x) { tied<<<n / TILE, TILE + 0>>>(n, x); }";
    let tied = |launch: &str| {
        let text = format!(
            "#ifndef TILE\n#define TILE 64\n#endif\n\
             //@tune define(TILE = {{64, 128, 256, 512}}) block({{64, 128, 256, 512}}) require(block.x == TILE) regs({{0}})\n\
             //@tune grid(n / TILE) default(TILE = 64) launch(remap) args(n = 1 << 16, x = random[n])\n\
             __global__ void tied(int n, float *x) {{ x[blockIdx.x * TILE + threadIdx.x] *= 2; }}\n{launch}\n"
        );
        results(&project, &text)
    };
    expect![[r#"
        nvtune: tied: block=128 TILE=128 (1.09x over the baseline, predicted, for n a multiple of 128)
    "#]]
    .assert_eq(&tied(launch));
    let free = tied(&launch.replace("TILE", "64"));
    assert!(!free.contains("may not be chosen"), "{free}");
}

/// What is said of a build without a GPU.
fn predicted(project: &Project, text: &str) -> String {
    project.write("predicted.cu", text);
    let ran = run(&mut project.nvtune(&compile("predicted.cu", "predicted.o")));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stderr
}

#[test]
#[ignore = "long: in the full run"]
fn predicted_winner_does_all_work() {
    let project = Project::new(&[]);
    // The kernels of one file, and of each what must be said of it, or must not be.
    let mut source = "#ifndef TILE\n#define TILE 16\n#endif\n#ifndef WIDE\n#define WIDE 16\n#endif\n#ifndef SIZE\n#define SIZE 256\n#endif\n".to_owned();
    let (mut expected, mut unexpected) = (Vec::new(), Vec::new());
    for launch in cases(&["remap", "header"], 1) {
        // Each thread has one element, and the grid does not follow the block; a kernel that strides over the grid has all of them.
        const ONE: &str = "if (i < n)";
        const STRIDED: &str = "for (; i < n; i += gridDim.x * blockDim.x)";
        for (name, grid, each) in [
            ("fixed", "grid((n + 255) / 256)", ONE),
            ("follows", "grid(ceildiv(n, block.x))", ONE),
            ("covers", "threads(n)", ONE),
            ("strides", "grid(1024)", STRIDED),
        ] {
            let name = format!("{name}_{launch}");
            source += &format!(
                "//@tune {grid} block({{32, 64, 128, 256}}) regs({{0}}) default(block = 256) launch({launch})\n\
                 //@tune args(n = 1 << 20, x = random[n], y = out[n])\n\
                 __global__ void {name}(int n, const float *x, float *y) {{\n\
                 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
                 {each} {{ float s = x[i]; for (int j = 0; j < 64; ++j) s = sinf(s) + s * x[j]; y[i] = s; }} }}\n"
            );
            if name.starts_with("fixed") {
                let why = "3 of 4 points may not be chosen: fewer threads in x do less, as no gridDim.x is read";
                expected.extend([(name.clone(), "block=256 (kept".to_owned()), (name, why.to_owned())]);
            } else {
                unexpected.push((name, "fewer threads"));
            }
        }
        // Threads of which the code tells none apart.
        let name = format!("rows_{launch}");
        source += &format!(
            "//@tune threads(n, n) block({{32, 64}}, {{1, 4, 8}}) regs({{0}}) default(block = {{32, 1}}) launch({launch})\n\
             //@tune args(n = 2048, x = random[n * n], y = out[n * n])\n\
             __global__ void {name}(int n, const float *x, float *y) {{\n\
             const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y;\n\
             if (i < n && j < n) y[j * n + i] = x[j * n + i]; }}\n"
        );
        let why = "4 of 6 points may not be chosen: the kernel reads neither threadIdx.y nor blockDim.y";
        let warning = format!("warning: `{name}` reads neither");
        expected.extend([(name.clone(), why.to_owned()), (name, warning)]);
    }
    // Threads that are told their share, that take it from a queue, or that a macro counts which is tied to the block.
    for (name, clauses, parameter, body) in [
        (
            "told",
            "grid({132, 264, 528, 1056}) block({64, 256}) default(block = 256, grid = 1056)",
            "stride = grid.x * block.x",
            "for (; i < n; i += stride) y[i] = sinf(x[i]);",
        ),
        (
            "counted",
            "define(SIZE = {64, 128, 256}) require(block.x == SIZE) grid(ceildiv(n, SIZE)) block({64, 128, 256}) default(block = 256, SIZE = 256)",
            "m = 1",
            "if (i < n) y[i] = SIZE * x[i];",
        ),
    ] {
        source += &format!(
            "//@tune {clauses} regs({{0}}) launch(header) args(n = 1 << 20, x = random[n], y = out[n], {parameter})\n\
             __global__ void {name}(int n, const float *x, float *y, int {}) {{\n\
             int i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}\n",
            parameter.split(' ').next().unwrap_or_default()
        );
        unexpected.push((name.to_owned(), "fewer threads"));
    }
    // A block that the code does not know of, and one that a macro tells it of.
    for (name, tile, clauses) in [
        ("tile", "TILE", "block({16, 32, 64}, {8}) default(block = {16, 8})"),
        (
            "wide",
            "WIDE",
            "block({16, 32, 64}, {8}) define(WIDE = {16, 32, 64}) require(block.x == WIDE) default(block = {16, 8}, WIDE = 16)",
        ),
    ] {
        source += &format!(
            "//@tune threads(n, n) regs({{0}}) launch(header) {clauses}\n\
             //@tune args(n = 4096, in = random[n * n], out = out[n * n])\n\
             __global__ void {name}(int n, const float *in, float *out) {{\n\
             const int x = blockIdx.x * {tile} + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;\n\
             if (x < n && y < n) out[y * n + x] = in[y * n + x] * 2; }}\n"
        );
    }
    let why = "2 of 3 points may not be chosen: the kernel reads threadIdx.x and never blockDim.x";
    expected.extend(["block=16x8 (kept", why].map(|words| ("tile".to_owned(), words.to_owned())));
    unexpected.push(("wide".to_owned(), "may not be chosen"));
    for (kernel, words) in [
        // A buffer of an element for each block of the program.
        (
            "//@tune threads(n) block({64, 128, 256, 512}) regs({0}) default(block = 64) launch(remap)\n\
             //@tune args(n = 1 << 22, x = random[n], part = out[65536])\n\
             __global__ void sums(int n, const float *x, float *part) {\n\
             __shared__ float s[1024]; const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
             s[threadIdx.x] = i < n ? x[i] : 0; __syncthreads();\n\
             for (int o = blockDim.x / 2; o; o /= 2) {\n\
             if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o]; __syncthreads(); }\n\
             if (!threadIdx.x) part[blockIdx.x] = s[0]; }\n",
            "3 of 4 points may not be chosen: `part` of args(...) has one element for each of 65536 blocks",
        ),
        // A buffer of an element for each thread of the program, and one for each thread of the launch.
        (
            "//@tune grid({132, 528}) block(64) regs({0}) default(block = 64, grid = 132) launch(header)\n\
             //@tune args(n = 1 << 22, x = random[n], part = out[132 * 64])\n\
             __global__ void of_program(int n, const float *x, float *part) {\n\
             const int t = blockIdx.x * blockDim.x + threadIdx.x; float s = 0;\n\
             for (int i = t; i < n; i += gridDim.x * blockDim.x) s += x[i]; part[t] = s; }\n",
            "1 of 2 points may not be chosen: more threads reach beyond `part` (8448 elements)",
        ),
        (
            "//@tune grid({132, 528}) block(64) regs({0}) default(block = 64, grid = 132) launch(header)\n\
             //@tune args(n = 1 << 22, x = random[n], part = out[grid.x * block.x])\n\
             __global__ void of_launch(int n, const float *x, float *part) {\n\
             const int t = blockIdx.x * blockDim.x + threadIdx.x; float s = 0;\n\
             for (int i = t; i < n; i += gridDim.x * blockDim.x) s += x[i]; part[t] = s; }\n",
            "of_launch: block=64 grid=528 (",
        ),
        // An array in shared memory that does not follow the block: a thread for each element, then several arrays of two dimensions.
        (
            "//@tune threads(n) block({64, 128, 256}) regs({0}) default(block = 64) launch(header) args(n = 1 << 22, x = random[n])\n\
             __global__ void turn(int n, float *x) {\n\
             __shared__ float s[128]; const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
             s[threadIdx.x] = i < n ? x[i] : 0; __syncthreads();\n\
             if (i < n) x[i] = s[blockDim.x - 1 - threadIdx.x]; }\n",
            "turn: block=128 (1.",
        ),
        (
            "//@tune threads(n, n) block({16, 32}, {16, 32, 64}) regs({0}) default(block = {16, 16}) launch(header)\n\
             //@tune args(n = 512, a = random[n * n], b = random[n * n], c = out[n * n])\n\
             __global__ void product(int n, const float *a, const float *b, float *c) {\n\
             __shared__ float s[16][16], t[16][16]; float sum = 0;\n\
             const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n\
             for (int k = 0; k < n; k += blockDim.x) {\n\
             s[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];\n\
             t[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x]; __syncthreads();\n\
             for (int j = 0; j < blockDim.x; ++j) sum += s[threadIdx.y][j] * t[j][threadIdx.x]; __syncthreads(); }\n\
             c[y * n + x] = sum; }\n",
            "4 of 5 points may not be chosen: threads of such a block reach beyond the 2048 bytes of shared memory that it has",
        ),
        // Rows as long as the baseline's block, whatever else the code asks of that.
        (
            "//@tune grid(rows) block({32, 64, 128, 256}) regs({0}) default(block = 256) launch(header)\n\
             //@tune args(rows = 1 << 14, x = random[rows * 256], y = out[rows * 256])\n\
             __global__ void norm(int rows, const float *x, float *y) {\n\
             __shared__ float s[256]; const int t = threadIdx.x; const float e = x[blockIdx.x * 256 + t]; s[t] = e * e; __syncthreads();\n\
             for (int k = blockDim.x / 2; k; k /= 2) { if (t < k) s[t] += s[t + k]; __syncthreads(); }\n\
             y[blockIdx.x * 256 + t] = e / s[0]; }\n",
            "norm: block=256 (kept",
        ),
    ] {
        source += kernel;
        let name = kernel.split("void ").nth(1).and_then(|rest| rest.split('(').next()).expect("a kernel");
        expected.push((name.to_owned(), words.to_owned()));
    }
    let said = predicted(&project, &source);
    for (name, words) in expected {
        assert!(said_of(&said, &name).contains(&words), "{name}, {words}: {said}");
    }
    for (name, words) in unexpected {
        assert!(!said_of(&said, &name).contains(words), "{name}, {words}: {said}");
    }
    let record = project.record("predicted.tune.json");
    let kernels = record["kernels"].as_array().expect("a list");
    let norm = kernels.iter().find(|kernel| kernel["name"] == "norm").expect("it is recorded");
    let why = "of `y`'s 16777216 bytes: let the grid follow the block, as in threads(n)";
    assert!(norm["held"].to_string().contains(why), "{norm}");

    // Kernels that their source launches, too.
    let said = predicted(
        &project,
        "//@tune threads(n) block({64, 128, 256}) regs({0}) default(block = 64) args(n = 1 << 20, x = random[n])\n\
         __global__ void bare(int n, float *x) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }\n\
         void go(int n, float *x) { void *given[] = {&n, &x}; cudaLaunchKernel(bare, dim3((n + 63) / 64), dim3(64), given, 0, 0); }\n\
         //@tune template(4) threads(n) block({64, 128}) regs({0}) args(n = 1 << 20, x = random[n])\n\
         template <int N, bool B = false> __global__ void open(int n, float *x) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= B ? 2 : N; }\n\
         void both(int n, float *x) { open<4><<<n / 64, 64>>>(n, x); open<4, true><<<n / 64, 64>>>(n, x); }\n\
         #include <cassert>\n\
         //@tune threads(n) block({32, 64, 128}) regs({0}) default(block = 64) launch(remap) args(n = 1 << 20, x = random[n])\n\
         __global__ void strict(int n, float *x) {\n\
         assert(blockDim.x == 64); const int i = blockIdx.x * 64 + threadIdx.x; if (i < n) x[i] *= 2; }\n\
         void asserted(int n, float *x) { strict<<<(n + 63) / 64, 64>>>(n, x); }\n",
    );
    for words in [
        // What reaches no launch stub runs nvcc's own code.
        "predicted.cu(4): note: this launch of `bare` runs nvcc's own code",
        // Arguments that leave open which instance is meant.
        "(5): warning: these arguments fit several instances, <4, false>, <4, true>: write",
        // An assertion that asks for the baseline's block, whatever the comment promises.
        "nvtune: strict: note: 2 of 3 points may not be chosen: threads of such a block end in an assertion or a trap",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn macro_that_changes_no_kernel_is_a_warning() {
    let project = Project::new(&[]);
    const MISTYPED: &str = "#ifndef UNROLL\n#define UNROLL 4\n#endif\n\
         //@tune threads(n) block({128, 256}) regs({0}) define(UNROL = {1, 2, 4}) default(block = 256)\n\
         //@tune args(n = 1 << 20, x = random[n], y = out[n]) launch(header)\n\
         __global__ void k(int n, const float *x, float *y) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = UNROLL * x[i]; }\n";
    expect![[r#"
        predicted.cu(4): warning: macro `UNROL` changes no code of `k`, and the source does not name it: correct the name [N0183]
          //@tune threads(n) block({128, 256}) regs({0}) define(UNROL = {1, 2, 4}) default(block = 256)
                                                                ^~~~~

    "#]]
    .assert_eq(&warnings(&predicted(&project, MISTYPED)));
    assert_eq!(warnings(&predicted(&project, MISTYPED)).matches("UNROL`").count(), 1, "what is known is told as well");
    let named = MISTYPED.replace("= UNROLL", "= 4").replace("UNROLL", "UNROL");
    assert_eq!(warnings(&predicted(&project, &named)), "", "it may be for another architecture");
}

/// A comment, and the parameters and body of its kernel.
const TWICE: [&str; 2] = [
    "//@tune threads(n) block({64, 256}) regs({0}) default(block = 256) args(n = 1 << 16, x = random[n])\n",
    "(int n, float *x) { const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }\n",
];

#[test]
fn kernel_declared_by_a_macro_is_tuned_and_unused_template_is_not() {
    let project = Project::new(&[]);
    project.write("kernel.h", "#define PLAIN_KERNEL extern \"C\" __global__ void\n");
    let [comment, kernel] = TWICE;
    let said = predicted(&project, &format!("#include \"kernel.h\"\n{comment}PLAIN_KERNEL twice{kernel}"));
    assert!(said.starts_with("nvtune: twice: "), "{said}");
    let template = kernel.replace("float", "T");
    project.write(
        "scale.h",
        &format!(
            "{}template <class T> __global__ void scale{template}",
            comment.replace("//@tune", "//@tune template(float)")
        ),
    );
    assert_eq!(predicted(&project, "#include \"scale.h\"\nint other() { return 1; }\n"), "");
    let used =
        predicted(&project, "#include \"scale.h\"\nvoid go(int n, float *x) { scale<<<n / 256, 256>>>(n, x); }\n");
    assert!(used.starts_with("nvtune: scale_float: "), "{used}");
    let other =
        predicted(&project, "#include \"scale.h\"\nvoid go(int n, double *x) { scale<<<n / 256, 256>>>(n, x); }\n");
    assert!(other.contains("warning: `scale` has no instance <float>: this file makes <double>"), "{other}");
}

/// What somebody else has called as nvtune calls its header stays, and so does the build.
#[test]
fn foreign_file_in_place_of_the_header_is_kept() {
    let project = Project::new(&[]);
    project.write("predicted.tune.h", "#pragma once\nint mine();\n");
    let [comment, kernel] = TWICE;
    let said = predicted(&project, &format!("{comment}__global__ void twice{kernel}"));
    assert!(said.contains("predicted.tune.h' was not written by nvtune"), "{said}");
    assert_eq!(project.read("predicted.tune.h"), "#pragma once\nint mine();\n");
    assert_eq!(project.files(), ["predicted.cu", "predicted.o", "predicted.tune.h"]);
}

/// What a build says, without the lines of results.
fn warnings(said: &str) -> String {
    said.lines().filter(|line| !line.starts_with("nvtune: ")).fold(String::new(), |all, line| all + line + "\n")
}

/// A kernel whose work a macro divides, in a source that does not launch it. A block beyond those it needs leaves at once where `GUARD`
/// says so.
pub const DIVIDED: &str = "#ifndef PER\n#define PER 4\n#endif\n\
    //@tune define(PER = {1, 2, 4, 8, 16}) block(64:1024:64) regs(auto) default(block = 256, PER = 4)\n\
    //@tune grid(ceildiv(n, block.x * PER)) args(n = SIZE, x = random[n], y = out[n])\n\
    __global__ void divided(int n, const float *x, float *y) {\n\
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * PER;\n\
    GUARD\n\
    for (int i = first; i < first + PER; ++i) y[i] = sqrtf(x[i]); }\n";

#[test]
fn fewer_threads_do_not_win_if_the_work_of_a_thread_is_unknown() {
    let project = Project::new(&[]);
    // Rows behind pointers to pointers, which take no value: nobody knows how long they are.
    let kernel = |clauses: &str, head: &str| {
        format!(
            "//@tune {clauses} regs({{0}}) launch(remap)\n\
             __global__ void sums(int n, float **x, float *y) {{\n\
             float sum = 0.0f; for (int i = {head}) sum += x[blockIdx.x][i];\n\
             atomicAdd(y + blockIdx.x, sum); }}\n"
        )
    };
    let (row, whole) = (
        "threadIdx.x; i < n; i += blockDim.x",
        "blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x",
    );
    let blocks = "grid(4096) block({32, 64, 128, 256}) default(block = 256)";
    expect![[r#"
        nvtune: sums: block=256 (kept: no configuration that may be chosen is faster)
        nvtune: sums: note: 3 of 4 points may not be chosen: the work of a thread is unknown: give trips(ceildiv(n, block.x)), n a number [N0035]
          note: 3 of 4 points may not be chosen: the work of a thread is unknown: give trips(ceildiv(n, block.x)), n a number [N0035]
    "#]]
    .assert_eq(&results(&project, &kernel(blocks, row)));
    let grids = "grid({132, 264, 528}) block({128, 256}) default(block = 256, grid = 528)";
    // Further kernels, of one source, and what is said of each; nothing of points where nothing is to be said.
    let cases: [(&str, &str, &str, &[&str]); 8] = [
        // Neither numbers alone nor the same trips in every block tell it.
        (blocks, "args(n = 4096)", row, &["block=256 (kept", "3 of 4 points may not be chosen"]),
        (blocks, "trips(20)", row, &["block=256 (kept", "3 of 4 points may not be chosen"]),
        // As many threads in other blocks have as much to do: there is none here.
        (
            grids,
            "",
            whole,
            &["grid=528 (kept", "5 of 6 points may not be chosen", "give trips(ceildiv(n, block.x * grid.x))"],
        ),
        (blocks, "trips(ceildiv(4096, block.x))", row, &[]),
        (grids, "trips((1 << 24) / (block.x * grid.x))", whole, &[]),
        // What covers the threads has as much for each of them.
        ("threads(1 << 20) block({64, 128, 256}) default(block = 256)", "", row, &[]),
        ("grid(ceildiv(1 << 20, block.x)) block({64, 128, 256}) default(block = 256)", "", row, &[]),
        ("grid(4096, ceildiv(128, block.y)) block(32, {4, 8, 16}) default(block = {32, 8})", "", row, &[]),
    ];
    let kernels = cases.iter().enumerate().map(|(number, (shape, clause, head, _))| {
        kernel(&format!("{shape} {clause}"), head).replace("sums", &format!("sums{number}"))
    });
    let said = predicted(&project, &kernels.collect::<String>());
    assert!(!said.contains("warning"), "{said}");
    for (number, (shape, clause, _, expected)) in cases.iter().enumerate() {
        let said = said_of(&said, &format!("sums{number}"));
        assert!(expected.iter().all(|words| said.contains(words)), "{shape} {clause}: {said}");
        assert!(!expected.is_empty() || !said.contains("may not be chosen"), "{shape} {clause}: {said}");
    }
}

/// Builds it with these timings; gives what is said, and for each value of its macro how many candidates were launched.
fn divided(project: &Project, size: &str, guard: &str, entries: &str) -> (String, [usize; 5]) {
    let entries = format!(r#"{entries}], "log": "log.txt", "conditions": ["#);
    let said = said(project, &DIVIDED.replace("SIZE", size).replace("GUARD", guard), &entries);
    let log = project.read("log.txt");
    let checked = |value: u32| {
        let label = format!("PER={value}");
        log.lines().filter(|line| line.starts_with("check ") && line.split(' ').any(|word| word == label)).count()
    };
    (said, [1, 2, 4, 8, 16].map(checked))
}

/// The block and the macro of its winner.
fn winner(project: &Project) -> (u64, i64) {
    let record = project.record("launches.tune.json");
    let kernel = &record["kernels"][0];
    let winner = &kernel["configurations"][kernel["winner"].as_u64().expect("an index") as usize];
    let number = |value: &serde_json::Value| value.as_i64().expect("a number");
    (number(&winner["block"][0]) as u64, number(&winner["macros"]["PER"]))
}

pub const GUARD: &str = "if (first >= n) return;";
#[test]
#[ignore = "long: in the full run"]
fn refused_macro_values_cost_few_candidates_and_are_explained() {
    let project = Project::new(&[]);
    let refused = |value: u32| {
        format!(r#"{{"label": "PER={value}", "refused": {{"faulted": {{"error": "CUDA_ERROR_ILLEGAL_ADDRESS"}}}}}},"#)
    };
    let times = r#"{"label": "block=128", "time_us": 8.0}, {"time_us": 10.0, "spread": 0.01}"#;
    let (said, checked) = divided(&project, "1 << 20", GUARD, &format!("{}{}{times}", refused(8), refused(16)));
    assert!(checked[3] + checked[4] < 20, "{checked:?}");
    // Which one is refused first is the search's own affair.
    let (first, rest) = said.split_once('\n').expect("two warnings");
    assert!(first.contains("candidate refused: ") && first.contains("crashed on the GPU"), "{first}");
    expect![""].assert_eq(rest);
    assert_eq!(winner(&project), (128, 4));
}

/// Without the libraries that it can do without, which take the compiler most of its time.
const COOPERATIVE_GROUPS: &str = "#define _CG_LIMIT_INCLUDED_DEPENDENCIES\n#include <cooperative_groups.h>\n";

#[test]
#[ignore = "long: in the full run"]
fn grid_that_synchronizes_is_no_larger_than_the_gpu() {
    let kernel = |name: &str, more: &str, ways: &str, wait: &str| {
        format!(
            "//@tune grid({{132, 1056, 10560}}) block(256) regs({{0}}) {more} default(block = 256, grid = 132) launch({ways})\n\
             //@tune args(n = 1 << 22, x = random[n], y = out[n])\n\
             __global__ void {name}(int n, const float *x, float *y) {{\n\
             const cg::grid_group grid = cg::this_grid();\n\
             int i = grid.thread_rank(); for (; i < n; i += grid.size()) y[i] = sqrtf(x[i]);\n\
             {wait} }}\n"
        )
    };
    // Of each kernel of a file, by configuration in the order of the grids: whether it has a score, and why not.
    let scored = |head: &str, kernels: &[String]| -> Vec<(Vec<bool>, serde_json::Value)> {
        let project = Project::new(&[]).with_cuda_headers();
        let include = format!("{COOPERATIVE_GROUPS}namespace cg = cooperative_groups;");
        project.write("root.cu", &format!("{include}\n{head}\n{}", kernels.concat()));
        // What is launched by the header has no need of host code.
        let arguments = ["-O3", "-arch=sm_90", "-cubin", "root.cu", "-o", "root.cubin"];
        succeed(project.nvtune(&arguments).env("NVTUNE", "static"));
        let record = project.record("root.tune.json");
        let of_kernel = |kernel: &serde_json::Value| {
            let configurations = kernel["configurations"].as_array().expect("a list");
            let scored = configurations.iter().map(|found| found["score"].is_object()).collect();
            (scored, configurations[2]["refused"].clone())
        };
        record["kernels"].as_array().expect("a list").iter().map(of_kernel).collect()
    };
    let all = vec![true, true, true];
    // An H200 holds 8 blocks of 256 threads on each of 132 multiprocessors.
    let (held, unheld) =
        (vec![true, true, false], "its blocks wait for each other, and the GPU cannot hold all of them at once");

    // In the first file nothing waits that the compiler knows of: a barrier of the kernel's own is not seen, and said.
    let own = "atomicAdd(&arrived, 1); while (*(volatile int *)&arrived < gridDim.x) {} if (i == 0) y[0] = 0;";
    let found = scored(
        "__device__ int arrived;",
        &[
            kernel("alone", "", "header", ""),
            kernel("own", "", "header", own),
            kernel("told", "", "header, cooperative", own),
        ],
    );
    assert_eq!(found.iter().map(|(scored, _)| scored).collect::<Vec<_>>(), [&all, &all, &held]);
    assert_eq!(found[2].1, unheld);

    // In the second one others wait beside the first kernel; whether the second waits depends on a macro, and with it how it must be
    // launched.
    let wait = "grid.sync(); if (grid.thread_rank() == 0) y[0] = 0;";
    let found = scored(
        "#ifndef FUSED\n#define FUSED 0\n#endif\n\
         __device__ __noinline__ void wait() { cg::this_grid().sync(); }\n__global__ void other() { wait(); }",
        &[
            kernel("beside", "", "header", ""),
            kernel("fused", "define(FUSED = {0, 1})", "header", &format!("if (FUSED) {wait}")),
            kernel("waits", "", "header", wait),
        ],
    );
    let by_macro = vec![true, true, true, false, false, false];
    assert_eq!(found.iter().map(|(scored, _)| scored).collect::<Vec<_>>(), [&all, &by_macro, &held]);
    assert_eq!(found[2].1, unheld);
}

/// Who wrote a barrier that nobody sees is told what to say of it, where a grid was too large.
#[test]
fn hanging_larger_grid_is_explained_by_waiting_blocks() {
    let found = |hung: [u32; 3]| {
        let project = Project::new(&[]);
        project.write(
            "meet.cu",
            "__device__ int arrived;\n//@tune grid({66, 132, 264}) block(256) regs(0) default(block = 256, grid = 132) launch(header)\n\
             //@tune args(n = 1 << 20, x = random[n])\n\
             __global__ void meet(int n, float *x) {\n\
             if (threadIdx.x == 0) { atomicAdd(&arrived, 1); while (*(volatile int *)&arrived < gridDim.x) {} }\n\
             for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] += 1; }\n",
        );
        let hung = format!(r#"{{"grid": {hung:?}, "refused": {{"hung": {{"limit_s": 10.0}}}}}}"#);
        let ran =
            tuned(&project, &compile("meet.cu", "meet.o"), &format!(r#"{hung}, {{"time_us": 10.0, "spread": 0.01}}"#));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("did not end within 10 s"), "{}", ran.stderr);
        ran.stderr
            .contains("a launch of more blocks hung: if blocks wait for each other, write launch(cooperative) [N0041]")
    };
    assert!(found([264, 1, 1]));
    assert!(!found([66, 1, 1]));
}

#[test]
#[ignore = "long: in the full run"]
fn kernel_that_synchronizes_its_grid_is_launched_cooperatively() {
    let include = "#include \"root.tune.h\"\n";
    let mut found = String::new();
    // Whether the file includes the header, and the clauses and the barrier of each of its kernels.
    for (first, kernels) in [
        (
            "",
            &[
                ("", "grid.sync()", true),
                ("launch(remap)", "cg::this_grid().sync()", true),
                ("launch(header)", "cg::sync(grid)", true),
                ("launch(cooperative)", "cg::this_thread_block().sync()", true),
                ("launch(cooperative, header)", "cg::this_thread_block().sync()", true),
            ][..],
        ),
        (
            include,
            &[
                ("", "grid.sync()", true),
                ("", "cg::this_thread_block().sync()", false),
                ("", "if (!grid.is_valid()) cg::this_thread_block().sync()", false),
                ("launch(cooperative)", "cg::this_thread_block().sync()", true),
            ],
        ),
    ] {
        let mut text = format!("{COOPERATIVE_GROUPS}{first}namespace cg = cooperative_groups;\n");
        let mut entries = Vec::new();
        for (number, (clauses, sync, cooperative)) in kernels.iter().enumerate() {
            text += &format!(
                "//@tune grid(132) block({{64, 256}}) regs({{0, 32}}) default(block = 256) {clauses}\n\
                 //@tune args(n = 1 << 20, x = random[n], y = out[n])\n\
                 __global__ void root{number}(int n, const float *x, float *y) {{\n\
                 const cg::grid_group grid = cg::this_grid();\n\
                 for (int i = grid.thread_rank(); i < n; i += grid.size()) y[i] = sqrtf(x[i]);\n\
                 {sync}; if (grid.thread_rank() == 0) y[0] = 0; }}\n"
            );
            // Nothing is recorded of a launch of the other kind.
            entries.extend([(64, 5.0), (256, 10.0)].map(|(block, us)| {
                format!(
                    r#"{{"kernel": "_Z5root{number}iPKfPf", "label": "block={block}", "cooperative": {cooperative}, "time_us": {us}, "spread": 0.01}}"#
                )
            }));
        }
        let project = Project::new(&[]).with_cuda_headers();
        project.write("root.cu", &text);
        let together = || -> Vec<bool> {
            let header = project.read("root.tune.h");
            let told = |number: usize| {
                let of_kernel = header.split(&format!("inline cudaError_t root{number}::launch(")).nth(1);
                let own = of_kernel.and_then(|text| text.split("\n}").next()).expect("it is in the header");
                let words: Vec<&str> = own.split_whitespace().collect();
                words.join(" ").contains("shared(), -1, true, stream, nvtune_arguments);")
            };
            (0..kernels.len()).map(told).collect()
        };
        let ran = tuned(&project, &compile("root.cu", "root.o"), &entries.join(", "));
        assert_eq!(ran.code, Some(0), "{first}: {}", ran.stderr);
        let (record, told) = (project.record("root.tune.json"), together());
        for (number, (clauses, sync, _)) in kernels.iter().enumerate() {
            let kernel = &record["kernels"][number];
            let winner = &kernel["configurations"][kernel["winner"].as_u64().expect("an index") as usize];
            let (block, way, notes) = (&winner["block"][0], &kernel["pinned"]["launches"], &kernel["notes"]);
            found += &format!("{clauses}{} {sync}: {block} {way} {} {notes}\n", first.trim(), told[number]);
        }
        if !first.is_empty() {
            // Where nothing is compiled to see it, the header goes by the source's words.
            let arguments = ["-O3", "-arch=sm_90", "-cubin", "root.cu", "-o", "root.cubin"];
            succeed(project.nvtune(&arguments).env("NVTUNE", "off"));
            let expected: Vec<bool> = kernels.iter().map(|&(.., cooperative)| cooperative).collect();
            assert_eq!(together(), expected);
        }
    }
    expect![[r#"
         grid.sync(): 256 "pinned" true ["its launches stay as they are: cooperative launches reach no launch stub: write launch(header), and launch by the header [N0048]"]
        launch(remap) cg::this_grid().sync(): 256 "pinned" true ["its launches stay as they are: cooperative launches reach no launch stub: write launch(header), and launch by the header [N0048]"]
        launch(header) cg::sync(grid): 64 "in place" true null
        launch(cooperative) cg::this_thread_block().sync(): 256 "pinned" true ["its launches stay as they are: cooperative launches reach no launch stub: write launch(header), and launch by the header [N0048]"]
        launch(cooperative, header) cg::this_thread_block().sync(): 64 "in place" true null
        #include "root.tune.h" grid.sync(): 256 "pinned" true ["its launches stay as they are: cooperative launches reach no launch stub: write launch(header), and launch by the header [N0048]"]
        #include "root.tune.h" cg::this_thread_block().sync(): 64 "entries, header" false null
        #include "root.tune.h" if (!grid.is_valid()) cg::this_thread_block().sync(): 64 "entries, header" false null
        launch(cooperative)#include "root.tune.h" cg::this_thread_block().sync(): 256 "pinned" true ["its launches stay as they are: cooperative launches reach no launch stub: write launch(header), and launch by the header [N0048]"]
    "#]].assert_eq(&found);
}

#[test]
fn baseline_is_inferred_from_the_source() {
    for (source, expected) in [
        ("void go(int n, float *x) { k<<<(n + 127) / 128, 128>>>(n, x); }", "block=128 PER=2"),
        ("void go(int n, float *x) { k<<<n, 64>>>(n, x); k<<<n, 128>>>(n, x); }", "block=256 PER=2"),
        ("void go(int n, float *x) { k<<<n, 96>>>(n, x); }", "block=256 PER=2"),
        ("void go(int n, int b, float *x) { k<<<n / b, b>>>(n, x); }", "block=256 PER=2"),
    ] {
        let project = Project::new(&[]);
        let text = format!(
            "#ifndef PER\n#define PER 2\n#endif\n\
             //@tune define(PER = {{1, 2, 4}}) block({{64, 128, 256}}) regs({{0}}) threads(ceildiv(n, PER))\n\
             //@tune args(n = 1 << 20, x = random[n])\n\
             __global__ void k(int n, float *x) {{ const int i = (blockIdx.x * blockDim.x + threadIdx.x) * PER;\n\
             for (int j = 0; j < PER; ++j) if (i + j < n) x[i + j] *= 2; }}\n{source}\n"
        );
        let said = built(&project, &text, r#"{"time_us": 10.0, "spread": 0.01}"#);
        assert!(said.contains(&format!("nvtune: k: {expected} (kept")), "{source}: {said}");
    }
}

/// Runs a command to its end; returns what it printed and the most memory that it and its processes had, in MB.
#[expect(clippy::zombie_processes, reason = "`wait4` waits for it")]
fn run_with_peak(command: &mut Command) -> (String, i64) {
    let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    let mut status = 0;
    // SAFETY: all zeros is a value of the type.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the child is this one's, and nobody has waited for it.
    let waited = unsafe { libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage) };
    assert_eq!((waited, status), (child.id() as i32, 0), "{said}");
    (said, usage.ru_maxrss / 1024)
}

#[test]
#[ignore = "long: in the full run"]
fn large_space_is_sampled_in_bounded_memory() {
    let spaces = [
        ("block(256) regs({0}) threads(n) define(A = 1:1024, B = 1:600)", "A + B"),
        (
            "block(32:1024:32) regs({0, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 128, 144, 160, 168, 192, 255}) grid(1:960)",
            "1",
        ),
    ];
    // That of many launches in the full run.
    for (clauses, value) in spaces.into_iter().take(if is_full() { 2 } else { 1 }) {
        let project = Project::new(&[]);
        let kernel = format!(
            "#ifndef A\n#define A 1\n#define B 1\n#endif\n//@tune {clauses}\n//@tune args(n = 1 << 16, x = out[n])\n__global__ void k(int n, float *x) {{\n\
             for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = {value};\n}}\n"
        );
        project.write("k.cu", &kernel);
        let (said, peak) = run_with_peak(&mut project.nvtune(&compile("k.cu", "k.o")));
        let warning = "k.cu(5): warning: only 100000 of 614400 configurations are searched";
        assert!(said.contains(warning) && said.contains("[N0186]"), "{said}");
        let record = project.record("k.tune.json");
        let points = record["kernels"][0]["points"].as_u64().expect("a number");
        assert!((99_000..=100_010).contains(&points), "{points}");
        assert!(project.bytes("k.tune.json").len() < 16 << 20);
        assert!(peak < 500, "{peak} MB for {clauses}");
    }
}
