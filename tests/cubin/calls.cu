// Kernels that call functions of the driver and use variables of the module, whose addresses lie in a bank that they share.
#include <assert.h>
#include <stdio.h>

__device__ float table[64];
__device__ int counter;

__global__ void asserts(int n, const float *x, float *y) {
    assert(n % 4 == 0);
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        assert(x[i] >= 0);
        y[i] = x[i] * table[i % 64];
    }
}

__global__ void prints(int n, const float *x, float *y) {
    assert(n % 8 == 0);
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (x[i] < 0) printf("%d: %f\n", i, x[i]);
    if (x[i] == 0) printf("%d of %d\n", i, atomicAdd(&counter, 1));
    y[i] = x[i] * 2;
}

__global__ void allocates(int n, float **y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = (float *)malloc(4 * n);
    if (i < n && y[i]) y[i][0] = table[i % 64];
}
