//@tune threads(n) block({64, 128}) regs({0, 32}) default(block = 128)
//@tune args(n = 1 << 16, a = 2.0f, x = random[n])
__global__ void scale(int n, float a, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}
