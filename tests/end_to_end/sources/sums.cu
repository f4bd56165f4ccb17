// Two kernels with one macro: `sums` may get another value of it, and `first` is launched for the source's own.
#ifndef BS
#define BS 128
#endif

//@tune define(BS = {128, 256}) block({128, 256}) require(block.x == BS) regs({0}) grid(rows) default(block = 128, BS = 128)
//@tune args(rows = 4096, x = random[rows * 1024], y = out[rows])
__global__ void sums(int rows, const float *x, float *y) {
    __shared__ float part[BS];
    float sum = 0;
    for (int i = threadIdx.x; i < 1024; i += BS) sum += x[blockIdx.x * 1024 + i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int k = BS / 2; k > 0; k /= 2) {
        if (threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}

__global__ void first(int n, float *y) {
    __shared__ float part[BS];
    part[threadIdx.x] = y[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0)
        for (int k = 1; k < n; ++k) y[0] += part[k];
}

int main() {
    float *x = nullptr;
    sums<<<10, BS>>>(10, x, x);
    sums<<<10, 256>>>(10, x, x);
    first<<<1, 128>>>(BS, x);
    return 0;
}
