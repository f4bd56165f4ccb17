// C = A + B on square row-major matrices of integers, one element a thread.
#include "../common/bench.h"

#if __has_include("matrix_add.tune.h")
#include "matrix_add.tune.h"
#endif

/*@tune
    threads(n, n) regs(0)
    block({8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024},
          {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128})
    args(n = 6144, a = random[n * n], b = random[n * n], c = out[n * n])
    default(block.x = 32, block.y = 8)
*/
__global__ void matrix_add(int n, const int *a, const int *b, int *c) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n) return;
    const int at = row * n + column;
    c[at] = a[at] + b[at];
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef MATRIX_ADD_BLOCK_X
    shape.block = nvtune::matrix_add::block();
    shape.grid = nvtune::matrix_add::grid(n);
    shape.shared = nvtune::matrix_add::shared();
    shape.header = true;
#else
    shape.block = dim3(32, 8);
    shape.grid = dim3((n + 31) / 32, (n + 7) / 8);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Indices are below 2^28.
    const bench::Options options = bench::parse(argc, argv, "matrix_add", 6144, 1 << 14);
    const int n = options.size;
    const std::size_t elements = std::size_t(n) * n;
    const std::vector<int> a = bench::integers<int>(elements, options, 0, 0, 255);
    const std::vector<int> b = bench::integers<int>(elements, options, 1, 0, 255);
    bench::Array<int> device_a(a), device_b(b), device_c(elements);

    const bench::Shape launch = shape(n);
    return bench::finish(
        "matrix_add", options, launch, matrix_add, bench::Comparison(0.0, 0.0),
        [&] {
            matrix_add<<<launch.grid, launch.block, launch.shared>>>(n, device_a.data(), device_b.data(),
                                                                     device_c.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<int> c = device_c.read();
            for (std::size_t at = 0; at < elements; ++at) comparison.add("c", at, c[at], double(a[at]) + b[at]);
        });
}
