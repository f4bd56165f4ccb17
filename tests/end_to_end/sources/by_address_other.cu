#include "by_address.h"

//@tune block({64, 256}) regs({0}) threads(n) default(block = 256)
//@tune args(n = 1 << 20, x = random[n])
__global__ void other(int n, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] -= 1;
}

void launch_others(int n, float *x) { start(shape(n, 256), other, n, x); }
