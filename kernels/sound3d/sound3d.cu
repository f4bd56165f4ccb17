// Where a sound comes from: the energy that a delay-and-sum beamformer of eight microphones gives for every point of a
// lattice in space. A grid-stride loop over the points.
#include "../common/bench.h"

#if __has_include("sound3d.tune.h")
#include "sound3d.tune.h"
#endif

constexpr int MICROPHONES = 8;
constexpr int RECORD = 2048; // samples of a microphone
constexpr int WINDOW = 128;  // samples that are summed

// Places of the microphones in metres; w is not used.
__constant__ float4 microphones[MICROPHONES];

/*@tune
    grid({132, 264, 528, 1056, 2112}) block(64:512:64) regs(auto)
    args(n = 64, spacing = 0.0625f, rate = 140.0f, record = random(-1, 1)[8 * 2048], energy = out[n * n * n])
    symbol(microphones = random(-0.5, 0.5)[8])
    check(energy, rtol = 1e-3, atol = 1e-3)
    default(block = 256, grid = 528)
*/
__global__ void sound3d(int n, float spacing, float rate, const float *__restrict__ record,
                        float *__restrict__ energy) {
    const int points = n * n * n, stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < points; i += stride) {
        // The lattice is a cube about the origin. `rate` is in samples a metre.
        const float x = (i % n - 0.5f * (n - 1)) * spacing;
        const float y = (i / n % n - 0.5f * (n - 1)) * spacing;
        const float z = (i / n / n - 0.5f * (n - 1)) * spacing;
        int from[MICROPHONES];
        float part[MICROPHONES], before[MICROPHONES];
#pragma unroll
        for (int m = 0; m < MICROPHONES; ++m) {
            const float dx = x - microphones[m].x, dy = y - microphones[m].y, dz = z - microphones[m].z;
            const float delay = fminf(sqrtf(dx * dx + dy * dy + dz * dz) * rate, float(RECORD - WINDOW - 2));
            from[m] = static_cast<int>(delay);
            part[m] = delay - from[m];
            from[m] += m * RECORD;
            before[m] = record[from[m]];
        }
        float sum = 0.0f;
        for (int t = 1; t <= WINDOW; ++t) {
            float heard = 0.0f;
#pragma unroll
            for (int m = 0; m < MICROPHONES; ++m) {
                // Between two samples: a straight line.
                const float after = record[from[m] + t];
                heard += before[m] + part[m] * (after - before[m]);
                before[m] = after;
            }
            sum += heard * heard;
        }
        energy[i] = sum;
    }
}

static bench::Shape shape() {
    bench::Shape shape;
#ifdef SOUND3D_BLOCK_X
    shape.block = nvtune::sound3d::block();
    shape.grid = nvtune::sound3d::grid();
    shape.shared = nvtune::sound3d::shared();
    shape.header = true;
#else
    shape.block = dim3(256);
    shape.grid = dim3(528);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Size: points of an edge of the lattice. The loop's index may pass 1024^3 by one stride, which is below 2^22.
    const bench::Options options = bench::parse(argc, argv, "sound3d", 64, 1024);
    const int n = options.size;
    const std::size_t points = std::size_t(n) * n * n;
    // The lattice has edges of 4 metres; sound travels 343 metres a second and is sampled 48,000 times.
    const float spacing = 4.0f / n, rate = 48000.0f / 343.0f;
    std::vector<float4> places(MICROPHONES);
    for (int m = 0; m < MICROPHONES; ++m) {
        places[m] = make_float4(bench::uniform(options.seed, 0, m, -0.5f, 0.5f),
                                bench::uniform(options.seed, 1, m, -0.5f, 0.5f),
                                bench::uniform(options.seed, 2, m, -0.5f, 0.5f), 0.0f);
    }
    BENCH_CUDA(cudaMemcpyToSymbol(microphones, places.data(), MICROPHONES * sizeof(float4)));
    const std::vector<float> record = bench::random(std::size_t(MICROPHONES) * RECORD, options, 3, -1.0f, 1.0f);
    bench::Array<float> device_record(record), device_energy(points);

    const bench::Shape launch = shape();
    // Delays are up to 600 samples, so that a float knows them to 3e-5 of a sample, and each square to about 1e-4.
    return bench::finish(
        "sound3d", options, launch, sound3d, bench::Comparison(3e-4, 2e-2),
        [&] {
            sound3d<<<launch.grid, launch.block, launch.shared>>>(n, spacing, rate, device_record.data(),
                                                                  device_energy.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float> energy = device_energy.read();
            for (const std::size_t i : bench::sample(points, std::size_t(1) << 16)) {
                const double middle = 0.5 * (n - 1);
                const double place[3] = {(double(i % n) - middle) * spacing, (double(i / n % n) - middle) * spacing,
                                         (double(i / n / n) - middle) * spacing};
                std::vector<double> heard(WINDOW, 0.0);
                for (int m = 0; m < MICROPHONES; ++m) {
                    const double away = std::hypot(place[0] - places[m].x, place[1] - places[m].y,
                                                   place[2] - places[m].z);
                    const double delay = std::min(away * rate, double(RECORD - WINDOW - 2));
                    for (int t = 0; t < WINDOW; ++t) {
                        const double at = t + delay, share = at - std::floor(at);
                        const float *const sample = &record[m * RECORD + static_cast<int>(at)];
                        heard[t] += (1.0 - share) * sample[0] + share * sample[1];
                    }
                }
                double expected = 0.0;
                for (const double value : heard) expected += value * value;
                comparison.add("energy", i, energy[i], expected);
            }
        });
}
