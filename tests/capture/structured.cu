// Grids that numbers in structures give.
#include <stdio.h>

struct Sizes {
    char layout;
    int2 extent;
    long counts[3];
};

class Hidden {
    int n;

  public:
    explicit Hidden(int n) : n(n) {}
    __device__ int items() const { return n; }
};

//@tune regs({0})
__global__ void planes(const Sizes sizes, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < sizes.extent.x && j < sizes.extent.y) x[j * sizes.extent.x + i] += 1;
}

//@tune threads(sizes.counts[1]) regs({0})
__global__ void rows(Sizes sizes, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < sizes.counts[1]) x[i] += 1;
}

//@tune regs({0})
__global__ void cells(dim3 size, float *x) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size.x * size.y * size.z) x[i] += 1;
}

//@tune regs({0})
__global__ void items(Hidden items, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < items.items()) x[i] += 1;
}

int main() {
    float *x;
    cudaMalloc(&x, 8000);
    const Sizes sizes = {'r', {50, 30}, {3, 1500, 7}};
    planes<<<dim3(4, 4), dim3(16, 8)>>>(sizes, x);
    rows<<<12, 128>>>(sizes, x);
    cells<<<8, 256>>>(dim3(11, 13, 13), x);
    items<<<4, 256>>>(Hidden(1000), x);
    printf("%g\n", x[0]);
}
