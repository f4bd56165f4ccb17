//! What is said of the launches that a source writes itself, and of points that they keep from being chosen.

use super::project::{Project, compile, run, succeed};
use super::remap::tuned;
use super::results::{noting, nvtune};
use expect_test::expect;

/// A kernel whose code, by its macro, hangs on the block; 32 x 32 is fastest.
const TILED: &str = "#ifndef TILE\n#define TILE 16\n#endif\n\
    //@tune define(TILE = {16, 32}) block({16, 32}, {16, 32}) require(block.x == TILE, block.y == TILE) regs({0})\n\
    //@tune grid(ceildiv(n, TILE), ceildiv(n, TILE)) default(block = {16, 16}, TILE = 16) launch(header)\n\
    //@tune args(n = 512, x = random[n * n], y = out[n * n])\n\
    __global__ void flip(int n, const float *x, float *y) {\n\
    __shared__ float part[TILE][TILE + 1];\n\
    const int i = blockIdx.x * TILE + threadIdx.x, j = blockIdx.y * TILE + threadIdx.y;\n\
    part[threadIdx.y][threadIdx.x] = x[j * n + i]; __syncthreads(); y[j * n + i] = part[threadIdx.x][threadIdx.y]; }\n";

const LARGE_TILES_WIN: &str =
    r#"{"label": "block=32x32", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;

