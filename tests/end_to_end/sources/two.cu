// Two kernels that want different register caps, one of them with launch bounds, which make --maxrregcount ignored.
struct Sums {
    float value[16];
};

__device__ float mixed(const float *x, int i) {
    Sums sums;
#pragma unroll
    for (int k = 0; k < 16; ++k) sums.value[k] = x[i + k] * x[i + 2 * k + 1];
    float total = 0.0f;
#pragma unroll
    for (int k = 0; k < 16; ++k) total += sums.value[k] * sums.value[(k + 5) % 16];
    return total;
}

//@tune threads(n) block(128) regs({0, 24}) default(block = 128)
//@tune args(n = 1 << 16, x = random[n + 64], y = out[n])
__global__ void first(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = mixed(x, i);
}

//@tune threads(n) block(128) regs({0, 32}) default(block = 128)
//@tune args(n = 1 << 16, x = random[n + 64], y = out[n])
__global__ void __launch_bounds__(256, 2) bounded(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = mixed(x, i) + mixed(x, i + 3);
}

__global__ void unmarked(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = mixed(x, i);
}
