// The flux of the three-dimensional Euler equations into each element of an unstructured mesh of tetrahedra, through
// its four faces. A grid-stride loop over the elements; all arrays are structures of arrays.
#include "../common/bench.h"

#if __has_include("cfd.tune.h")
#include "cfd.tune.h"
#endif

constexpr float GAMMA = 1.4f;
constexpr int WALL = -1, FAR = -2;

// The state far away: density, velocity in x, y and z, pressure.
__constant__ float far_state[5];

struct State {
    float density, mx, my, mz, energy;
    float vx, vy, vz, pressure, sound;
};

__device__ inline State derive(float density, float mx, float my, float mz, float energy) {
    State s = {density, mx, my, mz, energy};
    const float inverse = 1.0f / density;
    s.vx = mx * inverse;
    s.vy = my * inverse;
    s.vz = mz * inverse;
    s.pressure = (GAMMA - 1.0f) * (energy - 0.5f * (mx * s.vx + my * s.vy + mz * s.vz));
    s.sound = sqrtf(GAMMA * s.pressure * inverse);
    return s;
}

__device__ inline State far_away() {
    const float density = far_state[0], vx = far_state[1], vy = far_state[2], vz = far_state[3];
    const float energy = far_state[4] / (GAMMA - 1.0f) + 0.5f * density * (vx * vx + vy * vy + vz * vz);
    return derive(density, density * vx, density * vy, density * vz, energy);
}

// A face of element i has another element, or one face in 61 the wall, or one in 67 nothing but the far state.
/*@tune
    grid({132, 264, 528, 1056, 2112, 4224}) block(64:512:64) regs(auto)
    args(n = 1 << 21,
         neighbours = each(index % 61 == 0 ? -1 : index % 67 == 0 ? -2 :
                           max(0, min(n - 1, index % n + index * 40503 / 16 % 1025 - 512)))[4 * n],
         normals = random(-1, 1)[12 * n], density = random(1.0, 1.4)[n], momentum = random(-0.5, 0.5)[3 * n],
         energy = random(2.0, 3.0)[n], flux = out[5 * n])
    symbol(far_state = fill(1.0)[5])
    check(flux, rtol = 1e-4, atol = 1e-4)
    default(block = 192, grid = 1056)
*/
__global__ void cfd(int n, const int *__restrict__ neighbours, const float *__restrict__ normals,
                    const float *__restrict__ density, const float *__restrict__ momentum,
                    const float *__restrict__ energy, float *__restrict__ flux) {
    const int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        const State own = derive(density[i], momentum[i], momentum[n + i], momentum[2 * n + i], energy[i]);
        float into[5] = {};
#pragma unroll
        for (int face = 0; face < 4; ++face) {
            const int other = neighbours[face * n + i];
            // Normals point outwards, and are as long as the face is large.
            const float nx = normals[3 * face * n + i], ny = normals[(3 * face + 1) * n + i],
                        nz = normals[(3 * face + 2) * n + i];
            if (other == WALL) {
                into[1] -= own.pressure * nx;
                into[2] -= own.pressure * ny;
                into[3] -= own.pressure * nz;
                continue;
            }
            const State far = other >= 0 ? derive(density[other], momentum[other], momentum[n + other],
                                                  momentum[2 * n + other], energy[other])
                                         : far_away();
            // Rusanov's flux: the mean of both sides, and a viscosity as large as the fastest wave.
            const float area = sqrtf(nx * nx + ny * ny + nz * nz);
            const float through = own.vx * nx + own.vy * ny + own.vz * nz;
            const float back = far.vx * nx + far.vy * ny + far.vz * nz;
            const float wave = fmaxf(fabsf(through) + own.sound * area, fabsf(back) + far.sound * area);
            const float both = own.pressure + far.pressure;
            into[0] -= 0.5f * (own.density * through + far.density * back - wave * (far.density - own.density));
            into[1] -= 0.5f * (own.mx * through + far.mx * back + both * nx - wave * (far.mx - own.mx));
            into[2] -= 0.5f * (own.my * through + far.my * back + both * ny - wave * (far.my - own.my));
            into[3] -= 0.5f * (own.mz * through + far.mz * back + both * nz - wave * (far.mz - own.mz));
            into[4] -= 0.5f * ((own.energy + own.pressure) * through + (far.energy + far.pressure) * back -
                               wave * (far.energy - own.energy));
        }
#pragma unroll
        for (int v = 0; v < 5; ++v) flux[v * n + i] = into[v];
    }
}

