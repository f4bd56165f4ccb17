#ifndef WORK
#define WORK 1
#endif

//@tune define(WORK = {1, 2, 4, 8}) block({128, 256}) regs({0}) default(block = 256, WORK = 1)
//@tune threads(ceildiv(n, WORK)) args(n = 1 << 20, x = random[n], y = out[n])
__global__ void part(int n, const float *x, float *y) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * WORK;
    for (int k = 0; k < WORK; ++k)
        if (first + k < n) y[first + k] = x[first + k] * 2.0f;
}
