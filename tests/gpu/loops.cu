// Kernels whose variants differ in code alone: in the factor of a loop, and in where registers are spilled to.
#include <cmath>
#include <cstdio>
#include <vector>

//@tune threads(n) block({128, 256}) regs({0}) unroll({1, 2, 16}) default(block = 256)
//@tune args(n = 1 << 20, length = 100, x = random[n], y = out[n])
__global__ void sums(int n, int length, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    if (i < n)
        for (int k = 0; k < length; ++k) sum += x[(i + k) % n];
    if (i < n) y[i] = sum;
}

//@tune threads(n) block({128, 256}) regs({0, 32, 48}) spill(shared) default(block = 256, regs = 32)
//@tune args(n = 1 << 20, steps = 50, x = random[n], y = out[n])
__global__ void wide(int n, int steps, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float values[64];
#pragma unroll
    for (int k = 0; k < 64; ++k) values[k] = x[(i + 37 * k) % n];
    for (int step = 0; step < steps; ++step)
#pragma unroll
        for (int k = 0; k < 64; ++k) values[k] = 0.5f * (values[k] + values[(k + 7) % 64]);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 64; ++k) sum += values[k];
    if (i < n) y[i] = sum;
}

int main() {
    const int n = 1 << 20;
    std::vector<float> ones(n, 1.0f), first(n), second(n);
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    cudaMemcpy(x, ones.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    sums<<<(n + 255) / 256, 256>>>(n, 100, x, y);
    cudaMemcpy(first.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
    wide<<<(n + 255) / 256, 256>>>(n, 50, x, y);
    cudaMemcpy(second.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += first[i] != 100.0f || second[i] != 64.0f;
    std::printf("%d wrong, %s\n", wrong, cudaGetErrorString(cudaGetLastError()));
    return wrong != 0;
}
