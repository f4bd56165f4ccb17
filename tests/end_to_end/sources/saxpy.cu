#if __has_include("saxpy.tune.h")
#include "saxpy.tune.h"
#endif

//@tune threads(n) block(64:1024:64) regs(auto) default(block = 256)
//@tune args(n = 1 << 20, a = 2.0f, x = random[n], y = random[n])
__global__ void saxpy(int n, float a, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

void launch(int n, float a, const float *x, float *y) {
#ifdef SAXPY_BLOCK_SIZE
    saxpy<<<nvtune::saxpy::grid(n), nvtune::saxpy::block(), nvtune::saxpy::shared()>>>(n, a, x, y);
#else
    saxpy<<<(n + 255) / 256, 256>>>(n, a, x, y);
#endif
}
