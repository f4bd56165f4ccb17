// Whole numbers that look like an address, for a kernel that loads addresses and for one that does not.
#include <string.h>

//@tune
__global__ void listed(const int *neighbours, float *out) { out[threadIdx.x] = out[neighbours[threadIdx.x]]; }

//@tune
__global__ void followed(const float *const *rows, float *out) { out[threadIdx.x] = rows[threadIdx.x][0]; }

int main() {
    float *out, *row;
    void *memory;
    cudaMalloc(&out, 4000);
    cudaMalloc(&row, 2000);
    cudaMalloc(&memory, 1000);
    memset(memory, 0, 1000);
    memcpy(memory, &row, sizeof row);
    listed<<<1, 64>>>(static_cast<const int *>(memory), out);
    followed<<<1, 64>>>(static_cast<const float *const *>(memory), out);
}
