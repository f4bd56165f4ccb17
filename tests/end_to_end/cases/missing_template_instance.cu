// Template kernels: two instances of one, and one whose instance depends on a macro axis.
namespace ns {
template <class T>
struct Twice {
    static __device__ T of(T x) { return x + x; }
};

//@tune template(float) template(double) threads(n) block({64, 256}) default(block = 256) regs({0})
//@tune args(n = 1 << 12, a = 2, x = random[n], y = out[n])
template <typename T>
__global__ void scale(int n, T a, const T *x, T *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
}  // namespace ns

#ifndef WORK
#define WORK 2
#endif

//@tune template(Twice<float>, WORK * 2) define(WORK = {1, 2, 4}) default(WORK = 2, block = 128) regs({0})
//@tune threads(ceildiv(n, 2 * WORK)) block({64, 128})
//@tune args(n = 1 << 12, x = random[n], y = out[n])
template <typename Op, int N>
__global__ void apply(int n, const float *x, float *y) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
#pragma unroll
    for (int k = 0; k < N; ++k)
        if (first + k < n) y[first + k] = Op::of(x[first + k]);
}

void launch(int n, const float *x, float *y, const double *v, double *w) {
    ns::scale<<<(n + 255) / 256, 256>>>(n, 2.0f, x, y);
    ns::scale<<<(n + 255) / 256, 256>>>(n, 2.0, v, w);
    apply<ns::Twice<float>, 2 * WORK><<<n, 128>>>(n, x, y);
}

//# build half_among_types
//# replace template(double) => template(half)
//# header struct scale_float {
//#| missing_template_instance.cu(8): warning: `scale` has no instance <half>: this file makes <double>, <float>; nvcc builds it as it is [N0167]
//#|   //@tune template(float) template(half) threads(n) block({64, 256}) default(block = 256) regs({0})
//#|                           ^~~~~~~~
//#|
//#| nvtune: scale_float: block=*
//#| nvtune: scale_float: note: 1 of 2 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: apply_Twice_float_WORK_2: block=*
//#| nvtune: apply_Twice_float_WORK_2: note: 5 of 6 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
