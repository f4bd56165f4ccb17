//@tune threads(n) block({128, 256}) regs({0}) unroll({1, 8}) default(block = 256)
//@tune args(n = 1 << 12, x = random[n], y = out[n])
__global__ void sum(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float total = 0.0f;
    if (i < n)
        for (int k = i % 64; k < n; k += 64) total += x[k] * x[k];
    if (i < n) y[i] = total;
}

__global__ void plain(int n, const float *x, float *y) {
    float total = 0.0f;
    for (int k = threadIdx.x; k < n; k += 32) total += x[k];
    y[threadIdx.x] = total;
}

void launch(int n, const float *x, float *y) {
    sum<<<(n + 255) / 256, 256>>>(n, x, y);
    plain<<<1, 32>>>(n, x, y);
}
