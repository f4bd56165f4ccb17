// The transpose of a square matrix. A block moves a tile of TILE x TILE elements through shared memory, so that it
// reads rows and writes rows; ROWS of its threads stand above each other.
#include "../common/bench.h"

#if __has_include("transpose.tune.h")
#include "transpose.tune.h"
#endif

#ifndef TILE
#define TILE 32
#endif
#ifndef ROWS
#define ROWS 8
#endif
#ifndef PAD
#define PAD 1
#endif

static_assert(TILE % ROWS == 0, "a thread moves a whole share of a tile's column");

/*@tune
    define(TILE = {16, 32, 64}, ROWS = {2, 4, 8, 16}, PAD = {0, 1})
    block({16, 32, 64}, {2, 4, 8, 16}) require(block.x == TILE, block.y == ROWS)
    grid(ceildiv(n, TILE), ceildiv(n, TILE)) regs(auto)
    args(n = 8192, in = random[n * n], result = out[n * n])
    check(result, rtol = 0, atol = 0)
    default(block.x = 32, block.y = 8, TILE = 32, ROWS = 8, PAD = 1)
*/
__global__ void transpose(int n, const float *__restrict__ in, float *__restrict__ result) {
    // With a row that is one element longer, a column is in as many banks as it has elements, up to 32.
    __shared__ float tile[TILE][TILE + PAD];
    const int left = blockIdx.x * TILE, top = blockIdx.y * TILE;
    const int x = threadIdx.x, y = threadIdx.y;
#pragma unroll
    for (int k = 0; k < TILE; k += ROWS) {
        const int row = top + y + k;
        if (row < n && left + x < n) tile[y + k][x] = in[std::size_t(row) * n + left + x];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; k += ROWS) {
        const int row = left + y + k;
        if (row < n && top + x < n) result[std::size_t(row) * n + top + x] = tile[x][y + k];
    }
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef TRANSPOSE_BLOCK_X
    shape.block = nvtune::transpose::block();
    shape.grid = nvtune::transpose::grid(n);
    shape.shared = nvtune::transpose::shared();
    shape.header = true;
#else
    shape.block = dim3(TILE, ROWS);
    shape.grid = dim3((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // The size is the side of the matrix.
    const bench::Options options = bench::parse(argc, argv, "transpose", 8192, 1 << 15);
    const std::size_t n = options.size;
    const std::vector<float> in = bench::random(n * n, options, 0, 0.0f, 1.0f);
    bench::Array<float> device_in(in), device_result(n * n);

    const bench::Shape launch = shape(options.size);
    return bench::finish(
        "transpose", options, launch, transpose, bench::Comparison(0.0, 0.0),
        [&] {
            transpose<<<launch.grid, launch.block, launch.shared>>>(options.size, device_in.data(),
                                                                    device_result.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float> result = device_result.read();
            for (const std::size_t at : bench::sample(n * n, std::size_t(1) << 23)) {
                comparison.add("result", at, result[at], in[at % n * n + at / n]);
            }
        });
}
