// Kernels that call functions of the driver and use variables of the module, whose addresses lie in a bank that they share.
#include <assert.h>
#include <stdio.h>

__device__ float table[64];
__device__ int counter;

// What is printed goes to the stack between the function's slot and its use.
__global__ void traces(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int stack[32], depth = 0;
    float sum = 0;
    for (stack[depth++] = i; depth > 0 && depth < 31;) {
        const int at = stack[--depth];
        sum += x[at];
        if (sum < 0) printf("%d %d\n", at, depth);
        if (2 * at < n) stack[depth++] = 2 * at;
        if (x[at] > sum) stack[depth++] = at / 2;
    }
    if (sum > 1e9f) printf("sum %d %f\n", i, sum);
    y[i] = sum;
}

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
