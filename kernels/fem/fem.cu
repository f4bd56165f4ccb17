// One step in time of a finite element model of an elastic solid whose stiffness varies from element to element: each
// node gathers the forces of its eight elements from the displacements of their corners.
#include "../common/bench.h"

#if __has_include("fem.tune.h")
#include "fem.tune.h"
#endif

// Elements of a node that are unrolled.
#ifndef UNROLL
#define UNROLL 1
#endif

constexpr int SLOTS = UNROLL; // the pragma takes no macro

// Force on coordinate r of corner a for a unit displacement of coordinate c of corner b, at modulus 1, in element
// (3 a + r, 3 b + c).
__constant__ float stiffness[24 * 24];

// A periodic lattice of 128^3 nodes and as many elements. The element of number e begins at node e / 3 modulo their
// count; element incident[s][i] has node i for its corner s.
/*@tune
    define(UNROLL = {1, 2, 4, 8}) threads(nodes) block(64:1024:64) regs(auto)
    args(nodes = 1 << 21, step = 0.1f,
         incident = each((index % nodes + nodes - index / nodes % 2 - index / nodes / 2 % 2 * 128 -
                          index / nodes / 4 * 16384) * 3 % nodes)[8 * nodes],
         corner = each((index % nodes * 699051 + index / nodes % 2 + index / nodes / 2 % 2 * 128 +
                        index / nodes / 4 * 16384) % nodes)[8 * nodes],
         modulus = random(1.0, 3.0)[nodes], now = random(-1, 1)[nodes], before = random(-1, 1)[nodes],
         next = out[nodes])
    symbol(stiffness = random(-0.25, 0.25)[24 * 24])
    check(next, rtol = 1e-4, atol = 1e-4)
    default(block = 128, UNROLL = 1)
*/
__global__ void fem(int nodes, float step, const int *__restrict__ incident, const int *__restrict__ corner,
                    const float *__restrict__ modulus, const float4 *__restrict__ now,
                    const float4 *__restrict__ before, float4 *__restrict__ next) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= nodes) return;
    float x = 0.0f, y = 0.0f, z = 0.0f;
#pragma unroll SLOTS
    for (int s = 0; s < 8; ++s) {
        const int element = incident[s * nodes + i];
        const float *const row = stiffness + 3 * 24 * s;
        float fx = 0.0f, fy = 0.0f, fz = 0.0f;
#pragma unroll
        for (int c = 0; c < 8; ++c) {
            const float4 u = now[corner[c * nodes + element]];
            fx += row[3 * c] * u.x + row[3 * c + 1] * u.y + row[3 * c + 2] * u.z;
            fy += row[24 + 3 * c] * u.x + row[24 + 3 * c + 1] * u.y + row[24 + 3 * c + 2] * u.z;
            fz += row[48 + 3 * c] * u.x + row[48 + 3 * c + 1] * u.y + row[48 + 3 * c + 2] * u.z;
        }
        const float scale = modulus[element];
        x += scale * fx;
        y += scale * fy;
        z += scale * fz;
    }
    const float4 u = now[i], old = before[i];
    next[i] = make_float4(2.0f * u.x - old.x - step * x, 2.0f * u.y - old.y - step * y, 2.0f * u.z - old.z - step * z,
                          0.0f);
}

static bench::Shape shape(int nodes) {
    bench::Shape shape;
#ifdef FEM_BLOCK_X
    shape.block = nvtune::fem::block();
    shape.grid = nvtune::fem::grid(nodes);
    shape.shared = nvtune::fem::shared();
    shape.header = true;
#else
    shape.block = dim3(128);
    shape.grid = dim3((nodes + 127) / 128);
#endif
    return shape;
}

// Lame's constants of a material with modulus 1 and Poisson's ratio 0.3.
constexpr double LAMBDA = 0.3 / (1.3 * 0.4), MU = 1.0 / (2.0 * 1.3);

// Calls visit(gradients of the eight shape functions, weight) for each of the 2^3 Gauss points of a unit cube.
template <typename Visit> static void integrate(Visit visit) {
    for (int point = 0; point < 8; ++point) {
        double at[3], gradient[8][3];
        for (int axis = 0; axis < 3; ++axis) at[axis] = 0.5 + (point >> axis & 1 ? 0.5 : -0.5) / std::sqrt(3.0);
        for (int c = 0; c < 8; ++c) {
            for (int axis = 0; axis < 3; ++axis) {
                double product = 1.0;
                for (int other = 0; other < 3; ++other) {
                    const bool upper = c >> other & 1;
                    product *= other == axis ? (upper ? 1.0 : -1.0) : (upper ? at[other] : 1.0 - at[other]);
                }
                gradient[c][axis] = product;
            }
        }
        visit(gradient, 1.0 / 8.0);
    }
}

