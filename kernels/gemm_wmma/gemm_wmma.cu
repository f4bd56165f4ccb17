// C = A B on square row-major matrices of halves, added up in floats by the tensor cores. A block makes a tile of C,
// each of its WARPS_M x WARPS_N warps FRAGMENTS x FRAGMENTS fragments of 16 x 16; slices of A and B, K_STEP deep, pass
// through shared memory.
#include "../common/bench.h"

#include <cuda_fp16.h>
#include <mma.h>

#if __has_include("gemm_wmma.tune.h")
#include "gemm_wmma.tune.h"
#endif

#ifndef WARPS_M
#define WARPS_M 4
#endif
#ifndef WARPS_N
#define WARPS_N 2
#endif
#ifndef FRAGMENTS
#define FRAGMENTS 2
#endif
#ifndef K_STEP
#define K_STEP 32
#endif

// Copies ROWS x COLUMNS halves of a matrix to shared memory, 8 (16 bytes) an access; past its edge there are zeros. The
// size is a multiple of 8, so that no access is across the edge.
template <int ROWS, int COLUMNS, int PITCH>
__device__ inline void copy_tile(half *tile, const half *matrix, int size, int top, int left) {
    constexpr int THREADS = 32 * WARPS_M * WARPS_N, WIDTH = COLUMNS / 8;
#pragma unroll
    for (int at = threadIdx.x; at < ROWS * WIDTH; at += THREADS) {
        const int row = at / WIDTH, column = at % WIDTH * 8;
        uint4 eight = make_uint4(0, 0, 0, 0);
        if (top + row < size && left + column < size) {
            eight = *reinterpret_cast<const uint4 *>(&matrix[std::size_t(top + row) * size + left + column]);
        }
        *reinterpret_cast<uint4 *>(&tile[row * PITCH + column]) = eight;
    }
}

