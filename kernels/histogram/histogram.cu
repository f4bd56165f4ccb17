// How often each of 256 values occurs among n bytes. Every block counts in COPIES histograms of its own in shared
// memory and adds them to the result at its end; a fixed grid strides over the bytes, BYTES of them an access.
#include "../common/bench.h"

#if __has_include("histogram.tune.h")
#include "histogram.tune.h"
#endif

#ifndef COPIES
#define COPIES 1
#endif
#ifndef BYTES
#define BYTES 4
#endif

constexpr int BINS = 256;

struct alignas(BYTES) Pack {
    unsigned word[BYTES / 4];
};

/*@tune
    define(COPIES = {1, 2, 4, 8}, BYTES = {4, 8, 16})
    grid({132, 264, 528, 1056, 2112}) block({64, 128, 256, 512, 1024}) regs({0, 24, 32, 64})
    args(n = 1 << 27, bytes = random[n], bins = zeros[256])
    check(bins)
    default(block = 256, grid = 528, COPIES = 1, BYTES = 4)
*/
__global__ void histogram(int n, const unsigned char *__restrict__ bytes, unsigned *bins) {
    // One element longer than a histogram, so that the same bin of two copies is in two banks. The threads of a warp
    // spread over the copies.
    __shared__ unsigned counts[COPIES][BINS + 1];
    for (int at = threadIdx.x; at < COPIES * BINS; at += blockDim.x) counts[at / BINS][at % BINS] = 0;
    __syncthreads();
    unsigned *mine = counts[threadIdx.x % COPIES];
    const Pack *packs = reinterpret_cast<const Pack *>(bytes);
    const int whole = n / BYTES;
    const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    for (int at = first; at < whole; at += stride) {
        const Pack pack = packs[at];
#pragma unroll
        for (int w = 0; w < BYTES / 4; ++w) {
#pragma unroll
            for (int shift = 0; shift < 32; shift += 8) atomicAdd(&mine[pack.word[w] >> shift & 0xff], 1u);
        }
    }
    // What is left is less than an access.
    if (first < n - whole * BYTES) atomicAdd(&mine[bytes[whole * BYTES + first]], 1u);
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        unsigned sum = 0;
#pragma unroll
        for (int copy = 0; copy < COPIES; ++copy) sum += counts[copy][bin];
        atomicAdd(&bins[bin], sum);
    }
}

static bench::Shape shape() {
    bench::Shape shape;
#ifdef HISTOGRAM_BLOCK_X
    shape.block = nvtune::histogram::block();
    shape.grid = nvtune::histogram::grid();
    shape.shared = nvtune::histogram::shared();
    shape.header = true;
#else
    shape.block = dim3(256);
    shape.grid = dim3(528);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // The size is the number of bytes. The loop's index may pass n / 4 by one stride, which is below 2^22.
    const bench::Options options = bench::parse(argc, argv, "histogram", 1 << 27, 1 << 30);
    const int n = options.size;
    // Three bytes from each random number of 24 bits.
    std::vector<unsigned char> bytes(n);
    for (int i = 0; i < n; i += 3) {
        const unsigned bits = static_cast<unsigned>(bench::uniform(options.seed, 0, i, 0.0f, 16777216.0f));
        for (int k = 0; k < 3 && i + k < n; ++k) bytes[i + k] = bits >> 8 * k & 0xff;
    }
    bench::Array<unsigned char> device_bytes(bytes);
    // Launches add to the bins, so the first one alone, which is the one that is checked, leaves a histogram there.
    bench::Array<unsigned> device_bins(std::vector<unsigned>(BINS, 0));

    const bench::Shape launch = shape();
    return bench::finish(
        "histogram", options, launch, histogram, bench::Comparison(0.0, 0.0),
        [&] {
            histogram<<<launch.grid, launch.block, launch.shared>>>(n, device_bytes.data(), device_bins.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<unsigned> bins = device_bins.read();
            std::vector<unsigned> expected(BINS, 0);
            for (const unsigned char byte : bytes) ++expected[byte];
            for (int bin = 0; bin < BINS; ++bin) comparison.add("bins", bin, bins[bin], expected[bin]);
        });
}
