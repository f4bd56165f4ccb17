#include "cached.tune.h"

//@tune threads(n) block({128, 256}) regs({0}) cache(ca, cg) carveout({0, 50}) default(block = 256)
//@tune args(n = 1 << 20, x = random[n], y = random[n])
__global__ void folded(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[n - 1 - i];
}

//@tune threads(n) block({128, 256}) regs({0}) default(block = 256)
//@tune args(n = 1 << 20, x = random[n], y = random[n])
__global__ void plain(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}

int launch(int n, const float *x, float *y) {
    using nvtune::folded;
    cudaFuncSetAttribute(::folded, cudaFuncAttributePreferredSharedMemoryCarveout, folded::carveout());
    ::folded<<<folded::grid(n), folded::block()>>>(n, x, y);
    ::plain<<<nvtune::plain::grid(n), nvtune::plain::block()>>>(n, x, y);
    return FOLDED_CARVEOUT;
}
