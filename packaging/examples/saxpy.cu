//@tune threads(n) block(64:1024:32) regs(auto) default(block = 256)
//@tune args(n = 1 << 24, a = 2.0f, x = random[n], y = random[n])
__global__ void saxpy(int n, float a, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

void run(int n, float a, const float *x, float *y) { saxpy<<<(n + 255) / 256, 256>>>(n, a, x, y); }
