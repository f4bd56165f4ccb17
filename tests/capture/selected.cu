// Kernels without comments: overloads, alternatives of an `#if`, templates.
#include <stdio.h>

__global__ void scaled(int n, float a, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}

__global__ void scaled(int n, double a, double *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}

#ifdef WIDE
__global__ void moved(long n, double *x) {
    const long i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1;
}
#else
__global__ void moved(float *x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1;
}
#endif

#ifdef WIDE
__global__ void widened(double *x) { x[threadIdx.x] = 1; }
#endif

template <class T> __global__ void filled(int n, T value, T *out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = value;
}

template <> __global__ void filled<double>(int n, double value, double *out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = value + 1;
}

// Templates of one name with as many parameters.
struct Pair {
    float x, y;
};
struct Triple {
    float x, y, z;
};

template <int N> __global__ void summed(const Pair *in, float *out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) out[i] = in[i].x + in[i].y;
}

template <int N> __global__ void summed(const Triple *in, float *out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) out[i] = in[i].x + in[i].y + in[i].z;
}

struct Sum {
    __device__ float operator()(float x, float y) const { return x + y; }
};

template <class F, class... Inputs> __global__ void applied(F f, int n, float *out, Inputs... in) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = f(in[i]...);
}

int main() {
    float *x;
    double *y;
    cudaMalloc(&x, 4000);
    cudaMalloc(&y, 8000);
    filled<<<4, 256>>>(1000, 1.0f, x);
    filled<<<4, 256>>>(1000, 1.0, y);
    scaled<<<4, 256>>>(1000, 0.5f, x);
    scaled<<<8, 128>>>(1000, 0.5, y);
#ifndef WIDE
    moved<<<4, 256>>>(x, 1000);
#endif
    summed<400><<<2, 256>>>(reinterpret_cast<const Pair *>(y), x);
    summed<300><<<2, 256>>>(reinterpret_cast<const Triple *>(y), x);
    applied<<<2, 256>>>(Sum(), 400, x, x + 400, reinterpret_cast<const float *>(y));
    printf("%g %g\n", x[999], y[999]);
}
