#!/usr/bin/env python3
"""Times what the launch stubs add to a launch, those that choose an entry and those that record: nanoseconds per call of the stub.

In: an nvcc, nvtune (NVTUNE_BINARY, else target/release/nvtune). Out: a table, and build/dispatch_cost.json. The program launches in
turns two equal kernels, 200 launches each: one has a winner, forced by recorded timings, and the other has nvcc's own stub. Single
launches of one kernel vary by more than the stub costs; so the difference is the median over all pairs of neighbouring turns. It is
linked twice: with a runtime that launches nothing, so that the stub alone is timed, and, where there is a GPU, with CUDA's own. There
it is also built to record its launches: each but the first of a kind is only counted. Launches by address are by cudaLaunchKernelEx
with an attribute.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

KERNELS = Path(__file__).resolve().parent
REPOSITORY = KERNELS.parent
WORK = REPOSITORY / "build" / "dispatch_cost"
sys.path.insert(0, str(REPOSITORY / ".ci"))

import machine  # noqa: E402
import toolkit  # noqa: E402

COMMON = """
#include <chrono>
template <class Launch>
static double nanoseconds(Launch launch) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 200; ++i) launch();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    cudaDeviceSynchronize();
    return took.count() / 200;
}
static double launches_of(void (*kernel)(int, float *), bool by_address, int block, int n, float *x) {
    if (!by_address) return nanoseconds([=] { kernel<<<(n + block - 1) / block, block>>>(n, x); });
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t configuration = {};
    configuration.gridDim = (n + block - 1) / block;
    configuration.blockDim = block;
    configuration.attrs = &attribute;
    configuration.numAttrs = 1;
    return nanoseconds([&] { cudaLaunchKernelEx(&configuration, kernel, n, x); });
}
"""

PLAIN = """
#include "common.h"
__global__ void plain(int n, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
double plain_launches(bool by_address, int block, int n, float *x) { return launches_of(plain, by_address, block, n, x); }
"""

PROGRAM = """
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "common.h"
COMMENT
__global__ void scale(int n, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
double plain_launches(bool by_address, int block, int n, float *x);
static double median(std::vector<double> &times) {
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
}
int main(int, char **words) {
    const int turns = std::atoi(words[1]), block = std::atoi(words[2]), launched = std::atoi(words[3]), n = 1024;
    const bool by_address = std::atoi(words[4]) != 0;
    float *x = nullptr;
    cudaMalloc(&x, n * sizeof(float));
    std::vector<double> plains, tuned, added;
    for (int turn = -100; turn < turns; ++turn) {
        const double one = plain_launches(by_address, launched, n, x);
        const double other = launches_of(scale, by_address, block, n, x);
        if (turn < 0) continue;
        plains.push_back(one);
        tuned.push_back(other);
        added.push_back(other - one);
    }
    std::printf("%.3f %.3f %.3f", median(plains), median(tuned), median(added));
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
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *, void **) { return cudaSuccess; }
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

COMMENT = "//@tune threads(n) block({128, 256}) regs({0}) default(block = 256) args(n = 1 << 16, x = random[n])"

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
    (WORK / "scale.cu").write_text(PROGRAM.replace("COMMENT", COMMENT))
    (WORK / "recorded.cu").write_text(PROGRAM.replace("COMMENT", "//@tune block(auto)"))
    (WORK / "plain.cu").write_text(PLAIN)
    (WORK / "common.h").write_text(COMMON)
    (WORK / "runtime.cpp").write_text(RUNTIME)
    (WORK / "wins.json").write_text(json.dumps(WINS))
    nvcc = toolkit.nvcc_path()
    nvtune = os.environ.get("NVTUNE_BINARY", REPOSITORY / "target" / "release" / "nvtune")
    forced = {"NVTUNE_NVCC": str(nvcc), "NVTUNE": "measure", "NVTUNE_REPLAY": "wins.json", "NVTUNE_CACHE_SIZE": "0"}
    run(nvcc, "-O3", "-arch=sm_90", "-c", "plain.cu", "-o", "plain.o")
    run(nvtune, "nvcc", "-O3", "-arch=sm_90", "-c", "scale.cu", "-o", "scale.o", **forced)
    include = Path(nvcc).resolve().parent.parent / "include"
    run("g++", "-O2", "-w", f"-I{include}", "-c", "runtime.cpp", "-o", "runtime.o")
    run("g++", "scale.o", "plain.o", "runtime.o", "-o", "scale.stub")
    programs = {"stub alone": WORK / "scale.stub"}
    if machine.gpu()["gpu"] is not None:
        run(nvcc, "scale.o", "plain.o", "-o", "scale.gpu")
        programs["with a GPU"] = WORK / "scale.gpu"
        run(nvtune, "nvcc", "-O3", "-arch=sm_90", "recorded.cu", "plain.o", "-o", "recorded.gpu", **forced | {"NVTUNE": "capture"})
        programs["recording"] = WORK / "recorded.gpu"
    return programs


def main():
    programs = build()
    rows = []
    # The plain kernel is launched in the block that the device gets.
    chosen = (("a launch that gets a winner", 256, 128), ("any other launch", 192, 192))
    counted = (("a launch that is counted", 192, 192),)
    for runtime, turns, launches in (("stub alone", 50_000, chosen), ("with a GPU", 5_000, chosen), ("recording", 5_000, counted)):
        if runtime not in programs:
            continue
        for what, block, launched in launches:
            for by_address in (0, 1):
                plain, tuned, added = (float(word) for word in run(programs[runtime], turns, block, launched, by_address).split())
                name = what + (" by address" if by_address else "")
                rows.append({"runtime": runtime, "launch": name, "plain_ns": plain, "tuned_ns": tuned, "added_ns": added})
                print(f"{runtime:12} {name:38} {plain:9.1f} ns {tuned:9.1f} ns {added:+8.1f} ns", flush=True)
    (REPOSITORY / "build" / "dispatch_cost.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