int main(int argc, char **argv) {
    // Size: nodes of an edge of the lattice. Indices are below 8 * 256^3 = 2^27.
    const bench::Options options = bench::parse(argc, argv, "fem", 128, 256);
    const long long edge = options.size, nodes = edge * edge * edge;
    // Numbers of elements jump through the lattice: by `inverse` from one to the next, so that neighbours in the
    // lattice are `prime` apart.
    long long prime = 3, inverse = 1;
    while (nodes % prime == 0) prime += 2;
    while (inverse * prime % nodes != 1 % nodes) ++inverse;
    const auto offset = [&](long long c) { return c % 2 + c / 2 % 2 * edge + c / 4 * edge * edge; };
    const auto number = [&](long long cell) { return (cell % nodes + nodes) % nodes * prime % nodes; };
    std::vector<int> incident(8 * nodes), corner(8 * nodes);
    std::vector<float> modulus(nodes);
    for (long long i = 0; i < nodes; ++i) {
        for (int c = 0; c < 8; ++c) {
            incident[c * nodes + i] = static_cast<int>(number(i - offset(c)));
            corner[c * nodes + i] = static_cast<int>((i * inverse + offset(c)) % nodes);
        }
        // Graded from 1 to 3.
        modulus[number(i)] = 1.0f + 2.0f * static_cast<float>(i) / static_cast<float>(nodes);
    }
    const auto vectors = [&](int stream) {
        std::vector<float4> values(nodes);
        for (long long i = 0; i < nodes; ++i) {
            values[i] = make_float4(bench::uniform(options.seed, stream, i, -1.0f, 1.0f),
                                    bench::uniform(options.seed, stream + 1, i, -1.0f, 1.0f),
                                    bench::uniform(options.seed, stream + 2, i, -1.0f, 1.0f), 0.0f);
        }
        return values;
    };
    const std::vector<float4> now = vectors(0), before = vectors(3);
    const float step = 0.1f;
    std::vector<double> sums(24 * 24, 0.0);
    integrate([&](const double gradient[8][3], double weight) {
        for (int at = 0; at < 24 * 24; ++at) {
            const int a = at / 72, r = at / 24 % 3, b = at % 24 / 3, c = at % 3;
            double same = 0.0;
            for (int axis = 0; axis < 3 && r == c; ++axis) same += gradient[a][axis] * gradient[b][axis];
            sums[at] += weight * (LAMBDA * gradient[a][r] * gradient[b][c] + MU * gradient[a][c] * gradient[b][r] +
                                  MU * same);
        }
    });
    const std::vector<float> matrix(sums.begin(), sums.end());
    BENCH_CUDA(cudaMemcpyToSymbol(stiffness, matrix.data(), matrix.size() * sizeof(float)));
    bench::Array<int> device_incident(incident), device_corner(corner);
    bench::Array<float> device_modulus(modulus);
    bench::Array<float4> device_now(now), device_before(before), device_next(nodes);

    const bench::Shape launch = shape(static_cast<int>(nodes));
    return bench::finish(
        "fem", options, launch, fem, bench::Comparison(1e-5, 1e-5),
        [&] {
            fem<<<launch.grid, launch.block, launch.shared>>>(static_cast<int>(nodes), step, device_incident.data(),
                                                              device_corner.data(), device_modulus.data(),
                                                              device_now.data(), device_before.data(),
                                                              device_next.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float4> next = device_next.read();
            const auto component = [](const float4 &value, int axis) {
                return double(axis == 0 ? value.x : axis == 1 ? value.y : value.z);
            };
            // From the lattice, without the index arrays; from strain and stress, without the stiffness matrix.
            for (const std::size_t i : bench::sample(nodes, std::size_t(1) << 14)) {
                double force[3] = {};
                for (int s = 0; s < 8; ++s) {
                    const long long cell = (static_cast<long long>(i) - offset(s) + 8 * nodes) % nodes;
                    integrate([&](const double gradient[8][3], double weight) {
                        double slope[3][3] = {};
                        for (int c = 0; c < 8; ++c) {
                            const float4 &u = now[(cell + offset(c)) % nodes];
                            for (int at = 0; at < 9; ++at) {
                                slope[at / 3][at % 3] += component(u, at / 3) * gradient[c][at % 3];
                            }
                        }
                        const double volume = slope[0][0] + slope[1][1] + slope[2][2];
                        for (int r = 0; r < 3; ++r) {
                            for (int axis = 0; axis < 3; ++axis) {
                                const double stress =
                                    MU * (slope[r][axis] + slope[axis][r]) + (r == axis ? LAMBDA * volume : 0.0);
                                force[r] += weight * modulus[number(cell)] * stress * gradient[s][axis];
                            }
                        }
                    });
                }
                for (int r = 0; r < 3; ++r) {
                    const char *const names[3] = {"next.x", "next.y", "next.z"};
                    comparison.add(names[r], i, component(next[i], r),
                                   2.0 * component(now[i], r) - component(before[i], r) - double(step) * force[r]);
                }
            }
        });
}
