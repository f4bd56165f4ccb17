// Gravitational acceleration of every body by every body; tiles of bodies pass through shared memory.
#include "../common/bench.h"

#if __has_include("nbody.tune.h")
#include "nbody.tune.h"
#endif

//@tune threads(n) block(64:1024:64) shared(block.x * 16) regs(auto)
//@tune args(n = 32768, softening = 0.01f, bodies = random[n], acceleration = out[n])
//@tune check(acceleration, rtol = 1e-4)
//@tune default(block = 256)
__global__ void nbody(int n, float softening, const float4 *bodies, float4 *acceleration) {
    // Position in x, y and z, mass in w.
    extern __shared__ float4 tile[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 nowhere = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const float4 self = i < n ? bodies[i] : nowhere;
    float x = 0.0f, y = 0.0f, z = 0.0f;
    for (int first = 0; first < n; first += blockDim.x) {
        const int mine = first + threadIdx.x;
        // Past the end: without mass, hence without effect.
        tile[threadIdx.x] = mine < n ? bodies[mine] : nowhere;
        __syncthreads();
#pragma unroll 32
        for (int k = 0; k < blockDim.x; ++k) {
            const float4 other = tile[k];
            const float dx = other.x - self.x, dy = other.y - self.y, dz = other.z - self.z;
            // The softening keeps a body's pull on itself (distance 0) finite: it is 0 then.
            const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
            const float pull = other.w * inverse * inverse * inverse;
            x += dx * pull;
            y += dy * pull;
            z += dz * pull;
        }
        __syncthreads();
    }
    if (i < n) acceleration[i] = make_float4(x, y, z, 0.0f);
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef NBODY_BLOCK_X
    shape.block = nvtune::nbody::block();
    shape.grid = nvtune::nbody::grid(n);
    shape.shared = nvtune::nbody::shared();
    shape.header = true;
#else
    shape.block = dim3(256);
    shape.grid = dim3((n + 255) / 256);
    shape.shared = 256 * sizeof(float4);
#endif
    return shape;
}

int main(int argc, char **argv) {
    const bench::Options options = bench::parse(argc, argv, "nbody", 32768, 1 << 24);
    const int n = options.size;
    const float softening = 0.01f;
    std::vector<float4> bodies(n);
    for (int i = 0; i < n; ++i) {
        bodies[i] = make_float4(bench::uniform(options.seed, 0, i, 0.0f, 1.0f),
                                bench::uniform(options.seed, 1, i, 0.0f, 1.0f),
                                bench::uniform(options.seed, 2, i, 0.0f, 1.0f),
                                bench::uniform(options.seed, 3, i, 0.0f, 1.0f));
    }
    bench::Array<float4> device_bodies(bodies), device_acceleration(n);

    const bench::Shape launch = shape(n);
    // Pulls from all sides cancel in part, so the error is a share of what was added up (about n), not of what is left.
    return bench::finish(
        "nbody", options, launch, nbody, bench::Comparison(1e-3, 3e-5 * n),
        [&] {
            nbody<<<launch.grid, launch.block, launch.shared>>>(n, softening, device_bodies.data(),
                                                                device_acceleration.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float4> got = device_acceleration.read();
            for (const std::size_t i : bench::sample(n, std::max<std::size_t>(1, (std::size_t(1) << 27) / n))) {
                double x = 0.0, y = 0.0, z = 0.0;
                for (const float4 &other : bodies) {
                    const double dx = double(other.x) - bodies[i].x, dy = double(other.y) - bodies[i].y,
                                 dz = double(other.z) - bodies[i].z;
                    const double squared = dx * dx + dy * dy + dz * dz + softening;
                    const double pull = other.w / (squared * std::sqrt(squared));
                    x += dx * pull;
                    y += dy * pull;
                    z += dz * pull;
                }
                comparison.add("acceleration.x", i, got[i].x, x);
                comparison.add("acceleration.y", i, got[i].y, y);
                comparison.add("acceleration.z", i, got[i].z, z);
                comparison.add("acceleration.w", i, got[i].w, 0.0);
            }
        });
}
