//! A host-only file that takes its launch parameters from the header of a kernel in another file, in each build system as its recipe
//! has it: in order in a build from nothing, with every processor; compiled again in the same build that changes the header; and not
//! otherwise.

use super::builds::Project;
use super::documented;
use crate::support::full::is_full;
use crate::support::summary;

const KERNEL: &str = "//@tune threads(n) block({64, 128}) default(block = 128)\n//@tune args(n = 1 << 16, a = 2.0f, x = random[n])\n\
__global__ void saxpy(int n, float a, float *x) {\n    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) x[i] *= a;\n}\n\
#if __has_include(\"saxpy.tune.h\")\n#include \"saxpy.tune.h\"\n#endif\n\
int kernel_block() {\n#ifdef SAXPY_BLOCK_SIZE\n    return SAXPY_BLOCK_SIZE;\n#else\n    return 0;\n#endif\n}\n";

/// Ends with 0 where both files were compiled with the same header, with 9 where this one had none.
const HOST: &str = "#if __has_include(\"saxpy.tune.h\")\n#include \"saxpy.tune.h\"\n#endif\nint kernel_block();\nint main() {\n#ifdef SAXPY_BLOCK_SIZE\n\
    return SAXPY_BLOCK_SIZE == kernel_block() && nvtune_saxpy_grid(SAXPY_BLOCK_SIZE + 1).x == 2 ? 0 : 7;\n#else\n    return 9;\n#endif\n}\n";

/// A build: its name, the tools that it needs, the file that the recipe goes into with what stands around it there, how it is
/// begun and how it is built, and the program.
struct Build {
    name: &'static str,
    tools: &'static [&'static str],
    file: &'static str,
    kind: &'static str,
    before: &'static str,
    begin: &'static str,
    build: &'static str,
    program: &'static str,
}

/// The heading of the rules in the recipes.
const OTHER_FILE: &str = "A file that needs another file's header";

const CMAKE: &str =
    "cmake_minimum_required(VERSION 3.24)\nproject(drop LANGUAGES CXX CUDA)\nset(CMAKE_CUDA_ARCHITECTURES 90-real)\n";

const BUILDS: [Build; 4] = [
    Build {
        name: "GNU make",
        tools: &["make"],
        file: "Makefile",
        kind: "make",
        before: "prog: host.o saxpy.o\n\tnvcc -arch=sm_90 -L$(CURDIR)/toolkit/lib64 $^ -o $@\nsaxpy.o: saxpy.cu\n\tnvcc -arch=sm_90 -c $< -o $@\n\
                 host.o: host.cpp\n\t$(CXX) -c $< -o $@\n",
        begin: "true",
        build: "make -j8",
        program: "./prog",
    },
    Build {
        name: "CMake with Ninja",
        tools: &["cmake", "ninja"],
        file: "CMakeLists.txt",
        kind: "cmake",
        before: CMAKE,
        begin: "cmake -B b -G Ninja -DCMAKE_CUDA_COMPILER=$REAL -DCMAKE_CUDA_COMPILER_LAUNCHER=nvtune",
        build: "cmake --build b -j8",
        program: "b/prog",
    },
    Build {
        name: "CMake with Makefiles",
        tools: &["cmake", "make"],
        file: "CMakeLists.txt",
        kind: "cmake",
        before: CMAKE,
        begin: "cmake -B b -G 'Unix Makefiles' -DCMAKE_CUDA_COMPILER=$REAL -DCMAKE_CUDA_COMPILER_LAUNCHER=nvtune",
        build: "cmake --build b -j8",
        program: "b/prog",
    },
    Build {
        name: "Meson",
        tools: &["meson", "ninja"],
        file: "meson.build",
        kind: "meson",
        before: "project('drop', ['cpp', 'cuda'])\n",
        begin: "nvtune shims root && export PATH=$PWD/root/bin:$PATH && meson setup b --native-file native.ini --buildtype=release -Dcuda_link_args=-L$PWD/toolkit/lib64 -Dcpp_link_args=-L$PWD/toolkit/lib64",
        build: "ninja -C b -j8",
        program: "b/prog",
    },
];

/// What is wrong with a build.
fn problem(build: &Build) -> Result<(), String> {
    let new = |mode: &str| -> Result<Project, String> {
        let project = Project::new();
        let text =
            format!("{}{}", build.before, documented::block(&format!("{}.md", build.kind), OTHER_FILE, build.kind));
        let native = documented::block("meson.md", "Meson", "ini");
        for (name, text) in [("saxpy.cu", KERNEL), ("host.cpp", HOST), (build.file, &text), ("native.ini", &native)] {
            std::fs::write(project.path(name), text).map_err(|error| error.to_string())?;
        }
        project.run(&format!("export NVTUNE={mode}; {}", build.begin))?;
        Ok(project)
    };
    let project = new("static")?;
    let made = |what: &str, expected: [bool; 2]| -> Result<(), String> {
        let said = project.run(build.build).map_err(|problem| format!("{what}: {problem}"))?;
        let compiled = ["saxpy.cu", "host.cpp"].map(|name| said.contains(name));
        if compiled != expected {
            return Err(format!("{what}: compiled {compiled:?}, not {expected:?}:\n{said}"));
        }
        project.run(build.program).map(drop).map_err(|problem| format!("{what}: {problem}"))
    };
    let edit = |from: &str, to: &str| {
        let text = std::fs::read_to_string(project.path("saxpy.cu")).expect("readable");
        assert!(text.contains(from), "{text}");
        // The next header is dated 250 ms before its compile begins, and must be newer than all that this build wrote.
        std::thread::sleep(std::time::Duration::from_millis(400));
        std::fs::write(project.path("saxpy.cu"), text.replace(from, to)).expect("written");
    };
    made("from nothing", [true, true])?;
    made("again", [false, false])?;
    edit("block({64, 128}) default(block = 128)", "block({256, 512}) default(block = 512)");
    made("with another winner", [true, true])?;
    made("again", [false, false])?;
    edit("int kernel_block()", "// The block.\nint kernel_block()");
    made("with the same winner", [true, false])?;
    made("again", [false, false])?;
    let plain = new("off")?;
    plain
        .run(&format!("export NVTUNE=off; {}; status=0; {} || status=$?; test $status = 9", build.build, build.program))
        .map(drop)
}

#[test]
#[ignore = "long: in the full run"]
fn host_file_is_rebuilt_with_the_header_that_it_takes_from_another_file() {
    let builds = if is_full() { &BUILDS[..] } else { &BUILDS[..1] };
    let (mut said, mut problems) = (Vec::new(), Vec::new());
    for build in builds {
        let probe = Project::new();
        if let Some(tool) = build.tools.iter().find(|tool| probe.run(&format!("command -v {tool}")).is_err()) {
            said.push(format!("  {}: no {tool} here", build.name));
            continue;
        }
        match problem(build) {
            Ok(()) => said.push(format!("  {}: passes", build.name)),
            Err(problem) => {
                said.push(format!("  {}: fails", build.name));
                problems.push(format!("{}: {problem}", build.name));
            }
        }
        summary::keep("consumers", &format!("a header that another file includes:\n{}", said.join("\n")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}
