//! The stubs of objects, run for real on a runtime that only says what it is asked to launch.

use super::project::{Project, Ran, compile, run, succeed};
use crate::support::toolkit::{include_folder, kept_folder};
use expect_test::expect;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Builds `source` with these recorded timings.
pub fn tuned(project: &Project, arguments: &[String], entries: &str) -> Ran {
    let device = r#"{"name": "NVIDIA H200", "compute_capability": 90}"#;
    project.write("recorded.json", &format!(r#"{{"device": {device}, "entries": [{entries}]}}"#));
    run(project.nvtune(arguments).env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"))
}

/// The runtime of `cudart.cpp`, compiled.
fn runtime() -> &'static Path {
    const SOURCE: &str = include_str!("sources/cudart.cpp");
    static OBJECT: LazyLock<PathBuf> = LazyLock::new(|| {
        let make = |folder: &Path| {
            std::fs::write(folder.join("cudart.cpp"), SOURCE).expect("written");
            let mut compiler = Command::new("g++");
            compiler.args(["-w", "-c", "cudart.cpp", "-o", "cudart.o", "-I"]).arg(include_folder());
            succeed(compiler.current_dir(folder));
        };
        kept_folder("cudart", SOURCE, make).join("cudart.o")
    });
    &OBJECT
}

/// Links objects with the runtime of `cudart.cpp`.
pub fn link(project: &Project, objects: &[&str]) {
    let mut linker = Command::new("g++");
    linker.arg(runtime()).args(objects).args(["-o", "program"]);
    succeed(linker.current_dir(project.path("")));
}

/// Links objects with the runtime of `cudart.cpp` and runs the program.
pub fn launches(project: &Project, objects: &[&str], environment: &[(&str, &str)]) -> String {
    link(project, objects);
    let mut program = Command::new(project.path("program"));
    succeed(program.current_dir(project.path("")).envs(environment.iter().copied())).stdout
}

/// Blocks of 64 threads win, and of 32 x 8.
pub const SMALL_BLOCKS_WIN: &str = r#"
    {"label": "block=64", "time_us": 5.0, "spread": 0.01},
    {"label": "block=32x8", "time_us": 5.0, "spread": 0.01},
    {"time_us": 10.0, "spread": 0.01}"#;

#[test]
fn only_launches_of_the_baseline_shape_are_reshaped() {
    let project = Project::new(&["remap.cu", "elsewhere.cu"]).with_cuda_headers();
    let ran = tuned(&project, &compile("remap.cu", "remap.o"), SMALL_BLOCKS_WIN);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    succeed(&mut project.plain(&compile("elsewhere.cu", "elsewhere.o")));
    let said = launches(&project, &["remap.o", "elsewhere.o"], &[]);
    expect![[r#"
        _Z5plainiPKfPf WINNER grid 1024 1 1 block 64 1 1 shared 0 stream 0 first 65536
        _Z5plainiPKfPf grid 2 3 4 block 256 1 1 shared 0 stream 7 first 65536
        _Z5plainiPKfPf grid 512 1 1 block 128 1 1 shared 0 stream 0 first 65536
        _Z5plainiPKfPf grid 256 1 1 block 16 16 1 shared 0 stream 0 first 65536
        _Z5plainiPKfPf grid 256 1 1 block 256 1 1 shared 1024 stream 0 first 65536
        _Z5plainiPKfPf grid 0 1 1 block 256 1 1 shared 0 stream 0 first 65536
        _Z5plainiPKfPf grid 2147483647 1 1 block 256 1 1 shared 0 stream 0 first 65536
        _ZN2ns7genericIfEEviPKT_PS1_ WINNER grid 1024 1 1 block 64 1 1 shared 0 stream 0 first 65536
        _ZN2ns7genericIdEEviPKT_PS1_ grid 4 1 1 block 256 1 1 shared 0 stream 0 first 65536
        unmangled WINNER grid 1024 1 1 block 64 1 1 shared 0 stream 0 first 65536
        hidden WINNER grid 8 13 1 block 32 8 1 shared 0 stream 0 first 256
        _Z6staged5SizesPKfPf WINNER grid 1024 1 1 block 64 1 1 shared 768 stream 0 first 65536
        _Z6staged5SizesPKfPf grid 256 1 1 block 256 1 1 shared 64 stream 0 first 65536
        _Z5plainiPKfPf WINNER grid 1024 1 1 block 64 1 1 shared 0 stream 0 first 65536
    "#]]
    .assert_eq(&said.lines().map(short).collect::<String>());
}

#[test]
#[ignore = "long: in the full run"]
fn grid_follows_the_block_if_the_comment_says_so() {
    let project = Project::new(&["rows.cu"]);
    let wins = [
        ("block=64 PER=4", 4.0),
        ("block=64", 5.0),
        ("block=32x8", 5.0),
        ("block=32x4", 5.0),
        ("block=32x32 TILE=32", 5.0),
    ];
    let wins = wins.map(|(label, us)| format!(r#"{{"label": "{label}", "time_us": {us}, "spread": 0.01}},"#)).concat();
    let all = format!(r#"{wins}{{"time_us": 10.0, "spread": 0.01}}"#);
    let ran = tuned(&project, &compile("rows.cu", "rows.o"), &all);
    assert!(ran.code == Some(0) && !ran.stderr.contains("warning"), "{}", ran.stderr);
    let said = launches(&project, &["rows.o"], &[]);
    let measured = expect![[r#"
        _Z3rowiiPKfPf WINNER grid 4096 1 1 block 64 1 1 shared 0 stream 0 first 4096
        _Z3rowiiPKfPf WINNER grid 5 1 1 block 64 1 1 shared 0 stream 0 first 5
        _Z5mixediiPKfPf WINNER grid 7 128 1 block 32 8 1 shared 0 stream 0 first 7
        _Z4flatiPKfPf WINNER grid 512 1 1 block 32 4 1 shared 0 stream 0 first 65536
        _Z4tileiPKfPf WINNER grid 32 32 1 block 32 32 1 shared 0 stream 0 first 1024
        _Z7severaliPKfPf WINNER grid 1024 1 1 block 64 1 1 shared 0 stream 0 first 4096
    "#]];
    measured.assert_eq(&said.lines().map(short).collect::<String>());
    // What was timed is what is launched, and a result depends on how it is launched.
    let record = project.record("rows.tune.json");
    let kernels = record["kernels"].as_array().expect("a list").iter();
    let told: String = kernels
        .map(|kernel| {
            let winner = &kernel["configurations"][kernel["winner"].as_u64().expect("an index") as usize];
            let (launch, way) = (&winner["launch"], &kernel["pinned"]["launches"]);
            format!("{} grid {} block {} {way}\n", kernel["name"], launch["grid"], launch["block"])
        })
        .collect();
    expect![[r#"
        "row" grid [4096,1,1] block [64,1,1] "entries"
        "mixed" grid [64,128,1] block [32,8,1] "entries"
        "flat" grid [512,1,1] block [32,4,1] "entries"
        "tile" grid [32,32,1] block [32,32,1] "entries"
        "several" grid [1024,1,1] block [64,1,1] "entries"
    "#]]
    .assert_eq(&told);
    // The model, too, chooses only what does the work of the program's own launches, and so keeps PER.
    let ran = run(project.nvtune(&compile("rows.cu", "rows.o")).env("NVTUNE_CACHE_SIZE", "0"));
    assert!(ran.code == Some(0) && !ran.stderr.contains("warning"), "{}", ran.stderr);
    let said = launches(&project, &["rows.o"], &[]);
    for (line, all) in said.lines().zip([4096 * 256, 5 * 256, 7 * 64 * 256, 256 * 256, 64 * 64 * 256, 1024 * 256]) {
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let (grid, block) = (&numbers[..3], &numbers[3..6]);
        match line.starts_with("_Z3row") || line.starts_with("_Z7several") {
            true => assert_eq!(grid[0], all / 256, "{line}"),
            false if line.starts_with("_Z5mixed") => assert_eq!((grid[0], grid[1] * block[1]), (7, 1024), "{line}"),
            false => assert_eq!(grid.iter().chain(block).product::<u64>(), all, "{line}"),
        }
    }
    assert!(project.read("rows.tune.h").contains("#define PER 4\n"), "{}", project.read("rows.tune.h"));
}

/// A line of the program with what depends on the path left out: `WINNER` for an entry's digits, and what the compiler adds to a hidden name.
pub fn short(line: &str) -> String {
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (kernel, winner) = name.split_once("__nvtune_").map_or((name, ""), |(kernel, _)| (kernel, " WINNER"));
    let kernel = if kernel.contains("hidden") { "hidden" } else { kernel };
    format!("{kernel}{winner} {rest}\n")
}

/// The code of each function of an object, relocations and addresses left out; what lies behind it of the object's code.
fn functions(object: &[u8]) -> Vec<(String, Vec<u8>)> {
    use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
    let file = object::File::parse(object).expect("an object file");
    let mut found: Vec<(String, Vec<u8>)> = Vec::new();
    for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0) {
        let section = file.section_by_index(symbol.section_index().expect("defined")).expect("it is there");
        let data = section.data().expect("readable");
        let start = (symbol.address() - section.address()) as usize;
        let mut code = data[start..start + symbol.size() as usize].to_vec();
        for (place, relocation) in section.relocations() {
            let bytes = usize::from(relocation.size()) / 8;
            if let Some(offset) = (place as usize).checked_sub(start).filter(|&offset| offset + bytes <= code.len()) {
                code[offset..offset + bytes].fill(0);
            }
        }
        found.push((symbol.name().expect("named").to_owned(), code));
    }
    found.sort();
    found
}

#[test]
fn only_the_fat_binary_and_the_stubs_differ_from_the_object_of_plain_nvcc() {
    use object::{Object, ObjectSection};
    let project = Project::new(&["remap.cu"]);
    // Calls between functions of one section are distances, and not relocations: each function in a section of its own has none.
    // Without optimization what one function does to registers changes no other.
    let options = ["-arch=sm_90", "-objtemp", "-Xcompiler", "-ffunction-sections", "-c", "remap.cu", "-o", "same.o"];
    let arguments = options.map(str::to_owned);
    succeed(&mut project.plain(&arguments));
    let plain = project.bytes("same.o");
    std::fs::remove_file(project.path("same.o")).expect("removed");
    let ran = tuned(&project, &arguments, SMALL_BLOCKS_WIN);
    assert!(ran.code == Some(0) && !ran.stderr.contains("warning"), "{}", ran.stderr);
    let tuned = project.bytes("same.o");
    let (before, after) = (functions(&plain), functions(&tuned));
    let names = |all: &[(String, Vec<u8>)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let mut added = names(&after);
    added.retain(|name| !names(&before).contains(name));
    // `dim3`'s constructor, the dispatch, and the arithmetic of the `shared` clause.
    assert!(added.iter().all(|name| name.contains("dim3") || name.contains("__nvtune_")), "{added:?}");
    for (name, code) in &before {
        let now = after.iter().find(|(other, _)| other == name).map(|(_, code)| code);
        let is_stub = name.contains("__device_stub_") || name.contains("__nv_cudaEntityRegisterCallback");
        assert!(is_stub || now == Some(code), "{name} has changed");
    }
    let changed = before.iter().filter(|(name, code)| !after.contains(&(name.clone(), code.clone()))).count();
    assert_eq!(changed, 6, "the stubs of five tuned kernels, and the registration of entries");
    let data = |object: &[u8], wanted: &str| {
        let file = object::File::parse(object).expect("an object file");
        let section = file.section_by_name(wanted).map(|section| section.data().expect("readable").to_vec());
        section.unwrap_or_else(|| panic!("no {wanted}"))
    };
    for section in [".nvFatBinSegment", "__nv_module_id", ".init_array"] {
        assert!(data(&plain, section) == data(&tuned, section), "{section}");
    }
}

#[test]
fn kernel_that_cannot_be_reshaped_keeps_its_block_and_says_why() {
    let project = Project::new(&[]);
    project.write(
        "kept.cu",
        "//@tune threads(n) block({64, 256}) regs({0}) default(block = 256)\n\
         //@tune args(n = 1 << 12, x = out[n])\n\
         __global__ void __launch_bounds__(256) bounded(int n, float *x) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = 1; }\n\
         //@tune threads(n) block({64, 256}) regs({0}) default(block = 256) launch(remap)\n\
         //@tune args(n = 1 << 12, x = out[n])\n\
         __global__ void constant(int n, float *x) {\n\
         const int i = blockIdx.x * 256 + threadIdx.x; if (i < n) x[i] = 1; }\n\
         //@tune threads(n) block({64, 256}) regs({0}) default(block = 256) launch(remap)\n\
         //@tune args(n = 1 << 12, x = out[n])\n\
         __global__ void __launch_bounds__(256) together(int n, float *x) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = 1; }\n\
         extern \"C\" cudaError_t cudaLaunchCooperativeKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);\n\
         void go(void **a) { cudaLaunchCooperativeKernel((void *)together, 1, 256, a, 0, 0); }\n",
    );
    let ran = tuned(&project, &compile("kept.cu", "kept.o"), SMALL_BLOCKS_WIN);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let record = project.record("kept.tune.json");
    let blocks: Vec<_> = record["kernels"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|kernel| {
            let winner = kernel["winner"].as_u64().expect("an index") as usize;
            let refused = kernel["configurations"][1 - winner]["refused"].as_str().unwrap_or_default();
            (kernel["configurations"][winner]["block"][0].as_u64(), refused.to_owned())
        })
        .collect();
    expect![[r#"
        [
            (
                Some(
                    64,
                ),
                "",
            ),
            (
                Some(
                    256,
                ),
                "the kernel reads threadIdx.x and never blockDim.x",
            ),
            (
                Some(
                    64,
                ),
                "",
            ),
        ]
    "#]]
    .assert_debug_eq(&blocks);
    let note = "kept.cu(14): note: this launch of `together` runs nvcc's own code";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
}

#[test]
#[ignore = "long: in the full run"]
fn outputs_without_launch_stubs_keep_block_and_shared_memory() {
    let project = Project::new(&[]);
    let source = |clause: &str, include: &str| {
        format!(
            "{include}\n//@tune threads(n) block({{64, 256}}) regs({{0}}) define(WORDS = {{1, 2}}) shared(WORDS * 1024) {clause}\n\
             //@tune default(block = 256, WORDS = 1) args(n = 1 << 12, x = out[n])\n\
             #ifndef WORDS\n#define WORDS 1\n#endif\n\
             extern \"C\" __global__ void stage(int n, float *x) {{\n\
             extern __shared__ float part[];\n\
             const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
             part[threadIdx.x * WORDS % 256] = i; __syncthreads();\n\
             if (i < n) x[i] = part[threadIdx.x * WORDS % 256]; }}\n\
             void go(int n, float *x) {{ stage<<<n / 256, 256, WORDS * 1024>>>(n, x); }}\n"
        )
    };
    let all_is_better = r#"{"label": "block=64 WORDS=2", "time_us": 5.0, "spread": 0.01},
        {"label": "block=64", "time_us": 6.0, "spread": 0.01}, {"label": "WORDS=2", "time_us": 7.0, "spread": 0.01},
        {"time_us": 10.0, "spread": 0.01}"#;
    let include = "#include \"stage.tune.h\"";
    let mut found = String::new();
    for (options, clause, include) in [
        ("-cubin", "", ""),
        ("-fatbin", "", ""),
        ("-cubin -c -rdc=true", "", ""),
        ("-cubin", "launch(remap)", ""),
        ("-cubin", "launch(header)", ""),
        ("-fatbin", "", include),
        ("-c", "", ""),
        ("-dc", "", ""),
        ("-lib", "", ""),
    ] {
        project.write("stage.cu", &source(clause, include));
        let words = ["-arch=sm_90", "stage.cu", "-o", "stage.out"].into_iter().chain(options.split(' '));
        let words: Vec<String> = words.map(str::to_owned).collect();
        let ran = tuned(&project, &words, all_is_better);
        assert_eq!(ran.code, Some(0), "{options} {clause}: {}", ran.stderr);
        let record = project.record("stage.tune.json");
        let kernel = &record["kernels"][0];
        let winner = &kernel["configurations"][kernel["winner"].as_u64().expect("an index") as usize];
        let (block, shared, way) = (&winner["block"][0], &winner["launch"]["shared"], &kernel["pinned"]["launches"]);
        let warned: String =
            ran.stderr.lines().filter(|line| line.contains("warning")).map(|line| format!("  {line}\n")).collect();
        let notes = &kernel["notes"];
        let case = format!("{options} {clause}{include}");
        found += &format!("{case}: {block} x {shared} {way} {notes}\n{warned}");
    }
    expect![[r#"
        -cubin : 256 x 1024 "pinned" ["its launches stay as they are: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0048]"]
        -fatbin : 256 x 1024 "pinned" ["its launches stay as they are: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0048]"]
        -cubin -c -rdc=true : 256 x 1024 "pinned" ["its launches stay as they are: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0048]"]
        -cubin launch(remap): 256 x 1024 "pinned" ["its launches stay as they are: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0048]"]
          stage.cu(2): warning: `stage`: its launches stay as they are: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0048]
        -cubin launch(header): 64 x 2048 "in place" null
        -fatbin #include "stage.tune.h": 256 x 1024 "pinned" ["its launches stay as they are: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0048]"]
        -c : 64 x 2048 "entries" null
        -dc : 64 x 2048 "entries" null
        -lib : 64 x 2048 "entries" null
    "#]].assert_eq(&found);
}

#[test]
#[ignore = "long: in the full run"]
fn launch_bounds_are_those_of_the_compiled_kernel() {
    let project = Project::new(&[]);
    let kernel = |name: &str, first: &str, second: &str| {
        let body = "(int n, float *x) {\nconst int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = 1; }\n";
        format!(
            "//@tune threads(n) block({{64, 128, 256}}) regs({{0}}) default(block = 128)\n\
             //@tune args(n = 1 << 12, x = out[n])\n\
             #if FIRST\n__global__ void {first} {name}{body}#else\n__global__ void {second} {name}{body}#endif\n"
        )
    };
    let by_macro = |name: &str, axis: &str, launch: &str| {
        format!(
            "#ifndef {axis}\n#define {axis} 128\n#endif\n\
             //@tune threads(n) block({{64, 128, 256}}) define({axis} = {{64, 128, 256}}) require(block.x == {axis}) regs({{0}})\n\
             //@tune default(block = 128, {axis} = 128) args(n = 1 << 12, x = out[n]) {launch}\n\
             __global__ void __launch_bounds__({axis}) {name}(int n, float *x) {{\n\
             const int i = blockIdx.x * {axis} + threadIdx.x; if (i < n) x[i] = 1; }}\n"
        )
    };
    let source = [
        "#define BOUNDED __launch_bounds__(128)\n".to_owned(),
        kernel("bounded_first", "BOUNDED", ""),
        kernel("bounded_second", "", "__launch_bounds__(128)"),
        by_macro("of_header", "SIZE", "launch(header)"),
        by_macro("of_stub", "EXTENT", "launch(remap)"),
    ];
    project.write("bounds.cu", &source.concat());
    let faster = |labels: &[&str], time: f64| -> String {
        labels.iter().map(|label| format!(r#"{{"label": "{label}", "time_us": {time}, "spread": 0.01}},"#)).collect()
    };
    let larger = faster(&["block=256", "block=256 SIZE=256", "block=256 EXTENT=256"], 4.0);
    let smaller = faster(&["block=64", "block=64 SIZE=64", "block=64 EXTENT=64"], 5.0);
    let no_smaller = faster(&["block=64", "block=64 SIZE=64", "block=64 EXTENT=64"], 2.0);
    let rest = r#"{"time_us": 10.0, "spread": 0.01}"#;
    let mut found = String::new();
    for (first, entries) in
        [("1", larger.clone() + &smaller), ("0", larger.clone() + &smaller), ("1", larger + &no_smaller)]
    {
        let mut arguments = compile("bounds.cu", "bounds.o");
        arguments.push(format!("-DFIRST={first}"));
        let ran = tuned(&project, &arguments, &(entries + rest));
        assert!(ran.code == Some(0) && !ran.stderr.contains("warning"), "{}", ran.stderr);
        std::fs::remove_dir_all(project.path("bin/cache")).expect("removed");
        let record = project.record("bounds.tune.json");
        for kernel in record["kernels"].as_array().expect("a list") {
            let points = kernel["configurations"].as_array().expect("a list");
            let winner = &points[kernel["winner"].as_u64().expect("an index") as usize];
            let refused: Vec<&str> = points.iter().filter_map(|point| point["refused"].as_str()).collect();
            found += &format!("FIRST={first} {}: {} {refused:?}\n", kernel["name"], winner["block"][0]);
        }
    }
    expect![[r#"
        FIRST=1 "bounded_first": 64 []
        FIRST=1 "bounded_second": 256 []
        FIRST=1 "of_header": 256 []
        FIRST=1 "of_stub": 256 []
        FIRST=0 "bounded_first": 256 []
        FIRST=0 "bounded_second": 64 []
        FIRST=0 "of_header": 256 []
        FIRST=0 "of_stub": 256 []
        FIRST=1 "bounded_first": 64 []
        FIRST=1 "bounded_second": 64 []
        FIRST=1 "of_header": 64 []
        FIRST=1 "of_stub": 64 []
    "#]]
    .assert_eq(&found);
}

#[test]
fn predicted_launch_keeps_the_shape_that_the_program_passes() {
    let project = Project::new(&[]);
    let kernel = |args: &str, stride: &str| {
        format!(
            "//@tune grid(rows) block({{64, 128, 256}}) regs({{0}}) default(block = 256) launch(remap)\n\
             //@tune args(rows = 1 << 14, cols = 64, x = random[rows * cols], y = {args})\n\
             __global__ void sums(int rows, int cols, const float *x, float *y, int step) {{\n\
             float sum = 0.0f;\n\
             for (int i = threadIdx.x; i < cols; i += {stride}) sum += x[blockIdx.x * cols + i];\n\
             if (threadIdx.x < cols) atomicAdd(&y[blockIdx.x], sum + blockDim.x * 0); }}\n"
        )
    };
    for (args, stride, follower) in [
        ("zeros[rows], step = 1", "blockDim.x", None),
        ("zeros[rows], step = block.x", "step", Some("step")),
        ("zeros[rows * block.x], step = 1", "blockDim.x", Some("y")),
        ("zeros[rows + grid.x], step = grid.x", "blockDim.x", None),
    ] {
        project.write("sums.cu", &kernel(args, stride));
        let ran = succeed(&mut project.nvtune(&compile("sums.cu", "sums.o")));
        let refused = |name| format!("2 of 3 points may not be chosen: `{name}` of args(...) depends on the block");
        assert!(follower.is_none_or(|name| ran.stderr.contains(&refused(name))), "{args}: {}", ran.stderr);
        assert!(follower.is_some() || !ran.stderr.contains("may not be chosen"), "{args}: {}", ran.stderr);
    }
}

#[test]
fn fat_build_picks_the_winner_by_device() {
    let project = Project::new(&["fat.cu"]);
    let options = [
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90,code=sm_90",
        "-gencode=arch=compute_120,code=compute_120",
    ];
    let arguments = ["-O3", "-c", "fat.cu", "-o", "fat.o"].iter().chain(&options).map(|&word| word.to_owned());
    let arguments: Vec<String> = arguments.collect();
    let entries = r#"{"label": "block=64 regs=24", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let ran = tuned(&project, &arguments, entries);
    assert!(ran.code == Some(0) && !ran.stderr.contains("warning"), "{}", ran.stderr);
    assert!(ran.stderr.contains("nvtune: mixed on sm_90: block=64 regs=24 ("), "{}", ran.stderr);

    // Each image has the cap of its winner, and the PTX for newer GPUs is nvcc's own.
    let registers = |architecture: &str| {
        let text = project.tool("cuobjdump", &["-res-usage", "-arch", architecture, "fat.o"]);
        let number = text.split("REG:").nth(1).and_then(|rest| rest.split_whitespace().next()).map(str::to_owned);
        number.and_then(|number| number.parse::<u32>().ok()).unwrap_or_else(|| panic!("{architecture}: {text}"))
    };
    assert!(registers("sm_90") <= 24 && registers("sm_80") > 24, "{} {}", registers("sm_90"), registers("sm_80"));
    let ptx = project.tool("cuobjdump", &["-ptx", "fat.o"]);
    assert!(ptx.contains(".target sm_120") && !ptx.contains(".maxnreg"), "{ptx}");

    // The header chooses alike, in host code that nvcc never sees.
    project.write(
        "consumer.cpp",
        "#include <cuda_runtime_api.h>\n#include \"fat.tune.h\"\n#include <cstdio>\n\
         int main() {\n  for (int device = 0; device < 4; ++device) {\n    cudaSetDevice(device);\n\
         std::printf(\"%u x %u\\n\", nvtune::mixed::grid(1024).x, nvtune::mixed::block().x);\n  }\n}\n",
    );
    let include = include_folder();
    let include = include.to_string_lossy();
    for standard in ["-std=c++11", "-std=c++14", "-std=c++17", "-std=c++20"] {
        let strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", standard, "-isystem", include.as_ref()];
        let strict = strict.iter().copied().chain(["-c", "consumer.cpp", "-o", "consumer.o"]);
        project.tool_of_host("g++", &strict.collect::<Vec<_>>());
    }
    let chosen = launches(&project, &["consumer.o"], &[("FAKE_CAPABILITIES", "80 90 120 75")]);
    assert_eq!(chosen, "4 x 256\n16 x 64\n16 x 64\n4 x 256\n");

    // Devices of 8.0, 9.0, 12.0 (which runs the PTX) and 7.5, for which there is no code; each is asked once.
    let said = launches(&project, &["fat.o"], &[("FAKE_CAPABILITIES", "80 90 120 75")]);
    let record = project.record("fat.tune.json");
    let blocks: Vec<(String, u64)> = record["kernels"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|kernel| {
            let winner = kernel["winner"].as_u64().expect("an index") as usize;
            let block = kernel["configurations"][winner]["block"][0].as_u64().expect("a number");
            (kernel["architecture"].as_str().expect("a name").to_owned(), block)
        })
        .collect();
    expect![[r#"
        [("sm_90", 64), ("sm_80", 256)]
        _Z5mixediPKfPf grid 4 1 1 block 256 1 1 shared 0 stream 0 first 1024
        asked 3 times
        _Z5mixediPKfPf__nvtune_694329cc grid 16 1 1 block 64 1 1 shared 0 stream 0 first 1024
        asked 8 times
        _Z5mixediPKfPf grid 4 1 1 block 256 1 1 shared 0 stream 0 first 1024
        asked 11 times
        _Z5mixediPKfPf grid 4 1 1 block 256 1 1 shared 0 stream 0 first 1024
        asked 14 times
        _Z5mixediPKfPf grid 4 1 1 block 256 1 1 shared 0 stream 0 first 1024
        asked 14 times
        _Z5mixediPKfPf__nvtune_694329cc grid 16 1 1 block 64 1 1 shared 0 stream 0 first 1024
        asked 14 times
        _Z5mixediPKfPf grid 4 1 1 block 256 1 1 shared 0 stream 0 first 1024
        asked 14 times
        _Z5mixediPKfPf grid 4 1 1 block 256 1 1 shared 0 stream 0 first 1024
        asked 14 times
    "#]]
    .assert_eq(&format!("{blocks:?}\n{said}"));
}

#[test]
fn newer_gpu_gets_launches_that_nvccs_own_kernel_takes() {
    let project = Project::new(&[]).with_cuda_headers_in_full_run();
    let body = "(int n, float *x) {\n\
         const int first = (blockIdx.x * blockDim.x + threadIdx.x) * PER;\n\
         for (int k = 0; k < PER; ++k) if (first + k < n) x[first + k] *= 2; }\n";
    let args = "default(block = 256) regs({0}) args(n = 1 << 20, x = random[n])";
    project.write(
        "k.cu",
        &format!(
            "#ifndef PER\n#define PER 1\n#endif\n\
             //@tune threads(n) block({{256, 1024}}) {args}\n__global__ void large{body}\
             //@tune threads(n) block({{256, 1024}}) {args}\n__global__ void __launch_bounds__(1024) bounded{body}\
             //@tune threads(n) block({{256, 1024}}) {args} launch(header)\n__global__ void replaced{body}\
             //@tune threads(ceildiv(n, PER)) define(PER = {{1, 4}}) block(256) {args} launch(header)\n__global__ void coarse{body}"
        ),
    );
    let wins = r#"{"label": "block=1024", "time_us": 5.0, "spread": 0.01},
        {"label": "block=256 PER=4", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let ran = tuned(&project, &compile("k.cu", "k.o"), wins);
    assert!(ran.code == Some(0) && ran.stderr.matches("over the baseline").count() == 4, "{}", ran.stderr);
    let each = ["large", "bounded", "replaced", "coarse"].map(|name| {
        format!("std::printf(\"{name} %u x %u\\n\", nvtune::{name}::grid(8192).x, nvtune::{name}::block().x);\n")
    });
    project.write(
        "consumer.cpp",
        &format!(
            "#include <cuda_runtime_api.h>\n#include \"k.tune.h\"\n#include <cstdio>\n\
             int main() {{\nfor (int device = 0; device < 2; ++device) {{\ncudaSetDevice(device);\n{}}}\n}}\n",
            each.concat()
        ),
    );
    let include = include_folder();
    project.tool_of_host(
        "g++",
        &["-isystem", include.to_string_lossy().as_ref(), "-c", "consumer.cpp", "-o", "consumer.o"],
    );
    // The object's own GPU, then one that compiles its PTX: no register cap there, and the source's macros. Launches of
    // `large` are given to its winner by the stub.
    expect![[r#"
        large 32 x 256
        bounded 8 x 1024
        replaced 8 x 1024
        coarse 8 x 256
        large 32 x 256
        bounded 8 x 1024
        replaced 32 x 256
        coarse 32 x 256
    "#]]
    .assert_eq(&launches(&project, &["consumer.o"], &[("FAKE_CAPABILITIES", "90 120")]));
}
