// A program whose launches are recorded and tuned: a structure with a pointer, one on the device, variables, a part of a buffer;
// and one whose results lie there already.
#include <cmath>
#include <cstdio>
#include <vector>

struct View {
    float *data;
    int width;
};

__constant__ float weights[4];
__device__ View shift;

//@tune
__global__ void scaled(int n, float a, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i] * weights[i % 4];
}

//@tune
__global__ void moved(View view, const View *more, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < view.width && y < height) view.data[y * view.width + x] += more->data[x] + shift.data[y];
}

//@tune
__global__ void halved(int n, const float *__restrict__ x, float *__restrict__ y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0.5f * x[i];
}

int main() {
    const int n = 1 << 22, width = 1024;
    const float four[4] = {1, 0.5f, 0.25f, 2};
    std::vector<float> values(n), expected(n);
    for (int i = 0; i < n; ++i) values[i] = expected[i] = float(i % 1000) / 1000;
    float *x, *y, *half;
    View *device;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    cudaMalloc(&half, n * sizeof(float));
    cudaMalloc(&device, sizeof(View));
    cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(y, values.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    const View row = {x + 64, width}, column = {x, n / width};
    cudaMemcpy(device, &row, sizeof row, cudaMemcpyHostToDevice);
    cudaMemcpyToSymbol(weights, four, sizeof four);
    cudaMemcpyToSymbol(shift, &column, sizeof column);
    for (int i = 0; i < 3; ++i) scaled<<<(n + 255) / 256, 256>>>(n, 0.5f, x, y);
    scaled<<<(1000 + 255) / 256, 256>>>(1000, 0.5f, x, y + 128);
    moved<<<dim3(width / 16, n / width / 16), dim3(16, 16)>>>(View{y, width}, device, n / width);
    // The winner follows the width in the structure.
    moved<<<dim3(500 / 16 + 1, 7), dim3(16, 16)>>>(View{y, 500}, device, 100);
    for (int more = 0; more < 8; ++more) halved<<<n / 256 + more, 256>>>(n, x, half);
    for (int round = 0; round < 3; ++round)
        for (int i = 0; i < n; ++i) expected[i] = 0.5f * values[i] + expected[i] * four[i % 4];
    for (int i = 0; i < 1000; ++i) expected[i + 128] = 0.5f * values[i] + expected[i + 128] * four[i % 4];
    for (int i = 0; i < n; ++i) expected[i] += values[64 + i % width] + values[i / width];
    for (int i = 0; i < 500 * 100; ++i) expected[i] += values[64 + i % 500] + values[i / 500];
    std::vector<float> got(n);
    cudaMemcpy(got.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += !(std::fabs(got[i] - expected[i]) <= 1e-4f * std::fabs(expected[i]));
    cudaMemcpy(got.data(), half, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i) wrong += got[i] != 0.5f * values[i];
    std::printf("%d wrong, %s\n", wrong, cudaGetErrorString(cudaGetLastError()));
    return wrong != 0;
}
