#include "tiled.tune.h"

//@tune define(WORK = {1, 2, 4, 8}) block({128, 256}) regs({0})
//@tune threads(ceildiv(n, WORK)) default(block = 256, WORK = 1)
//@tune args(n = 1 << 20, x = random[n], y = out[n])
__global__ void tiled(int n, const float *x, float *y) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * WORK;
#pragma unroll
    for (int k = 0; k < WORK; ++k)
        if (first + k < n) y[first + k] = x[first + k] * 2.0f;
}

int work() { return WORK; }

void launch(int n, const float *x, float *y) { tiled<<<nvtune::tiled::grid(n), nvtune::tiled::block()>>>(n, x, y); }
