// Prices of European call and put options by the closed form of Black and Scholes; a grid-stride loop over the options.
#include "../common/bench.h"

#if __has_include("black_scholes.tune.h")
#include "black_scholes.tune.h"
#endif

// Probability that a standard normal variable is below x: the polynomial of Abramowitz and Stegun, Handbook of
// Mathematical Functions, 26.2.17 (absolute error below 7.5e-8).
__device__ inline float normal_below(float x) {
    const float t = 1.0f / (1.0f + 0.2316419f * fabsf(x));
    const float series =
        t * (0.319381530f + t * (-0.356563782f + t * (1.781477937f + t * (-1.821255978f + t * 1.330274429f))));
    const float above = 0.3989422804f * expf(-0.5f * x * x) * series;
    return x > 0.0f ? 1.0f - above : above;
}

/*@tune
    grid({132, 264, 528, 1056, 2112, 4224}) block(64:1024:64) regs(auto)
    args(n = 1 << 24, rate = 0.03f, volatility = 0.25f,
         spot = random(10.0, 50.0)[n], strike = random(10.0, 100.0)[n], years = random(0.25, 5.0)[n],
         call = out[n], put = out[n])
    default(block = 256, grid = 528)
*/
__global__ void black_scholes(int n, float rate, float volatility, const float *__restrict__ spot,
                              const float *__restrict__ strike, const float *__restrict__ years,
                              float *__restrict__ call, float *__restrict__ put) {
    const int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        const float s = spot[i], k = strike[i], t = years[i];
        const float deviation = volatility * sqrtf(t);
        const float d1 = (logf(s / k) + (rate + 0.5f * volatility * volatility) * t) / deviation;
        const float d2 = d1 - deviation;
        const float in_the_money = normal_below(d1), exercised = normal_below(d2);
        const float present = k * expf(-rate * t);
        call[i] = s * in_the_money - present * exercised;
        put[i] = present * (1.0f - exercised) - s * (1.0f - in_the_money);
    }
}

static bench::Shape shape() {
    bench::Shape shape;
#ifdef BLACK_SCHOLES_BLOCK_X
    shape.block = nvtune::black_scholes::block();
    shape.grid = nvtune::black_scholes::grid();
    shape.shared = nvtune::black_scholes::shared();
    shape.header = true;
#else
    shape.block = dim3(256);
    shape.grid = dim3(528);
#endif
    return shape;
}

static double reference_below(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }

int main(int argc, char **argv) {
    // The loop's index may pass n by one stride, which is below 2^25.
    const bench::Options options = bench::parse(argc, argv, "black_scholes", 1 << 24, 1 << 30);
    const int n = options.size;
    const float rate = 0.03f, volatility = 0.25f;
    const std::vector<float> spot = bench::random(n, options, 0, 10.0f, 50.0f);
    const std::vector<float> strike = bench::random(n, options, 1, 10.0f, 100.0f);
    const std::vector<float> years = bench::random(n, options, 2, 0.25f, 5.0f);
    bench::Array<float> device_spot(spot), device_strike(strike), device_years(years);
    bench::Array<float> device_call(n), device_put(n);

    const bench::Shape launch = shape();
    return bench::finish(
        "black_scholes", options, launch, black_scholes, bench::Comparison(1e-4, 1e-4),
        [&] {
            black_scholes<<<launch.grid, launch.block, launch.shared>>>(
                n, rate, volatility, device_spot.data(), device_strike.data(), device_years.data(),
                device_call.data(), device_put.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float> call = device_call.read(), put = device_put.read();
            for (const std::size_t i : bench::sample(n, std::size_t(1) << 22)) {
                const double s = spot[i], k = strike[i], t = years[i], v = volatility;
                const double deviation = v * std::sqrt(t);
                const double d1 = (std::log(s / k) + (rate + 0.5 * v * v) * t) / deviation;
                const double d2 = d1 - deviation;
                const double present = k * std::exp(-double(rate) * t);
                comparison.add("call", i, call[i], s * reference_below(d1) - present * reference_below(d2));
                comparison.add("put", i, put[i], present * reference_below(-d2) - s * reference_below(-d1));
            }
        });
}
