// A program that launches by its header's `launch`, alone and into a stream that is captured, also a kernel that waits for its whole
// grid. It checks results and shapes by itself.
#include <cooperative_groups.h>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>
#include "header.tune.h"

//@tune threads(n) block({64, 256}) regs({0}) launch(header) shared(block.x * sizeof(float)) default(block = 256)
//@tune args(n = 1 << 16, x = random[n], y = out[n], shape = out[3]) check(y)
__global__ void scale(int n, const float *x, float *y, unsigned *shape) {
    extern __shared__ float staged[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    staged[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n) y[i] = 2 * staged[threadIdx.x];
    if (i == 0) {
        unsigned bytes;
        asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
        shape[0] = gridDim.x, shape[1] = blockDim.x, shape[2] = bytes;
    }
}

// Wrong where a block did not wait for the others: what it reads was written by another.
//@tune grid(16) block({64, 256}) regs({0}) launch(header) default(block = 256)
//@tune args(n = 1 << 16, x = random[n], turned = out[n], y = out[n], shape = out[3]) check(y)
__global__ void turn(int n, const float *x, float *turned, float *y, unsigned *shape) {
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    for (int i = first; i < n; i += stride) turned[n - 1 - i] = x[i];
    grid.sync();
    for (int i = first; i < n; i += stride) y[n - 1 - i] = 2 * turned[i];
    if (first == 0) shape[0] = gridDim.x, shape[1] = blockDim.x, shape[2] = 0;
}

int main() {
    const int n = 1000 * 256 + 17;
    std::vector<float> host(n), result(n);
    for (int i = 0; i < n; ++i) host[i] = static_cast<float>(i % 1024);
    float *x, *y, *turned;
    unsigned *shape;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    cudaMalloc(&turned, n * sizeof(float));
    cudaMalloc(&shape, 3 * sizeof(unsigned));
    cudaMemcpy(x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    int failed = 0;
    auto expect = [&](const char *name, cudaError_t error, unsigned grid, unsigned shared) {
        unsigned got[3] = {};
        const cudaError_t ran = cudaDeviceSynchronize();
        cudaMemcpy(result.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
        cudaMemcpy(got, shape, sizeof got, cudaMemcpyDeviceToHost);
        size_t wrong = 0;
        for (int i = 0; i < n; ++i) wrong += result[i] != 2 * host[i];
        const bool shaped = got[0] == grid && got[1] == 64 && got[2] == shared;
        const bool well = error == cudaSuccess && ran == cudaSuccess && wrong == 0 && shaped;
        failed += !well;
        std::printf("%s %s: grid %u block %u shared %u, %zu wrong, %s\n", well ? "ok" : "FAILED", name, got[0], got[1], got[2],
                    wrong, cudaGetErrorString(error));
        cudaMemset(y, 0, n * sizeof(float));
        cudaMemset(shape, 0, 3 * sizeof(unsigned));
    };
    const unsigned blocks = (n + 63) / 64, bytes = 64 * sizeof(float);
    expect("launch", nvtune::scale::launch(scale, nullptr, n, x, y, shape), blocks, bytes);

    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    const cudaError_t captured = nvtune::scale::launch(scale, stream, n, x, y, shape);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, stream);
    expect("launch into a captured stream", captured, blocks, bytes);

    scale<<<nvtune::scale::grid(n), nvtune::scale::block(), nvtune::scale::shared()>>>(n, x, y, shape);
    expect("grid, block and shared", cudaGetLastError(), blocks, bytes);

    expect("a cooperative launch", nvtune::turn::launch(turn, nullptr, n, x, turned, y, shape), 16, 0);
    cudaMemset(turned, 0, n * sizeof(float));
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    const cudaError_t together = nvtune::turn::launch(turn, stream, n, x, turned, y, shape);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, stream);
    expect("a cooperative launch into a captured stream", together, 16, 0);
    return failed;
}
