// One kernel on problems of three sizes.
//@tune block({64, 256})
__global__ void grown(int n, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] + 1;
}

int main() {
    float *x;
    cudaMalloc(&x, 65536 * sizeof(float));
    for (int n : {65536, 16384, 4096, 4096}) grown<<<(n + 255) / 256, 256>>>(n, x);
}
