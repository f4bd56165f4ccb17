// Sum of a vector of integers in stages: a launch halves the vector, each thread adding two neighbours.
#include "../common/bench.h"

#if __has_include("reduction.tune.h")
#include "reduction.tune.h"
#endif

//@tune threads(ceildiv(n, 2)) block(32:1024:16) regs(0)
//@tune args(n = 1023 << 16, in = random[n], out = out[ceildiv(n, 2)])
//@tune default(block = 256)
__global__ void reduction(int n, const unsigned *in, unsigned *out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int first = 2 * i;
    if (first >= n) return;
    out[i] = first + 1 < n ? in[first] + in[first + 1] : in[first];
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef REDUCTION_BLOCK_X
    shape.block = nvtune::reduction::block();
    shape.grid = nvtune::reduction::grid(n);
    shape.shared = nvtune::reduction::shared();
    shape.header = true;
#else
    shape.block = dim3(256);
    shape.grid = dim3(((n + 1) / 2 + 255) / 256);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // Indices are below 2^30 + 2^11.
    const bench::Options options = bench::parse(argc, argv, "reduction", 1023 << 16, 1 << 30);
    const int n = options.size;
    const std::vector<unsigned> values = bench::integers<unsigned>(n, options, 0, 0, 255);
    bench::Array<unsigned> device_values(values);
    // The stages write to these two in turn; the second has room for the second stage.
    const int half = (n + 1) / 2, quarter = (half + 1) / 2;
    bench::Array<unsigned> device_half(half), device_quarter(quarter);
    const unsigned *device_sum = nullptr;

    return bench::finish(
        "reduction", options, shape(n), reduction, bench::Comparison(0.0, 0.0),
        [&] {
            const unsigned *from = device_values.data();
            unsigned *to = device_half.data();
            int count = n;
            do {
                const bench::Shape launch = shape(count);
                reduction<<<launch.grid, launch.block, launch.shared>>>(count, from, to);
                from = to;
                to = to == device_half.data() ? device_quarter.data() : device_half.data();
                count = (count + 1) / 2;
            } while (count > 1);
            device_sum = from;
        },
        [&](bench::Comparison &comparison) {
            // Modulo 2^32, as on the GPU.
            unsigned sum = 0, got = 0;
            for (const unsigned value : values) sum += value;
            BENCH_CUDA(cudaMemcpy(&got, device_sum, sizeof got, cudaMemcpyDeviceToHost));
            comparison.add("sum", 0, got, sum);
        });
}
