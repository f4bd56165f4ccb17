#include "limits.h"
namespace ns {
constexpr int ROWS = 1 << 16;
}

//@tune block({64, THREADS}) threads(n) default(block = THREADS) regs({0})
//@tune args(n = ns::ROWS, x = random[ROWS]) symbol(bias = 2)
__global__ void k(int n, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += bias;
}

void all(float *x) { k<<<ns::ROWS / THREADS, THREADS>>>(ns::ROWS, x); }
