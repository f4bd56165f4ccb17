// Motion estimation as in H.264: for each macroblock of 16 x 16 pixels and each of its quarters, the motion vector with
// the least sum of absolute differences, by full search. A block makes a macroblock, a thread WORK vectors at a time.
#include "../common/bench.h"

#if __has_include("h264_me.tune.h")
#include "h264_me.tune.h"
#endif

#ifndef WORK
#define WORK 1
#endif
// Rows of a quarter that are unrolled.
#ifndef UNROLL
#define UNROLL 1
#endif

constexpr int EDGE = 16;                // pixels of a macroblock
constexpr int RANGE = 16;               // vectors are from -RANGE to RANGE - 1 in x and y
constexpr int SPAN = 2 * RANGE;         // vectors in one dimension
constexpr int WINDOW = EDGE + SPAN - 1; // pixels that they reach
constexpr int ROWS = UNROLL;            // the pragma takes no macro

static_assert(SPAN % WORK == 0, "a thread's vectors are of one row");

/*@tune
    define(WORK = {1, 2, 4}, UNROLL = {1, 2, 8}) block({32, 64:512:64}) regs(auto)
    grid(width / 16, height / 16)
    args(width = 1920, height = 1088, current = random[width * height], reference = random[width * height],
         best = out[width / 16 * (height / 16) * 5])
    default(block = 128, WORK = 1, UNROLL = 1)
*/
__global__ void h264_me(int width, int height, const unsigned char *__restrict__ current,
                        const unsigned char *__restrict__ reference, unsigned *__restrict__ best) {
    __shared__ unsigned char macroblock[EDGE][EDGE];
    __shared__ unsigned char window[WINDOW][WINDOW + 1];
    // The best of the four quarters and of the whole: the sum above 16 bits with the vector's number.
    __shared__ unsigned least[5];
    const int left = blockIdx.x * EDGE, top = blockIdx.y * EDGE;
    for (int at = threadIdx.x; at < EDGE * EDGE; at += blockDim.x) {
        macroblock[at / EDGE][at % EDGE] = current[(top + at / EDGE) * width + left + at % EDGE];
    }
    for (int at = threadIdx.x; at < WINDOW * WINDOW; at += blockDim.x) {
        // Beyond the picture its edge goes on.
        const int y = min(max(top - RANGE + at / WINDOW, 0), height - 1);
        const int x = min(max(left - RANGE + at % WINDOW, 0), width - 1);
        window[at / WINDOW][at % WINDOW] = reference[y * width + x];
    }
    if (threadIdx.x < 5) least[threadIdx.x] = 0xffffffffu;
    __syncthreads();

    unsigned mine[5] = {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu};
    for (int number = threadIdx.x * WORK; number < SPAN * SPAN; number += blockDim.x * WORK) {
        const int dy = number / SPAN, dx = number % SPAN;
        unsigned sum[4][WORK] = {};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll ROWS
            for (int row = 0; row < EDGE / 2; ++row) {
                const int y = half * (EDGE / 2) + row;
                // Neighbouring vectors share all pixels of a row but one.
                int pixels[EDGE + WORK - 1];
#pragma unroll
                for (int x = 0; x < EDGE + WORK - 1; ++x) pixels[x] = window[dy + y][dx + x];
#pragma unroll
                for (int x = 0; x < EDGE; ++x) {
                    const int pixel = macroblock[y][x];
#pragma unroll
                    for (int w = 0; w < WORK; ++w) {
                        unsigned &quarter = sum[half * 2 + x / (EDGE / 2)][w];
                        quarter = __sad(pixel, pixels[x + w], quarter);
                    }
                }
            }
        }
#pragma unroll
        for (int w = 0; w < WORK; ++w) {
            const unsigned vector = number + w;
#pragma unroll
            for (int part = 0; part < 4; ++part) mine[part] = min(mine[part], sum[part][w] << 16 | vector);
            const unsigned whole = sum[0][w] + sum[1][w] + sum[2][w] + sum[3][w];
            mine[4] = min(mine[4], whole << 16 | vector);
        }
    }
