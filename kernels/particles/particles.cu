// Collisions of spheres in a box: each pushes away those that it overlaps, and slows what moves past it. Particles are
// sorted by the cells of a uniform grid, as wide as a sphere. A grid-stride loop over the particles.
#include "../common/bench.h"

#if __has_include("particles.tune.h")
#include "particles.tune.h"
#endif

// Cell c has the particles start[c] to start[c + 1] - 1: by turns five and three. Lengths are in cells.
/*@tune
    grid({132, 264, 528, 1056, 2112, 4224}) block(64:512:64) regs(auto)
    args(edge = 64, n = 4 * edge * edge * edge, spring = 0.5f, damping = 0.1f, shear = 0.05f,
         start = each(4 * index + index % 2)[edge * edge * edge + 1],
         px = each((index / 8 * 2 + (index % 8 > 4)) % edge + index * 40503 % 65537 / 65537.0)[n],
         py = each((index / 8 * 2 + (index % 8 > 4)) / edge % edge + index * 30011 % 65539 / 65539.0)[n],
         pz = each((index / 8 * 2 + (index % 8 > 4)) / edge / edge + index * 50021 % 65543 / 65543.0)[n],
         vx = random(-1, 1)[n], vy = random(-1, 1)[n], vz = random(-1, 1)[n],
         vx_next = out[n], vy_next = out[n], vz_next = out[n])
    check(vx_next, vy_next, vz_next, rtol = 1e-4, atol = 1e-4)
    default(block = 256, grid = 528)
*/
__global__ void particles(int edge, int n, float spring, float damping, float shear, const int *__restrict__ start,
                          const float *__restrict__ px, const float *__restrict__ py, const float *__restrict__ pz,
                          const float *__restrict__ vx, const float *__restrict__ vy, const float *__restrict__ vz,
                          float *__restrict__ vx_next, float *__restrict__ vy_next, float *__restrict__ vz_next) {
    const int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        const float x = px[i], y = py[i], z = pz[i], u = vx[i], v = vy[i], w = vz[i];
        // Rounding may carry a particle to the far wall of its cell, which may be that of the box.
        const int cx = min(static_cast<int>(x), edge - 1), cy = min(static_cast<int>(y), edge - 1),
                  cz = min(static_cast<int>(z), edge - 1);
        const int left = max(cx - 1, 0), right = min(cx + 1, edge - 1);
        float fx = 0.0f, fy = 0.0f, fz = 0.0f;
        for (int near_z = max(cz - 1, 0); near_z <= min(cz + 1, edge - 1); ++near_z) {
            for (int near_y = max(cy - 1, 0); near_y <= min(cy + 1, edge - 1); ++near_y) {
                // Cells that are neighbours in x follow each other.
                const int row = (near_z * edge + near_y) * edge;
                const int end = start[row + right + 1];
                for (int j = start[row + left]; j < end; ++j) {
                    const float dx = px[j] - x, dy = py[j] - y, dz = pz[j] - z;
                    const float squared = dx * dx + dy * dy + dz * dz;
                    // Particles in the same place, the particle itself among them, have no direction to push in.
                    if (squared >= 1.0f || squared < 1e-8f) continue;
                    const float inverse = rsqrtf(squared);
                    const float overlap = 1.0f - squared * inverse;
                    const float nx = dx * inverse, ny = dy * inverse, nz = dz * inverse;
                    const float du = vx[j] - u, dv = vy[j] - v, dw = vz[j] - w;
                    const float along = du * nx + dv * ny + dw * nz;
                    // Damping acts on the whole relative velocity, shear on its part across.
                    const float push = -spring - shear * along;
                    // All forces grow with the overlap, so that none of them begins with a jump.
                    fx += overlap * (push * nx + (damping + shear) * du);
                    fy += overlap * (push * ny + (damping + shear) * dv);
                    fz += overlap * (push * nz + (damping + shear) * dw);
                }
            }
        }
        vx_next[i] = u + fx;
        vy_next[i] = v + fy;
        vz_next[i] = w + fz;
    }
}

