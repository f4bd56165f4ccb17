// One time step of the lattice Boltzmann method, D3Q19, from `src` to `dst`: a cell gathers the 19 populations that
// move to it and relaxes them towards equilibrium. The box is periodic; populations are a structure of arrays.
#include "../common/bench.h"

#if __has_include("lbm.tune.h")
#include "lbm.tune.h"
#endif

#ifndef WORK
#define WORK 1
#endif
#ifndef STREAM
#define STREAM 0
#endif

// WORK cells a thread, one above the other; STREAM: whether stores ask the cache not to keep them.
//@tune define(WORK = {1, 2}, STREAM = {0, 1}) block({32, 64, 96, 160}, {1, 2, 4, 6, 8}) regs(auto)
//@tune threads(n, n, ceildiv(n, WORK))
//@tune args(n = 160, relaxation = 1.2f, src = random(0.04, 0.06)[19 * n * n * n], dst = out[19 * n * n * n])
//@tune check(dst, rtol = 1e-4)
//@tune default(block = 160, WORK = 1, STREAM = 0)
__global__ void lbm(int n, float relaxation, const float *__restrict__ src, float *__restrict__ dst) {
    // Directions: rest, the six faces, the twelve edges of the cube.
    constexpr int CX[19] = {0, 1, -1, 0, 0, 0, 0, 1, -1, 1, -1, 1, -1, 1, -1, 0, 0, 0, 0};
    constexpr int CY[19] = {0, 0, 0, 1, -1, 0, 0, 1, -1, -1, 1, 0, 0, 0, 0, 1, -1, 1, -1};
    constexpr int CZ[19] = {0, 0, 0, 0, 0, 1, -1, 0, 0, 0, 0, 1, -1, -1, 1, 1, -1, -1, 1};
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    const int cells = n * n * n;
    // Neighbours below and above in each dimension, by the sign of a direction plus 1.
    const int xs[3] = {x > 0 ? x - 1 : n - 1, x, x + 1 < n ? x + 1 : 0};
    const int ys[3] = {y > 0 ? y - 1 : n - 1, y, y + 1 < n ? y + 1 : 0};
#pragma unroll
    for (int w = 0; w < WORK; ++w) {
        const int z = (blockIdx.z * blockDim.z + threadIdx.z) * WORK + w;
        if (z >= n) return;
        const int zs[3] = {z > 0 ? z - 1 : n - 1, z, z + 1 < n ? z + 1 : 0};
        float f[19];
        float density = 0.0f, mx = 0.0f, my = 0.0f, mz = 0.0f;
#pragma unroll
        for (int d = 0; d < 19; ++d) {
            f[d] = src[d * cells + (zs[1 - CZ[d]] * n + ys[1 - CY[d]]) * n + xs[1 - CX[d]]];
            density += f[d];
            mx += CX[d] * f[d];
            my += CY[d] * f[d];
            mz += CZ[d] * f[d];
        }
        const float inverse = 1.0f / density;
        const float ux = mx * inverse, uy = my * inverse, uz = mz * inverse;
        const float still = 1.0f - 1.5f * (ux * ux + uy * uy + uz * uz);
        const int here = (z * n + y) * n + x;
#pragma unroll
        for (int d = 0; d < 19; ++d) {
            const float weight = d == 0 ? 1.0f / 3.0f : d < 7 ? 1.0f / 18.0f : 1.0f / 36.0f;
            const float along = CX[d] * ux + CY[d] * uy + CZ[d] * uz;
            const float equilibrium = weight * density * (still + along * (3.0f + 4.5f * along));
            const float next = f[d] + relaxation * (equilibrium - f[d]);
            if (STREAM) {
                __stcs(&dst[d * cells + here], next);
            } else {
                dst[d * cells + here] = next;
            }
        }
    }
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef LBM_BLOCK_X
    shape.block = nvtune::lbm::block();
    shape.grid = nvtune::lbm::grid(n);
    shape.shared = nvtune::lbm::shared();
    shape.header = true;
#else
    shape.block = dim3(160);
    shape.grid = dim3((n + 159) / 160, n, (n + WORK - 1) / WORK);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Size: cells of an edge of the cube. Indices are below 19 * 384^3 < 2^31.
    const bench::Options options = bench::parse(argc, argv, "lbm", 160, 384);
    const int n = options.size;
    const float relaxation = 1.2f;
    const std::size_t cells = std::size_t(n) * n * n;
    const std::vector<float> src = bench::random(19 * cells, options, 0, 0.04f, 0.06f);
    bench::Array<float> device_src(src), device_dst(19 * cells);

    const bench::Shape launch = shape(n);
    return bench::finish(
        "lbm", options, launch, lbm, bench::Comparison(1e-4, 1e-6),
        [&] {
            lbm<<<launch.grid, launch.block, launch.shared>>>(n, relaxation, device_src.data(), device_dst.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float> dst = device_dst.read();
            // The directions in the kernel's order, each as what it adds to x, y and z.
            const char *const directions[19] = {"...", "+..", "-..", ".+.", ".-.", "..+", "..-", "++.", "--.", "+-.",
                                                "-+.", "+.+", "-.-", "+.-", "-.+", ".++", ".--", ".+-", ".-+"};
            const auto part = [&](int d, int axis) {
                const char sign = directions[d][axis];
                return sign == '+' ? 1 : sign == '-' ? -1 : 0;
            };
            for (const std::size_t at : bench::sample(cells, std::size_t(1) << 18)) {
                const int place[3] = {static_cast<int>(at % n), static_cast<int>(at / n % n),
                                      static_cast<int>(at / n / n)};
                double f[19], density = 0.0, velocity[3] = {}, speed = 0.0;
                for (int d = 0; d < 19; ++d) {
                    std::size_t from = 0;
                    for (int axis = 2; axis >= 0; --axis) from = from * n + (place[axis] - part(d, axis) + n) % n;
                    f[d] = src[d * cells + from];
                    density += f[d];
                    for (int axis = 0; axis < 3; ++axis) velocity[axis] += part(d, axis) * f[d];
                }
                for (double &component : velocity) {
                    component /= density;
                    speed += component * component;
                }
                for (int d = 0; d < 19; ++d) {
                    double along = 0.0;
                    int length = 0;
                    for (int axis = 0; axis < 3; ++axis) {
                        along += part(d, axis) * velocity[axis];
                        length += part(d, axis) * part(d, axis);
                    }
                    const double weight = length == 0 ? 12.0 / 36.0 : length == 1 ? 2.0 / 36.0 : 1.0 / 36.0;
                    const double equilibrium =
                        weight * density * (1.0 + 3.0 * along + 4.5 * along * along - 1.5 * speed);
                    comparison.add("dst", d * cells + at, dst[d * cells + at],
                                   (1.0 - relaxation) * f[d] + relaxation * equilibrium);
                }
            }
        });
}
