// Structures by value: plain ones, of a namespace without a name, of a template, with padding and a base, and CUDA's vectors.
#include <cstdint>
using real = float;
struct Base {
    char tag;
};
namespace {
struct Plan : Base {
    struct {
        int16_t skip;
        double factor;
    } inner;
    uint64_t n;
    const real *x;
};
}  // namespace
template <class T>
struct View {
    T *data;
    int size;
};

//@tune threads(plan.n) block({64, 256}) default(block = 256) regs({0})
//@tune args(plan = {n = 1 << 12, x = random[plan.n], inner = {skip = 3, factor = 0.5}},
//@tune      y = {data = out[plan.n], size = plan.n}, a = {x = 1.5f, y = 2}) check(y.data)
__global__ void apply(const Plan plan, View<real> y, float2 a) {
    const uint64_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= plan.n || i >= y.size) return;
    float value = plan.x[i] * static_cast<float>(plan.inner.factor);
#pragma unroll 1
    for (int k = 0; k < plan.inner.skip; ++k) value = value * a.x + a.y;
    y.data[i] = value;
}

void launch(float *y) { apply<<<1, 256>>>(Plan{}, View<real>{y, 1}, float2{1, 2}); }
