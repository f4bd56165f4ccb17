//@tune block({64, 256})
__global__ void strided(int step, float *x) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * step;
    x[i] = x[i] + 1;
}

int main() {
    float *x;
    cudaMalloc(&x, 32 * 16384 * sizeof(float));
    for (int step : {1, 1, 8, 16}) strided<<<64, 256>>>(step, x);
}
