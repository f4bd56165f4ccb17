// Layer normalisation of every row of a matrix: y = gain * (x - mean) / sqrt(variance + epsilon) + bias. A block makes
// a row; CACHE keeps the row in dynamic shared memory between the passes, else each pass reads it again.
#include "../common/bench.h"

#if __has_include("layer_norm.tune.h")
#include "layer_norm.tune.h"
#endif

#ifndef CACHE
#define CACHE 0
#endif
#ifndef VECTOR
#define VECTOR 1
#endif

struct alignas(4 * VECTOR) Pack {
    float value[VECTOR];
};

// The sum over all threads of the block, which are whole warps.
__device__ inline float sum_block(float value) {
    __shared__ float parts[32];
    for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(0xffffffffu, value, apart);
    // The sum before may still be read.
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0.0f;
    for (int warp = 0; warp < blockDim.x / 32; ++warp) value += parts[warp];
    return value;
}

/*@tune
    define(CACHE = {0, 1}, VECTOR = {1, 2, 4})
    block(32:512:32) grid(rows) shared(CACHE * columns * sizeof(float)) regs(auto)
    args(rows = 16384, columns = 2048, epsilon = 1e-5f, x = random(-4, 4)[rows * columns],
         gain = random(0.5, 1.5)[columns], bias = random(-1, 1)[columns], y = out[rows * columns])
    check(y, rtol = 1e-4, atol = 1e-5)
    default(block = 256, CACHE = 0, VECTOR = 1)
*/
__global__ void layer_norm(int rows, int columns, float epsilon, const float *__restrict__ x,
                           const float *__restrict__ gain, const float *__restrict__ bias, float *__restrict__ y) {
    // The columns are a multiple of VECTOR. A thread reads from the cache only what it wrote there itself.
    extern __shared__ float4 memory[];
    Pack *cache = reinterpret_cast<Pack *>(memory);
    const int packs = columns / VECTOR;
    const Pack *from = reinterpret_cast<const Pack *>(x) + std::ptrdiff_t(blockIdx.x) * packs;
    const Pack *gains = reinterpret_cast<const Pack *>(gain);
    const Pack *biases = reinterpret_cast<const Pack *>(bias);
    Pack *to = reinterpret_cast<Pack *>(y) + std::ptrdiff_t(blockIdx.x) * packs;
    float sum = 0.0f;
    for (int at = threadIdx.x; at < packs; at += blockDim.x) {
        const Pack pack = from[at];
        if (CACHE) cache[at] = pack;
#pragma unroll
        for (int k = 0; k < VECTOR; ++k) sum += pack.value[k];
    }
    const float mean = sum_block(sum) / columns;
    float squares = 0.0f;
    for (int at = threadIdx.x; at < packs; at += blockDim.x) {
        const Pack pack = CACHE ? cache[at] : from[at];
#pragma unroll
        for (int k = 0; k < VECTOR; ++k) squares += (pack.value[k] - mean) * (pack.value[k] - mean);
    }
    const float scale = rsqrtf(sum_block(squares) / columns + epsilon);
    for (int at = threadIdx.x; at < packs; at += blockDim.x) {
        Pack pack = CACHE ? cache[at] : from[at];
        const Pack pack_gain = gains[at], pack_bias = biases[at];
#pragma unroll
        for (int k = 0; k < VECTOR; ++k) {
            pack.value[k] = pack_gain.value[k] * ((pack.value[k] - mean) * scale) + pack_bias.value[k];
        }
        to[at] = pack;
    }
}

static bench::Shape shape(int rows, int columns) {
    bench::Shape shape;
#ifdef LAYER_NORM_BLOCK_X
    shape.block = nvtune::layer_norm::block();
    shape.grid = nvtune::layer_norm::grid(rows);
    shape.shared = nvtune::layer_norm::shared(columns);
    shape.header = true;
#else
    shape.block = dim3(256);
    shape.grid = dim3(rows);
    shape.shared = CACHE * columns * sizeof(float);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // The size is the number of rows.
    const bench::Options options = bench::parse(argc, argv, "layer_norm", 16384, 1 << 18);
    const int rows = options.size, columns = 2048;
    const float epsilon = 1e-5f;
    const std::size_t elements = std::size_t(rows) * columns;
    const std::vector<float> x = bench::random(elements, options, 0, -4.0f, 4.0f);
    const std::vector<float> gain = bench::random(columns, options, 1, 0.5f, 1.5f);
    const std::vector<float> bias = bench::random(columns, options, 2, -1.0f, 1.0f);
    bench::Array<float> device_x(x), device_gain(gain), device_bias(bias), device_y(elements);

    const bench::Shape launch = shape(rows, columns);
    return bench::finish(
        "layer_norm", options, launch, layer_norm, bench::Comparison(1e-4, 1e-5),
        [&] {
            layer_norm<<<launch.grid, launch.block, launch.shared>>>(rows, columns, epsilon, device_x.data(),
                                                                     device_gain.data(), device_bias.data(),
                                                                     device_y.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float> y = device_y.read();
            for (const std::size_t row : bench::sample(rows, 4096)) {
                const float *values = &x[row * columns];
                double sum = 0.0, squares = 0.0;
                for (int k = 0; k < columns; ++k) {
                    sum += values[k];
                    squares += double(values[k]) * values[k];
                }
                const double mean = sum / columns, deviation = std::sqrt(squares / columns - mean * mean + epsilon);
                for (int k = 0; k < columns; ++k) {
                    comparison.add("y", row * columns + k, y[row * columns + k],
                                   (values[k] - mean) / deviation * gain[k] + bias[k]);
                }
            }
        });
}
