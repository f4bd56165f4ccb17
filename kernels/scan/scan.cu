// Inclusive prefix sums within each of many segments of the same length. A block walks along its segment in chunks of
// ITEMS elements a thread, and carries the sum so far; STAGED turns chunks in shared memory, so that accesses to memory
// are next to each other, else each thread reads and writes its own elements as vectors.
#include "../common/bench.h"

#if __has_include("scan.tune.h")
#include "scan.tune.h"
#endif

#ifndef ITEMS
#define ITEMS 4
#endif
#ifndef STAGED
#define STAGED 0
#endif

struct alignas(ITEMS < 4 ? 4 * ITEMS : 16) Items {
    int value[ITEMS];
};

// Where an element of the chunk stands in shared memory: one place is left free after every 32, so that threads whose
// elements are ITEMS apart meet in no bank.
__device__ inline int staged(int at) { return at + at / 32; }

// The sum over the threads of the warp up to this one.
__device__ inline int scan_warp(int value) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
        const int before = __shfl_up_sync(0xffffffffu, value, apart);
        if (lane >= apart) value += before;
    }
    return value;
}

/*@tune
    define(ITEMS = {1, 2, 4, 8}, STAGED = {0, 1})
    block(64:1024:64) grid(segments) shared(STAGED * (block.x * ITEMS + block.x * ITEMS / 32) * sizeof(int))
    regs(auto)
    args(segments = 8192, length = 4096, x = random(-1000, 1000)[segments * length], y = out[segments * length])
    check(y)
    default(block = 256, ITEMS = 4, STAGED = 0)
*/
__global__ void scan(int segments, int length, const int *__restrict__ x, int *__restrict__ y) {
    // The length is a multiple of ITEMS; the block of whole warps.
    extern __shared__ int stage[];
    __shared__ int sums[32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    const int *from = x + std::size_t(blockIdx.x) * length;
    int *to = y + std::size_t(blockIdx.x) * length;
    const int chunk = blockDim.x * ITEMS;
    int carry = 0;
    for (int first = 0; first < length; first += chunk) {
        // Where this thread's elements begin in the chunk.
        const int mine = threadIdx.x * ITEMS;
        Items items = {};
#if STAGED
#pragma unroll
        for (int k = 0; k < ITEMS; ++k) {
            const int at = threadIdx.x + k * blockDim.x;
            stage[staged(at)] = first + at < length ? from[first + at] : 0;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < ITEMS; ++k) items.value[k] = stage[staged(mine + k)];
#else
        if (first + mine < length) items = *reinterpret_cast<const Items *>(&from[first + mine]);
#endif
#pragma unroll
        for (int k = 1; k < ITEMS; ++k) items.value[k] += items.value[k - 1];
        const int own = items.value[ITEMS - 1];
        const int through = scan_warp(own);
        if (lane == 31) sums[warp] = through;
        __syncthreads();
        if (warp == 0) {
            const int sum = scan_warp(lane < warps ? sums[lane] : 0);
            if (lane < warps) sums[lane] = sum;
        }
        __syncthreads();
        const int before = carry + through - own + (warp > 0 ? sums[warp - 1] : 0);
        carry += sums[warps - 1];
#pragma unroll
        for (int k = 0; k < ITEMS; ++k) items.value[k] += before;
#if STAGED
#pragma unroll
        for (int k = 0; k < ITEMS; ++k) stage[staged(mine + k)] = items.value[k];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < ITEMS; ++k) {
            const int at = threadIdx.x + k * blockDim.x;
            if (first + at < length) to[first + at] = stage[staged(at)];
        }
#else
        if (first + mine < length) *reinterpret_cast<Items *>(&to[first + mine]) = items;
        // The next chunk overwrites the sums, which others may still read. (Staged elements have a barrier before that, and
        // each place of the stage is read last by the thread that writes it next.)
        __syncthreads();
#endif
    }
}

static bench::Shape shape(int segments) {
    bench::Shape shape;
#ifdef SCAN_BLOCK_X
    shape.block = nvtune::scan::block();
    shape.grid = nvtune::scan::grid(segments);
    shape.shared = nvtune::scan::shared();
    shape.header = true;
#else
    shape.block = dim3(256);
    shape.grid = dim3(segments);
    shape.shared = STAGED * (256 * ITEMS + 256 * ITEMS / 32) * sizeof(int);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // The size is the number of segments.
    const bench::Options options = bench::parse(argc, argv, "scan", 8192, 1 << 18);
    const int segments = options.size, length = 4096;
    const std::size_t elements = std::size_t(segments) * length;
    std::vector<int> x(elements);
    for (std::size_t at = 0; at < elements; ++at) {
        x[at] = static_cast<int>(std::floor(bench::uniform(options.seed, 0, at, -1000.0f, 1001.0f)));
    }
    bench::Array<int> device_x(x), device_y(elements);

    const bench::Shape launch = shape(segments);
    return bench::finish(
        "scan", options, launch, scan, bench::Comparison(0.0, 0.0),
        [&] {
            scan<<<launch.grid, launch.block, launch.shared>>>(segments, length, device_x.data(), device_y.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<int> y = device_y.read();
            for (std::size_t at = 0, sum = 0; at < elements; ++at) {
                if (at % length == 0) sum = 0;
                sum += x[at];
                comparison.add("y", at, y[at], static_cast<int>(sum));
            }
        });
}
