// C = A B on square row-major matrices through tiles in shared memory: a block of TILE x TILE threads makes WIDTH tiles
// of C side by side, each of its threads one element of each tile.
#include "../common/bench.h"

#if __has_include("matmul_rect.tune.h")
#include "matmul_rect.tune.h"
#endif

#ifndef TILE
#define TILE 16
#endif
#ifndef WIDTH
#define WIDTH 1
#endif
// By how much the product of two tiles is unrolled; 16 is all of it, for either tile.
#ifndef UNROLL
#define UNROLL 16
#endif
// Whether the next tiles are loaded into registers while the current ones are multiplied.
#ifndef PREFETCH
#define PREFETCH 1
#endif
// Whether the place of the results, which only the end needs, waits in shared memory rather than in registers.
#ifndef SPILL
#define SPILL 0
#endif

// The preprocessor leaves macros in pragmas alone.
constexpr int UNROLLED = UNROLL;
// What n has to be a multiple of, for all the configurations: the width of the widest tiles.
constexpr int MULTIPLE = 64;

static_assert(MULTIPLE % (TILE * WIDTH) == 0, "tiles fill the matrices");

/*@tune
    define(TILE = {8, 16}, WIDTH = {1, 2, 4}, UNROLL = {1, 4, 16}, PREFETCH = {0, 1}, SPILL = {0, 1})
    block({8, 16}, {8, 16}) regs({0, 24, 32, 40, 48, 64})
    require(block.x == TILE && block.y == TILE, SPILL == 0 || (PREFETCH == 1 && WIDTH > 1))
    grid(ceildiv(n, TILE * WIDTH), ceildiv(n, TILE))
    args(n = 1536, a = random[n * n], b = random[n * n], c = out[n * n])
    check(c, rtol = 1e-4)
    default(block.x = 16, block.y = 16, TILE = 16, WIDTH = 1, UNROLL = 16, PREFETCH = 1, SPILL = 0)
*/
__global__ void matmul_rect(int n, const float *a, const float *b, float *c) {
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE * WIDTH];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * TILE + y, column = blockIdx.x * (TILE * WIDTH) + x;
    const float *from_a = a + row * n + x;
    const float *from_b = b + y * n + column;
    float *to = c + row * n + column;
#if SPILL
    __shared__ float *volatile spilled[TILE][TILE];
    spilled[y][x] = to;
#endif
    float sum[WIDTH] = {};
#if PREFETCH
    float next_a = *from_a, next_b[WIDTH];
#pragma unroll
    for (int w = 0; w < WIDTH; ++w) next_b[w] = from_b[w * TILE];
#endif
    for (int first = 0; first < n; first += TILE) {
#if PREFETCH
        tile_a[y][x] = next_a;
#pragma unroll
        for (int w = 0; w < WIDTH; ++w) tile_b[y][x + w * TILE] = next_b[w];
#else
        tile_a[y][x] = *from_a;
#pragma unroll
        for (int w = 0; w < WIDTH; ++w) tile_b[y][x + w * TILE] = from_b[w * TILE];
#endif
        __syncthreads();
        from_a += TILE;
        from_b += TILE * n;
#if PREFETCH
        if (first + TILE < n) {
            next_a = *from_a;
#pragma unroll
            for (int w = 0; w < WIDTH; ++w) next_b[w] = from_b[w * TILE];
        }
#endif
#pragma unroll UNROLLED
        for (int k = 0; k < TILE; ++k) {
            const float shared_a = tile_a[y][k];
#pragma unroll
            for (int w = 0; w < WIDTH; ++w) sum[w] += shared_a * tile_b[k][x + w * TILE];
        }
        __syncthreads();
    }
#if SPILL
    to = spilled[y][x];
#endif
#pragma unroll
    for (int w = 0; w < WIDTH; ++w) to[w * TILE] = sum[w];
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef MATMUL_RECT_BLOCK_X
    shape.block = nvtune::matmul_rect::block();
    shape.grid = nvtune::matmul_rect::grid(n);
    shape.shared = nvtune::matmul_rect::shared();
    shape.header = true;
#else
    shape.block = dim3(TILE, TILE);
    shape.grid = dim3(n / (TILE * WIDTH), n / TILE);
#endif
    return shape;
}

// A matrix of n x n elements as the corner of one of `padded` x `padded`, zeros elsewhere: they add nothing.
static std::vector<float> pad(const std::vector<float> &matrix, int n, int padded) {
    std::vector<float> result(std::size_t(padded) * padded);
    for (int row = 0; row < n; ++row) {
        std::copy_n(&matrix[std::size_t(row) * n], n, &result[std::size_t(row) * padded]);
    }
    return result;
}

int main(int argc, char **argv) {
    // Indices are below 2^30.
    const bench::Options options = bench::parse(argc, argv, "matmul_rect", 1536, 1 << 15);
    const int n = options.size, padded = (n + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
    const std::size_t elements = std::size_t(n) * n;
    const std::vector<float> a = bench::random(elements, options, 0, 0.0f, 1.0f);
    const std::vector<float> b = bench::random(elements, options, 1, 0.0f, 1.0f);
    bench::Array<float> device_a(pad(a, n, padded)), device_b(pad(b, n, padded));
    bench::Array<float> device_c(std::size_t(padded) * padded);

    const bench::Shape launch = shape(padded);
    return bench::finish(
        "matmul_rect", options, launch, matmul_rect, bench::Comparison(1e-4, 0.0),
        [&] {
            matmul_rect<<<launch.grid, launch.block, launch.shared>>>(padded, device_a.data(), device_b.data(),
                                                                      device_c.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float> c = device_c.read();
            for (const std::size_t at : bench::sample(elements, (std::size_t(1) << 26) / n)) {
                const std::size_t row = at / n, column = at % n;
                double sum = 0.0;
                for (int k = 0; k < n; ++k) sum += double(a[row * n + k]) * b[std::size_t(k) * n + column];
                comparison.add("c", at, c[row * padded + column], sum);
            }
        });
}
