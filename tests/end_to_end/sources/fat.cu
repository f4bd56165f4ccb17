// A program for GPUs of several architectures, on each of which another configuration wins.
#include <cstdio>
#include <cstdlib>

struct Sums {
    float value[16];
};

//@tune threads(n) block({64, 256}) regs({0, 24}) default(block = 256) launch(remap)
//@tune args(n = 1 << 16, x = random[n + 64], y = out[n])
__global__ void mixed(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Sums sums;
#pragma unroll
    for (int k = 0; k < 16; ++k) sums.value[k] = x[i + k] * x[i + 2 * k + 1];
    float total = 0.0f;
#pragma unroll
    for (int k = 0; k < 16; ++k) total += sums.value[k] * sums.value[(k + 5) % 16];
    y[i] = total;
}

extern "C" int fake_asked();

int main() {
    for (int round = 0; round < 2; ++round)
        for (int device = 0; device < 4; ++device) {
            cudaSetDevice(device);
            mixed<<<4, 256>>>(1024, nullptr, nullptr);
            std::printf("asked %d times\n", fake_asked());
        }
}
