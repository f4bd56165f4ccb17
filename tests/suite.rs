//! The benchmark suite in `kernels/` is complete and builds with plain nvcc, with and without the header of a tuned build.
//!
//! In: the folders of `kernels/` and an nvcc (`NVTUNE_NVCC`, else `.toolkit/bin/nvcc`, else the one on PATH).
//! Always holds: no GPU is used; every compile treats warnings, nvcc's and the host compiler's, as errors.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A benchmark and what its header's `grid()` takes: the scalar parameters that its clauses name.
struct Benchmark {
    name: &'static str,
    grid_parameters: &'static str,
    macros: &'static str,
}

const SUITE: [Benchmark; 5] = [
    Benchmark { name: "black_scholes", grid_parameters: "", macros: "" },
    Benchmark { name: "matmul_naive", grid_parameters: "int n", macros: "" },
    Benchmark { name: "matmul_tiled", grid_parameters: "int n", macros: "#define TILE 32\n#define WORK 4\n" },
    Benchmark { name: "nbody", grid_parameters: "int n", macros: "" },
    Benchmark { name: "saxpy", grid_parameters: "int n", macros: "" },
];

fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels")
}

fn source(name: &str) -> PathBuf {
    kernels().join(name).join(format!("{name}.cu"))
}

fn nvcc() -> PathBuf {
    if let Some(path) = std::env::var_os("NVTUNE_NVCC") {
        return path.into();
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".toolkit/bin/nvcc");
    if own.exists() { own } else { which::which("nvcc").expect("an nvcc: run `make toolkit` first") }
}

/// Compiles a benchmark to an object for `architecture`, with `folder` on the include path, and gives the object's size.
fn compile(name: &str, architecture: &str, folder: &Path) -> u64 {
    let object = folder.join(format!("{name}.{architecture}.o"));
    let output = Command::new(nvcc())
        .args(["-O3", "-c", "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror"])
        .arg(format!("-arch={architecture}"))
        .arg("-I")
        .arg(folder)
        .arg(source(name))
        .arg("-o")
        .arg(&object)
        .output()
        .expect("nvcc starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{name} for {architecture}:\n{said}");
    fs::metadata(object).expect("nvcc wrote the object").len()
}

/// The header that a tuned build writes, as the design gives it.
fn header(benchmark: &Benchmark) -> String {
    let Benchmark { name, grid_parameters, macros } = benchmark;
    let upper = name.to_uppercase();
    let unused = if grid_parameters.is_empty() { "" } else { "(void)n; " };
    format!(
        "#pragma once\n{macros}#define {upper}_BLOCK_X 32\n#define {upper}_BLOCK_Y 8\n#define {upper}_BLOCK_Z 1\n\
         namespace nvtune {{ struct {name} {{\n\
         static dim3 block() {{ return dim3(32, 8, 1); }}\n\
         static dim3 grid({grid_parameters}) {{ {unused}return dim3(64, 64, 1); }}\n\
         static size_t shared() {{ return 0; }}\n}}; }}\n"
    )
}

#[test]
fn every_folder_is_a_complete_benchmark() {
    let folders: BTreeSet<String> = fs::read_dir(kernels())
        .expect("kernels/ is there")
        .map(|entry| entry.expect("kernels/ can be read"))
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().expect("folders of kernels/ have plain names"))
        .filter(|name| !["common", "results", "__pycache__"].contains(&name.as_str()))
        .collect();
    let suite: BTreeSet<String> = SUITE.iter().map(|benchmark| benchmark.name.to_owned()).collect();
    assert_eq!(folders, suite);

    let makefile = fs::read_to_string(kernels().join("Makefile")).expect("kernels/Makefile");
    let programs = makefile.lines().find_map(|line| line.strip_prefix("PROGRAMS := ")).expect("its list of programs");
    assert_eq!(programs.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>(), suite);

    for name in &suite {
        let program = fs::read_to_string(source(name)).expect("NAME.cu");
        let readme = fs::read_to_string(kernels().join(name).join("README.md")).expect("README.md");
        assert!(readme.starts_with(&format!("# {name}\n")), "{name}/README.md has another title");
        for section in ["- Method:", "- Found before:", "- Varies:"] {
            assert!(readme.contains(section), "{name}/README.md lacks {section}");
        }
        // The tuning comment stands directly above the kernel, and gives a space, a workload and a baseline.
        let (above, _) = program.split_once(&format!("__global__ void {name}(")).expect("the kernel");
        let comment = &above[above.rfind("\n\n").expect("a blank line before the comment")..];
        for word in ["@tune", "block(", "regs(", "args(", "default("] {
            assert!(comment.contains(word), "{name}: the tuning comment lacks {word}");
        }
        assert!(program.contains(&format!("__has_include(\"{name}.tune.h\")")), "{name} does not ask for its header");
    }
}

#[test]
fn plain_nvcc_builds_every_benchmark() {
    let folder = tempfile::tempdir().expect("a folder for objects");
    for benchmark in &SUITE {
        for architecture in ["sm_75", "sm_90", "sm_100"] {
            assert!(compile(benchmark.name, architecture, folder.path()) > 0);
        }
    }
}

#[test]
fn every_benchmark_builds_with_the_header_of_a_tuned_build() {
    let folder = tempfile::tempdir().expect("a folder for headers and objects");
    for benchmark in &SUITE {
        let path = folder.path().join(format!("{}.tune.h", benchmark.name));
        fs::write(path, header(benchmark)).expect("the header can be written");
        assert!(compile(benchmark.name, "sm_90", folder.path()) > 0);
    }
}
