// C = A B on square row-major matrices by products of blocks: a block of threads, of whatever shape, makes as large a
// block of C, and takes blocks of A and B that are DEPTH deep through shared memory.
#include "../common/bench.h"

#if __has_include("matmul_block.tune.h")
#include "matmul_block.tune.h"
#endif

#ifndef DEPTH
#define DEPTH 16
#endif

/*@tune
    define(DEPTH = {8, 16, 32}) threads(n, n) shared((block.x + block.y) * DEPTH * sizeof(float)) regs({0, 32, 64})
    block({16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024}, {1, 2, 3, 4, 6, 8, 12, 16, 24, 32})
    args(n = 1536, a = random[n * n], b = random[n * n], c = out[n * n])
    check(c, rtol = 1e-4)
    default(block.x = 16, block.y = 16, DEPTH = 16)
*/
__global__ void matmul_block(int n, const float *a, const float *b, float *c) {
    extern __shared__ float tiles[];
    const int columns = blockDim.x, rows = blockDim.y, x = threadIdx.x, y = threadIdx.y;
    float *tile_a = tiles;                // rows x DEPTH
    float *tile_b = tiles + rows * DEPTH; // DEPTH x columns
    const int top = blockIdx.y * rows;
    const int row = top + y, column = blockIdx.x * columns + x;
    float sum = 0.0f;
    for (int first = 0; first < n; first += DEPTH) {
        // Past the edge: zeros, which add nothing.
        for (int at = y * columns + x; at < rows * DEPTH; at += rows * columns) {
            const int r = at / DEPTH, k = at % DEPTH;
            tile_a[at] = top + r < n && first + k < n ? a[(top + r) * n + first + k] : 0.0f;
        }
        for (int k = y; k < DEPTH; k += rows) {
            tile_b[k * columns + x] = first + k < n && column < n ? b[(first + k) * n + column] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) sum += tile_a[y * DEPTH + k] * tile_b[k * columns + x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef MATMUL_BLOCK_BLOCK_X
    shape.block = nvtune::matmul_block::block();
    shape.grid = nvtune::matmul_block::grid(n);
    shape.shared = nvtune::matmul_block::shared();
    shape.header = true;
#else
    shape.block = dim3(16, 16);
    shape.grid = dim3((n + 15) / 16, (n + 15) / 16);
    shape.shared = (16 + 16) * DEPTH * sizeof(float);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Indices are below 2^30.
    const bench::Options options = bench::parse(argc, argv, "matmul_block", 1536, 1 << 15);
    const int n = options.size;
    const std::size_t elements = std::size_t(n) * n;
    const std::vector<float> a = bench::random(elements, options, 0, 0.0f, 1.0f);
    const std::vector<float> b = bench::random(elements, options, 1, 0.0f, 1.0f);
    bench::Array<float> device_a(a), device_b(b), device_c(elements);

    const bench::Shape launch = shape(n);
    return bench::finish(
        "matmul_block", options, launch, matmul_block, bench::Comparison(1e-4, 0.0),
        [&] {
            matmul_block<<<launch.grid, launch.block, launch.shared>>>(n, device_a.data(), device_b.data(),
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
