//! Launches by address (`cudaLaunchKernel`, `cudaLaunchKernelEx`), which reach no launch stub in a build by nvcc.

use super::project::{Project, compile, succeed};
use super::remap::{SMALL_BLOCKS_WIN, launches, short, tuned};
use crate::support::toolkit::include_folder;
use expect_test::expect;
use std::process::Command;

/// With the warnings that host compilers find in optimized code.
fn arguments(stem: &str) -> Vec<String> {
    let mut arguments = compile(&format!("{stem}.cu"), &format!("{stem}.o"));
    arguments.push("-Xcompiler=-Wall,-Wextra,-Werror,-O2".to_owned());
    arguments
}

#[test]
fn launches_by_address_run_a_winner_only_if_they_are_the_baselines() {
    let project = Project::new(&["by_address.cu", "by_address_other.cu", "by_address.h"]).with_cuda_headers();
    for stem in ["by_address", "by_address_other"] {
        let ran = tuned(&project, &arguments(stem), SMALL_BLOCKS_WIN);
        assert!(ran.code == Some(0) && !ran.stderr.contains("warning"), "{}", ran.stderr);
    }
    let said = launches(&project, &["by_address.o", "by_address_other.o"], &[]);
    expect![[r#"
        -- arguments by an array
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 7 first 10000
        -- no arguments
        hidden grid 40 1 1 block 256 1 1 shared 0 stream 0
        -- another block
        hidden grid 79 1 1 block 128 1 1 shared 0 stream 0 first 10000
        -- a structure with a constructor
        _Z5drawnIfEv4LinePKT_PS1_ WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000
        -- another instance, another kernel
        _Z5drawnIdEv4LinePKT_PS1_ grid 40 1 1 block 256 1 1 shared 0 stream 0 first 10000
        _Z8unmarkediPf grid 40 1 1 block 256 1 1 shared 0 stream 0 first 10000
        -- another source
        _Z5otheriPf WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000
        -- attribute 0
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000 attributes 1
        -- attribute 1
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000 attributes 1
        -- attribute 2
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000 attributes 1
        hidden grid 40 1 1 block 256 1 1 shared 0 stream 0 first 10000 attributes 1
        -- attribute 3
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000 attributes 1
        -- attribute 4
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000 attributes 1
        hidden grid 40 1 1 block 256 1 1 shared 0 stream 0 first 10000 attributes 1
        -- attribute 5
        hidden grid 40 1 1 block 256 1 1 shared 0 stream 0 first 10000 attributes 1
        -- attribute 6
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000 attributes 1
        -- attribute 7
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000 attributes 1
        -- attribute 8
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000 attributes 1
        -- attribute 9
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000 attributes 1
        -- attribute 10
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000 attributes 1
        -- attribute 12
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000 attributes 1
        -- attribute 13
        hidden grid 40 1 1 block 256 1 1 shared 0 stream 0 first 10000 attributes 1
        -- attribute 14
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000 attributes 1
        -- by name afterwards
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000
        -- errors
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 13 first 10000
        returned 400
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000
        returned 0
        last 400
        hidden WINNER grid 157 1 1 block 64 1 1 shared 0 stream 0 first 10000
        returned 0
    "#]]
    .assert_eq(&said.lines().map(short).collect::<String>());
}

/// Functions of the runtime for streams of the thread, which say so.
const PER_THREAD: &str = r#"
#include <driver_types.h>
#include <vector_types.h>
#include <cstdio>
extern "C" {
cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *, void **);
cudaError_t cudaLaunchKernel_ptsz(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) {
    std::printf("per thread:\n");
    return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
cudaError_t __cudaLaunchKernel_ptsz(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) {
    return cudaLaunchKernel_ptsz(kernel, grid, block, arguments, shared, stream);
}
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *with, const void *kernel, void **arguments) {
    std::printf("per thread:\n");
    return cudaLaunchKernelExC(with, kernel, arguments);
}
}
"#;

#[test]
#[ignore = "long: in the full run"]
fn launches_by_address_stay_in_streams_of_the_thread() {
    let project = Project::new(&[]).with_cuda_headers();
    project.write(
        "few.cu",
        "//@tune block({64, 256}) regs({0}) threads(n) default(block = 256)\n\
         //@tune args(n = 1 << 20, x = random[n])\n\
         __global__ void few(int n, float *x) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         if (i < n) x[i] += 1; }\n\
         int main() {\n\
         int n = 1024; float *x = 0; void *arguments[] = {&n, &x};\n\
         cudaLaunchKernel(few, dim3(4), dim3(256), arguments, 0, 0);\n\
         cudaLaunchConfig_t with = {};\n\
         with.gridDim = 4; with.blockDim = 256;\n\
         cudaLaunchKernelEx(&with, few, n, x);\n\
         with.gridDim = 5;\n\
         cudaLaunchKernelEx(&with, few, n, x);\n\
         few<<<4, 256>>>(n, x);\n\
         few<<<5, 256>>>(n, x); }\n",
    );
    let mut arguments = arguments("few");
    arguments.push("--default-stream=per-thread".to_owned());
    let ran = tuned(&project, &arguments, SMALL_BLOCKS_WIN);
    assert!(ran.code == Some(0) && !ran.stderr.contains("warning"), "{}", ran.stderr);
    project.write("per_thread.cpp", PER_THREAD);
    let mut compiler = Command::new("g++");
    compiler.args(["-w", "-c", "per_thread.cpp", "-I"]).arg(include_folder());
    succeed(compiler.current_dir(project.path("")));
    let said = launches(&project, &["few.o", "per_thread.o"], &[]);
    expect![[r#"
        per thread:
        _Z3fewiPf WINNER grid 16 1 1 block 64 1 1 shared 0 stream 0 first 1024
        per thread:
        _Z3fewiPf WINNER grid 16 1 1 block 64 1 1 shared 0 stream 0 first 1024
        per thread:
        _Z3fewiPf grid 5 1 1 block 256 1 1 shared 0 stream 0 first 1024
        per thread:
        _Z3fewiPf WINNER grid 16 1 1 block 64 1 1 shared 0 stream 0 first 1024
        per thread:
        _Z3fewiPf grid 5 1 1 block 256 1 1 shared 0 stream 0 first 1024
    "#]]
    .assert_eq(&said.lines().map(short).collect::<String>());
}
