#!/usr/bin/env python3
"""Times what the launch stub's choice of an entry adds to a launch: nanoseconds per call of the stub.

In: an nvcc, nvtune (NVTUNE_BINARY, else target/release/nvtune). Out: a table, and build/dispatch_cost.json. The program launches one
kernel in a loop, built by plain nvcc and by nvtune with a winner forced by recorded timings. It is linked twice: with a runtime that
launches nothing, so that the stub alone is timed, and, where there is a GPU, with CUDA's own.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

KERNELS = Path(__file__).resolve().parent
REPOSITORY = KERNELS.parent
WORK = REPOSITORY / "build" / "dispatch_cost"
sys.path.insert(0, str(REPOSITORY / ".ci"))

import machine  # noqa: E402
import toolkit  # noqa: E402

TURNS = 9

PROGRAM = """
#include <chrono>
#include <cstdio>
#include <cstdlib>
//@tune threads(n) block({128, 256}) regs({0}) default(block = 256) args(n = 1 << 16, x = random[n])
__global__ void scale(int n, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
int main(int, char **words) {
    const long launches = std::atol(words[1]);
    const int block = std::atoi(words[2]), n = 1024;
    float *x = nullptr;
    cudaMalloc(&x, n * sizeof(float));
    for (int i = 0; i < 1000; ++i) scale<<<(n + block - 1) / block, block>>>(n, x);
    cudaDeviceSynchronize();
    const auto begin = std::chrono::steady_clock::now();
    for (long i = 0; i < launches; ++i) scale<<<(n + block - 1) / block, block>>>(n, x);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    std::printf("%.3f", took.count() / static_cast<double>(launches));
    return cudaDeviceSynchronize() != cudaSuccess;
}
"""

# Pushes and pops as CUDA's runtime does; all else answers at once.
RUNTIME = """
#include <cuda_runtime_api.h>
#include <vector>
struct Pushed { dim3 grid, block; size_t shared; void *stream; };
static thread_local std::vector<Pushed> pushed;
extern "C" {
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
    pushed.push_back(Pushed{grid, block, shared, stream});
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    const Pushed last = pushed.back();
    pushed.pop_back();
    *grid = last.grid, *block = last.block, *shared = last.shared, *static_cast<void **>(stream) = last.stream;
    return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host) { *kernel = (cudaKernel_t)host; return cudaSuccess; }
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t) { return cudaSuccess; }
void **__cudaRegisterFatBinary(void *) { return nullptr; }
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
char __cudaInitModule(void **) { return 0; }
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, uint3 *, uint3 *, dim3 *, dim3 *, int *) {}
cudaError_t cudaGetDevice(int *device) { *device = 0; return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int *count) { *count = 1; return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
    *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
    return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *) {
    *attributes = cudaFuncAttributes();
    attributes->maxThreadsPerBlock = 1024;
    attributes->preferredShmemCarveout = -1;
    return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaMalloc(void **, size_t) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
}
"""

WINS = {
    "device": {"name": "recorded", "compute_capability": 90},
    "entries": [{"label": "block=128", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}],
}


def run(*command, **environment):
    """Runs a command in the work folder; returns what it prints."""
    return subprocess.run(
        [str(word) for word in command], cwd=WORK, env={**os.environ, **environment}, check=True, capture_output=True, text=True
    ).stdout


def build():
    """Builds the programs; returns them by name and runtime."""
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "scale.cu").write_text(PROGRAM)
    (WORK / "runtime.cpp").write_text(RUNTIME)
    (WORK / "wins.json").write_text(json.dumps(WINS))
    nvcc = toolkit.nvcc_path()
    nvtune = os.environ.get("NVTUNE_BINARY", REPOSITORY / "target" / "release" / "nvtune")
    compile_call = ("-O3", "-arch=sm_90", "-c", "scale.cu", "-o")
    run(nvcc, *compile_call, "plain.o")
    forced = {"NVTUNE_NVCC": str(nvcc), "NVTUNE": "measure", "NVTUNE_REPLAY": "wins.json", "NVTUNE_CACHE_SIZE": "0"}
    run(nvtune, "nvcc", *compile_call, "tuned.o", **forced)
    include = Path(nvcc).resolve().parent.parent / "include"
    run("g++", "-O2", "-w", f"-I{include}", "-c", "runtime.cpp", "-o", "runtime.o")
    programs = {}
    for name in ("plain", "tuned"):
        run("g++", f"{name}.o", "runtime.o", "-o", f"{name}.stub")
        programs[name, "stub alone"] = WORK / f"{name}.stub"
        if machine.gpu()["gpu"] is not None:
            run(nvcc, f"{name}.o", "-o", f"{name}.gpu")
            programs[name, "with a GPU"] = WORK / f"{name}.gpu"
    return programs


def main():
    programs = build()
    rows = []
    for runtime, launches in (("stub alone", 10_000_000), ("with a GPU", 200_000)):
        if ("plain", runtime) not in programs:
            continue
        for what, block in (("a launch that gets a winner", 256), ("any other launch", 192)):
            times = {"plain": [], "tuned": []}
            for _ in range(TURNS):
                for name in times:
                    times[name].append(float(run(programs[name, runtime], launches, block)))
            plain, tuned = (statistics.median(times[name]) for name in ("plain", "tuned"))
            row = {"runtime": runtime, "launch": what, "plain_ns": plain, "tuned_ns": tuned, "added_ns": tuned - plain}
            rows.append(row)
            print(f"{runtime:12} {what:28} {plain:9.1f} ns {tuned:9.1f} ns {tuned - plain:+8.1f} ns", flush=True)
    (REPOSITORY / "build" / "dispatch_cost.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
