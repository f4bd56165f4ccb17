// One pass of a radix sort: keys move, in stable order, to the places that their lowest 8 bits ask for. A block takes a
// tile of 4096 keys, for whose digits the places in the result are given; it ranks the keys of each digit within the
// tile, by counts of its warps.
#include "../common/bench.h"

#if __has_include("radix_pass.tune.h")
#include "radix_pass.tune.h"
#endif

#ifndef ITEMS
#define ITEMS 16
#endif
#ifndef MATCH
#define MATCH 1
#endif
#ifndef REORDER
#define REORDER 1
#endif

constexpr int TILE = 4096;
constexpr int DIGITS = 256;
constexpr int THREADS = TILE / ITEMS;
constexpr int WARPS = THREADS / 32;

static_assert(THREADS >= 128 && THREADS <= 1024, "a tile is shared by 4 to 32 warps");

// The threads of the warp that have this digit, among those that have a key at all: by one instruction (MATCH), or by a
// vote on each bit.
__device__ inline unsigned peers_of(unsigned digit, bool valid) {
#if MATCH
    return __match_any_sync(0xffffffffu, valid ? digit : DIGITS);
#else
    unsigned peers = __ballot_sync(0xffffffffu, valid);
#pragma unroll
    for (int bit = 0; bit < 8; ++bit) {
        const unsigned set = __ballot_sync(0xffffffffu, digit >> bit & 1);
        peers &= digit >> bit & 1 ? set : ~set;
    }
    return peers;
#endif
}

/*@tune
    define(ITEMS = {4, 8, 16, 32}, MATCH = {0, 1}, REORDER = {0, 1})
    block({128, 256, 512, 1024}) require(block.x * ITEMS == 4096)
    grid(ceildiv(n, 4096)) regs(auto)
    args(n = 1 << 25,
         keys = each((index % 4096 * (index % 4096 * 58 + 2731) + index / 4096 * 1552) % 4096 / 16
                     + index * 40503 % 16777216 * 256)[n],
         places = each(index % 256 * (n / 256) + index / 256 * 16)[n / 16], result = out[n])
    check(result)
    default(block = 256, ITEMS = 16, MATCH = 1, REORDER = 1)
*/
__global__ void radix_pass(int n, const unsigned *__restrict__ keys, const int *__restrict__ places,
                           unsigned *__restrict__ result) {
    // First how many keys of each digit a warp has, then how many the warps before it have; short, as memory is.
    __shared__ unsigned short counts[WARPS][DIGITS];
    // Where the keys of each digit begin in the tile, once it is in order; and what to add to get to their place.
    __shared__ int starts[DIGITS], moves[DIGITS];
    __shared__ int sums[DIGITS / 32];
#if REORDER
    __shared__ unsigned ordered[TILE];
#endif
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first = blockIdx.x * TILE;
    const int here = min(TILE, n - first);
    for (int at = threadIdx.x; at < WARPS * DIGITS; at += THREADS) counts[at / DIGITS][at % DIGITS] = 0;
    __syncthreads();

    // A warp has 32 ITEMS keys in a row, of which it takes 32 at a time.
    const int begin = warp * 32 * ITEMS + lane;
    unsigned key[ITEMS];
    int rank[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        const int at = begin + 32 * k;
        key[k] = at < here ? keys[first + at] : 0;
    }
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        const bool valid = begin + 32 * k < here;
        const unsigned digit = key[k] % DIGITS;
        const unsigned peers = peers_of(digit, valid);
        const int before = __popc(peers & ((1u << lane) - 1));
        rank[k] = counts[warp][digit] + before;
        __syncwarp();
        if (valid && before == 0) counts[warp][digit] += __popc(peers);
        __syncwarp();
    }
    __syncthreads();

    // Over the warps for each digit, then over the digits, of which each thread of the first 8 warps has one or two.
    int through[(DIGITS + THREADS - 1) / THREADS];
