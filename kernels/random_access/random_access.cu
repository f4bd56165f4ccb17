// Copies one integer from a random place of a matrix to the same place of another, one a thread.
#include "../common/bench.h"

#if __has_include("random_access.tune.h")
#include "random_access.tune.h"
#endif

// The place that belongs to a thread's number, below `count`: some twenty operations (multiplicative hashing after
// Knuth, The Art of Computer Programming 3, 6.4; shifts after Marsaglia, Xorshift RNGs, 2003). Places may coincide.
__host__ __device__ inline unsigned place(unsigned number, unsigned count) {
    unsigned mixed = number * 2654435769u + 1u;
    mixed ^= mixed << 13;
    mixed ^= mixed >> 17;
    mixed ^= mixed << 5;
    mixed = mixed * 2246822507u + 1u;
    mixed ^= mixed << 13;
    mixed ^= mixed >> 17;
    mixed ^= mixed << 5;
    return static_cast<unsigned>(static_cast<unsigned long long>(mixed) * count >> 32);
}

/*@tune
    threads(n, n) regs(0)
    block({32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024}, {1, 2, 3, 4, 6, 8, 12, 16, 24, 32})
    args(n = 6144, from = random[n * n], to = zeros[n * n])
    default(block.x = 32, block.y = 8)
*/
__global__ void random_access(int n, const int *from, int *to) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n) return;
    const unsigned at = place(row * n + column, n * n);
    to[at] = from[at];
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef RANDOM_ACCESS_BLOCK_X
    shape.block = nvtune::random_access::block();
    shape.grid = nvtune::random_access::grid(n);
    shape.shared = nvtune::random_access::shared();
    shape.header = true;
#else
    shape.block = dim3(32, 8);
    shape.grid = dim3((n + 31) / 32, (n + 7) / 8);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Indices are below 2^28.
    const bench::Options options = bench::parse(argc, argv, "random_access", 6144, 1 << 14);
    const int n = options.size;
    const std::size_t elements = std::size_t(n) * n;
    const std::vector<int> from = bench::integers<int>(elements, options, 0, 1, 255);
    bench::Array<int> device_from(from), device_to(std::vector<int>(elements, 0));

    const bench::Shape launch = shape(n);
    return bench::finish(
        "random_access", options, launch, random_access, bench::Comparison(0.0, 0.0),
        [&] {
            random_access<<<launch.grid, launch.block, launch.shared>>>(n, device_from.data(), device_to.data());
        },
        [&](bench::Comparison &comparison) {
            std::vector<bool> chosen(elements);
            for (std::size_t number = 0; number < elements; ++number) {
                chosen[place(static_cast<unsigned>(number), static_cast<unsigned>(elements))] = true;
            }
            const std::vector<int> to = device_to.read();
            for (std::size_t at = 0; at < elements; ++at) comparison.add("to", at, to[at], chosen[at] ? from[at] : 0);
        });
}
