// Softmax of every row of a matrix: y = exp(x - max) / sum of exp(x - max). A block makes block.y rows, block.x threads
// a row; the maximum and the sum come from two passes over the row or, ONLINE, from one.
#include "../common/bench.h"

#include <cfloat>

#if __has_include("softmax.tune.h")
#include "softmax.tune.h"
#endif

#ifndef ONLINE
#define ONLINE 0
#endif
#ifndef VECTOR
#define VECTOR 1
#endif

struct alignas(4 * VECTOR) Pack {
    float value[VECTOR];
};

// The greatest of some values, and the sum of exp(value - greatest) over them.
struct Total {
    float greatest, sum;
};

// The greatest is finite from the start, so that no difference is undefined; a sum of 0 stays one.
__device__ inline Total join(Total a, Total b) {
    const float greatest = fmaxf(a.greatest, b.greatest);
    return {greatest, a.sum * __expf(a.greatest - greatest) + b.sum * __expf(b.greatest - greatest)};
}

// The total over the threads of a row, which are whole warps; every thread of the block must come here.
__device__ inline Total join_row(Total total) {
    __shared__ Total parts[32];
    for (int apart = 16; apart > 0; apart /= 2) {
        const Total other = {__shfl_xor_sync(0xffffffffu, total.greatest, apart),
                             __shfl_xor_sync(0xffffffffu, total.sum, apart)};
        total = join(total, other);
    }
    const int warps = blockDim.x / 32;
    if (warps == 1) return total;
    Total *row = parts + threadIdx.y * warps;
    __syncthreads();
    if (threadIdx.x % 32 == 0) row[threadIdx.x / 32] = total;
    __syncthreads();
    total = row[0];
    for (int warp = 1; warp < warps; ++warp) total = join(total, row[warp]);
    return total;
}

/*@tune
    define(ONLINE = {0, 1}, VECTOR = {1, 2, 4})
    block({32, 64, 128, 256, 512, 1024}, {1, 2, 4, 8})
    grid(ceildiv(rows, block.y)) regs(auto)
    args(rows = 8192, columns = 4096, x = random(-8, 8)[rows * columns], y = out[rows * columns])
    check(y, rtol = 1e-4, atol = 1e-12)
    default(block = 256, ONLINE = 0, VECTOR = 1)
*/
__global__ void softmax(int rows, int columns, const float *__restrict__ x, float *__restrict__ y) {
    // The columns are a multiple of VECTOR. A row past the end has none, but its threads meet the barriers.
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    const int packs = row < rows ? columns / VECTOR : 0;
    const Pack *from = reinterpret_cast<const Pack *>(x) + std::ptrdiff_t(row) * packs;
    Pack *to = reinterpret_cast<Pack *>(y) + std::ptrdiff_t(row) * packs;
    Total total = {-FLT_MAX, 0.0f};
    for (int at = threadIdx.x; at < packs; at += blockDim.x) {
        const Pack pack = from[at];
        float greatest = total.greatest;
#pragma unroll
        for (int k = 0; k < VECTOR; ++k) greatest = fmaxf(greatest, pack.value[k]);
#if ONLINE
        float sum = total.sum * __expf(total.greatest - greatest);
#pragma unroll
        for (int k = 0; k < VECTOR; ++k) sum += __expf(pack.value[k] - greatest);
        total.sum = sum;
#endif
        total.greatest = greatest;
    }
    total = join_row(total);
#if !ONLINE
    for (int at = threadIdx.x; at < packs; at += blockDim.x) {
        const Pack pack = from[at];
#pragma unroll
        for (int k = 0; k < VECTOR; ++k) total.sum += __expf(pack.value[k] - total.greatest);
    }
    total = join_row(total);
#endif
    const float scale = 1.0f / total.sum;
    for (int at = threadIdx.x; at < packs; at += blockDim.x) {
        Pack pack = from[at];
#pragma unroll
        for (int k = 0; k < VECTOR; ++k) pack.value[k] = __expf(pack.value[k] - total.greatest) * scale;
        to[at] = pack;
    }
}

static bench::Shape shape(int rows) {
    bench::Shape shape;
#ifdef SOFTMAX_BLOCK_X
    shape.block = nvtune::softmax::block();
    shape.grid = nvtune::softmax::grid(rows);
    shape.shared = nvtune::softmax::shared();
    shape.header = true;
#else
    shape.block = dim3(256);
    shape.grid = dim3(rows);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // The size is the number of rows.
    const bench::Options options = bench::parse(argc, argv, "softmax", 8192, 1 << 18);
    const int rows = options.size, columns = 4096;
    const std::size_t elements = std::size_t(rows) * columns;
    const std::vector<float> x = bench::random(elements, options, 0, -8.0f, 8.0f);
    bench::Array<float> device_x(x), device_y(elements);

    const bench::Shape launch = shape(rows);
    return bench::finish(
        "softmax", options, launch, softmax, bench::Comparison(1e-4, 1e-12),
        [&] {
            softmax<<<launch.grid, launch.block, launch.shared>>>(rows, columns, device_x.data(), device_y.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float> y = device_y.read();
            for (const std::size_t row : bench::sample(rows, 2048)) {
                const float *values = &x[row * columns];
                double sum = 0.0;
                for (int k = 0; k < columns; ++k) sum += std::exp(double(values[k]));
                for (int k = 0; k < columns; ++k) {
                    comparison.add("y", row * columns + k, y[row * columns + k], std::exp(double(values[k])) / sum);
                }
            }
        });
}