#pragma unroll
    for (int d = 0; d * THREADS < DIGITS; ++d) {
        const int digit = d * THREADS + threadIdx.x;
        if (digit >= DIGITS) continue;
        int total = 0;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            const int count = counts[w][digit];
            counts[w][digit] = total;
            total += count;
        }
        int sum = total;
#pragma unroll
        for (int apart = 1; apart < 32; apart *= 2) {
            const int below = __shfl_up_sync(0xffffffffu, sum, apart);
            if (lane >= apart) sum += below;
        }
        through[d] = sum - total;
        if (lane == 31) sums[digit / 32] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d * THREADS < DIGITS; ++d) {
        const int digit = d * THREADS + threadIdx.x;
        if (digit >= DIGITS) continue;
        int start = through[d];
        for (int part = 0; part < digit / 32; ++part) start += sums[part];
        starts[digit] = start;
        moves[digit] = places[blockIdx.x * DIGITS + digit] - start;
    }
    __syncthreads();

#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        if (begin + 32 * k >= here) continue;
        const unsigned digit = key[k] % DIGITS;
        const int at = starts[digit] + counts[warp][digit] + rank[k];
#if REORDER
        ordered[at] = key[k];
#else
        result[at + moves[digit]] = key[k];
#endif
    }
#if REORDER
    __syncthreads();
    for (int at = threadIdx.x; at < here; at += THREADS) {
        const unsigned one = ordered[at];
        result[at + moves[one % DIGITS]] = one;
    }
#endif
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef RADIX_PASS_BLOCK_X
    shape.block = nvtune::radix_pass::block();
    shape.grid = nvtune::radix_pass::grid(n);
    shape.shared = nvtune::radix_pass::shared();
    shape.header = true;
#else
    shape.block = dim3(THREADS);
    shape.grid = dim3((n + TILE - 1) / TILE);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // The size is the number of keys.
    const bench::Options options = bench::parse(argc, argv, "radix_pass", 1 << 25, 1 << 29);
    const int n = options.size;
    // The lower 24 bits are random; above stand those of the key's number, so that keys of the same digit tell their
    // order.
    std::vector<unsigned> keys(n);
    for (int at = 0; at < n; ++at) {
        keys[at] = static_cast<unsigned>(bench::uniform(options.seed, 0, at, 0.0f, 16777216.0f)) | unsigned(at) << 24;
    }
    // What the counting pass and the scan before this one would give: for each tile, where the keys of each digit go.
    const int tiles = (n + TILE - 1) / TILE;
    std::vector<int> places(std::size_t(tiles) * DIGITS, 0);
    for (int at = 0; at < n; ++at) ++places[std::size_t(at / TILE) * DIGITS + keys[at] % DIGITS];
    int next = 0;
    for (int digit = 0; digit < DIGITS; ++digit) {
        for (int tile = 0; tile < tiles; ++tile) {
            int &place = places[std::size_t(tile) * DIGITS + digit];
            const int count = place;
            place = next;
            next += count;
        }
    }
    bench::Array<unsigned> device_keys(keys), device_result(n);
    bench::Array<int> device_places(places);

    const bench::Shape launch = shape(n);
    return bench::finish(
        "radix_pass", options, launch, radix_pass, bench::Comparison(0.0, 0.0),
        [&] {
            radix_pass<<<launch.grid, launch.block, launch.shared>>>(n, device_keys.data(), device_places.data(),
                                                                     device_result.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<unsigned> result = device_result.read();
            // A digit at a time, in the order of the keys.
            std::vector<std::vector<unsigned>> piles(DIGITS);
            for (const unsigned key : keys) piles[key % DIGITS].push_back(key);
            std::size_t at = 0;
            for (const std::vector<unsigned> &pile : piles) {
                for (const unsigned key : pile) {
                    comparison.add("result", at, result[at], key);
                    ++at;
                }
            }
        });
}
