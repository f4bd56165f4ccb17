//! Launches of real programs: which entry of the object they run, executed on a runtime that only says what it is asked to launch.

use super::measured::sass;
use super::project::{Project, compile, nvcc, run, succeed};
use super::remap::{SMALL_BLOCKS_WIN, launches, link, short, tuned};
use super::results;
use crate::support::full::cases;
use expect_test::expect;
use object::{Object, ObjectSection};

/// The lines with an entry's digits, and what depends on the path, left out.
fn shortened(said: &str) -> String {
    said.lines().map(short).collect()
}

#[test]
fn launches_in_any_spelling_run_a_winner_only_if_they_are_the_baselines() {
    let project = Project::new(&["spellings.cu"]).with_cuda_headers();
    let wins = r#"{"label": "block=128 PER=4", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let ran = tuned(&project, &compile("spellings.cu", "spellings.o"), wins);
    assert!(ran.code == Some(0) && ran.stderr.contains("scale: block=128 PER=4"), "{}", ran.stderr);
    expect![[r#"
        -- numbers
        _Z5scaleiPf WINNER grid 20 1 1 block 128 1 1 shared 0 stream 0 first 10000
        -- another block
        _Z5scaleiPf grid 79 1 1 block 128 1 1 shared 0 stream 0 first 10000
        -- a block in two dimensions
        _Z5scaleiPf grid 40 1 1 block 16 16 1 shared 0 stream 0 first 10000
        -- a part of the problem
        _Z5scaleiPf grid 20 1 1 block 256 1 1 shared 0 stream 0 first 10000
        -- a grid in three dimensions
        _Z5scaleiPf grid 40 1 2 block 256 1 1 shared 0 stream 0 first 10000
        -- shared memory that the comment does not give
        _Z5scaleiPf grid 40 1 1 block 256 1 1 shared 64 stream 0 first 10000
        -- a stream
        _Z5scaleiPf WINNER grid 20 1 1 block 128 1 1 shared 0 stream 7 first 10000
        -- variables
        _Z5scaleiPf WINNER grid 20 1 1 block 128 1 1 shared 0 stream 0 first 10000
        -- a variable that changes
        _Z5scaleiPf grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000
        _Z5scaleiPf grid 79 1 1 block 128 1 1 shared 0 stream 0 first 10000
        _Z5scaleiPf WINNER grid 20 1 1 block 128 1 1 shared 0 stream 0 first 10000
        -- an enumerator
        _Z5scaleiPf WINNER grid 20 1 1 block 128 1 1 shared 0 stream 0 first 10000
        -- a constant of another function
        _Z5scaleiPf grid 53 1 1 block 192 1 1 shared 0 stream 0 first 10000
        -- a macro that launches
        _Z5scaleiPf WINNER grid 20 1 1 block 128 1 1 shared 0 stream 0 first 10000
        -- a macro with the axis
        _Z5scaleiPf WINNER grid 20 1 1 block 128 1 1 shared 0 stream 0 first 10000
        -- a least grid with the axis
        _Z5scaleiPf grid 16 1 1 block 256 1 1 shared 0 stream 0 first 10000
        -- a variable with the axis
        _Z5scaleiPf WINNER grid 20 1 1 block 128 1 1 shared 0 stream 0 first 10000
        -- an alias
        _Z5scaleiPf WINNER grid 20 1 1 block 128 1 1 shared 0 stream 0 first 10000
        -- a reference, another block
        _Z5scaleiPf grid 20 1 1 block 512 1 1 shared 0 stream 0 first 10000
        -- a table
        _Z5scaleiPf WINNER grid 20 1 1 block 128 1 1 shared 0 stream 0 first 10000
        _Z5shiftiPf grid 40 1 1 block 256 1 1 shared 0 stream 0 first 10000
        -- a choice of kernels
        _Z5scaleiPf WINNER grid 20 1 1 block 128 1 1 shared 0 stream 0 first 10000
        -- a function template
        _Z5scaleiPf WINNER grid 20 1 1 block 128 1 1 shared 0 stream 0 first 10000
        _Z5scaleiPf grid 7 1 1 block 256 1 1 shared 0 stream 0 first 10000
        -- a function object
        _Z5scaleiPf WINNER grid 20 1 1 block 128 1 1 shared 0 stream 0 first 10000
        _Z5scaleiPf grid 3 1 1 block 256 1 1 shared 0 stream 0 first 10000
        -- a lambda
        _Z5scaleiPf WINNER grid 20 1 1 block 128 1 1 shared 0 stream 0 first 10000
        -- a function of C
        _Z5scaleiPf WINNER grid 20 1 1 block 128 1 1 shared 0 stream 0 first 10000
        _Z5scaleiPf grid 10 1 1 block 1024 1 1 shared 0 stream 0 first 10000
        -- an argument that is no part of the program's problem
        _Z5scaleiPf grid 40 1 1 block 256 1 1 shared 0 stream 0 first 5000
        -- nothing to do
        _Z5scaleiPf grid 0 1 1 block 256 1 1 shared 0 stream 0 first 0
        -- a single thread
        _Z5scaleiPf WINNER grid 1 1 1 block 128 1 1 shared 0 stream 0 first 1
        -- by address
        _Z5scaleiPf WINNER grid 20 1 1 block 128 1 1 shared 0 stream 0 first 10000
        -- by configuration
        _Z5scaleiPf WINNER grid 20 1 1 block 128 1 1 shared 0 stream 0 first 10000
        -- another kernel with the macro
        _Z5shiftiPf grid 40 1 1 block 256 1 1 shared 0 stream 0 first 10000
    "#]]
    .assert_eq(&shortened(&launches(&project, &["spellings.o"], &[])));
}

#[test]
fn code_for_exactly_one_block_wins_with_a_cap_or_macro_that_is_slow_without() {
    // Five blocks of the baseline's cap and macro are faster than all others without `.reqntid`.
    let project = Project::new(&["two.cu"]);
    let text =
        project.read("two.cu").replacen("block(128)", "define(MORE = {0, 1}) block({64, 128, 192, 256, 320})", 1);
    let text = format!("#ifndef MORE\n#define MORE 0\n#endif\n{text}");
    project.write("two.cu", &text.replacen("y[i] = mixed(x, i);", "y[i] = mixed(x, i) + (MORE ? x[i + 1] : 0.0f);", 1));
    let others = r#"{"label": "regs=24", "time_us": 12.0, "spread": 0.01},
        {"label": "MORE=1", "time_us": 11.0, "spread": 0.01},
        {"label": "block=192", "time_us": 9.9, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let won = [
        ("block=192 reqntid regs=24 MORE=0", "block=192 reqntid regs=24 MORE=0 (1.25x"),
        ("block=192 reqntid MORE=1", "block=192 reqntid MORE=1 (1.25x"),
        // Of no other block than the fastest one's, or than the fastest with that macro.
        ("block=320 reqntid regs=24 MORE=0", "(kept: "),
    ];
    for (label, won) in cases(&won, 1) {
        let fastest = format!(r#"{{"label": "{label}", "time_us": 8.0, "spread": 0.01}}"#);
        let ran = tuned(&project, &compile("two.cu", "two.o"), &format!("{fastest}, {others}"));
        let summary = ran.stderr.lines().find(|line| line.contains("nvtune: first: ")).unwrap_or_default();
        assert!(summary.contains(won), "{label}: {}", ran.stderr);
    }
}

#[test]
fn code_for_exactly_one_block_runs_in_that_block_alone() {
    let project = Project::new(&[]).with_cuda_headers_in_full_run();
    project.write(
        "scale.cu",
        "//@tune threads(n / 4) block({128, 256}) regs({0}) default(block = 256)\n\
         //@tune args(n = 1 << 20, x = random[n])\n\
         __global__ void scale(int n, float *x) {\n\
         for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] *= 2; }\n\
         int main() { scale<<<10, 256>>>(10240, 0); scale<<<10, 128>>>(10240, 0); return 0; }\n",
    );
    let arguments = compile("scale.cu", "scale.o");
    let mut found = String::new();
    for (name, entries) in [
        // 1% is the least gain.
        ("as fast", r#"{"label": "reqntid", "time_us": 9.95}, {"time_us": 10.0}"#),
        (
            "faster",
            r#"{"label": "block=256 reqntid", "time_us": 8.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#,
        ),
    ] {
        let ran = tuned(&project, &arguments, entries);
        let summary = ran.stderr.lines().next().and_then(|line| line.split(", measured").next()).unwrap_or_default();
        found += &format!(
            "{name}: {}\n{}",
            summary.split(" points").next().unwrap_or_default(),
            shortened(&launches(&project, &["scale.o"], &[]))
        );
    }
    expect![[r#"
        as fast: nvtune: scale: block=256 (kept: no configuration is faster at 99% confidence); 2 of 2
        _Z5scaleiPf grid 10 1 1 block 256 1 1 shared 0 stream 0 first 10240
        _Z5scaleiPf grid 10 1 1 block 128 1 1 shared 0 stream 0 first 10240
        faster: nvtune: scale: block=256 reqntid (1.25x over the baseline
        _Z5scaleiPf WINNER grid 10 1 1 block 256 1 1 shared 0 stream 0 first 10240
        _Z5scaleiPf grid 10 1 1 block 128 1 1 shared 0 stream 0 first 10240
    "#]]
    .assert_eq(&found);
}

#[test]
#[ignore = "long: in the full run"]
fn macro_of_a_winner_reaches_neither_host_code_nor_other_kernels() {
    let project = Project::new(&["sums.cu"]);
    let wins = r#"{"label": "block=256 BS=256", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let ran = tuned(&project, &compile("sums.cu", "sums.o"), wins);
    assert!(ran.code == Some(0) && ran.stderr.contains("sums: block=256 BS=256"), "{}", ran.stderr);
    // The second launch has the winner's block, and code that was made for the source's: nvcc's kernel, as written.
    expect![[r#"
        _Z4sumsiPKfPf WINNER grid 10 1 1 block 256 1 1 shared 0 stream 0 first 10
        _Z4sumsiPKfPf grid 10 1 1 block 256 1 1 shared 0 stream 0 first 10
        _Z5firstiPf grid 1 1 1 block 128 1 1 shared 0 stream 0 first 128
    "#]]
    .assert_eq(&shortened(&launches(&project, &["sums.o"], &[])));
    succeed(&mut project.plain(&compile("sums.cu", "plain.o")));
    for kernel in ["_Z4sumsiPKfPf", "_Z5firstiPf"] {
        assert_eq!(code(&project, "sums.o", kernel), code(&project, "plain.o", kernel), "{kernel}");
    }
}

/// Returns the machine code of a kernel in an object, as text.
fn code(project: &Project, object: &str, kernel: &str) -> String {
    let code = sass(project, object, &format!("{kernel}\n"));
    assert!(code.contains("EXIT"), "{object} has no code of {kernel}: {code}");
    code
}

#[test]
fn two_kernels_have_different_values_of_one_macro() {
    let project = Project::new(&[]);
    let kernel = |name: &str| {
        format!(
            "//@tune define(PER = {{1, 2, 4}}) block(256) regs({{0}}) threads(ceildiv(n, PER)) default(PER = 1)\n\
             //@tune args(n = 1 << 20, x = random[n])\n\
             __global__ void {name}(int n, float *x) {{\n\
             const int first = (blockIdx.x * blockDim.x + threadIdx.x) * PER;\n\
             for (int k = 0; k < PER; ++k) if (first + k < n) x[first + k] *= 2; }}\n"
        )
    };
    let run = "int main() { float *x = 0; one<<<4, 256>>>(1024, x); two<<<4, 256>>>(1024, x); return 0; }\n";
    project.write("k.cu", &format!("#ifndef PER\n#define PER 1\n#endif\n{}{}{run}", kernel("one"), kernel("two")));
    let wins = r#"
        {"kernel": "_Z3oneiPf", "label": "block=256 PER=2", "time_us": 5.0, "spread": 0.01},
        {"kernel": "_Z3twoiPf", "label": "block=256 PER=4", "time_us": 5.0, "spread": 0.01},
        {"time_us": 10.0, "spread": 0.01}"#;
    let ran = tuned(&project, &compile("k.cu", "k.o"), wins);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    expect![[r#"
        _Z3oneiPf WINNER grid 2 1 1 block 256 1 1 shared 0 stream 0 first 1024
        _Z3twoiPf WINNER grid 1 1 1 block 256 1 1 shared 0 stream 0 first 1024
    "#]]
    .assert_eq(&shortened(&launches(&project, &["k.o"], &[])));
}

#[test]
#[ignore = "long: in the full run"]
fn object_grows_by_the_entries_and_2_kb_per_kernel() {
    let kernel = |name: &str| {
        format!(
            "//@tune block({{128, 256}}) regs({{0}}) threads(n) default(block = 256) args(n = 1 << 20, x = random[n])\n\
             __global__ void {name}(int n, float *x) {{\n\
             const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
             if (i < n) x[i] *= 2; }}\n\
             void run_{name}(float *x) {{ {name}<<<4, 256>>>(1024, x); }}\n"
        )
    };
    let project = Project::new(&[]);
    let wins = r#"{"label": "block=128", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let bytes = |object: &str| {
        let all = std::fs::read(project.path(object)).expect("an object");
        let file = object::File::parse(all.as_slice()).expect("an ELF file");
        let device = file.section_by_name(".nv_fatbin").expect("device code").size();
        (all.len() as i64, device as i64)
    };
    for (names, optimization) in
        [(&["one"][..], "-O0"), (&["one"], "-O2"), (&["one"], "-O3"), (&["one", "two", "three", "four"], "-O0")]
    {
        project.write("k.cu", &names.iter().map(|name| kernel(name)).collect::<String>());
        let compile = |object: &str| [compile("k.cu", object).as_slice(), &[optimization.to_owned()]].concat();
        succeed(&mut project.plain(&compile("plain.o")));
        assert_eq!(tuned(&project, &compile("k.o"), wins).code, Some(0));
        let ((plain, of_plain), (tuned, of_tuned)) = (bytes("plain.o"), bytes("k.o"));
        let added = (tuned - plain) - (of_tuned - of_plain);
        assert!(of_tuned > of_plain && added <= 2048 * names.len() as i64, "{names:?} {optimization}: {added} bytes");
    }
}

#[test]
fn two_instances_of_a_template_have_different_values_of_one_macro() {
    let project = Project::new(&[]);
    project.write(
        "k.cu",
        "#ifndef PER\n#define PER 1\n#endif\n\
         //@tune template(float) template(double) define(PER = {1, 2, 4}) block(256) regs({0})\n\
         //@tune threads(ceildiv(n, PER)) args(n = 1 << 20, x = random[n])\n\
         template <class T> __global__ void scale(int n, T *x) {\n\
         const int first = (blockIdx.x * blockDim.x + threadIdx.x) * PER;\n\
         for (int k = 0; k < PER; ++k) if (first + k < n) x[first + k] *= 2; }\n\
         template <class T> void go() { T *x = 0; scale<<<4, 256>>>(1024, x); }\n\
         int main() { go<float>(); go<double>(); return 0; }\n",
    );
    let wins = r#"
        {"kernel": "_Z5scaleIfEviPT_", "label": "block=256 PER=4", "time_us": 5.0, "spread": 0.01},
        {"kernel": "_Z5scaleIdEviPT_", "label": "block=256 PER=2", "time_us": 5.0, "spread": 0.01},
        {"time_us": 10.0, "spread": 0.01}"#;
    let ran = tuned(&project, &compile("k.cu", "k.o"), wins);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    expect![[r#"
        _Z5scaleIfEviPT_ WINNER grid 1 1 1 block 256 1 1 shared 0 stream 0 first 1024
        _Z5scaleIdEviPT_ WINNER grid 2 1 1 block 256 1 1 shared 0 stream 0 first 1024
    "#]]
    .assert_eq(&shortened(&launches(&project, &["k.o"], &[])));
}

#[test]
fn block_that_follows_a_macro_has_that_macros_extent() {
    let project = Project::new(&[]);
    project.write(
        "k.cu",
        "#ifndef TILE\n#define TILE 16\n#endif\n\
         //@tune define(TILE = {8, 16, 32}) block(TILE, TILE / 2) regs({0})\n\
         //@tune grid(ceildiv(n, TILE), ceildiv(n, TILE / 2)) args(n = 1024, x = random[n * n])\n\
         __global__ void twice(int n, float *x) {\n\
         const int i = blockIdx.x * TILE + threadIdx.x, j = blockIdx.y * (TILE / 2) + threadIdx.y;\n\
         if (i < n && j < n) x[j * n + i] *= 2; }\n\
         int main() { twice<<<dim3(1024 / TILE, 2048 / TILE), dim3(TILE, TILE / 2)>>>(1024, 0); return 0; }\n",
    );
    let wins = r#"{"label": "block=32x16 TILE=32", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let ran = tuned(&project, &compile("k.cu", "k.o"), wins);
    assert!(ran.code == Some(0) && ran.stderr.contains("3 of 3 points"), "{}", ran.stderr);
    expect![[r#"
        _Z5twiceiPf WINNER grid 32 64 1 block 32 16 1 shared 0 stream 0 first 1024
    "#]]
    .assert_eq(&shortened(&launches(&project, &["k.o"], &[])));
}

#[test]
fn build_that_nvcc_fails_with_a_winner_gets_nvccs_own_code() {
    let project = Project::new(&[]);
    // The stub cannot read the count that `threads` names.
    let source = "class Size { int count;\n\
         public: __host__ __device__ explicit Size(int n) : count(n) {}\n\
         __device__ int get() const { return count; } };\n\
         //@tune threads(size.count) block({128, 256}) regs({0}) default(block = 256)\n\
         //@tune args(size = {count = 1 << 20}, x = random[1 << 20])\n\
         __global__ void scale(Size size, float *x) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         if (i < size.get()) x[i] *= 2; }\n\
         int main() { scale<<<4, 256>>>(Size(1024), nullptr); return 0; }\n";
    project.write("k.cu", source);
    let wins = r#"{"label": "block=128", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let ran = tuned(&project, &compile("k.cu", "k.o"), wins);
    assert!(ran.code == Some(0) && ran.stderr.contains("is private"), "{}", ran.stderr);
    let last = ran.stderr.lines().last();
    assert_eq!(
        last,
        Some("nvtune warning : the tuned result is not used: nvcc fails with it (see the messages above) [N0051]")
    );
    assert!(!project.read("k.tune.h").contains("measured"), "{}", project.read("k.tune.h"));
    let object = std::fs::read(project.path("k.o")).expect("an object");
    assert!(!object.windows(7).any(|bytes| bytes == b"__nvtun"), "a winner is in the object");
    // What fails without winners, too, fails as with nvcc alone.
    project.write("k.cu", &source.replace("return 0;", "asm(\"no instruction\"); return 0;"));
    let (plain, ran) =
        (run(&mut project.plain(&compile("k.cu", "k.o"))), tuned(&project, &compile("k.cu", "k.o"), wins));
    assert!(plain.code != Some(0) && ran.code == plain.code, "{}", ran.stderr);
    assert!(!ran.stderr.contains("not used"), "{}", ran.stderr);
}

#[test]
fn table_of_times_has_each_step_once() {
    let project = Project::new(&["saxpy.cu"]);
    let wins = r#"{"label": "block=512", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let arguments = |table: &str| [compile("saxpy.cu", "saxpy.o"), vec!["-time".to_owned(), table.to_owned()]].concat();
    succeed(&mut project.plain(&arguments("plain.csv")));
    assert_eq!(tuned(&project, &arguments("tuned.csv"), wins).code, Some(0));
    let rows = |table: &str| project.read(table).matches("ptxas").count();
    assert_eq!(rows("tuned.csv"), rows("plain.csv"), "{}", project.read("tuned.csv"));
}

#[test]
#[ignore = "long: in the full run"]
fn program_between_nvtune_and_nvcc_keeps_its_words() {
    let project = Project::new(&[]);
    project.write(
        "k.cu",
        "#ifndef SITE\n#define SITE 0\n#endif\n\
         //@tune threads(n) block({128, 256}) regs({0}) default(block = 256) args(n = 1 << 20, x = random[n])\n\
         __global__ void scale(int n, float *x) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         if (i < n) x[i] *= 2; }\n\
         int main() { scale<<<4, 256>>>(1024, 0); return SITE; }\n",
    );
    let wins = r#"{"label": "block=128", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    project.write(
        "recorded.json",
        &format!(r#"{{"device": {{"name": "NVIDIA H200", "compute_capability": 90}}, "entries": [{wins}]}}"#),
    );
    let mut said = String::new();
    for (setting, words) in [("", ""), ("", "-DSITE=7"), ("", "-ccbin g++"), ("export CPATH=/site\n", "")] {
        let script = project.script("site-nvcc", &format!("{setting}exec '{}' {words} \"$@\"", nvcc().display()));
        let mut build = project.nvtune(&compile("k.cu", "k.o"));
        build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json").env("NVTUNE_NVCC", &script);
        let ran = succeed(&mut build);
        link(&project, &["k.o"]);
        let status = std::process::Command::new(project.path("program")).output().expect("it runs").status;
        let is_tuned = ran.stderr.contains("block=128 (");
        let is_said = ran.stderr.contains("site-nvcc' changes the call: ");
        said += &format!("{setting:?} {words:?}: tuned {is_tuned}, said {is_said}, returns {:?}\n", status.code());
    }
    expect![[r#"
        "" "": tuned true, said false, returns Some(0)
        "" "-DSITE=7": tuned false, said true, returns Some(7)
        "" "-ccbin g++": tuned false, said true, returns Some(0)
        "export CPATH=/site\n" "": tuned false, said true, returns Some(0)
    "#]]
    .assert_eq(&said);
}

#[test]
#[ignore = "long: in the full run"]
fn stub_is_of_any_standard_that_the_build_asks_for() {
    let project = Project::new(&[]).with_cuda_headers();
    project.write(
        "k.cu",
        "//@tune threads(min(n, max(n, 7)) / 2 * 2 % 4096) block({128, 256}) regs({0}) default(block = 256)\n\
         //@tune args(n = 2048, x = random[n])\n\
         __global__ void scale(int n, float *x) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         if (i < n) x[i] *= 2; }\n\
         int main() { scale<<<4, 256>>>(1024, 0); return 0; }\n",
    );
    let wins = r#"{"label": "block=128", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    for standard in cases(&["c++03", "c++20", "c++11"], 2) {
        let mut arguments = compile("k.cu", "k.o");
        arguments.extend([format!("-std={standard}"), "-Xcompiler=-Wall,-Wextra,-Werror,-O3".to_owned()]);
        let ran = tuned(&project, &arguments, wins);
        assert!(ran.code == Some(0) && ran.stderr.contains("block=128 ("), "{standard}: {}", ran.stderr);
        let said = shortened(&launches(&project, &["k.o"], &[]));
        assert!(said.contains("WINNER grid 8 1 1 block 128"), "{standard}: {said}");
    }
}

#[test]
fn winner_has_its_natural_grid_and_is_kept_from_problems_that_it_was_not_seen_to_bear() {
    let project = Project::new(&["tails.cu"]);
    // On a smaller problem, which whole blocks do not cover, the results of `whole` are wrong.
    let wins = r#"
        {"kernel": "_Z5wholeiPKfPf", "label": "block=192 on a smaller problem", "refused": {"stray": {"buffer": "y"}}},
        {"label": "block=128", "time_us": 5.0, "spread": 0.01},
        {"label": "block=192", "time_us": 5.0, "spread": 0.01},
        {"time_us": 10.0, "spread": 0.01}"#;
    let ran = tuned(&project, &compile("tails.cu", "tails.o"), wins);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("x over the baseline, measured, for n a multiple of 192)"), "{}", ran.stderr);
    expect![[r#"
        _Z4tailiPKfPf WINNER grid 3 1 1 block 128 1 1 shared 0 stream 0 first 300
        _Z5wholeiPKfPf WINNER grid 4 1 1 block 192 1 1 shared 0 stream 0 first 768
        _Z5wholeiPKfPf grid 2 1 1 block 256 1 1 shared 0 stream 0 first 512
    "#]]
    .assert_eq(&shortened(&launches(&project, &["tails.o"], &[])));
}

#[test]
fn requirement_on_arguments_is_asked_of_each_launch() {
    let project = Project::new(&[]);
    project.write(
        "k.cu",
        "#ifndef LIMIT\n#define LIMIT 1024\n#endif\n\
         //@tune define(LIMIT = {256, 1024}) block(256) regs({0}) require(LIMIT >= n) grid(4) args(n = 256, x = random[4 * n])\n\
         __global__ void turn(int n, float *x) {\n\
         __shared__ float part[LIMIT];\n\
         for (int i = threadIdx.x; i < n; i += blockDim.x) part[i] = x[blockIdx.x * n + i];\n\
         __syncthreads();\n\
         for (int i = threadIdx.x; i < n; i += blockDim.x) x[blockIdx.x * n + i] = part[n - 1 - i]; }\n\
         int main() { turn<<<4, 256>>>(256, 0); turn<<<4, 256>>>(1024, 0); return 0; }\n",
    );
    let wins = r#"{"label": "block=256 LIMIT=256", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let ran = tuned(&project, &compile("k.cu", "k.o"), wins);
    assert!(ran.code == Some(0) && ran.stderr.contains("measured, for LIMIT >= n)"), "{}", ran.stderr);
    expect![[r#"
        _Z4turniPf WINNER grid 4 1 1 block 256 1 1 shared 0 stream 0 first 256
        _Z4turniPf grid 4 1 1 block 256 1 1 shared 0 stream 0 first 1024
    "#]]
    .assert_eq(&shortened(&launches(&project, &["k.o"], &[])));
}

#[test]
fn winner_that_the_workload_cannot_use_gives_way_to_the_next() {
    let project = Project::new(&[]);
    project.write(
        "k.cu",
        "//@tune threads(n, m) block({32, 64}, {6, 8}) regs({0}) default(block = {32, 8}) args(n = 1024, m = 1000, x = random[n * m])\n\
         __global__ void twice(int n, int m, float *x) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;\n\
         if (i < n && j < m) x[j * n + i] *= 2; }\n\
         int main() { return 0; }\n",
    );
    let wins = r#"
        {"label": "block=64x6 on a smaller problem", "refused": {"stray": {"buffer": "x"}}},
        {"label": "block=64x8 on a smaller problem", "refused": {"stray": {"buffer": "x"}}},
        {"label": "block=64x6", "time_us": 4.0, "spread": 0.01},
        {"label": "block=64x8", "time_us": 5.0, "spread": 0.01},
        {"time_us": 10.0, "spread": 0.01}"#;
    let ran = tuned(&project, &compile("k.cu", "k.o"), wins);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    expect![[r#"
        nvtune warning : twice: the fastest is refused: block=64x6: it applies only to launches with n a multiple of 64 and m a multiple of 6: writes to `x` where the baseline leaves it alone (an index out of bounds?) [N0037]
        nvtune: twice: block=64x8 (2.00x over the baseline, measured, for n a multiple of 64)
    "#]].assert_eq(
        &ran.stderr.lines().map(|line| line.split(';').next().unwrap_or(line).to_owned() + "\n").collect::<String>(),
    );
}

#[test]
fn next_ones_have_their_turn_where_all_finalists_are_refused() {
    let project = Project::new(&[]);
    let rows = [3, 6, 7, 9, 11, 12];
    project.write(
        "k.cu",
        "//@tune threads(n, m) block({32, 64}, {3, 6, 7, 8, 9, 11, 12}) regs({0}) default(block = {32, 8}) args(n = 1024, m = 1000, x = random[n * m])\n\
         __global__ void twice(int n, int m, float *x) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;\n\
         if (i < n && j < m) x[j * n + i] *= 2; }\n\
         int main() { return 0; }\n",
    );
    let mut entries = Vec::new();
    for (at, y) in rows.iter().enumerate() {
        let stray = r#""refused": {"stray": {"buffer": "x"}}"#;
        entries.push(format!(r#"{{"label": "block=64x{y} on a smaller problem", {stray}}}"#));
        entries.push(format!(r#"{{"label": "block=64x{y}", "time_us": {}, "spread": 0.01}}"#, 4.0 + at as f64 / 100.0));
    }
    entries.push(r#"{"label": "block=64x8", "time_us": 5.0, "spread": 0.01}"#.to_owned());
    entries.push(r#"{"time_us": 10.0, "spread": 0.01}"#.to_owned());
    let ran = tuned(&project, &compile("k.cu", "k.o"), &entries.join(", "));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let refused = format!(" (and {} more, see the record) [N0037]", rows.len() - 1);
    assert!(ran.stderr.contains(&refused), "{}", ran.stderr);
    assert!(ran.stderr.contains("nvtune: twice: block=64x8 ("), "{}", ran.stderr);
}

#[test]
fn number_of_threads_that_no_argument_changes_is_divided_or_not_for_every_launch() {
    let project = Project::new(&[]);
    project.write(
        "k.cu",
        "//@tune threads(n, 64) block({32, 64}, {8, 16}) regs({0}) default(block = {32, 8}) args(n = 1000, x = random[n * 64])\n\
         __global__ void twice(int n, float *x) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;\n\
         if (i < n && j < 64) x[j * n + i] *= 2; }\n\
         int main() {\n\
         const int n = 1000;\n\
         twice<<<dim3((n + 31) / 32, 8), dim3(32, 8)>>>(n, 0);\n\
         // Of more rows than the comment says.\n\
         twice<<<dim3((n + 31) / 32, 16), dim3(32, 8)>>>(n, 0);\n\
         return 0; }\n",
    );
    let wins = r#"{"label": "block=64x16", "time_us": 4.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let ran = tuned(&project, &compile("k.cu", "k.o"), wins);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("nvtune: twice: block=64x16 (2.5") && !ran.stderr.contains(", for "), "{}", ran.stderr);
    expect![[r#"
        _Z5twiceiPf WINNER grid 16 4 1 block 64 16 1 shared 0 stream 0 first 1000
        _Z5twiceiPf grid 32 16 1 block 32 8 1 shared 0 stream 0 first 1000
    "#]]
    .assert_eq(&shortened(&launches(&project, &["k.o"], &[])));
}

#[test]
fn predicted_winner_says_for_which_arguments_it_applies() {
    let project = Project::new(&[]);
    project.write(
        "scale.cu",
        "//@tune threads(n) block(auto) regs({0}) default(block = 32) args(n = 1 << 22, x = random[n], y = out[n])\n\
         __global__ void scale(int n, const float *x, float *y) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }\n\
         void go(int n, const float *x, float *y) { scale<<<(n + 31) / 32, 32>>>(n, x, y); }\n",
    );
    let ran = succeed(project.nvtune(&compile("scale.cu", "scale.o")).env("NVTUNE", "static"));
    let line = ran.stderr.lines().find(|line| line.contains("predicted")).unwrap_or_default().to_owned();
    let block = line.split("block=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    assert!(line.contains(&format!("predicted, for n a multiple of {block})")), "{}", ran.stderr);
}

#[test]
#[ignore = "long: in the full run"]
fn winners_of_a_weak_kernel_in_two_relocatable_objects_are_told_apart() {
    let project = Project::new(&["weak.cuh", "weak_a.cu", "weak_b.cu"]);
    for (source, per) in [("weak_a", 2), ("weak_b", 4)] {
        let wins = format!(
            r#"{{"label": "block=256 PER={per}", "time_us": 5.0, "spread": 0.01}}, {{"time_us": 10.0, "spread": 0.01}}"#
        );
        let mut arguments = compile(&format!("{source}.cu"), &format!("{source}.o"));
        arguments.push("-rdc=true".into());
        let ran = tuned(&project, &arguments, &wins);
        assert!(ran.code == Some(0) && ran.stderr.contains(&format!("PER={per} (")), "{}", ran.stderr);
    }
    let link = ["-arch=sm_90", "-dlink", "weak_a.o", "weak_b.o", "-o", "linked.o"].map(str::to_owned);
    succeed(&mut project.plain(&link));
    let mut tool = std::process::Command::new(nvcc().with_file_name("cuobjdump"));
    let said = succeed(tool.args(["-res-usage", "linked.o"]).current_dir(project.path(""))).stdout;
    let functions = said.lines().filter(|line| line.trim().starts_with("Function")).count();
    assert_eq!((functions, said.matches("__nvtune_").count()), (3, 2), "{said}");
}

#[test]
fn winner_with_a_limit_runs_for_the_grids_within_it() {
    let project = Project::new(&[]);
    project.write(
        "scale.cu",
        "//@tune threads(n) block({64, 256}) regs({0}) default(block = 256) args(n = 1 << 20, x = random[n])\n\
         __global__ void scale(int n, float *x) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }\n\
         int main() { for (int n = 2560; n <= 25600; n *= 10) scale<<<n / 256, 256>>>(n, 0); return 0; }\n",
    );
    let arguments = compile("scale.cu", "scale.o");
    let ran = tuned(&project, &arguments, SMALL_BLOCKS_WIN);
    assert!(ran.stderr.contains("scale: block=64 ("), "{}", ran.stderr);
    succeed(&mut results::nvtune(&project, &["lock"]));
    let lock = project.read("nvtune.lock");
    for (limit, says, grids) in [
        (r#"{"at_least": 100}"#, "at least 100 blocks", ["10 1 1", "400 1 1"]),
        (r#"{"at_most": 99}"#, "at most 99 blocks", ["40 1 1", "100 1 1"]),
    ] {
        project.write("nvtune.lock", &lock.replacen("\"block\":", &format!("\"grid_limit\": {limit}, \"block\":"), 1));
        let ran = succeed(project.nvtune(&arguments).env("NVTUNE", "locked"));
        assert!(ran.stderr.contains(&format!(", locked, for {says})")), "{}", ran.stderr);
        let said = launches(&project, &["scale.o"], &[]);
        let grids_of = |line: &str| line.split(" grid ").nth(1)?.split(" block").next().map(str::to_owned);
        assert_eq!(said.lines().filter_map(grids_of).collect::<Vec<_>>(), grids, "{said}");
    }
}
