// C = A + B + D on square row-major matrices of integers, one element a thread, D an idle computation of the thread's
// own. Each warp of a block does another part of D before its loads, so that these overlap with work of other warps.
#include "../common/bench.h"

#if __has_include("overlapped.tune.h")
#include "overlapped.tune.h"
#endif

// The shares: twice the warps of the largest block, which is what an H200's multiprocessor holds.
constexpr int SHARES = 64;

// Dependent operations that no compiler can shorten: multiplications and exclusive ors in turn, `pairs` of each.
// Doing i pairs and then j on the result is doing i + j.
__host__ __device__ inline unsigned idle(unsigned value, int pairs) {
    for (int k = 0; k < pairs; ++k) value = value * 1664525u ^ 1013904223u;
    return value;
}

/*@tune
    threads(n, n) regs({0, 16})
    block({8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024},
          {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128})
    args(n = 3072, pairs = 16, a = random[n * n], b = random[n * n], c = out[n * n])
    default(block.x = 32, block.y = 8)
*/
__global__ void overlapped(int n, int pairs, const unsigned *a, const unsigned *b, unsigned *c) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n) return;
    const int at = row * n + column;
    const int warp = (threadIdx.y * blockDim.x + threadIdx.x) / 32;
    const unsigned before = idle(at, warp * pairs);
    // Volatile: the loads stay between the two computations.
    const unsigned left = *static_cast<const volatile unsigned *>(a + at);
    const unsigned right = *static_cast<const volatile unsigned *>(b + at);
    c[at] = left + right + idle(before, (SHARES - warp) * pairs);
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef OVERLAPPED_BLOCK_X
    shape.block = nvtune::overlapped::block();
    shape.grid = nvtune::overlapped::grid(n);
    shape.shared = nvtune::overlapped::shared();
    shape.header = true;
#else
    shape.block = dim3(32, 8);
    shape.grid = dim3((n + 31) / 32, (n + 7) / 8);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Indices are below 2^28.
    const bench::Options options = bench::parse(argc, argv, "overlapped", 3072, 1 << 14);
    const int n = options.size, pairs = 16;
    const std::size_t elements = std::size_t(n) * n;
    const std::vector<unsigned> a = bench::integers<unsigned>(elements, options, 0, 0, 255);
    const std::vector<unsigned> b = bench::integers<unsigned>(elements, options, 1, 0, 255);
    bench::Array<unsigned> device_a(a), device_b(b), device_c(elements);

    const bench::Shape launch = shape(n);
    return bench::finish(
        "overlapped", options, launch, overlapped, bench::Comparison(0.0, 0.0),
        [&] {
            overlapped<<<launch.grid, launch.block, launch.shared>>>(n, pairs, device_a.data(), device_b.data(),
                                                                     device_c.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<unsigned> c = device_c.read();
            for (const std::size_t at : bench::sample(elements, std::size_t(1) << 18)) {
                const unsigned own = idle(static_cast<unsigned>(at), SHARES * pairs);
                comparison.add("c", at, c[at], a[at] + b[at] + own);
            }
        });
}
