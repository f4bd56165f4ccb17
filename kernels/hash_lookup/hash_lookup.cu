// Looks n keys up in a hash table with open addressing and linear probing. LANES neighbouring threads probe as many
// slots at a time for one key; each such group has ITEMS keys under way at once.
#include "../common/bench.h"

#if __has_include("hash_lookup.tune.h")
#include "hash_lookup.tune.h"
#endif

#ifndef LANES
#define LANES 1
#endif
#ifndef ITEMS
#define ITEMS 1
#endif

// What an empty slot has for a key, and the result for a key that is not there. Keys are below 2^30.
constexpr unsigned NONE = 0xffffffffu;

// The slot where the search for a key begins: the upper bits of its product, modulo 2^30, with an odd number.
__host__ __device__ inline unsigned home(unsigned key, int bits) {
    return (key * 2654435769u & 0x3fffffffu) >> (30 - bits);
}

// Which threads of the group hold true, the first of them in bit 0.
__device__ inline unsigned vote(bool flag) {
    if (LANES == 1) return flag;
    const unsigned all = LANES == 32 ? 0xffffffffu : (1u << LANES % 32) - 1;
    const unsigned shift = threadIdx.x % 32 / LANES * LANES;
    return __ballot_sync(all << shift, flag) >> shift & all;
}

/*@tune
    define(LANES = {1, 2, 4, 8}, ITEMS = {1, 2, 4})
    block({64, 128, 256, 512, 1024}) grid(ceildiv(n, block.x / LANES * ITEMS)) regs(auto)
    args(n = 1 << 23, bits = 24,
         query = each((((index * 10368889 % (1 << bits)) - (index * 10368889 % 16 + 1) / 2) * 64
                       + index * 10368889 % 16) * 340573321 % (1 << 30))[n],
         keys = each(index % 16 < 12 ? ((index - (index % 16 + 1) / 2) * 64 + index % 16) * 340573321 % (1 << 30)
                                     : 4294967295)[1 << bits],
         values = random(0, 16777215)[1 << bits], result = out[n])
    check(result)
    default(block = 256, LANES = 1, ITEMS = 1)
*/
__global__ void hash_lookup(int n, int bits, const unsigned *__restrict__ query, const unsigned *__restrict__ keys,
                            const unsigned *__restrict__ values, unsigned *__restrict__ result) {
    const unsigned capacity = 1u << bits;
    const int lane = threadIdx.x % LANES, groups = blockDim.x / LANES;
    const int first = blockIdx.x * groups * ITEMS + threadIdx.x / LANES;
    unsigned key[ITEMS], slot[ITEMS];
    // Whether the search goes on; the same for all threads of the group.
    bool open[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const int at = first + i * groups;
        open[i] = at < n;
        key[i] = open[i] ? query[at] : 0;
        slot[i] = (home(key[i], bits) + lane) & (capacity - 1);
    }
    bool any = true;
    // A full table, which has no empty slot to end at, is probed once around.
    for (unsigned probed = 0; any && probed < capacity; probed += LANES) {
        unsigned seen[ITEMS];
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) seen[i] = open[i] ? keys[slot[i]] : NONE;
        any = false;
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            if (!open[i]) continue;
            if (vote(seen[i] == key[i]) != 0) {
                if (seen[i] == key[i]) result[first + i * groups] = values[slot[i]];
                open[i] = false;
            } else if (vote(seen[i] == NONE) != 0) {
                if (lane == 0) result[first + i * groups] = NONE;
                open[i] = false;
            }
            slot[i] = (slot[i] + LANES) & (capacity - 1);
            any = any || open[i];
        }
    }
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        if (open[i] && lane == 0) result[first + i * groups] = NONE;
    }
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef HASH_LOOKUP_BLOCK_X
    shape.block = nvtune::hash_lookup::block();
    shape.grid = nvtune::hash_lookup::grid(n);
    shape.shared = nvtune::hash_lookup::shared();
    shape.header = true;
#else
    constexpr int EACH = 256 / LANES * ITEMS;
    shape.block = dim3(256);
    shape.grid = dim3((n + EACH - 1) / EACH);
#endif
    return shape;
}

// The key that belongs to a slot. Of 16 slots, the first 12 are taken, and the key of slot j has slot j / 2 for its
// home, as if keys were inserted in the order of their slots. The keys of the other 4 are not in the table; their
// search passes over 6 or 7 slots.
static unsigned key_of(unsigned slot, int bits) {
    const unsigned start = slot - (slot % 16 + 1) / 2;
    // The inverse, modulo 2^30, of the factor that home() multiplies by.
    return ((start << (30 - bits)) + slot % 16) * 340573321u & 0x3fffffffu;
}

int main(int argc, char **argv) {
    // The size is the number of keys to look up; the table always has 2^24 slots.
    const bench::Options options = bench::parse(argc, argv, "hash_lookup", 1 << 23, 1 << 28);
    const int n = options.size, bits = 24;
    const unsigned capacity = 1u << bits;
    std::vector<unsigned> keys(capacity), values(capacity);
    for (unsigned slot = 0; slot < capacity; ++slot) {
        keys[slot] = slot % 16 < 12 ? key_of(slot, bits) : NONE;
        values[slot] = static_cast<unsigned>(bench::uniform(options.seed, 0, slot, 0.0f, 16777216.0f));
    }
    // Which slot a query aims at, so that its result is known without a search.
    std::vector<unsigned> aim(n), query(n);
    for (int at = 0; at < n; ++at) {
        aim[at] = static_cast<unsigned>(bench::uniform(options.seed, 1, at, 0.0f, static_cast<float>(capacity)));
        query[at] = key_of(aim[at], bits);
    }
    bench::Array<unsigned> device_query(query), device_keys(keys), device_values(values), device_result(n);

    const bench::Shape launch = shape(n);
    return bench::finish(
        "hash_lookup", options, launch, hash_lookup, bench::Comparison(0.0, 0.0),
        [&] {
            hash_lookup<<<launch.grid, launch.block, launch.shared>>>(n, bits, device_query.data(), device_keys.data(),
                                                                      device_values.data(), device_result.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<unsigned> result = device_result.read();
            for (int at = 0; at < n; ++at) {
                const bool there = aim[at] % 16 < 12;
                comparison.add("result", at, result[at], there ? values[aim[at]] : NONE);
            }
        });
}