static bench::Shape shape() {
    bench::Shape shape;
#ifdef CFD_BLOCK_X
    shape.block = nvtune::cfd::block();
    shape.grid = nvtune::cfd::grid();
    shape.shared = nvtune::cfd::shared();
    shape.header = true;
#else
    shape.block = dim3(192);
    shape.grid = dim3(1056);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Size: elements. Indices are below 12 * 2^27 < 2^31.
    const bench::Options options = bench::parse(argc, argv, "cfd", 1 << 21, 1 << 27);
    const int n = options.size;
    const std::size_t elements = n;
    // As in the comment: elements that share a face have numbers that are at most 512 apart.
    std::vector<int> neighbours(4 * elements);
    for (std::size_t at = 0; at < neighbours.size(); ++at) {
        const long long near = static_cast<long long>(at % elements + at * 40503 / 16 % 1025) - 512;
        neighbours[at] = at % 61 == 0   ? WALL
                         : at % 67 == 0 ? FAR
                                        : static_cast<int>(std::max(0ll, std::min(n - 1ll, near)));
    }
    const std::vector<float> normals = bench::random(12 * elements, options, 0, -1.0f, 1.0f);
    const std::vector<float> density = bench::random(elements, options, 1, 1.0f, 1.4f);
    const std::vector<float> momentum = bench::random(3 * elements, options, 2, -0.5f, 0.5f);
    const std::vector<float> energy = bench::random(elements, options, 3, 2.0f, 3.0f);
    const float away[5] = {1.2f, 0.3f, 0.0f, 0.1f, 1.0f};
    BENCH_CUDA(cudaMemcpyToSymbol(far_state, away, sizeof(away)));
    bench::Array<int> device_neighbours(neighbours);
    bench::Array<float> device_normals(normals), device_density(density), device_momentum(momentum);
    bench::Array<float> device_energy(energy), device_flux(5 * elements);

    const bench::Shape launch = shape();
    return bench::finish(
        "cfd", options, launch, cfd, bench::Comparison(1e-4, 1e-4),
        [&] {
            cfd<<<launch.grid, launch.block, launch.shared>>>(n, device_neighbours.data(), device_normals.data(),
                                                              device_density.data(), device_momentum.data(),
                                                              device_energy.data(), device_flux.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float> flux = device_flux.read();
            struct Gas {
                double conserved[5];
                double velocity(int axis) const { return conserved[1 + axis] / conserved[0]; }
                double pressure() const {
                    double squared = 0.0;
                    for (int axis = 0; axis < 3; ++axis) squared += velocity(axis) * velocity(axis);
                    return (1.4 - 1.0) * (conserved[4] - 0.5 * conserved[0] * squared);
                }
                double sound() const { return std::sqrt(1.4 * pressure() / conserved[0]); }
                // The flux of each conserved quantity along a direction, and the speed of the fastest wave.
                void along(const double direction[3], double out[5], double &speed) const {
                    double normal = 0.0, length = 0.0;
                    for (int axis = 0; axis < 3; ++axis) {
                        normal += velocity(axis) * direction[axis];
                        length += direction[axis] * direction[axis];
                    }
                    for (int v = 0; v < 5; ++v) out[v] = conserved[v] * normal;
                    for (int axis = 0; axis < 3; ++axis) out[1 + axis] += pressure() * direction[axis];
                    out[4] += pressure() * normal;
                    speed = std::fabs(normal) + sound() * std::sqrt(length);
                }
            };
            const auto gas = [&](std::size_t i) {
                return Gas{{density[i], momentum[i], momentum[elements + i], momentum[2 * elements + i], energy[i]}};
            };
            Gas outside = {{away[0], 0.0, 0.0, 0.0, away[4] / (1.4 - 1.0)}};
            for (int axis = 0; axis < 3; ++axis) {
                outside.conserved[1 + axis] = double(away[0]) * away[1 + axis];
                outside.conserved[4] += 0.5 * away[0] * away[1 + axis] * away[1 + axis];
            }
            for (const std::size_t i : bench::sample(elements, std::size_t(1) << 19)) {
                const Gas own = gas(i);
                double expected[5] = {};
                for (int face = 0; face < 4; ++face) {
                    double direction[3];
                    for (int axis = 0; axis < 3; ++axis) direction[axis] = normals[(3 * face + axis) * elements + i];
                    const int other = neighbours[face * elements + i];
                    if (other == WALL) {
                        for (int axis = 0; axis < 3; ++axis) expected[1 + axis] -= own.pressure() * direction[axis];
                        continue;
                    }
                    const Gas beyond = other == FAR ? outside : gas(other);
                    double here[5], there[5], speeds[2];
                    own.along(direction, here, speeds[0]);
                    beyond.along(direction, there, speeds[1]);
                    for (int v = 0; v < 5; ++v) {
                        expected[v] -= 0.5 * (here[v] + there[v]) - 0.5 * std::max(speeds[0], speeds[1]) *
                                                                        (beyond.conserved[v] - own.conserved[v]);
                    }
                }
                for (int v = 0; v < 5; ++v) {
                    comparison.add("flux", v * elements + i, flux[v * elements + i], expected[v]);
                }
            }
        });
}
