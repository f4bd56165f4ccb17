// x = 3 x + 1 on every 32nd integer of an array, one element a thread: each access is to a segment of its own.
#include "../common/bench.h"

#if __has_include("scattered.tune.h")
#include "scattered.tune.h"
#endif

// Whether loads go through the L1 cache (1) or straight to L2 (0).
#ifndef USE_L1
#define USE_L1 1
#endif

// Integers from one accessed element to the next: a segment of 128 bytes.
constexpr int SEGMENT = 32;

/*@tune
    define(USE_L1 = {1, 0}) threads(n, n) regs(0)
    block({8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024},
          {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128})
    args(n = 2048, x = random[n * n * 32])
    default(block.x = 32, block.y = 8, USE_L1 = 1)
*/
__global__ void scattered(int n, unsigned *x) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n) return;
    unsigned *element = x + (row * n + column) * SEGMENT;
#if USE_L1
    const unsigned value = __ldca(element);
#else
    const unsigned value = __ldcg(element);
#endif
    *element = 3 * value + 1;
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef SCATTERED_BLOCK_X
    shape.block = nvtune::scattered::block();
    shape.grid = nvtune::scattered::grid(n);
    shape.shared = nvtune::scattered::shared();
    shape.header = true;
#else
    shape.block = dim3(32, 8);
    shape.grid = dim3((n + 31) / 32, (n + 7) / 8);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Indices are below 2^29.
    const bench::Options options = bench::parse(argc, argv, "scattered", 2048, 1 << 12);
    const int n = options.size;
    const std::size_t elements = std::size_t(n) * n;
    const std::vector<unsigned> values = bench::integers<unsigned>(elements, options, 0, 0, 255);
    std::vector<unsigned> x(elements * SEGMENT);
    for (std::size_t at = 0; at < elements; ++at) x[at * SEGMENT] = values[at];
    bench::Array<unsigned> device_x(x);

    const bench::Shape launch = shape(n);
    return bench::finish(
        "scattered", options, launch, scattered, bench::Comparison(0.0, 0.0),
        [&] { scattered<<<launch.grid, launch.block, launch.shared>>>(n, device_x.data()); },
        [&](bench::Comparison &comparison) {
            const std::vector<unsigned> got = device_x.read();
            for (std::size_t at = 0; at < elements; ++at) {
                unsigned between = 0;
                for (int k = 1; k < SEGMENT; ++k) between |= got[at * SEGMENT + k];
                comparison.add("x", at * SEGMENT, got[at * SEGMENT], 3.0 * values[at] + 1.0);
                comparison.add("after x", at * SEGMENT, between, 0.0);
            }
        });
}
