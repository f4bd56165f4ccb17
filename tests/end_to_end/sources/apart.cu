// Kernels whose relocatable code needs other files: a function of one, and a kernel that launches another.
#include "two.cu"
__device__ float far(float);
__global__ void parent(const float *x, float *y) { first<<<1, 32>>>(32, x, y); }

//@tune threads(n) block(128) regs({0, 24}) default(block = 128) args(n = 1 << 16, x = random[n])
__global__ void calls(int n, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = far(x[i]);
}
