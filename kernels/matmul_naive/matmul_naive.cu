// C = A B on square row-major matrices, one element of C a thread, straight from global memory.
#include "../common/bench.h"

#if __has_include("matmul_naive.tune.h")
#include "matmul_naive.tune.h"
#endif

//@tune threads(n, n) block({8, 16, 32, 64, 128, 256}, {1, 2, 4, 8, 16, 32}) regs(auto)
//@tune require(block.x * block.y >= 64 && block.x * block.y <= 1024)
//@tune args(n = 2048, a = random[n * n], b = random[n * n], c = out[n * n])
//@tune check(c, rtol = 1e-4)
//@tune default(block.x = 16, block.y = 16)
__global__ void matmul_naive(int n, const float *a, const float *b, float *c) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef MATMUL_NAIVE_BLOCK_X
    shape.block = nvtune::matmul_naive::block();
    shape.grid = nvtune::matmul_naive::grid(n);
    shape.shared = nvtune::matmul_naive::shared();
    shape.header = true;
#else
    shape.block = dim3(16, 16);
    shape.grid = dim3((n + 15) / 16, (n + 15) / 16);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Indices are below 2^30.
    const bench::Options options = bench::parse(argc, argv, "matmul_naive", 2048, 1 << 15);
    const int n = options.size;
    const std::size_t elements = std::size_t(n) * n;
    const std::vector<float> a = bench::random(elements, options, 0, 0.0f, 1.0f);
    const std::vector<float> b = bench::random(elements, options, 1, 0.0f, 1.0f);
    bench::Array<float> device_a(a), device_b(b), device_c(elements);

    const bench::Shape launch = shape(n);
    return bench::finish(
        "matmul_naive", options, launch, matmul_naive, bench::Comparison(1e-4, 0.0),
        [&] {
            matmul_naive<<<launch.grid, launch.block, launch.shared>>>(n, device_a.data(), device_b.data(),
                                                                       device_c.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float> c = device_c.read();
            for (const std::size_t at : bench::sample(elements, (std::size_t(1) << 26) / n)) {
                const std::size_t row = at / n, column = at % n;
                double sum = 0.0;
                for (int k = 0; k < n; ++k) sum += double(a[row * n + k]) * b[std::size_t(k) * n + column];
                comparison.add("c", at, c[at], sum);
            }
        });
}