/// The same kernel under another name, with a macro of its own.
fn tiled(name: &str, tile: &str) -> String {
    TILED.replace("flip", name).replace("TILE", tile)
}

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
fn launch_of_another_block_than_the_header_is_a_warning() {
    let project = Project::new(&[]);
    let of = |host: &str| said(&project, &format!("{TILED}{host}\n"), LARGE_TILES_WIN);
    let literal = "void go(int n, const float *x, float *y) { flip<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(n, x, y); }";
    let first = of(literal);
    expect![[r#"
        launches.cu(11): warning: `flip` is tuned to block=32x32 TILE=32, and this launch of it has blocks of 16x16, so that its results may be wrong: include "launches.tune.h" and launch as nvtune::flip says, or write launch(remap) in place of launch(header)
          void go(int n, const float *x, float *y) { flip<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(n, x, y); }
                                                     ^~~~

    "#]]
    .assert_eq(&first);
    // From the cache it is as wrong.
    assert_eq!(of(literal), first);
    // Two sources, one of which includes the header: what each of their kernels is launched by, and whether it is told.
    for (include, launches) in [
        (
            "",
            &[
                (
                    "dim3 larger(dim3 b);\nvoid go(int n, dim3 b, float *x) { dim3 c = larger(b); flip<<<n / c.x, c>>>(n, x, x); }",
                    true,
                ),
                // Who calls it may include the header.
                ("void go(dim3 g, dim3 b, int n, float *x) { flip<<<g, b>>>(n, x, x); }", false),
                ("void go();", false),
                // It is the chosen block, in a grid that the macro does not reach, and in one that it does.
                ("void go(int n, float *x) { flip<<<dim3(9, 9), dim3(32, 32)>>>(n, x, x); }", true),
                ("void go(int n, float *x) { flip<<<dim3(n / TILE, 9), dim3(32, 32)>>>(n, x, x); }", false),
            ][..],
        ),
        (
            "#include \"launches.tune.h\"\n",
            &[
                // The header is there, and this one knows nothing of it.
                ("void go(int n, float *x) { flip<<<1, dim3(16, 16)>>>(n, x, x); }", true),
                ("void go(int n, float *x) { flip<<<nvtune::flip::grid(n), dim3(16, 16)>>>(n, x, x); }", false),
                (
                    "#ifdef FLIP_BLOCK_X\nvoid go(int n, float *x) { flip<<<nvtune::flip::grid(n), nvtune::flip::block()>>>(n, x, x); }\n\
                     #else\nvoid go(int n, float *x) { flip<<<1, dim3(16, 16)>>>(n, x, x); }\n#endif",
                    false,
                ),
            ],
        ),
    ] {
        // Each kernel, its macro and the function that launches it are of its number.
        let own = |number: usize, (host, _): &(&str, bool)| {
            let (kernel, tile) = (format!("flip{number}"), format!("TILE{number}"));
            let host = host.replace("flip", &kernel).replace("TILE", &tile).replace("FLIP", &kernel.to_uppercase());
            format!("{}{}\n", tiled(&kernel, &tile), host.replace("go(", &format!("go{number}(")))
        };
        let kernels = launches.iter().enumerate().map(|(number, launch)| own(number, launch));
        let said = built(&project, &format!("{include}{}", kernels.collect::<String>()), LARGE_TILES_WIN);
        for (number, (host, is_told)) in launches.iter().enumerate() {
            let of_kernel = said_of(&said, &format!("flip{number}"));
            assert_eq!(of_kernel.contains("is tuned to"), *is_told, "{include}{host}: {said}");
        }
    }
}

#[test]
fn header_counts_only_for_launches_that_use_it() {
    let project = Project::new(&[]);
    // A kernel of its own name and macro, what stands before its launches, and these.
    let source = |number: usize, before: &str, launches: &str| {
        let text = format!(
            "#ifndef $PER\n#define $PER 8\n#endif\n\
             //@tune threads(ceildiv(n, $PER)) block(256) regs({{0}}) define($PER = {{1, 8}}) default($PER = 8)\n\
             //@tune args(n = 1 << 20, x = random[n])\n\
             __global__ void $k(int n, float *x) {{\nint i = (blockIdx.x * blockDim.x + threadIdx.x) * $PER;\n\
             for (int j = 0; j < $PER && i + j < n; ++j) x[i + j] += 1; }}\n\
             {before}\nvoid go_$k(int n, float *x) {{ {launches} }}\n"
        );
        let names = [("$PER", "PER"), ("$k", "k"), ("$K", "K")];
        names.iter().fold(text, |text, (placeholder, name)| text.replace(placeholder, &format!("{name}{number}")))
    };
    // The value of its macro, and whether a launch is warned of.
    let found = |said: &str, number: usize| {
        let said = said_of(said, &format!("k{number}"));
        let warned = said.contains(&format!("this launch of `k{number}` knows nothing of the header"));
        (if said.contains(&format!("nvtune: k{number}: block=256 PER{number}=1 ")) { 1 } else { 8 }, warned)
    };
    let include = "#include \"predicted.tune.h\"";
    let literal = "$k<<<(n / 8 + 255) / 256, 256>>>(n, x);";
    let by_header = "$k<<<nvtune::$k::grid(n), nvtune::$k::block()>>>(n, x);";
    let alternatives = format!("\n#ifdef $K_BLOCK_X\n{by_header}\n#else\n{literal}\n#endif\n");
    for (head, launches, expected) in [
        (format!("#if __has_include(\"predicted.tune.h\")\n{include}\n#endif"), &*alternatives, (1, false)),
        (format!("#ifdef USE_TUNED\n{include}\n#endif"), &alternatives, (8, false)),
        ("// the header comes later".to_owned(), &alternatives, (8, false)),
        // What is asked of a kernel is no launch: those are in another source, which has the header.
        (
            include.to_owned(),
            "cudaFuncSetAttribute($k, cudaFuncAttributePreferredSharedMemoryCarveout, 0);",
            (1, false),
        ),
    ] {
        let said = predicted(&project, &format!("{head}\n{}", source(0, "", launches)));
        assert_eq!(found(&said, 0), expected, "{head}\n{launches}\n{said}");
    }

    // Kernels of a source that includes the header, by which it launches another one, too: each goes by its own launches.
    let beside_literal = format!("{by_header} {literal}");
    let cases = [
        ("", by_header, (1, false)),
        ("", &beside_literal, (8, true)),
        // Another kernel's launches are the header's: so they are in any form.
        ("", literal, (8, false)),
        ("", "dim3 g((n + 2047) / 2048), b(256); $k<<<g, b>>>(n, x);", (8, false)),
        ("", "dim3 g, b; g.x = (n + 2047) / 2048; b.x = 256; $k<<<g, b>>>(n, x);", (8, false)),
        ("", "void *a[] = {&n, &x}; cudaLaunchKernel((void *)$k, dim3(n), dim3(256), a, 0, 0);", (8, false)),
        ("extern void run(void (*)(int, float *), int);", "run($k, n);", (8, false)),
        // Names that begin as the kernel's, and macros that are called for others, are not its own.
        (
            "extern int blocks(int), nvtune_$k2_block_x(), nvtune_$k_float_grid_x(int);",
            "$k<<<blocks(n), 256>>>(n, x); n = nvtune_$k2_block_x() + nvtune_$k_float_grid_x(n);",
            (8, false),
        ),
        (
            "#define RUN(name) name<<<nvtune::name::grid(n), nvtune::name::block()>>>(n, x)\nextern int blocks(int);",
            "$k<<<blocks(n), 256>>>(n, x); RUN(other);",
            (8, false),
        ),
        // A macro may make the header's names.
        (
            "#define LAUNCH(k) k<<<nvtune::k::grid(n), k##_BLOCK_X>>>(n, x)\n#define $k_BLOCK_X 256",
            "LAUNCH($k);",
            (1, false),
        ),
        // Who gives the grid may have it from the header.
        ("extern dim3 shape(int n);", "const dim3 g = shape(n); $k<<<g, 256>>>(n, x);", (8, false)),
        ("extern dim3 shape(int n, dim3 b);", "$k<<<shape(n, nvtune::$k::block()), 256>>>(n, x);", (1, false)),
    ];
    let kernels = cases.iter().enumerate().map(|(number, (before, launches, _))| source(number, before, launches));
    let said = predicted(
        &project,
        &format!(
            "{include}\n//@tune threads(n) block(256) regs({{0}})\n//@tune args(n = 1 << 20, x = random[n])\n\
             __global__ void other(int n, float *x) {{\nint i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = 2; }}\n\
             void go_other(int n, float *x) {{ other<<<nvtune::other::grid(n), nvtune::other::block()>>>(n, x); }}\n{}",
            kernels.collect::<String>()
        ),
    );
    for (number, (before, launches, expected)) in cases.iter().enumerate() {
        assert_eq!(found(&said, number), *expected, "{before}\n{launches}\n{said}");
    }
}

#[test]
fn macro_that_every_launch_follows_is_tuned() {
    let project = Project::new(&[]);
    let followed = "remap grid.x:kept grid.y:kept host:TILE block:TILE";
    let cases = [
        ("dim3 block(TILE, TILE); flip<<<grid, block>>>(n, x, y);", 32, followed),
        ("flip<<<grid, dim3(TILE, TILE, 1)>>>(n, x, y);", 32, followed),
        // Not all of the block, or not in every launch, or as nobody can tell.
        ("flip<<<grid, dim3(TILE, 16)>>>(n, x, y);", 16, "kept:TILE"),
        ("flip<<<grid, dim3(TILE, TILE)>>>(n, x, y); flip<<<grid, dim3(16, 16)>>>(n, x, y);", 16, "kept:TILE"),
        ("dim3 block(TILE, TILE); block = other(block); flip<<<grid, block>>>(n, x, y);", 16, "kept:TILE"),
        ("flip<<<grid, dim3(TILE, TILE)>>>(n, x, y); launch(flip, grid, n);", 16, "kept:TILE"),
    ];
    // Kernels of one source, each with a macro of its own.
    let own = |number: usize, text: &str| {
        text.replace("flip", &format!("flip{number}")).replace("TILE", &format!("TILE{number}"))
    };
    let kernel = |(number, (launch, ..)): (usize, &(&str, i32, &str))| {
        let host = format!(
            "void go{number}(int n, const float *x, float *y) {{\n\
             dim3 grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE); {launch} }}\nint tile{number} = TILE;\n"
        );
        own(number, &format!("{}{host}", TILED.replace(" launch(header)", "")))
    };
    let source: String = cases.iter().enumerate().map(kernel).collect();
    let declared = "extern dim3 other(dim3); extern void launch(void (*)(int, const float *, float *), dim3, int);";
    built(&project, &format!("{declared}\n{source}"), LARGE_TILES_WIN);
    let record = project.record("launches.tune.json");
    for (number, (launch, tile, reach)) in cases.iter().enumerate() {
        let kernel = &record["kernels"][number];
        let chosen = &kernel["pinned"];
        assert_eq!(chosen["macros"][own(number, "TILE")], *tile, "{launch}: {kernel}");
        let is_reached = chosen["launches"].as_str().is_some_and(|words| words.contains(&own(number, reach)));
        assert!(is_reached, "{launch}: {chosen}");
    }
    let each = |text: &str| (0..cases.len()).map(|number| text.replace('#', &number.to_string())).collect::<String>();
    project.write(
        "main.cu",
        &format!(
            "#include <cstdio>\n{}int main() {{ {} }}\n\
             dim3 other(dim3 b) {{ return b; }}\nvoid launch(void (*)(int, const float *, float *), dim3, int) {{}}\n",
            each("extern int tile#;\n"),
            each("std::printf(\"%d \", tile#); ")
        ),
    );
    succeed(&mut project.plain(&["main.cu", "launches.o", "-o", "tile"]));
    let tiles = cases.map(|(_, tile, _)| format!("{tile} ")).concat();
    assert_eq!(succeed(&mut std::process::Command::new(project.path("tile"))).stdout, tiles);
}

#[test]
fn macro_tied_to_the_block_is_kept_if_a_launch_keeps_its_block() {
    let project = Project::new(&[]);
    // The clauses and the launches of each kernel of a source, and why it keeps its block.
    let cases = [
        ("launch(remap)", "flip<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(n, x, y);", None),
        ("launch(remap)", "flip<<<dim3(n / 16, n / 16), dim3(16, 16), 0>>>(n, x, y);", None),
        (
            "launch(remap)",
            "flip<<<dim3(n / 16, n / 16), dim3(16, 16), 64>>>(n, x, y);",
            Some(
                "a launch with dynamic shared memory keeps its own (launches.cu(LINE)): say how much it has in shared(...)",
            ),
        ),
        ("launch(remap) shared(64)", "flip<<<dim3(n / 16, n / 16), dim3(16, 16), 64>>>(n, x, y);", None),
        (
            "launch(remap)",
            "void *a[] = {&n, &x, &y}; cudaLaunchKernel((void *)flip, dim3(9), dim3(16, 16), a, 0, 0);",
            Some("a launch keeps its own (launches.cu(LINE)), for it goes by no launch stub"),
        ),
        // So it does where it is launched under another name, and not where that is another kernel's.
        ("launch(remap)", "auto f = flip; f<<<dim3(n / 16, n / 16), dim3(16, 16), 64>>>(n, x, y);", Some("")),
        ("launch(remap)", "run(flip, n, x, y);", Some("")),
        ("launch(remap)", "LAUNCH(flip, dim3(n / 16, n / 16), dim3(16, 16), 64)(n, x, y);", Some("")),
        ("launch(remap)", "LAUNCH(other, 1, 32, 64)(n); flip<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(n, x, y);", None),
    ];
    let mut source = "#define LAUNCH(k, g, b, s) k<<<g, b, s>>>\n__global__ void other(int n) {}\n\
        template <class F> void run(F f, int n, const float *x, float *y) { f<<<n, dim3(16, 16), n>>>(n, x, y); }\n"
        .to_owned();
    let mut lines = Vec::new();
    for (number, (clauses, launch, _)) in cases.iter().enumerate() {
        let kernel = format!("flip{number}");
        source += &tiled(&kernel, &format!("TILE{number}")).replace("launch(header)", clauses);
        lines.push(source.lines().count() + 1);
        let launch = launch.replace("flip", &kernel);
        source += &format!("void go{number}(int n, const float *x, float *y) {{ {launch} }}\n");
    }
    let said = built(&project, &source, LARGE_TILES_WIN);
    for (number, (_, launch, why)) in cases.iter().enumerate() {
        let said = said_of(&said, &format!("flip{number}"));
        let is_reshaped = said.contains(&format!("nvtune: flip{number}: block=32x32 TILE{number}=32 "));
        assert_eq!(is_reshaped, why.is_none(), "{launch}: {said}");
        let why = why.unwrap_or_default().replace("LINE", &lines[number].to_string());
        assert!(said.contains(&why), "{launch}: {said}");
    }
    // What is known of a kernel from another source is told with this one's places.
    let moved = format!(
        "{}\n\nvoid go(int n, const float *x, float *y) {{ flip2<<<dim3(n / 16, n / 16), dim3(16, 16), n>>>(n, x, y); }}\n",
        tiled("flip2", "TILE2").replace("launch(header)", "launch(remap)")
    );
    let said = built(&project, &moved, LARGE_TILES_WIN);
    assert!(said.contains("; from the cache") && said.contains("(launches.cu(13))"), "{said}");
}

#[test]
fn macro_visible_to_other_sources_is_kept() {
    let project = Project::new(&[]);
    // An instance that another source launches by its own number; a structure in a file that is included with `<>`.
    let instance = |launches: &str| {
        predicted(
            &project,
            &format!(
                "#ifndef WIDE\n#define WIDE 256\n#endif\n\
                 //@tune template(float, WIDE) define(WIDE = {{32, 64, 256}}) block({{32, 64, 256}}) require(block.x == WIDE)\n\
                 //@tune grid(16384) default(WIDE = 256) regs({{0}}) launch(remap) args(n = 512, x = random[16384 * n], y = out[16384])\n\
                 template <class T, int N> __global__ void rows(int n, const T *x, T *y) {{\n__shared__ T s[N]; T best = 0;\n\
                 for (int i = threadIdx.x; i < n; i += N) best = max(best, x[blockIdx.x * n + i]);\ns[threadIdx.x] = best; __syncthreads();\n\
                 for (int o = N / 2; o; o /= 2) {{ if (threadIdx.x < o) s[threadIdx.x] = max(s[threadIdx.x], s[threadIdx.x + o]); __syncthreads(); }}\n\
                 if (!threadIdx.x) y[blockIdx.x] = s[0]; }}\n{launches}\n"
            ),
        )
    };
    let said = instance("template __global__ void rows<float, WIDE>(int, const float *, float *);");
    assert!(said.contains("WIDE is an argument of the instance that this source makes"), "{said}");
    let said = instance("void go(int n, float *x) { rows<float, WIDE><<<16384, WIDE>>>(n, x, x); }");
    assert!(!said.contains("argument of the instance"), "{said}");
    std::fs::create_dir(project.path("include")).expect("a folder");
    project.write("include/lanes.h", "#ifndef LANES\n#define LANES 1\n#endif\nstruct Lanes { float x[LANES]; };\n");
    project.write(
        "lanes.cu",
        "#include <lanes.h>\n\
         //@tune threads(n / LANES) block(256) regs({0}) define(LANES = {1, 8}) default(LANES = 1) args(n = 1 << 20, float v = random[n])\n\
         __global__ void k(int n, Lanes *v) {\nint i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         if (i < n / LANES) for (int j = 0; j < LANES; ++j) v[i].x[j] += 1; }\n\
         void go(int n, Lanes *v) { k<<<(n / LANES + 255) / 256, 256>>>(n, v); }\n",
    );
    let mut arguments = compile("lanes.cu", "lanes.o");
    arguments.push("-Iinclude".to_owned());
    succeed(&mut project.nvtune(&arguments));
    let held = project.record("lanes.tune.json")["kernels"][0]["held"].to_string();
    assert!(held.contains("which other sources may include, too"), "{held}");
}

#[test]
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
        launches.cu(4): warning: this launch of `k` has blocks of 256, and the baseline, which stands for what the program launches, has 512: write default(block = 256)
          void run(int n, float *x) { k<<<(n + 255) / 256, 256>>>(n, x); }
                                      ^
        launches.cu(1): note: the baseline is given here
          //@tune threads(n) block(64:1024:64) regs({0}) default(block = 512)
                                                                         ^~~

    "#]]
    .assert_eq(&of("default(block = 512)", "void run(int n, float *x) { k<<<(n + 255) / 256, 256>>>(n, x); }"));
    let wide = of("", "void run(int n, float *x) { k<<<n / 100, dim3(10, 10)>>>(n, x); }");
    let remedy = "has blocks of 10x10, and the baseline, which stands for what the program launches, has 256: write default(block = {10, 10}), and add that block to `block`";
    assert!(wide.contains(remedy), "{wide}");
    for host in [
        "void run(int n, float *x) { k<<<n / 512, 512>>>(n, x); k<<<n / 256, 256>>>(n, x); }",
        "void run(int n, int b, float *x) { k<<<n / 256, 256>>>(n, x); k<<<n / b, b>>>(n, x); }",
        "#include \"launches.tune.h\"\nvoid run(int n, float *x) { k<<<nvtune::k::grid(n), 256>>>(n, x); }",
    ] {
        assert_eq!(of("default(block = 512)", host), "", "{host}");
    }
    // A header that it does not launch by is nothing to it.
    let beside = of("", "#include \"launches.tune.h\"\nvoid run(int n, float *x) { k<<<n / 512, 512>>>(n, x); }");
    assert!(beside.contains("has 256: add default(block = 512)"), "{beside}");
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
        nvtune: meet: block=256 (kept: no point that may be chosen is surely faster)
        nvtune: meet: note: 4 of 5 points may not be chosen: where nothing is timed, the block changes only where the kernel surely works in others: write launch(remap) to say that it does, or include the header and launch by it
          note: 4 of 5 points may not be chosen: where nothing is timed, the block changes only where the kernel surely works in others: write launch(remap) to say that it does, or include the header and launch by it
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
        nvtune: twice: block=256 (kept: no point that may be chosen is surely faster)
        nvtune: twice: note: 4 of 5 points may not be chosen: where nothing is timed, the block must divide the threads of the program's launch: list blocks that do, as in block({64, 128, 256}), or include the header and launch by it
          note: 4 of 5 points may not be chosen: where nothing is timed, the block must divide the threads of the program's launch: list blocks that do, as in block({64, 128, 256}), or include the header and launch by it
    "#]].assert_eq(&uneven);
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
    let said =
        "nvtune: walk: note: 2 of 3 points may not be chosen: where nothing is timed, the grid changes only where";
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
        nvtune: tied: block=64 TILE=64 (kept: no point that may be chosen is surely faster)
        nvtune: tied: note: 3 of 4 points may not be chosen: host code uses TILE, to which the block is tied, too (held.cu(7)): include the header and launch by it, or keep TILE out of host code
          note: 3 of 4 points may not be chosen: host code uses TILE, to which the block is tied, too (held.cu(7)): include the header and launch by it, or keep TILE out of host code
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
fn predicted_winner_does_all_work() {
    let project = Project::new(&[]);
    // The kernels of one file, and of each what must be said of it, or must not be.
    let mut source = "#ifndef TILE\n#define TILE 16\n#endif\n#ifndef WIDE\n#define WIDE 16\n#endif\n#ifndef SIZE\n#define SIZE 256\n#endif\n".to_owned();
    let (mut expected, mut unexpected) = (Vec::new(), Vec::new());
    for launch in ["header", "remap"] {
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
                let why = "3 of 4 points may not be chosen: fewer threads in x than the baseline's would do less, for the kernel asks for no gridDim.x";
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
            "3 of 4 points may not be chosen: `part` of args(...) has as many elements as the program launches blocks, 65536",
        ),
        // A buffer of an element for each thread of the program, and one for each thread of the launch.
        (
            "//@tune grid({132, 528}) block(64) regs({0}) default(block = 64, grid = 132) launch(header)\n\
             //@tune args(n = 1 << 22, x = random[n], part = out[132 * 64])\n\
             __global__ void of_program(int n, const float *x, float *part) {\n\
             const int t = blockIdx.x * blockDim.x + threadIdx.x; float s = 0;\n\
             for (int i = t; i < n; i += gridDim.x * blockDim.x) s += x[i]; part[t] = s; }\n",
            "1 of 2 points may not be chosen: more threads than the baseline's reach beyond `part` of args(...), which has 8448 elements",
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
    let why = "bytes at most, and `y` has 16777216: let the grid follow the block, as in threads(n)";
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
        // What goes by no launch stub stays as it is.
        "nvtune: bare: block=64 (kept",
        "nvtune: bare: note: 2 of 3 points may not be chosen: what this source launches (predicted.cu(4)) goes by no launch stub",
        // Arguments that leave open which instance is meant.
        "(5): warning: these arguments fit several instances that this file makes, <4, false>, <4, true>: write",
        // An assertion that asks for the baseline's block, whatever the comment promises.
        "nvtune: strict: note: 2 of 3 points may not be chosen: threads of such a block end in an assertion or a trap",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn macro_that_changes_no_kernel_or_another_one_is_a_warning() {
    let project = Project::new(&[]);
    let of = |name: &str, host: &str| {
        predicted(
            &project,
            &format!(
                "#ifndef TILE\n#define TILE 16\n#endif\n\
                 //@tune define({name} = {{1, 2, 16}}) threads(ceildiv(n, {name})) block(256) regs({{0}}) launch(header)\n\
                 //@tune default(block = 256, {name} = 16) args(n = 1 << 20, x = random[n], y = out[n])\n\
                 __global__ void k(int n, const float *x, float *y) {{\n\
                 const int first = (blockIdx.x * blockDim.x + threadIdx.x) * TILE;\n\
                 for (int i = first; i < first + TILE && i < n; ++i) y[i] = sinf(x[i]); }}\n\
                 __global__ void k2(int n, float *y) {{\n\
                 const int first = (blockIdx.x * blockDim.x + threadIdx.x) * TILE;\n\
                 for (int i = first; i < first + TILE && i < n; ++i) y[i] *= 2; }}\n{host}\n"
            ),
        )
    };
    let launch = "void go(int n, float *y) { k2<<<(n + 4095) / 4096, 256>>>(n, y); }";
    let said = of("TILE", launch);
    let why = "2 of 3 points may not be chosen: TILE divides the work of `k2` too, whose launches know nothing of it";
    assert!(said.contains(why) && warnings(&said).is_empty(), "{said}");
    // What another kernel calls is not looked at before it is compiled.
    let text = project.read("predicted.cu");
    let (first, second) = text.split_once("__global__ void k2").expect("two kernels");
    let second = second.replacen("* TILE", "* per()", 1).replacen("first + TILE", "first + per()", 1);
    let per = "__device__ int per() { return TILE; }\n";
    let by_function = predicted(&project, &format!("{first}{per}__global__ void k2{second}"));
    expect![[r#"
        predicted.cu(4): warning: TILE=2 holds for the whole file, and changes `k2` too, whose launches know nothing of it: give the macro of `k` a name that no other kernel uses, or launch by it
          //@tune define(TILE = {1, 2, 16}) threads(ceildiv(n, TILE)) block(256) regs({0}) launch(header)
                         ^~~~

    "#]]
    .assert_eq(&warnings(&by_function));
    let by_macro = "void go(int n, float *y) { k2<<<(n + 256 * TILE - 1) / (256 * TILE), 256>>>(n, y); }";
    assert_eq!(warnings(&of("TILE", by_macro)), "");
    const MISTYPED: &str = "#ifndef UNROLL\n#define UNROLL 4\n#endif\n\
         //@tune threads(n) block({128, 256}) regs({0}) define(UNROL = {1, 2, 4}) default(block = 256)\n\
         //@tune args(n = 1 << 20, x = random[n], y = out[n]) launch(header)\n\
         __global__ void k(int n, const float *x, float *y) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = UNROLL * x[i]; }\n";
    expect![[r#"
        predicted.cu(4): warning: no value of macro `UNROL` changes the code of `k`, and the source does not name it: write the name that the source has
          //@tune threads(n) block({128, 256}) regs({0}) define(UNROL = {1, 2, 4}) default(block = 256)
                                                                ^~~~~

    "#]]
    .assert_eq(&warnings(&predicted(&project, MISTYPED)));
    assert_eq!(warnings(&predicted(&project, MISTYPED)).matches("UNROL`").count(), 1, "what is known is told as well");
    let named = MISTYPED.replace("= UNROLL", "= 4").replace("UNROLL", "UNROL");
    assert_eq!(warnings(&predicted(&project, &named)), "", "it may be for another architecture");
}

#[test]
fn macro_in_host_code_is_kept_unless_every_launch_follows_it() {
    let project = Project::new(&[]);
    // A kernel with a macro of its own, and host code.
    let source = |work: &str, launch: &str, host: &str| {
        let text = format!(
            "//@tune define($WORK = {{1, 2, 4, 16}}) threads(ceildiv(n, $WORK)) block(256) regs({{0}}) {launch}\n\
             //@tune default(block = 256, $WORK = 16) args(n = 1 << 20, x = random[n], y = out[n])\n\
             __global__ void $k(int n, const float *x, float *y) {{\n\
             const int first = (blockIdx.x * blockDim.x + threadIdx.x) * $WORK;\n\
             for (int i = first; i < first + $WORK && i < n; ++i) y[i] = sinf(x[i]); }}\n{host}\n"
        );
        text.replace("$WORK", work).replace("$k", &work.to_lowercase())
    };
    let default = |work: &str| format!("#ifndef {work}\n#define {work} 16\n#endif\n");
    let by_macro = "void go_$k(int n, const float *x, float *y) { int per = 256 * $WORK; $k<<<(n + per - 1) / per, 256>>>(n, x, y); }";
    // Defined in a file that others may include, or used in one.
    let shared = Some("which other sources may include, too");
    project.write("config.h", &["GIVEN", "ASSERTED", "OPEN", "CLOSED"].map(default).concat());
    project.write("layout.h", "struct Sums { float of[LAID]; };\n");
    let own = ["FREE", "LAID", "PADDED"].map(default).concat();
    let head = format!("#include \"config.h\"\n{own}#include \"layout.h\"\n");
    let cases = [
        ("FREE", by_macro, None),
        ("GIVEN", by_macro, shared),
        ("ASSERTED", "static_assert($WORK < 99, \"\");", shared),
        ("LAID", by_macro, shared),
        (
            "PADDED",
            "int padded(int n) { return n + $WORK; }\nvoid go_$k(int n, const float *x, float *y) { $k<<<(n + 4095) / 4096, 256>>>(n, x, y); }",
            Some("the grid that the program launches knows nothing of PADDED"),
        ),
    ];
    let kernels = cases.map(|(work, host, _)| source(work, "launch(remap)", host));
    let all = predicted(&project, &format!("{head}{}", kernels.concat()));
    for (work, _, why) in cases {
        let said = said_of(&all, &work.to_lowercase());
        let is_kept = said.contains(&format!("{work}=16 (kept"));
        let (is_told, is_any_told) =
            (said.contains("3 of 4 points may not be chosen"), said.contains("may not be chosen"));
        assert_eq!((is_kept, is_told, is_any_told), (why.is_some(), why.is_some(), why.is_some()), "{said}");
        assert!(!said.contains("(kept") || why.is_some_and(|why| said.contains(why)), "{said}");
    }
    // By the header it follows in this source, and in those alone that include it, too.
    let by_header = "void go_$k(int n, const float *x, float *y) { $k<<<nvtune::$k::grid(n), nvtune::$k::block()>>>(n, x, y); int w = $WORK; }";
    let cases = [("OPEN", "", true), ("CLOSED", "launch(header)", false)];
    let kernels = cases.map(|(work, clause, _)| source(work, clause, by_header));
    let all =
        predicted(&project, &format!("#include \"config.h\"\n#include \"predicted.tune.h\"\n{}", kernels.concat()));
    for (work, _, is_kept) in cases {
        let said = said_of(&all, &work.to_lowercase());
        assert_eq!(said.contains(&format!("{work}=16 (kept")), is_kept, "{said}");
        assert_eq!(said.contains("write launch(header) if all of them include the header"), is_kept, "{said}");
    }
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
    assert!(said.contains("predicted.tune.h' is not of nvtune's making, and would be written over"), "{said}");
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
        nvtune: sums: block=256 (kept: no point that may be chosen is surely faster)
        nvtune: sums: note: 3 of 4 points may not be chosen: a thread has more or less to do in them, and nothing says how much: give the iterations of its loops by the block, as in trips(ceildiv(n, block.x)) with a number for n
          note: 3 of 4 points may not be chosen: a thread has more or less to do in them, and nothing says how much: give the iterations of its loops by the block, as in trips(ceildiv(n, block.x)) with a number for n
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
            &["grid=528 (kept", "5 of 6 points may not be chosen", "as in trips(ceildiv(n, block.x * grid.x))"],
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

#[test]
fn macro_values_that_host_code_excludes_are_not_compiled() {
    let tied = "#ifndef TILE\n#define TILE 64\n#endif\n\
        //@tune define(TILE = {64, 128, 256, 512}) block({64, 128, 256, 512}) require(block.x == TILE) regs({0})\n\
        //@tune grid(n / TILE) default(TILE = 64) launch(remap) args(n = 1 << 16, x = random[n])\n\
        __global__ void tied(int n, float *x) { x[blockIdx.x * TILE + threadIdx.x] *= 2; }\n\
        void go(int n, float *x) { tied<<<n / TILE, TILE + 0>>>(n, x); }\n";
    let divided = DIVIDED.replace("SIZE", "1 << 20").replace("GUARD", GUARD);
    let shared = "#ifndef STAGES\n#define STAGES 2\n#endif\n\
        //@tune define(STAGES = {2, 3, 4, 8}) block({128, 256}) regs({0}) shared(16384 * STAGES) default(block = 256, STAGES = 2)\n\
        //@tune threads(n) args(n = 1 << 16, x = random[n]) launch(remap)\n\
        __global__ void staged(int n, float *x) { extern __shared__ float t[]; t[threadIdx.x] = STAGES;\n\
        const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += t[threadIdx.x]; }\n";
    // The values that are left where nothing is timed, and where it is: the block's own; those under which the program's grid has
    // what the comment asks for, or blocks enough; those whose memory needs no consent.
    let values = [
        ("{64, 128, 256, 512})", "{64})", "{64})"),
        ("{1, 2, 4, 8, 16}", "{4}", "{4, 8, 16}"),
        ("{2, 3, 4, 8}", "{2, 3}", "{2, 3}"),
    ];
    let text = format!("{tied}{divided}{shared}");
    // Runs of the preprocessor, that of each set of macros among them; and of each kernel, how many rows are told to be refused.
    let runs = |text: &str, mode: &str| {
        let project = Project::new(&[]);
        std::fs::create_dir(project.path("tools")).expect("a folder");
        noting(&project, "tools/gcc", &which::which("gcc").expect("a host compiler"));
        let device = r#"{"name": "NVIDIA H200", "compute_capability": 90}"#;
        project.write("recorded.json", &format!(r#"{{"device": {device}, "entries": [{{"time_us": 10.0}}]}}"#));
        project.write("k.cu", text);
        let path = std::env::var("PATH").expect("there is one");
        let mut build = project.nvtune(&compile("k.cu", "k.o"));
        build.env("PATH", format!("{}:{path}", project.path("tools").display()));
        succeed(build.env("NVTUNE", mode).env("NVTUNE_REPLAY", "recorded.json"));
        let record = project.record("k.tune.json");
        let told = |kernel: &serde_json::Value| {
            let rows = kernel["configurations"].as_array().expect("a list").iter();
            let why = rows.filter_map(|row| row["refused"].as_str());
            why.filter(|why| why.contains("include the header") || why.contains("need the host code's consent")).count()
        };
        let told: Vec<usize> = record["kernels"].as_array().expect("a list").iter().map(told).collect();
        (project.read("notes").lines().count(), told)
    };
    for mode in ["static", "measure"] {
        let left = values.iter().fold(text.clone(), |text, (all, of_model, of_gpu)| {
            assert!(text.contains(all), "{all}");
            text.replacen(all, if mode == "measure" { of_gpu } else { of_model }, 1)
        });
        // A value that is compiled in vain is a run more.
        let ((runs_of_all, refused), (of_left, _)) = (runs(&text, mode), runs(&left, mode));
        assert_eq!(runs_of_all, of_left, "{mode}");
        assert!(refused.len() == values.len() && !refused.contains(&0), "{mode}: {refused:?}");
    }
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
const EACH: &str = "for (int i = first; i < first + PER; ++i) if (i < n) y[i] = sqrtf(x[i]); if (n > 0) return;";

#[test]
fn macro_that_launches_do_not_follow_is_tried_if_extra_blocks_are_harmless() {
    let entries = |value: u32| {
        format!(
            r#"{{"label": "PER={value}", "time_us": 5.0}}, {{"label": "block=128", "time_us": 8.0}}, {{"time_us": 10.0, "spread": 0.01}}"#
        )
    };
    // Too few blocks are told from the comment, blocks that would read what is not theirs from the code.
    for (guard, value, expected) in [(GUARD, 1, (128, 4)), (GUARD, 8, (0, 8)), (EACH, 16, (0, 16)), ("", 8, (128, 4))] {
        let project = Project::new(&[]);
        let (said, checked) = divided(&project, "1 << 20", guard, &entries(value));
        assert!(!said.contains("warning"), "{said}");
        assert_eq!(
            checked.map(|count| count > 0),
            [false, false, true, !guard.is_empty(), !guard.is_empty()],
            "{guard}{value}"
        );
        let found = winner(&project);
        assert_eq!((found.0.min(expected.0), found.1), expected, "{guard}{value}");
    }
}

#[test]
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
    expect![[r#"
        launches.cu(4): warning: candidates of `divided` were refused: the grid that the program launches knows nothing of PER: launch by the macro, or include the header and launch by it
          //@tune define(PER = {1, 2, 4, 8, 16}) block(64:1024:64) regs(auto) default(block = 256, PER = 4)
                  ^~~~~~

    "#]]
    .assert_eq(rest);
    assert_eq!(winner(&project), (128, 4));
}

#[test]
fn small_workload_hides_neither_missing_nor_extra_blocks() {
    // One block does it all.
    for (guard, value) in [(GUARD, 1), ("", 8)] {
        let project = Project::new(&[]);
        let entries = format!(r#"{{"label": "PER={value}", "time_us": 5.0}}, {{"time_us": 10.0, "spread": 0.01}}"#);
        divided(&project, "64", guard, &entries);
        assert_eq!(winner(&project).1, 4, "{guard}{value}");
    }
}

/// Without the libraries that it can do without, which take the compiler most of its time.
const COOPERATIVE_GROUPS: &str = "#define _CG_LIMIT_INCLUDED_DEPENDENCIES\n#include <cooperative_groups.h>\n";

#[test]
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
        (vec![true, true, false], "its blocks wait for each other, and the GPU does not hold so many at once");

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

    // In the second one others wait beside the first kernel; whether the second waits hangs on a macro, and with it how it must be
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
        ran.stderr.contains(
            "where blocks wait for each other, as in a barrier of the kernel's own, write launch(cooperative)",
        )
    };
    assert!(found([264, 1, 1]));
    assert!(!found([66, 1, 1]));
}

#[test]
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
                let of_kernel = header.split(&format!("struct root{number} {{")).nth(1).expect("it is in the header");
                of_kernel
                    .split("\n};")
                    .next()
                    .is_some_and(|own| own.contains("shared(), -1, true, stream, arguments);"))
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
         grid.sync(): 256 "pinned grid.x:kept" true ["its launches stay as they are: it waits for its whole grid, and cooperative launches go by no launch stub: write launch(header), and launch there as the header says"]
        launch(remap) cg::this_grid().sync(): 256 "pinned grid.x:kept" true ["its launches stay as they are: it waits for its whole grid, and cooperative launches go by no launch stub: write launch(header), and launch there as the header says"]
        launch(header) cg::sync(grid): 64 "header" true null
        launch(cooperative) cg::this_thread_block().sync(): 256 "pinned grid.x:kept" true ["its launches stay as they are: cooperative launches go by no launch stub: write launch(header, cooperative), and launch there as the header says"]
        launch(cooperative, header) cg::this_thread_block().sync(): 64 "header" true null
        #include "root.tune.h" grid.sync(): 64 "header" true null
        #include "root.tune.h" cg::this_thread_block().sync(): 64 "header" false null
        #include "root.tune.h" if (!grid.is_valid()) cg::this_thread_block().sync(): 64 "header" false null
        launch(cooperative)#include "root.tune.h" cg::this_thread_block().sync(): 64 "header" true null
    "#]].assert_eq(&found);
}
