// A program with all its arrays in one allocation, which is more than a recording may have.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

//@tune
__global__ void scaled(int n, float a, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

//@tune
__global__ void gathered(int n, const int *index, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[index[i]];
}

int main() {
    setenv("NVTUNE_CAPTURE_BYTES", "64M", 1);
    const int n = 1 << 20;
    std::vector<float> values(n), expected(n);
    std::vector<int> places(n);
    for (int i = 0; i < n; ++i) {
        values[i] = expected[i] = float(i % 1000) / 1000;
        places[i] = int(i * 7919ll % n);
    }
    char *slab;
    cudaMalloc(&slab, 256 << 20);
    float *x = reinterpret_cast<float *>(slab + (10 << 20) + 4), *y = reinterpret_cast<float *>(slab + (100 << 20));
    int *index = reinterpret_cast<int *>(slab + (200 << 20) + 128);
    cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(y, values.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(index, places.data(), n * sizeof(int), cudaMemcpyHostToDevice);
    for (int i = 0; i < 3; ++i) scaled<<<(n + 255) / 256, 256>>>(n, 0.5f, x, y);
    gathered<<<(n + 255) / 256, 256>>>(n, index, x, y);
    for (int round = 0; round < 3; ++round)
        for (int i = 0; i < n; ++i) expected[i] = 0.5f * values[i] + expected[i];
    for (int i = 0; i < n; ++i) expected[i] += values[places[i]];
    std::vector<float> got(n);
    cudaMemcpy(got.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += !(std::fabs(got[i] - expected[i]) <= 1e-4f * std::fabs(expected[i]));
    std::printf("%d wrong, %s\n", wrong, cudaGetErrorString(cudaGetLastError()));
    return wrong != 0;
}
