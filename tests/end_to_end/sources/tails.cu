// Kernels whose last block, and only that, looks where the problem ends.
//@tune threads(n) block({128, 256}) regs({0}) default(block = 256) args(n = 1 << 20, x = random[n], y = out[n])
__global__ void tail(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x + 1 < gridDim.x) y[i] = 2 * x[i];
    else if (i < n) y[i] = 2 * x[i];
}

// This one looks nowhere: its program has whole blocks alone.
//@tune threads(n) block({192, 256}) regs({0}) default(block = 256) args(n = 768 << 10, x = random[n], y = out[n])
__global__ void whole(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 2 * x[i];
}

int main() {
    float *x = nullptr;
    tail<<<2, 256>>>(300, x, x);
    whole<<<3, 256>>>(768, x, x);
    whole<<<2, 256>>>(512, x, x);
    return 0;
}
