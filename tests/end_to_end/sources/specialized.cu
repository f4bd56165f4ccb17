#include <cuda_fp16.h>

//@tune template(float) threads(n) block({64, 128, 256}) regs({0}) default(block = 256)
//@tune args(n = 1 << 12, x = random[n])
template <typename T>
__global__ void shift(T *x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += T(1);
}

//@tune threads(count) block({64, 128, 256}) regs({0}) default(block = 256)
//@tune args(count = 1 << 12, halves = random[count])
template <>
__global__ void shift<__half>(__half *halves, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) halves[i] = __hadd(halves[i], __float2half(1.0f));
}

// The argument is left to the types of the parameters.
//@tune template(double) threads(n) block({64, 128, 256}) regs({0}) default(block = 256)
//@tune args(n = 1 << 12, x = random[n])
template <>
__global__ void shift(double *x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 2.0;
}

void shift_all(float *x, __half *y, double *z, int n) {
    const int blocks = (n + 255) / 256;
    shift<<<blocks, 256>>>(x, n);
    shift<<<blocks, 256>>>(y, n);
    shift<<<blocks, 256>>>(z, n);
}
