// A launch whose stores go where memory says.
#include <stddef.h>

extern "C" void fake_probe(const void *const *bounds, size_t words);

//@tune
__global__ void gathered(int n, const int *index, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[index[i]] = 1;
}

int main() {
    char *slab;
    cudaMalloc(&slab, 17 << 20);
    int *index = reinterpret_cast<int *>(slab);
    float *y = reinterpret_cast<float *>(slab + (1 << 20));
    const void *apart[] = {index, index + 1000, y, y + 1000}, *overlapping[] = {index, index + 1000, index + 999, y + 1};
    fake_probe(apart, 4);
    gathered<<<4, 256>>>(1000, index, y);
    fake_probe(overlapping, 4);
    gathered<<<2, 256>>>(500, index, y);
}
