// Sum of a vector of integers in stages. A stage has few threads with much work each; the fewer they are, the smaller
// are its blocks, so that every multiprocessor gets one.
#include "../common/bench.h"

#if __has_include("reduction_adaptive.tune.h")
#include "reduction_adaptive.tune.h"
#endif

#ifndef UNROLL
#define UNROLL 4
#endif

// The preprocessor leaves macros in pragmas alone.
constexpr int LOADS = UNROLL;

//@tune define(UNROLL = {1, 2, 4, 8, 16}) threads(parts) regs({0, 16, 24, 32, 40})
//@tune block({32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024})
//@tune args(n = 1023 << 16, parts = 16384, in = random[n], out = out[parts])
//@tune default(block = 64, UNROLL = 4)
__global__ void reduction_adaptive(int n, int parts, const unsigned *__restrict__ in, unsigned *__restrict__ out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= parts) return;
    unsigned sum = 0;
#pragma unroll LOADS
    for (int k = i; k < n; k += parts) sum += in[k];
    out[i] = sum;
}

// The block of a stage: halved until each multiprocessor has a block, or until it is a warp.
static bench::Shape adapted(bench::Shape shape, int parts, int multiprocessors) {
    const auto blocks = [&] { return (parts + shape.block.x - 1) / shape.block.x; };
    while (shape.block.x > 32 && blocks() < static_cast<unsigned>(multiprocessors)) {
        shape.block.x = std::max(32u, shape.block.x / 2);
    }
    shape.grid = dim3(blocks());
    return shape;
}

// The first stage, which is the tuned one.
static bench::Shape shape(int parts) {
    bench::Shape shape;
#ifdef REDUCTION_ADAPTIVE_BLOCK_X
    shape.block = nvtune::reduction_adaptive::block();
    shape.grid = nvtune::reduction_adaptive::grid(parts);
    shape.shared = nvtune::reduction_adaptive::shared();
    shape.header = true;
#else
    shape.block = dim3(64);
    shape.grid = dim3((parts + 63) / 64);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Indices are below 2^30 + 2^14 * 16.
    const bench::Options options = bench::parse(argc, argv, "reduction_adaptive", 1023 << 16, 1 << 30);
    const int n = options.size, first = 16384, second = 128;
    const std::vector<unsigned> values = bench::integers<unsigned>(n, options, 0, 0, 255);
    bench::Array<unsigned> device_values(values), device_first(first), device_second(second), device_sum(1);
    int device = 0, multiprocessors = 0;
    BENCH_CUDA(cudaGetDevice(&device));
    BENCH_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));

    const bench::Shape launch = shape(first);
    const bench::Shape then = adapted(launch, second, multiprocessors), last = adapted(launch, 1, multiprocessors);
    return bench::finish(
        "reduction_adaptive", options, launch, reduction_adaptive, bench::Comparison(0.0, 0.0),
        [&] {
            reduction_adaptive<<<launch.grid, launch.block, launch.shared>>>(n, first, device_values.data(),
                                                                             device_first.data());
            reduction_adaptive<<<then.grid, then.block, then.shared>>>(first, second, device_first.data(),
                                                                       device_second.data());
            reduction_adaptive<<<last.grid, last.block, last.shared>>>(second, 1, device_second.data(),
                                                                       device_sum.data());
        },
        [&](bench::Comparison &comparison) {
            // Modulo 2^32, as on the GPU.
            unsigned sum = 0;
            for (const unsigned value : values) sum += value;
            comparison.add("sum", 0, device_sum.read()[0], sum);
        });
}
