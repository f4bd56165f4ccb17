// A source that is compiled more than once, with another REAL each time.
#if __has_include("kernel.tune.h")
#include "kernel.tune.h"
#endif
#ifndef TILE
#define TILE 1
#endif
#ifndef REAL
#define REAL float
#endif

//@tune threads(ceildiv(n, TILE)) block(256) regs({0}) define(TILE = {1, 2, 4}) args(n = 4096, x = random[n])
__global__ void k(int n, REAL *x) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * TILE;
    for (int j = i; j < i + TILE && j < n; ++j) x[j] += 1;
}

#ifdef K_TILE
int tile = K_TILE;
#else
int tile = TILE;
#endif
