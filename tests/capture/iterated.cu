// A kernel that is launched again and again, on contents that change.
//@tune
__global__ void advanced(float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = x[i] / 2 + 1;
}

int main(int count, char **arguments) {
    float *x;
    cudaMalloc(&x, 1024 * sizeof(float));
    const int launches = count > 1 ? arguments[1][0] - '0' : 9;
    for (int i = 0; i < launches; ++i) {
        *x = static_cast<float>(i);
        advanced<<<4, 256>>>(x);
    }
}
