// A stencil of 25 points in three dimensions: each point of a cube and its four neighbours to all six sides, weighted
// by distance. A block is a rectangle of x and y that moves along DEPTH planes of z; a thread keeps its column in
// registers, and the plane is in shared memory (TILED) or comes from the caches.
#include "../common/bench.h"

#if __has_include("stencil3d.tune.h")
#include "stencil3d.tune.h"
#endif

#ifndef TILED
#define TILED 1
#endif
#ifndef DEPTH
#define DEPTH 64
#endif

constexpr int RADIUS = 4;

__constant__ float weights[RADIUS + 1];

/*@tune
    define(TILED = {0, 1}, DEPTH = {32, 64, 128, 384})
    block({16, 32, 64, 128}, {4, 8, 16, 32})
    grid(ceildiv(n, block.x), ceildiv(n, block.y), ceildiv(n, DEPTH))
    shared(TILED * (block.x + 8) * (block.y + 8) * sizeof(float)) regs(auto)
    args(n = 384, in = random[(n + 8) * (n + 8) * (n + 8)], result = out[n * n * n])
    symbol(weights = random(-1, 1)[5])
    check(result, rtol = 1e-4, atol = 1e-5)
    default(block.x = 32, block.y = 8, TILED = 1, DEPTH = 64)
*/
__global__ void stencil3d(int n, const float *__restrict__ in, float *__restrict__ result) {
    // The cube has a rim of RADIUS points on all sides, with the values of the boundary.
    extern __shared__ float tile[];
    const int side = n + 2 * RADIUS;
    const std::size_t plane = std::size_t(side) * side;
    const int left = blockIdx.x * blockDim.x, top = blockIdx.y * blockDim.y;
    const int x = left + threadIdx.x, y = top + threadIdx.y;
    const int first = blockIdx.z * DEPTH, end = min(n, first + DEPTH);
    const bool inside = x < n && y < n;
    // Threads past the end stay for the barriers, and bring the part of the rim that they stand on.
    const int in_x = min(x + RADIUS, side - 1), in_y = min(y + RADIUS, side - 1);
#if !TILED
    if (!inside) return;
#endif
    // The column from four points below to four above; the point itself is in the middle.
    float column[2 * RADIUS + 1];
    const float *next = in + first * plane + std::size_t(in_y) * side + in_x;
#pragma unroll
    for (int k = 0; k < 2 * RADIUS; ++k, next += plane) column[k + 1] = *next;

    for (int z = first; z < end; ++z, next += plane) {
#pragma unroll
        for (int k = 0; k < 2 * RADIUS; ++k) column[k] = column[k + 1];
        column[2 * RADIUS] = *next;
        float sum = weights[0] * column[RADIUS];
#if TILED
        const float *here = in + (z + RADIUS) * plane;
        const int pitch = blockDim.x + 2 * RADIUS;
        float *center = &tile[(threadIdx.y + RADIUS) * pitch + threadIdx.x + RADIUS];
        *center = column[RADIUS];
        if (threadIdx.x < RADIUS) {
            const float *row = here + std::size_t(in_y) * side;
            center[-RADIUS] = row[left + threadIdx.x];
            center[blockDim.x] = row[min(x + int(blockDim.x) + RADIUS, side - 1)];
        }
        if (threadIdx.y < RADIUS) {
            center[-RADIUS * pitch] = here[std::size_t(top + threadIdx.y) * side + in_x];
            center[int(blockDim.y) * pitch] =
                here[std::size_t(min(y + int(blockDim.y) + RADIUS, side - 1)) * side + in_x];
        }
        __syncthreads();
#else
        const float *center = next - RADIUS * plane;
        const int pitch = side;
#endif
#pragma unroll
        for (int r = 1; r <= RADIUS; ++r) {
            sum += weights[r] * (column[RADIUS - r] + column[RADIUS + r] + center[-r] + center[r] +
                                 center[-r * pitch] + center[r * pitch]);
        }
        if (inside) result[(std::size_t(z) * n + y) * n + x] = sum;
#if TILED
        __syncthreads();
#endif
    }
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef STENCIL3D_BLOCK_X
    shape.block = nvtune::stencil3d::block();
    shape.grid = nvtune::stencil3d::grid(n);
    shape.shared = nvtune::stencil3d::shared();
    shape.header = true;
#else
    shape.block = dim3(32, 8);
    shape.grid = dim3((n + 31) / 32, (n + 7) / 8, (n + DEPTH - 1) / DEPTH);
    shape.shared = TILED * (32 + 2 * RADIUS) * (8 + 2 * RADIUS) * sizeof(float);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // The size is the side of the cube.
    const bench::Options options = bench::parse(argc, argv, "stencil3d", 384, 1024);
    const std::size_t n = options.size, side = n + 2 * RADIUS;
    const std::vector<float> in = bench::random(side * side * side, options, 0, 0.0f, 1.0f);
    // The Laplacian by differences of the eighth order.
    const float factors[RADIUS + 1] = {-205.0f / 24.0f, 1.6f, -0.2f, 8.0f / 315.0f, -1.0f / 560.0f};
    BENCH_CUDA(cudaMemcpyToSymbol(weights, factors, sizeof(factors)));
    bench::Array<float> device_in(in), device_result(n * n * n);

    const bench::Shape launch = shape(options.size);
    return bench::finish(
        "stencil3d", options, launch, stencil3d, bench::Comparison(1e-5, 1e-5),
        [&] {
            stencil3d<<<launch.grid, launch.block, launch.shared>>>(options.size, device_in.data(),
                                                                    device_result.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float> result = device_result.read();
            for (const std::size_t at : bench::sample(n * n * n, std::size_t(1) << 21)) {
                const std::size_t x = at % n + RADIUS, y = at / n % n + RADIUS, z = at / n / n + RADIUS;
                const auto value = [&](std::size_t i, std::size_t j, std::size_t k) {
                    return double(in[(k * side + j) * side + i]);
                };
                double sum = factors[0] * value(x, y, z);
                for (int r = 1; r <= RADIUS; ++r) {
                    sum += factors[r] * (value(x - r, y, z) + value(x + r, y, z));
                    sum += factors[r] * (value(x, y - r, z) + value(x, y + r, z));
                    sum += factors[r] * (value(x, y, z - r) + value(x, y, z + r));
                }
                comparison.add("result", at, result[at], sum);
            }
        });
}
