// y = a x + y on single-precision vectors, one element a thread.
#include "../common/bench.h"

#if __has_include("saxpy.tune.h")
#include "saxpy.tune.h"
#endif

//@tune threads(n) block(64:1024:32) regs(auto)
//@tune args(n = 1 << 25, a = 2.0f, x = random[n], y = random[n])
//@tune check(y, rtol = 1e-5)
//@tune default(block = 256)
__global__ void saxpy(int n, float a, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef SAXPY_BLOCK_X
    shape.block = nvtune::saxpy::block();
    shape.grid = nvtune::saxpy::grid(n);
    shape.shared = nvtune::saxpy::shared();
    shape.header = true;
#else
    shape.block = dim3(256);
    shape.grid = dim3((n + 255) / 256);
#endif
    return shape;
}

int main(int argc, char **argv) {
    const bench::Options options = bench::parse(argc, argv, "saxpy", 1 << 25, 1 << 30);
    const int n = options.size;
    const float a = 2.0f;
    const std::vector<float> x = bench::random(n, options, 0, 0.0f, 1.0f);
    const std::vector<float> y = bench::random(n, options, 1, 0.0f, 1.0f);
    bench::Array<float> device_x(x), device_y(y);

    const bench::Shape launch = shape(n);
    return bench::finish(
        "saxpy", options, launch, saxpy, bench::Comparison(1e-5, 1e-6),
        [&] { saxpy<<<launch.grid, launch.block, launch.shared>>>(n, a, device_x.data(), device_y.data()); },
        [&](bench::Comparison &comparison) {
            const std::vector<float> got = device_y.read();
            for (int i = 0; i < n; ++i) comparison.add("y", i, got[i], double(a) * x[i] + y[i]);
        });
}
