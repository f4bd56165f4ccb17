//@tune threads(n) block({256}) regs({0, 48}) spill(shared) default(block = 256)
//@tune args(n = 1 << 12, steps = 4, x = random[n], y = out[n])
__global__ void wide(int n, int steps, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float values[64];
#pragma unroll
    for (int k = 0; k < 64; ++k) values[k] = x[(i + 37 * k) % n];
    for (int step = 0; step < steps; ++step)
#pragma unroll
        for (int k = 0; k < 64; ++k) values[k] = values[k] * values[(k + 7) % 64] + step;
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 64; ++k) sum += values[k];
    if (i < n) y[i] = sum;
}

void launch(int n, int steps, const float *x, float *y) {
    wide<<<(n + 255) / 256, 256>>>(n, steps, x, y);
}