/*@tune
    define(WARPS_M = {2, 4}, WARPS_N = {1, 2, 4}, FRAGMENTS = {2, 4}, K_STEP = {16, 32})
    block({64, 128, 256, 512}) require(block.x == 32 * WARPS_M * WARPS_N)
    grid(ceildiv(n, 16 * FRAGMENTS * WARPS_N), ceildiv(n, 16 * FRAGMENTS * WARPS_M)) regs(auto)
    args(n = 4096, a = random(-1, 1)[n * n], b = random(-1, 1)[n * n], c = out[n * n])
    check(c, rtol = 1e-3, atol = 1e-2)
    default(block = 256, WARPS_M = 4, WARPS_N = 2, FRAGMENTS = 2, K_STEP = 32)
*/
__global__ void gemm_wmma(int n, const half *__restrict__ a, const half *__restrict__ b, float *__restrict__ c) {
    using namespace nvcuda;
    // n is a multiple of 16. Rows in shared memory are 16 bytes longer than needed, so that they begin in other banks.
    constexpr int TILE_M = 16 * FRAGMENTS * WARPS_M, TILE_N = 16 * FRAGMENTS * WARPS_N;
    constexpr int PITCH_A = K_STEP + 8, PITCH_B = TILE_N + 8;
    __shared__ __align__(128) half tile_a[TILE_M * PITCH_A];
    __shared__ __align__(128) half tile_b[K_STEP * PITCH_B];
    const int warp = threadIdx.x / 32;
    const int warp_m = warp / WARPS_N * 16 * FRAGMENTS, warp_n = warp % WARPS_N * 16 * FRAGMENTS;
    const int top = blockIdx.y * TILE_M, left = blockIdx.x * TILE_N;

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[FRAGMENTS][FRAGMENTS];
#pragma unroll
    for (int i = 0; i < FRAGMENTS; ++i) {
#pragma unroll
        for (int j = 0; j < FRAGMENTS; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
    }
    for (int first = 0; first < n; first += K_STEP) {
        copy_tile<TILE_M, K_STEP, PITCH_A>(tile_a, a, n, top, first);
        copy_tile<K_STEP, TILE_N, PITCH_B>(tile_b, b, n, first, left);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < K_STEP; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> part_a[FRAGMENTS];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> part_b[FRAGMENTS];
#pragma unroll
            for (int i = 0; i < FRAGMENTS; ++i) {
                wmma::load_matrix_sync(part_a[i], &tile_a[(warp_m + 16 * i) * PITCH_A + k], PITCH_A);
                wmma::load_matrix_sync(part_b[i], &tile_b[k * PITCH_B + warp_n + 16 * i], PITCH_B);
            }
#pragma unroll
            for (int i = 0; i < FRAGMENTS; ++i) {
#pragma unroll
                for (int j = 0; j < FRAGMENTS; ++j) wmma::mma_sync(sum[i][j], part_a[i], part_b[j], sum[i][j]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < FRAGMENTS; ++i) {
#pragma unroll
        for (int j = 0; j < FRAGMENTS; ++j) {
            // A fragment is inside or outside as a whole.
            const int row = top + warp_m + 16 * i, column = left + warp_n + 16 * j;
            if (row < n && column < n) {
                wmma::store_matrix_sync(&c[std::size_t(row) * n + column], sum[i][j], n, wmma::mem_row_major);
            }
        }
    }
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef GEMM_WMMA_BLOCK_X
    shape.block = nvtune::gemm_wmma::block();
    shape.grid = nvtune::gemm_wmma::grid(n);
    shape.shared = nvtune::gemm_wmma::shared();
    shape.header = true;
#else
    constexpr int TILE_M = 16 * FRAGMENTS * WARPS_M, TILE_N = 16 * FRAGMENTS * WARPS_N;
    shape.block = dim3(32 * WARPS_M * WARPS_N);
    shape.grid = dim3((n + TILE_N - 1) / TILE_N, (n + TILE_M - 1) / TILE_M);
#endif
    return shape;
}

// Multiples of 2^-10 in [-1, 1), which halves represent exactly; zeros fill up the rows and columns from `used` on.
static std::vector<float> matrix(int n, int used, const bench::Options &options, std::uint64_t stream) {
    std::vector<float> values(std::size_t(n) * n, 0.0f);
    for (int row = 0; row < used; ++row) {
        for (int column = 0; column < used; ++column) {
            const std::size_t at = std::size_t(row) * n + column;
            values[at] = std::floor(bench::uniform(options.seed, stream, at, -1024.0f, 1024.0f)) / 1024.0f;
        }
    }
    return values;
}

static std::vector<half> halves(const std::vector<float> &values) {
    std::vector<half> result(values.size());
    for (std::size_t at = 0; at < values.size(); ++at) result[at] = __float2half(values[at]);
    return result;
}

int main(int argc, char **argv) {
    // The size is the side of the matrices; in memory it is rounded up to whole fragments.
    const bench::Options options = bench::parse(argc, argv, "gemm_wmma", 4096, 1 << 15);
    const int n = (options.size + 15) / 16 * 16;
    const std::size_t elements = std::size_t(n) * n;
    const std::vector<float> a = matrix(n, options.size, options, 0), b = matrix(n, options.size, options, 1);
    bench::Array<half> device_a(halves(a)), device_b(halves(b));
    bench::Array<float> device_c(elements);

    const bench::Shape launch = shape(n);
    // Products of both signs cancel, and tensor cores round as they add: the error is absolute. One wrong product is
    // 0.3.
    return bench::finish(
        "gemm_wmma", options, launch, gemm_wmma, bench::Comparison(1e-3, 1e-2),
        [&] {
            gemm_wmma<<<launch.grid, launch.block, launch.shared>>>(n, device_a.data(), device_b.data(),
                                                                    device_c.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float> c = device_c.read();
            for (const std::size_t at : bench::sample(elements, std::max<std::size_t>(1, (std::size_t(1) << 25) / n))) {
                const std::size_t row = at / n, column = at % n;
                double sum = 0.0;
                for (int k = 0; k < n; ++k) sum += double(a[row * n + k]) * b[std::size_t(k) * n + column];
                comparison.add("c", at, c[at], sum);
            }
        });
}