#pragma unroll
    for (int part = 0; part < 5; ++part) atomicMin(&least[part], mine[part]);
    __syncthreads();
    if (threadIdx.x < 5) best[(blockIdx.y * gridDim.x + blockIdx.x) * 5 + threadIdx.x] = least[threadIdx.x];
}

static bench::Shape shape(int width, int height) {
    bench::Shape shape;
#ifdef H264_ME_BLOCK_X
    shape.block = nvtune::h264_me::block();
    shape.grid = nvtune::h264_me::grid(width, height);
    shape.shared = nvtune::h264_me::shared();
    shape.header = true;
#else
    shape.block = dim3(128);
    shape.grid = dim3(width / EDGE, height / EDGE);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Size: macroblocks in a row of the picture, which has the form 16:9. Pixels are below 2^28.
    const bench::Options options = bench::parse(argc, argv, "h264_me", 120, 1024);
    const int across = options.size, down = (options.size * 9 + 15) / 16, width = EDGE * across, height = EDGE * down;
    const std::size_t pixels = std::size_t(width) * height;
    // The scene has moved by (5, -3) from the reference to the current picture, with a little noise.
    std::vector<unsigned char> reference(pixels), current(pixels);
    for (std::size_t at = 0; at < pixels; ++at) {
        reference[at] = static_cast<unsigned char>(bench::uniform(options.seed, 0, at, 0.0f, 256.0f));
    }
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
            const std::size_t at = std::size_t(y) * width + x;
            const std::size_t from = std::size_t((y + 3) % height) * width + (x + width - 5 % width) % width;
            const int noise = static_cast<int>(bench::uniform(options.seed, 1, at, 0.0f, 17.0f)) - 8;
            current[at] = static_cast<unsigned char>(std::min(255, std::max(0, reference[from] + noise)));
        }
    }
    const std::size_t macroblocks = std::size_t(across) * down;
    bench::Array<unsigned char> device_current(current), device_reference(reference);
    bench::Array<unsigned> device_best(5 * macroblocks);

    const bench::Shape launch = shape(width, height);
    return bench::finish(
        "h264_me", options, launch, h264_me, bench::Comparison(0.0, 0.0),
        [&] {
            h264_me<<<launch.grid, launch.block, launch.shared>>>(width, height, device_current.data(),
                                                                  device_reference.data(), device_best.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<unsigned> best = device_best.read();
            for (const std::size_t at : bench::sample(macroblocks, 512)) {
                const int left = static_cast<int>(at % across) * EDGE, top = static_cast<int>(at / across) * EDGE;
                for (int part = 0; part < 5; ++part) {
                    // The four quarters, row by row, then the whole.
                    const int x0 = left + (part < 4 ? part % 2 * 8 : 0), y0 = top + (part < 4 ? part / 2 * 8 : 0);
                    const int size = part < 4 ? 8 : 16;
                    long long least = -1, chosen = 0;
                    for (int dy = -RANGE; dy < RANGE; ++dy) {
                        for (int dx = -RANGE; dx < RANGE; ++dx) {
                            long long sum = 0;
                            for (int y = y0; y < y0 + size; ++y) {
                                for (int x = x0; x < x0 + size; ++x) {
                                    const int fy = std::min(std::max(y + dy, 0), height - 1);
                                    const int fx = std::min(std::max(x + dx, 0), width - 1);
                                    sum += std::abs(current[std::size_t(y) * width + x] -
                                                    reference[std::size_t(fy) * width + fx]);
                                }
                            }
                            if (least >= 0 && sum >= least) continue;
                            least = sum;
                            chosen = (dy + RANGE) * SPAN + dx + RANGE;
                        }
                    }
                    comparison.add("best", 5 * at + part, best[5 * at + part], double(least * 65536 + chosen));
                }
            }
        });
}
