//! Whole builds of a small project with a marked and an unmarked source, in every build system that is there, unmodified.
//!
//! The tools are looked for in the folder that NVTUNE_TOOLS names, then on PATH; one that is not there is named in the summary.

use super::sandbox::{self, SMALL_HEADERS};
use crate::support::full::is_full;
use crate::support::summary;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The project, and a toolkit as an installer leaves it (`lib64`, `libcudart.so`), which wheels do not.
pub struct Project {
    folder: tempfile::TempDir,
}

const KERNEL: &str = "#if __has_include(\"kernel.tune.h\")\n#include \"kernel.tune.h\"\n#endif\n#include \"kernel.h\"\n\
//@tune threads(n) block({64, 128}) regs({0, 32}) default(block = 128)\n\
//@tune args(n = 1 << 16, a = 2.0f, x = random[n])\n\
__global__ void scale(int n, float a, float *x) {\n    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) x[i] *= a;\n}\n\
int kernel_block() {\n#ifdef SCALE_BLOCK_SIZE\n    return SCALE_BLOCK_SIZE;\n#else\n    return 0;\n#endif\n}\n";

/// Without a GPU the program tells whether the header was there: its exit code.
const MAIN: &str = "#include \"kernel.h\"\n__global__ void other(int *x) { *x = 1; }\nint main() { return kernel_block() > 0 ? 0 : 9; }\n";

impl Project {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let project = Self { folder };
        for (name, text) in [
            ("kernel.cu", KERNEL),
            ("kernel.h", "int kernel_block();\n"),
            ("main.cu", MAIN),
            (
                "CMakeLists.txt",
                "cmake_minimum_required(VERSION 3.24)\nproject(drop LANGUAGES CXX CUDA)\nset(CMAKE_CUDA_ARCHITECTURES 90-real)\n\
                 add_executable(prog main.cu kernel.cu)\n",
            ),
            (
                "meson.build",
                "project('drop', ['cpp', 'cuda'])\nexecutable('prog', ['main.cu', 'kernel.cu'], cuda_args: ['-arch=sm_90'])\n",
            ),
            (
                "Makefile",
                "NVCC ?= nvcc\nLDFLAGS ?= -L$(CURDIR)/toolkit/lib64\nprog: main.o kernel.o\n\t$(NVCC) -arch=sm_90 $(LDFLAGS) $^ -o $@\n\
                 %.o: %.cu\n\t$(NVCC) -O3 -arch=sm_90 -MD -c $< -o $@\n-include main.d kernel.d\n",
            ),
        ] {
            fs::write(project.path(name), text).expect("written");
        }
        let real =
            sandbox::nvcc().parent().and_then(Path::parent).expect("a toolkit").canonicalize().expect("it is there");
        let root = project.path("toolkit");
        // nvcc goes up from `bin`, which must not lead into the real toolkit.
        fs::create_dir_all(root.join("bin")).expect("a folder");
        for (from, to) in [(real.clone(), root.clone()), (real.join("bin"), root.join("bin"))] {
            for entry in fs::read_dir(from).expect("readable").flatten().filter(|entry| entry.file_name() != "bin") {
                symlink(entry.path(), to.join(entry.file_name())).expect("linked");
            }
        }
        if !root.join("lib64").exists() {
            fs::create_dir(root.join("lib64")).expect("a folder");
            for entry in fs::read_dir(real.join("lib")).expect("readable").flatten() {
                symlink(entry.path(), root.join("lib64").join(entry.file_name())).expect("linked");
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with("libcudart.so.") && !real.join("lib/libcudart.so").exists() {
                    symlink(entry.path(), root.join("lib64/libcudart.so")).expect("linked");
                }
            }
        }
        fs::create_dir(project.path("bin")).expect("a folder");
        symlink(env!("CARGO_BIN_EXE_nvtune"), project.path("bin/nvcc")).expect("linked");
        symlink(env!("CARGO_BIN_EXE_nvtune"), project.path("bin/nvtune")).expect("linked");
        project
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a shell line in the project: the real nvcc is that of `toolkit` (`$REAL`), nvtune's link is first on PATH.
    /// The quick run has small headers in place of CUDA's.
    pub fn run(&self, line: &str) -> Result<String, String> {
        let mut path = vec![self.path("bin")];
        path.extend(std::env::var_os("NVTUNE_TOOLS").map(PathBuf::from));
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", line]).current_dir(self.folder.path());
        command.env("PATH", std::env::join_paths(path).expect("no colons")).env("NVTUNE", "static");
        command.env("REAL", self.path("toolkit/bin/nvcc")).env("NVTUNE_NVCC", self.path("toolkit/bin/nvcc"));
        // Meson puts ccache before nvcc by itself, and what an earlier run left there has no header.
        command.env("CCACHE_DIR", self.path("ccache"));
        for name in ["MAKEFLAGS", "MAKELEVEL", "CUDA_HOME", "CUDA_PATH", "CUDACXX"] {
            command.env_remove(name);
        }
        if !is_full() {
            command.env("NVCC_PREPEND_FLAGS", SMALL_HEADERS);
        }
        let output = command.output().expect("bash starts");
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() { Ok(text) } else { Err(format!("{line}\n{text}")) }
    }
}

