// Buffers from files: how long each row is decides how long the kernel runs.
//@tune threads(n) block({64, 256}) default(block = 256) regs({0})
//@tune args(n = 1 << 10, rows = file("data/rows.bin"), x = file("data/x.npy")[n], y = out[n])
__global__ void sum(int n, const int *rows, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float total = 0.0f;
#pragma unroll 1
    for (int k = 0; k < rows[i]; ++k) total += x[(i + k) % n];
    y[i] = total;
}
