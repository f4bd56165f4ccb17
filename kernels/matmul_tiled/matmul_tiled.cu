// C = A B on square row-major matrices through tiles in shared memory; a block makes one TILE x TILE tile of C, each of
// its threads WORK elements of one column.
#include "../common/bench.h"

#if __has_include("matmul_tiled.tune.h")
#include "matmul_tiled.tune.h"
#endif

#ifndef TILE
#define TILE 16
#endif
#ifndef WORK
#define WORK 1
#endif

static_assert(TILE % WORK == 0, "a thread makes a whole share of a tile's column");

//@tune define(TILE = {8, 16, 32}, WORK = {1, 2, 4, 8})
//@tune block({8, 16, 32}, {1, 2, 4, 8, 16, 32}) require(block.x == TILE && block.y * WORK == TILE)
//@tune grid(ceildiv(n, TILE), ceildiv(n, TILE)) regs(auto)
//@tune args(n = 2048, a = random[n * n], b = random[n * n], c = out[n * n])
//@tune check(c, rtol = 1e-4)
//@tune default(block.x = 16, block.y = 16, TILE = 16, WORK = 1)
__global__ void matmul_tiled(int n, const float *a, const float *b, float *c) {
    // Rows of the block: thread (x, y) has rows y, y + ROWS, y + 2 ROWS, ... of the tile.
    constexpr int ROWS = TILE / WORK;
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    const int x = threadIdx.x, y = threadIdx.y;
    const int column = blockIdx.x * TILE + x;
    const int top = blockIdx.y * TILE;
    float sum[WORK] = {};
    for (int first = 0; first < n; first += TILE) {
#pragma unroll
        for (int w = 0; w < WORK; ++w) {
            const int r = y + w * ROWS;
            // Past the edge: zeros, which add nothing.
            tile_a[r][x] = top + r < n && first + x < n ? a[(top + r) * n + first + x] : 0.0f;
            tile_b[r][x] = first + r < n && column < n ? b[(first + r) * n + column] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; ++k) {
            const float shared_b = tile_b[k][x];
#pragma unroll
            for (int w = 0; w < WORK; ++w) sum[w] += tile_a[y + w * ROWS][k] * shared_b;
        }
        __syncthreads();
    }
#pragma unroll
    for (int w = 0; w < WORK; ++w) {
        const int row = top + y + w * ROWS;
        if (row < n && column < n) c[row * n + column] = sum[w];
    }
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef MATMUL_TILED_BLOCK_X
    shape.block = nvtune::matmul_tiled::block();
    shape.grid = nvtune::matmul_tiled::grid(n);
    shape.shared = nvtune::matmul_tiled::shared();
    shape.header = true;
#else
    shape.block = dim3(TILE, TILE / WORK);
    shape.grid = dim3((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Indices are below 2^30.
    const bench::Options options = bench::parse(argc, argv, "matmul_tiled", 2048, 1 << 15);
    const int n = options.size;
    const std::size_t elements = std::size_t(n) * n;
    const std::vector<float> a = bench::random(elements, options, 0, 0.0f, 1.0f);
    const std::vector<float> b = bench::random(elements, options, 1, 0.0f, 1.0f);
    bench::Array<float> device_a(a), device_b(b), device_c(elements);

    const bench::Shape launch = shape(n);
    return bench::finish(
        "matmul_tiled", options, launch, matmul_tiled, bench::Comparison(1e-4, 0.0),
        [&] {
            matmul_tiled<<<launch.grid, launch.block, launch.shared>>>(n, device_a.data(), device_b.data(),
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
