//! ccache and sccache before nvtune, by the recipes of the book: what is the same is a hit, and nothing tuned is ever stale.

use super::builds::Project;
use super::documented;

const KERNEL: &str = "#include \"scaled.h\"\n//@tune threads(n) block({64, 128, 256}) regs({0, 32}) default(block = 128)\n//@tune args(n = 1 << 16, x = random[n])\n\
__global__ void saxpy(int n, float *x) {\n    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) x[i] = scaled(x[i]);\n}\n";

/// Returns a project with a lock file, for a tool that is run before nvtune; none where the tool is not there.
fn project_for(tool: &str) -> Option<Project> {
    let project = Project::new();
    if project.run(&format!("command -v {tool}")).is_err() {
        eprintln!("no {tool} here: not tried");
        return None;
    }
    for (name, text) in [
        ("saxpy.cu", KERNEL),
        ("scaled.h", "inline __device__ float scaled(float x) { return x * 2; }\n"),
        ("plain.cu", "__global__ void k(int *x) { *x = 1; }\n"),
    ] {
        std::fs::write(project.path(name), text).expect("written");
    }
    let line = "NVTUNE_CACHE_SIZE=0 nvcc -arch=sm_90 -c saxpy.cu -o saxpy.o && nvtune lock && rm saxpy.o saxpy.tune.*";
    project.run(line).unwrap_or_else(|problem| panic!("{problem}"));
    // ccache keeps nothing of a file that is younger than the compile.
    std::thread::sleep(std::time::Duration::from_millis(2100));
    Some(project)
}

/// Runs the recipe's own line; returns whether it was a hit, and what nvtune said.
fn ccached(project: &Project) -> (bool, String) {
    let recipe = documented::block("ccache.md", "With ccache", "sh");
    // The real nvcc of the test builds code for the first GPUs by itself.
    let recipe = recipe.replace("ccache nvcc", "ccache nvcc -arch=sm_90");
    let line = format!("export CCACHE_DIR=$PWD/ccache CCACHE_LOGFILE=$PWD/log; rm -f log\n{recipe}");
    let said = project.run(&line).unwrap_or_else(|problem| panic!("{problem}"));
    let log = std::fs::read_to_string(project.path("log")).expect("ccache writes it");
    let is = |result: &str| log.lines().any(|line| line.ends_with(&format!("Result: {result}")));
    assert!(is("direct_cache_hit") != is("cache_miss") && !is("preprocessed_cache_hit"), "{log}");
    (is("direct_cache_hit"), said)
}

#[test]
fn ccache_misses_where_lock_file_comment_or_included_file_changed() {
    let Some(project) = project_for("ccache") else { return };
    let object = || std::fs::read(project.path("saxpy.o")).expect("an object");
    let edit = |name: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(project.path(name)).expect(name);
        assert!(text.contains(from), "{text}");
        std::fs::write(project.path(name), text.replace(from, to)).expect("written");
        std::thread::sleep(std::time::Duration::from_millis(2100));
    };
    let (hit, said) = ccached(&project);
    assert!(!hit && said.contains(", locked)"), "{said}");
    let first = object();
    std::fs::remove_file(project.path("saxpy.o")).expect("removed");
    assert!(ccached(&project).0, "the same call is a hit");
    assert!(object() == first);

    // Each of these must reach nvtune, and none may get what was there before.
    for (what, name, from, to, expected) in [
        ("the lock file", "nvtune.lock", "\"speedup\": ", "\"speedup\": 1", ", locked)"),
        ("a comment alone", "saxpy.cu", "{64, 128, 256}", "{64, 128, 512}", "its tuning comment"),
        ("an included file", "scaled.h", "x * 2", "x * 3", "is stale and not used"),
    ] {
        edit(name, from, to);
        let (hit, said) = ccached(&project);
        assert!(!hit && said.contains(expected), "{what}: {said}");
        assert!(ccached(&project).0, "{what}: then it is a hit again");
    }
}

#[test]
fn cmake_with_ccache_hits_what_the_lock_file_decided() {
    let Some(project) = project_for("ccache") else { return };
    if project.run("command -v cmake").is_err() {
        eprintln!("no cmake here: not tried");
        return;
    }
    let lists = "cmake_minimum_required(VERSION 3.24)\nproject(cached LANGUAGES CXX CUDA)\nadd_library(kernels OBJECT saxpy.cu plain.cu)\n";
    std::fs::write(project.path("CMakeLists.txt"), lists).expect("written");
    let recipe = documented::block("ccache.md", "CMake with ccache", "sh");
    let build = || {
        let line =
            format!("export CCACHE_DIR=$PWD/ccache CCACHE_LOGFILE=$PWD/log; rm -rf build cuda-tuned log\n{recipe}");
        let said = project.run(&line).unwrap_or_else(|problem| panic!("{problem}"));
        let log = std::fs::read_to_string(project.path("log")).expect("ccache writes it");
        let object = std::fs::read(project.path("build/CMakeFiles/kernels.dir/saxpy.cu.o")).expect("an object");
        (log.matches("Result: direct_cache_hit").count(), said, object)
    };
    let (hits, said, first) = build();
    assert!(hits == 0 && said.contains(", locked)"), "{said}");
    let (hits, said, second) = build();
    assert_eq!(hits, 2, "{said}");
    assert!(first == second);
}

#[test]
fn marked_source_goes_past_sccache_and_plain_source_is_cached() {
    let Some(project) = project_for("sccache") else { return };
    let launcher = documented::block("ccache.md", "With sccache", "sh");
    std::fs::write(project.path("bin/launcher"), launcher).expect("written");
    let line = "chmod +x bin/launcher; export SCCACHE_DIR=$PWD/sccache SCCACHE_SERVER_PORT=4917 SCCACHE_IDLE_TIMEOUT=60; unset NVTUNE_NVCC\n\
                trap 'sccache --stop-server >/dev/null 2>&1' EXIT\n\
                for i in 1 2; do launcher $REAL -arch=sm_90 -c saxpy.cu -o saxpy.o; launcher $REAL -arch=sm_90 -c plain.cu -o plain.o; done\nsccache --show-stats";
    let said = project.run(line).unwrap_or_else(|problem| panic!("{problem}"));
    assert_eq!(said.matches("nvtune: saxpy: ").count(), 2, "{said}");
    let counted = |name: &str| {
        let line = said.lines().find(|line| line.split("  ").next() == Some(name));
        line.and_then(|line| line.split_whitespace().last()).unwrap_or_default().to_owned()
    };
    assert_eq!((counted("Compile requests"), counted("Cache hits")), ("2".to_owned(), "1".to_owned()), "{said}");
}
