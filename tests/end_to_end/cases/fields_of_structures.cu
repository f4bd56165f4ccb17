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

//# build given
//# args -O3 -arch=sm_90 -c
//# times {"label": "block=64", "time_us": 5.0}, {"time_us": 10.0}
//# header static dim3 grid(unsigned long long plan_n)
//#| nvtune: apply: block=64 (2.00x over the baseline, measured*

//# build unknown_field
//# replace skip = 3 => skipped = 3
//# exit 2
//#| fields_of_structures.cu(24): error: class "<unnamed>::Plan::<unnamed>" has no member "skipped" [N0162]
//#|   //@tune args(plan = {n = 1 << 12, x = random[plan.n], inner = {skipped = 3, factor = 0.5}},
//#|                                                                  ^~~~~~~
//#|
//#| 1 error detected in the compilation of "fields_of_structures.cu".

//# build field_out_of_range
//# replace skip = 3 => skip = 1 << 15
//# exit 2
//#| fields_of_structures.cu(24): error: `plan.inner.skip` is of type `short` and cannot be 32768: it holds -32768 to 32767 [N0160]
//#|   //@tune args(plan = {n = 1 << 12, x = random[plan.n], inner = {skip = 1 << 15, factor = 0.5}},
//#|                                                                         ^~~~~~~
//#|
//#| 1 error detected in the compilation of "fields_of_structures.cu".

//# build number_for_vector
//# replace a = {x = 1.5f, y = 2} => a = 4
//# exit 2
//#| fields_of_structures.cu(25): error: `a` is of type `float2`: give its fields, as in a = {x = 1, y = 1} [N0160]
//#|   //@tune      y = {data = out[plan.n], size = plan.n}, a = 4) check(y.data)
//#|                                                         ^
//#|
//#| 1 error detected in the compilation of "fields_of_structures.cu".
