// Kernels that may have math options: of one the results stay within the tolerance, of the other all of them become 0.
#include <cmath>
#include <cstdio>
#include <vector>

//@tune threads(n) block({128, 256}) regs({0}) math(fast_div) default(block = 256)
//@tune args(n = 1 << 22, x = random(1, 2)[n], y = out[n])
__global__ void quotients(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
    for (int k = 0; k < 64; ++k) value = x[i] / (value + x[i]);
    y[i] = value;
}

//@tune threads(n) block({128, 256}) regs({0}) math(ftz) default(block = 256)
//@tune args(n = 1 << 22, x = random(1e-39, 2e-39)[n], y = out[n]) check(y, rtol = 1e-3, atol = 0)
__global__ void tiny(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 0.75f;
}

int main() {
    const int n = 1 << 22;
    std::vector<float> values(n), large(n), small(n);
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    for (int i = 0; i < n; ++i) values[i] = 1.0f + float(i % 1000) / 1000;
    cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    quotients<<<(n + 255) / 256, 256>>>(n, x, y);
    cudaMemcpy(large.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int i = 0; i < n; ++i) {
        float value = values[i];
        for (int k = 0; k < 64; ++k) value = values[i] / (value + values[i]);
        wrong += !(std::fabs(large[i] - value) <= 1e-4f * value);
        values[i] *= 1e-39f;
    }
    cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    tiny<<<(n + 255) / 256, 256>>>(n, x, y);
    cudaMemcpy(small.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i) wrong += small[i] != values[i] * 0.75f;
    std::printf("%d wrong, %s\n", wrong, cudaGetErrorString(cudaGetLastError()));
    return wrong != 0;
}