/// One build: the tools it needs, and what is run; the line fails where something is not as it should be.
const BUILDS: &[(&str, &[&str], &str)] = &[
    (
        "GNU make, nvcc first on PATH",
        &["make"],
        "make && ./prog && make | grep 'up to date' && touch kernel.tune.h && make | grep kernel.cu",
    ),
    ("GNU make -j4, NVCC='nvtune nvcc'", &["make"], "make -j4 NVCC='nvtune nvcc' && ./prog"),
    (
        "GNU make, a script named nvcc",
        &["make"],
        "mkdir s && printf '#!/bin/sh\\nexec nvtune nvcc \"$@\"\\n' > s/nvcc && chmod +x s/nvcc && PATH=$PWD/s:$PATH make && ./prog",
    ),
    (
        "GNU make, a copy named nvcc",
        &["make"],
        "mkdir c && cp \"$(readlink bin/nvtune)\" c/nvcc && make NVCC=c/nvcc && ./prog",
    ),
    (
        "GNU make, a hard link named nvcc",
        &["make"],
        "mkdir h && cp \"$(readlink bin/nvtune)\" h/x && ln h/x h/nvcc && make NVCC=h/nvcc && ./prog",
    ),
    (
        "CMake with Makefiles, the compiler of `nvtune shims`",
        &["cmake", "make"],
        "nvtune shims root && env -u NVTUNE_NVCC cmake -B b -G 'Unix Makefiles' -DCMAKE_CUDA_COMPILER=$PWD/root/bin/nvcc && env -u NVTUNE_NVCC cmake --build b -j2 2>&1 | tee log && b/prog && grep 'nvtune: scale' log",
    ),
    (
        "CMake with Makefiles, launcher",
        &["cmake", "make"],
        "cmake -B b -G 'Unix Makefiles' -DCMAKE_CUDA_COMPILER=$REAL -DCMAKE_CUDA_COMPILER_LAUNCHER=nvtune && cmake --build b 2>&1 | tee log && b/prog && grep 'nvtune: scale' log",
    ),
    (
        "CMake with Ninja, launcher; nothing is built twice",
        &["cmake", "ninja"],
        "cmake -B b -G Ninja -DCMAKE_CUDA_COMPILER=$REAL -DCMAKE_CUDA_COMPILER_LAUNCHER=nvtune && cmake --build b && b/prog && cmake --build b | grep 'no work to do' && touch b/CMakeFiles/prog.dir/kernel.cu.tune.h b/CMakeFiles/prog.dir/kernel.tune.h 2>/dev/null; cmake --build b | grep kernel.cu",
    ),
    (
        "CMake with Ninja, CUDACXX and CUDA_HOME of `nvtune shims`",
        &["cmake", "ninja"],
        "nvtune shims root && unset NVTUNE_NVCC && export CUDA_HOME=$PWD/root CUDACXX=$PWD/root/bin/nvcc && cmake -B b -G Ninja && cmake --build b 2>&1 | tee log && b/prog && grep 'nvtune: scale' log",
    ),
    (
        "CMake with Ninja, find_package(nvtune)",
        &["cmake", "ninja"],
        concat!(
            "printf 'find_package(nvtune REQUIRED)\\nnvtune_enable(prog)\\n' >> CMakeLists.txt && cmake -B b -G Ninja -DCMAKE_CUDA_COMPILER=$REAL -Dnvtune_DIR='",
            env!("CARGO_MANIFEST_DIR"),
            "/packaging/cmake' && cmake --build b 2>&1 | tee log && b/prog && grep 'nvtune: scale' log"
        ),
    ),
    (
        "Ninja, k.o and k.ptx of one source, and two sources of one stem; nothing is built twice",
        &["ninja"],
        "mkdir a b o && sed 's/kernel_block/a_block/; s/scale/a_scale/' kernel.cu > a/kernel.cu && sed 's/scale/b_scale/' kernel.cu > b/kernel.cu && cp kernel.h a && cp kernel.h b && printf 'rule nvcc\\n  command = nvcc -arch=sm_90 $how -MD -MF $out.d $in -o $out\\n  deps = gcc\\n  depfile = $out.d\\nbuild o/k.o: nvcc kernel.cu\\n  how = -c\\nbuild o/k.ptx: nvcc kernel.cu\\n  how = -ptx\\nbuild o/a.o: nvcc a/kernel.cu\\n  how = -c\\nbuild o/b.o: nvcc b/kernel.cu\\n  how = -c\\n' > build.ninja && ninja && ninja | grep 'no work to do'",
    ),
    (
        "Ninja, the header declared as an output and left out of the depfile; nothing is built twice",
        &["ninja"],
        "printf 'rule nvcc\\n  command = NVTUNE_HEADER_IN_DEPFILE=0 nvcc -arch=sm_90 -c -MD -MF kernel.o.d $in -o kernel.o\\n  restat = 1\\n  deps = gcc\\n  depfile = kernel.o.d\\nbuild kernel.o | kernel.tune.h: nvcc kernel.cu\\n' > build.ninja && ninja && ninja | grep 'no work to do'",
    ),
    (
        "Meson, nvcc first on PATH",
        &["meson", "ninja"],
        "nvtune shims root && unset NVTUNE_NVCC && export PATH=$PWD/root/bin:$PATH && meson setup b --buildtype=release -Dcuda_link_args=-L$PWD/toolkit/lib64 && ninja -C b -v 2>&1 | tee log && b/prog && grep 'nvtune: scale' log && ninja -C b | grep 'no work to do'",
    ),
    (
        "ccache outside",
        &["ccache"],
        "export CCACHE_DIR=$PWD/ccache CCACHE_COMPILERTYPE=nvcc && for i in 1 2; do ccache bin/nvcc -arch=sm_90 -c main.cu -o main$i.o; ccache bin/nvcc -arch=sm_90 -c kernel.cu -o kernel.o; done && ccache -s && bin/nvcc -arch=sm_90 -Ltoolkit/lib64 main2.o kernel.o -o prog && ./prog",
    ),
    (
        "sccache outside",
        &["sccache"],
        "export SCCACHE_DIR=$PWD/sccache && sccache bin/nvcc -arch=sm_90 -c main.cu -o main.o && sccache bin/nvcc -arch=sm_90 -c kernel.cu -o kernel.o && bin/nvcc -arch=sm_90 -Ltoolkit/lib64 main.o kernel.o -o prog && ./prog; sccache --stop-server",
    ),
    (
        "PyTorch cpp_extension's command lines, CUDA_HOME of `nvtune shims`",
        &[],
        "nvtune shims root && unset NVTUNE_NVCC && export CUDA_HOME=$PWD/root && $CUDA_HOME/bin/nvcc --generate-dependencies-with-compile --dependency-output kernel.o.d -DTORCH_EXTENSION_NAME=x -c $PWD/kernel.cu -o $PWD/kernel.o -D__CUDA_NO_HALF_OPERATORS__ --expt-relaxed-constexpr -gencode=arch=compute_90,code=compute_90 -gencode=arch=compute_90,code=sm_90 --compiler-options '-fPIC' -std=c++17 2>&1 | tee log && grep 'nvtune: scale' log && grep kernel.tune.h kernel.o.d",
    ),
    (
        "xmake's command lines",
        &[],
        "nvcc -c -O3 -std=c++17 -m64 -gencode arch=compute_90,code=sm_90 -MMD -MF kernel.d.tmp -o kernel.o kernel.cu 2>&1 | tee log && grep 'nvtune: scale' log && nvcc -c -m64 -arch=sm_90 -o main.o main.cu && nvcc -o prog kernel.o main.o -Ltoolkit/lib64 -m64 -arch=sm_90 && ./prog",
    ),
    (
        "rules_cuda's command lines, the environment cleared",
        &[],
        "nvtune shims root && env -i PATH=/usr/bin:/bin CICC_PATH=$PWD/toolkit/nvvm/bin NVVMIR_LIBRARY_DIR=$PWD/toolkit/nvvm/libdevice NVTUNE=static $PWD/root/bin/nvcc -x cu -gencode arch=compute_90,code=sm_90 -ccbin /usr/bin/g++ --frandom-seed=kernel.o -I . -Xcompiler -fPIC -c kernel.cu -o kernel.o 2>&1 | tee log && grep 'nvtune: scale' log",
    ),
];

#[test]
fn project_builds_unmodified_in_every_build_system() {
    let builds = if is_full() { BUILDS } else { &BUILDS[..1] };
    let (mut said, mut problems) = (Vec::new(), Vec::new());
    for (name, tools, line) in builds {
        let project = Project::new();
        let missing = tools.iter().find(|tool| project.run(&format!("command -v {tool}")).is_err());
        if let Some(tool) = missing {
            said.push(format!("  {name}: no {tool} here"));
            continue;
        }
        match project.run(line) {
            Ok(_) => said.push(format!("  {name}: passes")),
            Err(problem) => {
                said.push(format!("  {name}: fails"));
                eprintln!("{name}: {problem}");
                problems.push(format!("{name}: {problem}"));
            }
        }
        // After each: they take minutes.
        summary::keep("builds", &format!("builds of a project with a marked source:\n{}", said.join("\n")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}
