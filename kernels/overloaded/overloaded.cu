// C = A + B on square row-major matrices of integers, one element a thread, with an idle computation on each sum
// between its loads and its store.
#include "../common/bench.h"

#if __has_include("overloaded.tune.h")
#include "overloaded.tune.h"
#endif

// Dependent operations that no compiler can shorten: multiplications and exclusive ors in turn, `pairs` of each.
__host__ __device__ inline unsigned idle(unsigned value, int pairs) {
    for (int k = 0; k < pairs; ++k) value = value * 1664525u ^ 1013904223u;
    return value;
}

/*@tune
    threads(n, n) regs(0)
    block({8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024},
          {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128})
    args(n = 3072, pairs = 1000, a = random[n * n], b = random[n * n], c = out[n * n])
    default(block.x = 32, block.y = 8)
*/
__global__ void overloaded(int n, int pairs, const unsigned *a, const unsigned *b, unsigned *c) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n) return;
    const int at = row * n + column;
    c[at] = idle(a[at] + b[at], pairs);
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef OVERLOADED_BLOCK_X
    shape.block = nvtune::overloaded::block();
    shape.grid = nvtune::overloaded::grid(n);
    shape.shared = nvtune::overloaded::shared();
    shape.header = true;
#else
    shape.block = dim3(32, 8);
    shape.grid = dim3((n + 31) / 32, (n + 7) / 8);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Indices are below 2^28.
    const bench::Options options = bench::parse(argc, argv, "overloaded", 3072, 1 << 14);
    const int n = options.size, pairs = 1000;
    const std::size_t elements = std::size_t(n) * n;
    const std::vector<unsigned> a = bench::integers<unsigned>(elements, options, 0, 0, 255);
    const std::vector<unsigned> b = bench::integers<unsigned>(elements, options, 1, 0, 255);
    bench::Array<unsigned> device_a(a), device_b(b), device_c(elements);

    const bench::Shape launch = shape(n);
    return bench::finish(
        "overloaded", options, launch, overloaded, bench::Comparison(0.0, 0.0),
        [&] {
            overloaded<<<launch.grid, launch.block, launch.shared>>>(n, pairs, device_a.data(), device_b.data(),
                                                                     device_c.data());
        },
        [&](bench::Comparison &comparison) {
            // The sums are few, hence so are the results: all are checked.
            std::vector<unsigned> result(511);
            for (unsigned sum = 0; sum < 511; ++sum) result[sum] = idle(sum, pairs);
            const std::vector<unsigned> c = device_c.read();
            for (std::size_t at = 0; at < elements; ++at) comparison.add("c", at, c[at], result[a[at] + b[at]]);
        });
}
