// Independent runs of a stochastic Petri net: at each step a run draws a transition, and fires it if its two input
// places have the tokens. A thread makes WORK runs side by side, each with a random generator of its own.
#include "../common/bench.h"

#if __has_include("pns.tune.h")
#include "pns.tune.h"
#endif

// Where a run's marking is: 0 in local memory, 1 in shared memory.
#ifndef MEMORY
#define MEMORY 0
#endif
#ifndef WORK
#define WORK 1
#endif

constexpr int PLACES = 32, TRANSITIONS = 64;

// A net has 32 places of a byte each: 32 bytes of shared memory a run.
/*@tune
    define(MEMORY = {0, 1}, WORK = {1, 2, 4}) block(64:1024:64) regs(auto)
    threads(ceildiv(n, WORK)) shared(MEMORY * WORK * 32 * block.x) require(MEMORY * WORK * 32 * block.x <= 48 << 10)
    args(n = 1 << 18, steps = 512, seed = 0x9e3779b9, arcs = random(0, 31)[64], marking = random(0, 7)[32],
         last = out[32 * n], fired = out[n])
    default(block = 256, MEMORY = 0, WORK = 1)
*/
__global__ void pns(int n, int steps, unsigned seed, const uchar4 *arcs, const unsigned char *marking,
                    unsigned char *last, int *fired) {
    // Transition t takes a token from the places x and y of net[t], and gives one to z and w.
    __shared__ uchar4 net[TRANSITIONS];
    extern __shared__ unsigned char tokens[];
    for (int t = threadIdx.x; t < TRANSITIONS; t += blockDim.x) net[t] = arcs[t];
    __syncthreads();
    const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    // Neighbouring threads have neighbouring bytes in shared memory.
    const int pitch = MEMORY ? WORK * blockDim.x : 1;
    unsigned char own[WORK][PLACES];
    unsigned char *state[WORK];
    unsigned random[WORK];
    int count[WORK];
#pragma unroll
    for (int k = 0; k < WORK; ++k) {
        state[k] = MEMORY ? tokens + k * blockDim.x + threadIdx.x : own[k];
        for (int p = 0; p < PLACES; ++p) state[k][p * pitch] = marking[p];
        // Marsaglia's generator must not start at 0.
        random[k] = (seed ^ ((first + k * stride) * 0x85ebca6bu)) | 1u;
        count[k] = 0;
    }
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int k = 0; k < WORK; ++k) {
            random[k] ^= random[k] << 13;
            random[k] ^= random[k] >> 17;
            random[k] ^= random[k] << 5;
            const uchar4 arc = net[random[k] >> 26];
            unsigned char *const from = state[k] + arc.x * pitch, *const also = state[k] + arc.y * pitch;
            if (*from > 0 && *also > (arc.x == arc.y ? 1 : 0)) {
                --*from;
                --*also;
                ++state[k][arc.z * pitch];
                ++state[k][arc.w * pitch];
                ++count[k];
            }
        }
    }
#pragma unroll
    for (int k = 0; k < WORK; ++k) {
        const int i = first + k * stride;
        if (i >= n) return;
        fired[i] = count[k];
        for (int p = 0; p < PLACES; ++p) last[p * n + i] = state[k][p * pitch];
    }
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef PNS_BLOCK_X
    shape.block = nvtune::pns::block();
    shape.grid = nvtune::pns::grid(n);
    shape.shared = nvtune::pns::shared();
    shape.header = true;
#else
    shape.block = dim3(256);
    shape.grid = dim3(((n + WORK - 1) / WORK + 255) / 256);
    shape.shared = MEMORY * WORK * PLACES * 256;
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Size: runs. Indices into the last markings are below 2^29.
    const bench::Options options = bench::parse(argc, argv, "pns", 1 << 18, 1 << 24);
    const int n = options.size, steps = 512;
    const auto below = [&](int stream, int index, int end) {
        return static_cast<unsigned char>(bench::uniform(options.seed, stream, index, 0.0f, float(end)));
    };
    const unsigned seed = static_cast<unsigned>(options.seed * 0x9e3779b9u);
    std::vector<uchar4> arcs(TRANSITIONS);
    for (int t = 0; t < TRANSITIONS; ++t) {
        arcs[t] = make_uchar4(below(0, t, PLACES), below(1, t, PLACES), below(2, t, PLACES), below(3, t, PLACES));
    }
    // At most 7 tokens a place: all of them together fit in the byte of one place.
    std::vector<unsigned char> marking(PLACES);
    for (int p = 0; p < PLACES; ++p) marking[p] = below(4, p, 8);
    bench::Array<uchar4> device_arcs(arcs);
    bench::Array<unsigned char> device_marking(marking), device_last(std::size_t(PLACES) * n);
    bench::Array<int> device_fired(n);

    const bench::Shape launch = shape(n);
    return bench::finish(
        "pns", options, launch, pns, bench::Comparison(0.0, 0.0),
        [&] {
            pns<<<launch.grid, launch.block, launch.shared>>>(n, steps, seed, device_arcs.data(),
                                                              device_marking.data(), device_last.data(),
                                                              device_fired.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<unsigned char> last = device_last.read();
            const std::vector<int> fired = device_fired.read();
            for (const std::size_t i : bench::sample(n, 1 << 14)) {
                std::vector<int> tokens(marking.begin(), marking.end());
                std::uint32_t x = (seed ^ static_cast<std::uint32_t>(i * 0x85ebca6bu)) | 1u;
                int expected = 0;
                for (int step = 0; step < steps; ++step) {
                    x ^= x << 13;
                    x ^= x >> 17;
                    x ^= x << 5;
                    const uchar4 arc = arcs[x / (0x100000000u / TRANSITIONS)];
                    std::vector<int> needed(PLACES, 0);
                    ++needed[arc.x];
                    ++needed[arc.y];
                    if (tokens[arc.x] < needed[arc.x] || tokens[arc.y] < needed[arc.y]) continue;
                    --tokens[arc.x];
                    --tokens[arc.y];
                    ++tokens[arc.z];
                    ++tokens[arc.w];
                    ++expected;
                }
                comparison.add("fired", i, fired[i], expected);
                for (int p = 0; p < PLACES; ++p) {
                    comparison.add("last", p * std::size_t(n) + i, last[p * std::size_t(n) + i], tokens[p]);
                }
            }
        });
}
