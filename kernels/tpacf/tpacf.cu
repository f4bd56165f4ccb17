// Two-point angular correlation: for each of several random catalogues of the sky, a histogram of the angles between
// its points and those of the observed one. A block has COPIES histograms in shared memory, which its lanes share out.
#include "../common/bench.h"

#if __has_include("tpacf.tune.h")
#include "tpacf.tune.h"
#endif

// Histograms of a block: lanes of a warp with the same remainder by COPIES share one.
#ifndef COPIES
#define COPIES 1
#endif
// Observed points a thread.
#ifndef WORK
#define WORK 1
#endif

constexpr int BINS = 32;  // one more than the bounds that are searched
constexpr int TILE = 128; // points of a catalogue in shared memory

// Vectors of random components have products of the same mean and spread as the cosines of random points of a sphere.
// The bounds are cosines, two for each octave of 1 - cosine.
/*@tune
    define(COPIES = {1, 4, 16, 32}, WORK = {1, 2}) block(64:512:64) regs(auto)
    grid(ceildiv(n, block.x * WORK), 64)
    args(n = 2048, bounds = each(1.0 - (2 + index % 2) * (1 << index / 2) / 65536.0)[31],
         observed = random(-1, 1)[3 * n], catalogues = random(-1, 1)[64 * 3 * n], histograms = zeros[64 * 32])
    default(block = 256, COPIES = 1, WORK = 1)
*/
__global__ void tpacf(int n, const float *bounds, const float *observed, const float *catalogues,
                      unsigned *histograms) {
    // A row of `counts` is a bin: with 32 copies, each lane has a bank of its own.
    __shared__ unsigned counts[BINS * COPIES];
    __shared__ float bound[BINS];
    __shared__ float3 tile[TILE];
    const float *const catalogue = catalogues + blockIdx.y * 3 * n;
    for (int at = threadIdx.x; at < BINS * COPIES; at += blockDim.x) counts[at] = 0;
    for (int at = threadIdx.x; at < BINS - 1; at += blockDim.x) bound[at] = bounds[at];
    float x[WORK], y[WORK], z[WORK];
#pragma unroll
    for (int w = 0; w < WORK; ++w) {
        const int i = (blockIdx.x * WORK + w) * blockDim.x + threadIdx.x;
        x[w] = i < n ? observed[i] : 0.0f;
        y[w] = i < n ? observed[n + i] : 0.0f;
        z[w] = i < n ? observed[2 * n + i] : 0.0f;
    }
    for (int first = 0; first < n; first += TILE) {
        const int here = min(TILE, n - first);
        __syncthreads();
        for (int at = threadIdx.x; at < here; at += blockDim.x) {
            const int j = first + at;
            tile[at] = make_float3(catalogue[j], catalogue[n + j], catalogue[2 * n + j]);
        }
        __syncthreads();
        for (int k = 0; k < here; ++k) {
            const float3 other = tile[k];
#pragma unroll
            for (int w = 0; w < WORK; ++w) {
                // The same rounding in every configuration: a count must not depend on it.
                const float cosine = __fmaf_rn(x[w], other.x, __fmaf_rn(y[w], other.y, __fmul_rn(z[w], other.z)));
                // The bin is the number of bounds above the cosine; bounds fall.
                int bin = 0;
#pragma unroll
                for (int step = BINS / 2; step > 0; step /= 2) {
                    if (cosine < bound[bin + step - 1]) bin += step;
                }
                const int i = (blockIdx.x * WORK + w) * blockDim.x + threadIdx.x;
                if (i < n) atomicAdd(&counts[bin * COPIES + threadIdx.x % COPIES], 1u);
            }
        }
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        unsigned sum = 0;
        for (int copy = 0; copy < COPIES; ++copy) sum += counts[bin * COPIES + copy];
        if (sum > 0) atomicAdd(&histograms[blockIdx.y * BINS + bin], sum);
    }
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef TPACF_BLOCK_X
    shape.block = nvtune::tpacf::block();
    shape.grid = nvtune::tpacf::grid(n);
    shape.shared = nvtune::tpacf::shared();
    shape.header = true;
#else
    shape.block = dim3(256);
    shape.grid = dim3((n + 256 * WORK - 1) / (256 * WORK), 64);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Size: points of a catalogue. Indices are below 192 * 2^16, counts of a launch below 2^32.
    const bench::Options options = bench::parse(argc, argv, "tpacf", 2048, 65535);
    const int n = options.size, count = 64;
    const auto sky = [&](int catalogue) {
        std::vector<float> points(3 * std::size_t(n));
        for (int i = 0; i < n; ++i) {
            const double z = bench::uniform(options.seed, 2 * catalogue, i, -1.0f, 1.0f);
            const double angle = bench::uniform(options.seed, 2 * catalogue + 1, i, 0.0f, 6.2831853f);
            const double radius = std::sqrt(1.0 - z * z);
            points[i] = static_cast<float>(radius * std::cos(angle));
            points[n + i] = static_cast<float>(radius * std::sin(angle));
            points[2 * std::size_t(n) + i] = static_cast<float>(z);
        }
        return points;
    };
    const std::vector<float> observed = sky(0);
    std::vector<float> catalogues;
    for (int at = 0; at < count; ++at) {
        const std::vector<float> points = sky(1 + at);
        catalogues.insert(catalogues.end(), points.begin(), points.end());
    }
    std::vector<float> bounds(BINS - 1);
    for (int k = 0; k < BINS - 1; ++k) bounds[k] = 1.0f - (2 + k % 2) * (1 << k / 2) / 65536.0f;
    bench::Array<float> device_bounds(bounds), device_observed(observed), device_catalogues(catalogues);
    bench::Array<unsigned> device_histograms(std::vector<unsigned>(std::size_t(count) * BINS, 0));

    const bench::Shape launch = shape(n);
    // An angle at a bound may fall to either side of it, in float and in double: one pair in a million.
    return bench::finish(
        "tpacf", options, launch, tpacf, bench::Comparison(1e-5, 4.0),
        [&] {
            tpacf<<<launch.grid, launch.block, launch.shared>>>(n, device_bounds.data(), device_observed.data(),
                                                                device_catalogues.data(), device_histograms.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<unsigned> histograms = device_histograms.read();
            const std::size_t most = (std::size_t(1) << 25) / (std::size_t(n) * n);
            for (const std::size_t at : bench::sample(count, std::max<std::size_t>(1, most))) {
                const float *const catalogue = &catalogues[at * 3 * n];
                std::vector<double> expected(BINS, 0.0);
                for (int i = 0; i < n; ++i) {
                    for (int j = 0; j < n; ++j) {
                        double cosine = 0.0;
                        for (int axis = 0; axis < 3; ++axis) {
                            const std::size_t row = std::size_t(axis) * n;
                            cosine += double(observed[row + i]) * catalogue[row + j];
                        }
                        const auto above = std::upper_bound(bounds.begin(), bounds.end(), cosine,
                                                            [](double value, float bound) { return bound <= value; });
                        ++expected[above - bounds.begin()];
                    }
                }
                for (int bin = 0; bin < BINS; ++bin) {
                    comparison.add("histograms", at * BINS + bin, histograms[at * BINS + bin], expected[bin]);
                }
            }
        });
}
