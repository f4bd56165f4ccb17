//@tune threads(n) block({128, 256}) regs({0}) math(ftz, fast_div) default(block = 256)
//@tune args(n = 1 << 16, x = random[n], y = out[n])
__global__ void ratio(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = (x[i] + 1.0f) / (x[n - 1 - i] * x[i] + 2.0f);
}

__global__ void plain(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * x[n - 1 - i];
}

void launch(int n, const float *x, float *y) {
    ratio<<<(n + 255) / 256, 256>>>(n, x, y);
    plain<<<(n + 255) / 256, 256>>>(n, x, y);
}
