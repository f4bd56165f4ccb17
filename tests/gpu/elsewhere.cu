// Another translation unit that launches the kernel of launches.cu.
extern __global__ void scale(int n, const float *x, float *y, unsigned *shape);

void elsewhere(int blocks, int n, const float *x, float *y, unsigned *shape, cudaStream_t stream) {
    scale<<<blocks, 256, 0, stream>>>(n, x, y, shape);
}