static bench::Shape shape() {
    bench::Shape shape;
#ifdef PARTICLES_BLOCK_X
    shape.block = nvtune::particles::block();
    shape.grid = nvtune::particles::grid();
    shape.shared = nvtune::particles::shared();
    shape.header = true;
#else
    shape.block = dim3(256);
    shape.grid = dim3(528);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Size: cells of an edge of the box. Numbers of particles are below 4 * 256^3 + 2.
    const bench::Options options = bench::parse(argc, argv, "particles", 64, 256);
    const int edge = options.size, cells = edge * edge * edge;
    const float spring = 0.5f, damping = 0.1f, shear = 0.05f;
    std::vector<int> start(cells + 1);
    for (int c = 0; c <= cells; ++c) start[c] = 4 * c + c % 2;
    const int n = start[cells];
    std::vector<float> position[3];
    for (std::vector<float> &axis : position) axis.resize(n);
    for (int c = 0; c < cells; ++c) {
        const int corner[3] = {c % edge, c / edge % edge, c / edge / edge};
        for (int i = start[c]; i < start[c + 1]; ++i) {
            for (int axis = 0; axis < 3; ++axis) {
                // A multiple of 2^-12, so that the sum with a cell's corner is exact and stays in the cell.
                const float within = std::floor(bench::uniform(options.seed, axis, i, 0.0f, 4096.0f)) * 0x1p-12f;
                position[axis][i] = corner[axis] + within;
            }
        }
    }
    const std::vector<float> velocity[3] = {bench::random(n, options, 3, -1.0f, 1.0f),
                                            bench::random(n, options, 4, -1.0f, 1.0f),
                                            bench::random(n, options, 5, -1.0f, 1.0f)};
    bench::Array<int> device_start(start);
    bench::Array<float> px(position[0]), py(position[1]), pz(position[2]);
    bench::Array<float> vx(velocity[0]), vy(velocity[1]), vz(velocity[2]);
    bench::Array<float> vx_next(n), vy_next(n), vz_next(n);

    const bench::Shape launch = shape();
    return bench::finish(
        "particles", options, launch, particles, bench::Comparison(1e-4, 1e-4),
        [&] {
            particles<<<launch.grid, launch.block, launch.shared>>>(
                edge, n, spring, damping, shear, device_start.data(), px.data(), py.data(), pz.data(), vx.data(),
                vy.data(), vz.data(), vx_next.data(), vy_next.data(), vz_next.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float> got[3] = {vx_next.read(), vy_next.read(), vz_next.read()};
            for (const std::size_t i : bench::sample(n, std::size_t(1) << 15)) {
                double force[3] = {};
                for (int c = 0; c < 27; ++c) {
                    const int cell[3] = {static_cast<int>(position[0][i]) + c % 3 - 1,
                                         static_cast<int>(position[1][i]) + c / 3 % 3 - 1,
                                         static_cast<int>(position[2][i]) + c / 9 - 1};
                    bool inside = true;
                    for (const int at : cell) inside = inside && at >= 0 && at < edge;
                    if (!inside) continue;
                    const int index = (cell[2] * edge + cell[1]) * edge + cell[0];
                    for (std::size_t j = start[index]; j < std::size_t(start[index + 1]); ++j) {
                        double apart[3], relative[3], distance = 0.0, along = 0.0;
                        for (int axis = 0; axis < 3; ++axis) {
                            apart[axis] = double(position[axis][j]) - position[axis][i];
                            relative[axis] = double(velocity[axis][j]) - velocity[axis][i];
                            distance += apart[axis] * apart[axis];
                        }
                        distance = std::sqrt(distance);
                        if (distance >= 1.0 || distance < 1e-4) continue;
                        for (int axis = 0; axis < 3; ++axis) along += relative[axis] * apart[axis] / distance;
                        for (int axis = 0; axis < 3; ++axis) {
                            const double normal = apart[axis] / distance, across = relative[axis] - along * normal;
                            force[axis] += (1.0 - distance) *
                                           (-spring * normal + damping * relative[axis] + shear * across);
                        }
                    }
                }
                for (int axis = 0; axis < 3; ++axis) {
                    const char *const names[3] = {"vx", "vy", "vz"};
                    comparison.add(names[axis], i, got[axis][i], velocity[axis][i] + force[axis]);
                }
            }
        });
}
