// Search for an RC5-72 key (RC5-32/12/9): each thread expands KEYS keys and encrypts a known plain text with each.
// Marks the keys whose cipher text agrees in its low byte, and finds the least key that gives the whole of it.
#include "../common/bench.h"

#if __has_include("rc5.tune.h")
#include "rc5.tune.h"
#endif

#ifndef KEYS
#define KEYS 1
#endif

__device__ inline unsigned rotate(unsigned value, unsigned by) { return __funnelshift_l(value, value, by); }

/*@tune
    define(KEYS = {1, 2, 4}) block(64:1024:64) regs(auto)
    threads(ceildiv(n, KEYS))
    args(n = 1 << 23, key0 = 0x9e3779b9, key1 = 0x243f6a88, key2 = 0x5a, plain0 = 0x20656854, plain1 = 0x6e6b6e75,
         cipher0 = 0x85a308d3, cipher1 = 0x13198a2e, partial = zeros[ceildiv(n, 32)], found = fill(0xffffffff)[1])
    default(block = 256, KEYS = 1)
*/
__global__ void rc5(unsigned n, unsigned key0, unsigned key1, unsigned key2, unsigned plain0, unsigned plain1,
                    unsigned cipher0, unsigned cipher1, unsigned *partial, unsigned *found) {
    // Key i has key0 + i for its first word. Keys of a thread are a whole grid apart.
    const unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned stride = gridDim.x * blockDim.x;
    unsigned s[KEYS][26], l[KEYS][3], a[KEYS], b[KEYS];
#pragma unroll
    for (int k = 0; k < KEYS; ++k) {
        l[k][0] = key0 + first + k * stride;
        l[k][1] = key1;
        l[k][2] = key2;
        a[k] = b[k] = 0;
#pragma unroll
        for (int i = 0; i < 26; ++i) s[k][i] = 0xb7e15163u + i * 0x9e3779b9u;
    }
    // Unrolled as a whole, so that s and l are registers.
#pragma unroll
    for (int step = 0; step < 78; ++step) {
#pragma unroll
        for (int k = 0; k < KEYS; ++k) {
            a[k] = s[k][step % 26] = rotate(s[k][step % 26] + a[k] + b[k], 3);
            b[k] = l[k][step % 3] = rotate(l[k][step % 3] + a[k] + b[k], a[k] + b[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < KEYS; ++k) {
        a[k] = plain0 + s[k][0];
        b[k] = plain1 + s[k][1];
    }
#pragma unroll
    for (int round = 1; round <= 12; ++round) {
#pragma unroll
        for (int k = 0; k < KEYS; ++k) {
            a[k] = rotate(a[k] ^ b[k], b[k]) + s[k][2 * round];
            b[k] = rotate(b[k] ^ a[k], a[k]) + s[k][2 * round + 1];
        }
    }
#pragma unroll
    for (int k = 0; k < KEYS; ++k) {
        const unsigned i = first + k * stride;
        if (i < n && ((a[k] ^ cipher0) & 0xffu) == 0) {
            atomicOr(&partial[i / 32], 1u << (i % 32));
            if (a[k] == cipher0 && b[k] == cipher1) atomicMin(found, i);
        }
    }
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef RC5_BLOCK_X
    shape.block = nvtune::rc5::block();
    shape.grid = nvtune::rc5::grid(n);
    shape.shared = nvtune::rc5::shared();
    shape.header = true;
#else
    shape.block = dim3(256);
    shape.grid = dim3(((n + KEYS - 1) / KEYS + 255) / 256);
#endif
    return shape;
}

// RC5 with 12 rounds on words of 32 bits, after the definition: any key, byte by byte.
static void encrypt(const std::vector<std::uint8_t> &key, const std::uint32_t plain[2], std::uint32_t cipher[2]) {
    const auto left = [](std::uint32_t value, std::uint32_t by) {
        by %= 32;
        return by == 0 ? value : value << by | value >> (32 - by);
    };
    const std::size_t words = std::max<std::size_t>(1, (key.size() + 3) / 4), expanded = 2 * (12 + 1);
    std::uint32_t l[64] = {}, s[26];
    for (std::size_t at = key.size(); at-- > 0;) l[at / 4] = (l[at / 4] << 8) + key[at];
    s[0] = 0xb7e15163u;
    for (std::size_t at = 1; at < expanded; ++at) s[at] = s[at - 1] + 0x9e3779b9u;
    std::uint32_t x = 0, y = 0;
    for (std::size_t step = 0, i = 0, j = 0; step < 3 * std::max(words, expanded); ++step) {
        s[i] = x = left(s[i] + x + y, 3);
        l[j] = y = left(l[j] + x + y, x + y);
        i = (i + 1) % expanded;
        j = (j + 1) % words;
    }
    cipher[0] = plain[0] + s[0];
    cipher[1] = plain[1] + s[1];
    for (int round = 1; round <= 12; ++round) {
        cipher[0] = left(cipher[0] ^ cipher[1], cipher[1]) + s[2 * round];
        cipher[1] = left(cipher[1] ^ cipher[0], cipher[0]) + s[2 * round + 1];
    }
}

int main(int argc, char **argv) {
    // Size: keys. With four keys a thread, indices may pass n by 4096.
    const bench::Options options = bench::parse(argc, argv, "rc5", 1 << 23, 1 << 30);
    const std::uint32_t n = options.size;
    const auto word = [&](int stream) {
        return static_cast<std::uint32_t>(bench::uniform(options.seed, stream, 0, 0.0f, 65536.0f)) * 65536u +
               static_cast<std::uint32_t>(bench::uniform(options.seed, stream, 1, 0.0f, 65536.0f));
    };
    const std::uint32_t key0 = word(0), key1 = word(1), key2 = word(2) & 0xffu;
    const std::uint32_t plain[2] = {0x20656854u, 0x6e6b6e75u};
    const auto try_key = [&](std::uint32_t i, std::uint32_t cipher[2]) {
        const std::uint32_t words[3] = {key0 + i, key1, key2};
        std::vector<std::uint8_t> key(9);
        for (int at = 0; at < 9; ++at) key[at] = static_cast<std::uint8_t>(words[at / 4] >> (8 * (at % 4)));
        encrypt(key, plain, cipher);
    };
    const std::uint32_t secret = static_cast<std::uint32_t>(std::uint64_t(n) * 2 / 3);
    std::uint32_t cipher[2];
    try_key(secret, cipher);
    const std::size_t words = (std::size_t(n) + 31) / 32;
    bench::Array<unsigned> device_partial(std::vector<unsigned>(words, 0)), device_found(1);

    const bench::Shape launch = shape(options.size);
    return bench::finish(
        "rc5", options, launch, rc5, bench::Comparison(0.0, 0.0),
        [&] {
            rc5<<<launch.grid, launch.block, launch.shared>>>(n, key0, key1, key2, plain[0], plain[1], cipher[0],
                                                              cipher[1], device_partial.data(), device_found.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<unsigned> partial = device_partial.read();
            comparison.add("found", 0, device_found.read()[0], secret);
            for (const std::size_t at : bench::sample(words, 20000)) {
                std::uint32_t expected = 0;
                for (std::uint32_t bit = 0; bit < 32 && 32 * at + bit < n; ++bit) {
                    std::uint32_t tried[2];
                    try_key(static_cast<std::uint32_t>(32 * at + bit), tried);
                    if ((tried[0] & 0xffu) == (cipher[0] & 0xffu)) expected |= 1u << bit;
                }
                comparison.add("partial", at, partial[at], expected);
            }
        });
}
