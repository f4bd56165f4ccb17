// A kernel whose results are in variables as well: one macro value is slow, one is right, one adds too much to a variable.
#include <cstdio>
#include <vector>

#ifndef VARIANT
#define VARIANT 0
#endif

__device__ unsigned long long events;
__device__ float sums[1024];

//@tune threads(n) block({256, 512}) regs({0}) define(VARIANT = {0, 1, 2}) default(block = 256, VARIANT = 0)
//@tune args(n = 1 << 22, x = random[n], y = out[n])
__global__ void count(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
#if VARIANT == 0
    for (int k = 1; k < 40; ++k) value = fmaxf(value, ((const volatile float *)x)[(i + k * 32) % n] - 2.0f);
#endif
    y[i] = value;
    if (i % 4096 == 7) atomicAdd(&events, 1ull);
    if (i < 1024) sums[i] += VARIANT == 2 ? 2.0f * value : value;
}

int main() {
    const int n = 1 << 22, launches = 3;
    std::vector<float> values(n), got(1024);
    for (int i = 0; i < n; ++i) values[i] = float(i % 1000) / 1000;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    for (int i = 0; i < launches; ++i) count<<<(n + 255) / 256, 256>>>(n, x, y);
    unsigned long long counted = 0;
    cudaMemcpyFromSymbol(&counted, events, sizeof counted);
    cudaMemcpyFromSymbol(got.data(), sums, 1024 * sizeof(float));
    int wrong = counted != launches * (n / 4096);
    for (int i = 0; i < 1024; ++i) wrong += got[i] < 2.999f * values[i] || got[i] > 3.001f * values[i];
    std::printf("%d wrong, %s\n", wrong, cudaGetErrorString(cudaGetLastError()));
    return wrong != 0;
}
