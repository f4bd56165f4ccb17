// Convolution of an image with a filter of 17 x 17 in constant memory. A block loads its part of the image, with a rim,
// into shared memory; each of its threads makes WORK_X x WORK_Y points, a block's width apart in x and next to each
// other in y.
#include "../common/bench.h"

#if __has_include("conv2d.tune.h")
#include "conv2d.tune.h"
#endif

#ifndef WORK_X
#define WORK_X 1
#endif
#ifndef WORK_Y
#define WORK_Y 1
#endif
#ifndef PAD
#define PAD 0
#endif

constexpr int FILTER = 17;
constexpr int RIM = FILTER - 1;

__constant__ float filter[FILTER * FILTER];

/*@tune
    define(WORK_X = {1, 2, 4}, WORK_Y = {1, 2, 4, 8}, PAD = {0, 1})
    block({16, 32, 64, 128}, {2, 4, 8, 16})
    grid(ceildiv(width, block.x * WORK_X), ceildiv(height, block.y * WORK_Y))
    shared((block.x * WORK_X + 16 + PAD) * (block.y * WORK_Y + 16) * sizeof(float))
    regs({0, 32, 64, 128})
    args(width = 4096, height = 4096, in = random[(width + 16) * (height + 16)], result = out[width * height])
    symbol(filter = random(-1, 1)[289])
    check(result, rtol = 1e-4, atol = 1e-4)
    default(block.x = 32, block.y = 8, WORK_X = 1, WORK_Y = 1, PAD = 0)
*/
__global__ void conv2d(int width, int height, const float *__restrict__ in, float *__restrict__ result) {
    // The image has a rim, half a filter wide on each side, so that it is wider and higher than the result by RIM.
    extern __shared__ float part[];
    const int part_width = blockDim.x * WORK_X + RIM, part_height = blockDim.y * WORK_Y + RIM;
    const int pitch = part_width + PAD;
    const int left = blockIdx.x * blockDim.x * WORK_X, top = blockIdx.y * blockDim.y * WORK_Y;
    for (int y = threadIdx.y; y < part_height; y += blockDim.y) {
        for (int x = threadIdx.x; x < part_width; x += blockDim.x) {
            const bool inside = top + y < height + RIM && left + x < width + RIM;
            part[y * pitch + x] = inside ? in[std::size_t(top + y) * (width + RIM) + left + x] : 0.0f;
        }
    }
    __syncthreads();

    // A value from shared memory serves all points of the thread's column that it counts for.
    float sum[WORK_Y][WORK_X] = {};
    const float *mine = part + threadIdx.y * WORK_Y * pitch + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < FILTER; ++i) {
#pragma unroll
        for (int r = 0; r < WORK_Y + RIM; ++r) {
#pragma unroll
            for (int u = 0; u < WORK_X; ++u) {
                const float value = mine[r * pitch + u * blockDim.x + i];
#pragma unroll
                for (int v = 0; v < WORK_Y; ++v) {
                    // A convolution turns the filter.
                    const int j = r - v;
                    if (j >= 0 && j < FILTER) sum[v][u] += filter[(FILTER - 1 - j) * FILTER + FILTER - 1 - i] * value;
                }
            }
        }
    }
#pragma unroll
    for (int v = 0; v < WORK_Y; ++v) {
#pragma unroll
        for (int u = 0; u < WORK_X; ++u) {
            const int x = left + u * blockDim.x + threadIdx.x, y = top + threadIdx.y * WORK_Y + v;
            if (x < width && y < height) result[std::size_t(y) * width + x] = sum[v][u];
        }
    }
}

static bench::Shape shape(int width, int height) {
    bench::Shape shape;
#ifdef CONV2D_BLOCK_X
    shape.block = nvtune::conv2d::block();
    shape.grid = nvtune::conv2d::grid(width, height);
    shape.shared = nvtune::conv2d::shared();
    shape.header = true;
#else
    shape.block = dim3(32, 8);
    shape.grid = dim3((width + 32 * WORK_X - 1) / (32 * WORK_X), (height + 8 * WORK_Y - 1) / (8 * WORK_Y));
    shape.shared = (32 * WORK_X + RIM + PAD) * (8 * WORK_Y + RIM) * sizeof(float);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // The size is the side of the image.
    const bench::Options options = bench::parse(argc, argv, "conv2d", 4096, 1 << 15);
    const std::size_t n = options.size, pitch = n + RIM;
    const std::vector<float> in = bench::random(pitch * pitch, options, 0, 0.0f, 1.0f);
    const std::vector<float> factors = bench::random(FILTER * FILTER, options, 1, -1.0f, 1.0f);
    BENCH_CUDA(cudaMemcpyToSymbol(filter, factors.data(), factors.size() * sizeof(float)));
    bench::Array<float> device_in(in), device_result(n * n);

    const bench::Shape launch = shape(options.size, options.size);
    // More than 48 KiB are for a block only where the program asks for them.
    BENCH_CUDA(cudaFuncSetAttribute(conv2d, cudaFuncAttributeMaxDynamicSharedMemorySize, int(launch.shared)));
    return bench::finish(
        "conv2d", options, launch, conv2d, bench::Comparison(1e-4, 1e-4),
        [&] {
            conv2d<<<launch.grid, launch.block, launch.shared>>>(options.size, options.size, device_in.data(),
                                                                 device_result.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float> result = device_result.read();
            for (const std::size_t at : bench::sample(n * n, std::size_t(1) << 17)) {
                // The point lies in the middle of what the filter covers.
                const std::size_t x = at % n + RIM / 2, y = at / n + RIM / 2;
                double sum = 0.0;
                for (int j = -RIM / 2; j <= RIM / 2; ++j) {
                    for (int i = -RIM / 2; i <= RIM / 2; ++i) {
                        sum += double(factors[(j + RIM / 2) * FILTER + i + RIM / 2]) * in[(y - j) * pitch + x - i];
                    }
                }
                comparison.add("result", at, result[at], sum);
            }
        });
}
