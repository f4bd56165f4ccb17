// Electric potential of point charges on one slice of a lattice, by direct summation over all atoms, which are in
// constant memory.
#include "../common/bench.h"

#if __has_include("cp.tune.h")
#include "cp.tune.h"
#endif

// Lattice points of a thread, all of one row.
#ifndef WORK
#define WORK 8
#endif
// Where those points are: 1 a block's width apart, so that a warp stores neighbours; 0 side by side.
#ifndef COALESCED
#define COALESCED 1
#endif

constexpr int MOST_ATOMS = 4096;

// Position in x, y and z, charge in w.
__constant__ float4 cp_atoms[MOST_ATOMS];

/*@tune
    define(WORK = {1, 2, 4, 8, 16}, COALESCED = {1, 0})
    threads(ceildiv(n, WORK), n) block({16, 32, 64, 128}, {1, 2, 4, 8, 16})
    require(WORK > 1 || COALESCED == 1, block.size >= 64 && block.size <= 512)
    regs({0, 24, 32, 40, 64}) symbol(cp_atoms = random[2000])
    args(n = 1024, atoms = 2000, spacing = 0.0009765625f, z = 1.0625f, potential = out[n * n])
    check(potential, rtol = 1e-4)
    default(block.x = 16, block.y = 8, WORK = 8, COALESCED = 1)
*/
__global__ void cp(int n, int atoms, float spacing, float z, float *potential) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int first = COALESCED ? blockIdx.x * blockDim.x * WORK + threadIdx.x
                                : (blockIdx.x * blockDim.x + threadIdx.x) * WORK;
    const int step = COALESCED ? blockDim.x : 1;
    if (row >= n || first >= n) return;
    const float y = spacing * row;
    float x[WORK], sum[WORK];
#pragma unroll
    for (int w = 0; w < WORK; ++w) {
        x[w] = spacing * (first + w * step);
        sum[w] = 0.0f;
    }
    for (int k = 0; k < atoms; ++k) {
        const float4 atom = cp_atoms[k];
        const float dy = y - atom.y, dz = z - atom.z;
        const float across = dy * dy + dz * dz;
#pragma unroll
        for (int w = 0; w < WORK; ++w) {
            const float dx = x[w] - atom.x;
            sum[w] += atom.w * rsqrtf(dx * dx + across);
        }
    }
#pragma unroll
    for (int w = 0; w < WORK; ++w) {
        const int column = first + w * step;
        if (column < n) potential[row * n + column] = sum[w];
    }
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef CP_BLOCK_X
    shape.block = nvtune::cp::block();
    shape.grid = nvtune::cp::grid(n);
    shape.shared = nvtune::cp::shared();
    shape.header = true;
#else
    shape.block = dim3(16, 8);
    shape.grid = dim3(((n + WORK - 1) / WORK + 15) / 16, (n + 7) / 8);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Indices are below 2^28.
    const bench::Options options = bench::parse(argc, argv, "cp", 1024, 1 << 14);
    const int n = options.size, atoms = 2000;
    // The atoms fill the unit cube; the slice lies beside it, and the lattice covers its width whatever its size.
    const float spacing = 1.0f / static_cast<float>(n), z = 1.0625f;
    std::vector<float4> charges(atoms);
    for (int k = 0; k < atoms; ++k) {
        charges[k] = make_float4(bench::uniform(options.seed, 0, k, 0.0f, 1.0f),
                                 bench::uniform(options.seed, 1, k, 0.0f, 1.0f),
                                 bench::uniform(options.seed, 2, k, 0.0f, 1.0f),
                                 bench::uniform(options.seed, 3, k, 0.0f, 1.0f));
    }
    BENCH_CUDA(cudaMemcpyToSymbol(cp_atoms, charges.data(), atoms * sizeof(float4)));
    bench::Array<float> device_potential(std::size_t(n) * n);

    const bench::Shape launch = shape(n);
    return bench::finish(
        "cp", options, launch, cp, bench::Comparison(1e-4, 0.0),
        [&] {
            cp<<<launch.grid, launch.block, launch.shared>>>(n, atoms, spacing, z, device_potential.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float> potential = device_potential.read();
            for (const std::size_t at : bench::sample(potential.size(), std::size_t(1) << 15)) {
                const double x = double(spacing) * (at % n), y = double(spacing) * (at / n);
                double sum = 0.0;
                for (const float4 &atom : charges) {
                    sum += atom.w / std::sqrt((x - atom.x) * (x - atom.x) + (y - atom.y) * (y - atom.y) +
                                              (double(z) - atom.z) * (double(z) - atom.z));
                }
                comparison.add("potential", at, potential[at], sum);
            }
        });
}
