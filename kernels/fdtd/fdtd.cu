// One time step of the finite-difference time-domain method in two dimensions (Ez, Hx, Hy): first H from E, then E from
// the new H, both in one launch; a thread makes WORK cells of a column, from the old fields to the new.
#include "../common/bench.h"

#if __has_include("fdtd.tune.h")
#include "fdtd.tune.h"
#endif

#ifndef WORK
#define WORK 1
#endif

/*@tune
    define(WORK = {1, 2, 4, 8}) block({16, 32, 64, 128, 256}, {1, 2, 4, 8, 16}) regs(auto)
    threads(n, ceildiv(n, WORK))
    args(n = 4096, courant = 0.5f, medium = random(0.1, 0.5)[n * n],
         ez = random(-1, 1)[n * n], hx = random(-1, 1)[n * n], hy = random(-1, 1)[n * n],
         ez_next = out[n * n], hx_next = out[n * n], hy_next = out[n * n])
    check(ez_next, hx_next, hy_next, rtol = 1e-4, atol = 1e-5)
    default(block = {32, 8}, WORK = 1)
*/
__global__ void fdtd(int n, float courant, const float *__restrict__ medium, const float *__restrict__ ez,
                     const float *__restrict__ hx, const float *__restrict__ hy, float *__restrict__ ez_next,
                     float *__restrict__ hx_next, float *__restrict__ hy_next) {
    // In the cell (y, x), Ez is at its corner, Hx half a cell further in y, Hy half a cell further in x.
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int first = (blockIdx.y * blockDim.y + threadIdx.y) * WORK;
    if (x >= n || first >= n) return;
    int at = first * n + x;
    float here = ez[at];
    float hx_above = first > 0 ? hx[at - n] - courant * (here - ez[at - n]) : 0.0f;
#pragma unroll
    for (int w = 0; w < WORK; ++w) {
        const int y = first + w;
        if (y >= n) return;
        // Beyond the edges all fields are 0.
        const float below = y + 1 < n ? ez[at + n] : 0.0f;
        const float right = x + 1 < n ? ez[at + 1] : 0.0f;
        const float hx_here = hx[at] - courant * (below - here);
        const float hy_here = hy[at] + courant * (right - here);
        const float hy_left = x > 0 ? hy[at - 1] + courant * (here - ez[at - 1]) : 0.0f;
        hx_next[at] = hx_here;
        hy_next[at] = hy_here;
        ez_next[at] = here + medium[at] * ((hy_here - hy_left) - (hx_here - hx_above));
        here = below;
        hx_above = hx_here;
        at += n;
    }
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef FDTD_BLOCK_X
    shape.block = nvtune::fdtd::block();
    shape.grid = nvtune::fdtd::grid(n);
    shape.shared = nvtune::fdtd::shared();
    shape.header = true;
#else
    shape.block = dim3(32, 8);
    shape.grid = dim3((n + 31) / 32, (n + 8 * WORK - 1) / (8 * WORK));
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Size: cells of an edge of the square. Indices are below 2^30.
    const bench::Options options = bench::parse(argc, argv, "fdtd", 4096, 1 << 15);
    const int n = options.size;
    const float courant = 0.5f;
    const std::size_t cells = std::size_t(n) * n;
    // Vacuum, and discs of a denser material in it.
    std::vector<float> medium(cells);
    for (int y = 0; y < n; ++y) {
        for (int x = 0; x < n; ++x) {
            const int dx = x % 256 - 128, dy = y % 256 - 128;
            medium[std::size_t(y) * n + x] = dx * dx + dy * dy < 80 * 80 ? 0.125f : 0.5f;
        }
    }
    const std::vector<float> ez = bench::random(cells, options, 0, -1.0f, 1.0f);
    const std::vector<float> hx = bench::random(cells, options, 1, -1.0f, 1.0f);
    const std::vector<float> hy = bench::random(cells, options, 2, -1.0f, 1.0f);
    bench::Array<float> device_medium(medium), device_ez(ez), device_hx(hx), device_hy(hy);
    bench::Array<float> device_ez_next(cells), device_hx_next(cells), device_hy_next(cells);

    const bench::Shape launch = shape(n);
    return bench::finish(
        "fdtd", options, launch, fdtd, bench::Comparison(1e-5, 1e-5),
        [&] {
            fdtd<<<launch.grid, launch.block, launch.shared>>>(n, courant, device_medium.data(), device_ez.data(),
                                                               device_hx.data(), device_hy.data(),
                                                               device_ez_next.data(), device_hx_next.data(),
                                                               device_hy_next.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float> got_ez = device_ez_next.read(), got_hx = device_hx_next.read(),
                                     got_hy = device_hy_next.read();
            const auto field = [&](const std::vector<float> &values, int y, int x) {
                return y >= 0 && y < n && x >= 0 && x < n ? double(values[std::size_t(y) * n + x]) : 0.0;
            };
            const auto new_hx = [&](int y, int x) {
                return y < 0 ? 0.0 : field(hx, y, x) - courant * (field(ez, y + 1, x) - field(ez, y, x));
            };
            const auto new_hy = [&](int y, int x) {
                return x < 0 ? 0.0 : field(hy, y, x) + courant * (field(ez, y, x + 1) - field(ez, y, x));
            };
            for (const std::size_t at : bench::sample(cells, std::size_t(1) << 22)) {
                const int y = static_cast<int>(at / n), x = static_cast<int>(at % n);
                const double curl = (new_hy(y, x) - new_hy(y, x - 1)) - (new_hx(y, x) - new_hx(y - 1, x));
                comparison.add("ez", at, got_ez[at], ez[at] + medium[at] * curl);
                comparison.add("hx", at, got_hx[at], new_hx(y, x));
                comparison.add("hy", at, got_hy[at], new_hy(y, x));
            }
        });
}
