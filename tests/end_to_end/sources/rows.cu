// Launches of grids that depend on the block in some dimensions, in all, in none, or by another name.
#ifndef TILE
#define TILE 16
#endif
#ifndef PER
#define PER 4
#endif

//@tune grid(rows) block({64, 256, 1024}) regs({0}) default(block = 256) launch(remap)
//@tune args(rows = 4096, cols = 1024, x = random[rows * cols], y = out[rows])
__global__ void row(int rows, int cols, const float *x, float *y) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < cols; i += blockDim.x) atomicAdd(&sum, x[(size_t)blockIdx.x * cols + i]);
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

//@tune grid(rows, ceildiv(cols, block.y)) block({16, 32}, {8, 16}) regs({0}) default(block = {16, 16}) launch(remap)
//@tune args(rows = 64, cols = 1024, x = random[rows * cols], y = out[rows * cols])
__global__ void mixed(int rows, int cols, const float *x, float *y) {
    const int j = blockIdx.y * blockDim.y + threadIdx.y;
    for (int i = threadIdx.x; i < 64 && j < cols; i += blockDim.x) y[blockIdx.x * cols + j] = x[blockIdx.x * cols + j];
}

//@tune grid(ceildiv(n, block.size)) block({16, 32}, {4, 16}) regs({0}) default(block = {16, 16}) launch(remap)
//@tune args(n = 1 << 16, x = random[n], y = out[n])
__global__ void flat(int n, const float *x, float *y) {
    const int i = (blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

//@tune define(TILE = {16, 32}) block({16, 32}, {16, 32}) require(block.x == TILE, block.y == TILE) regs({0})
//@tune grid(ceildiv(n, TILE), ceildiv(n, TILE)) default(block = {16, 16}, TILE = 16) launch(remap)
//@tune args(n = 1024, x = random[n * n], y = out[n * n])
__global__ void tile(int n, const float *x, float *y) {
    __shared__ float part[TILE][TILE + 1];
    const int i = blockIdx.x * TILE + threadIdx.x, j = blockIdx.y * TILE + threadIdx.y;
    part[threadIdx.y][threadIdx.x] = x[j * n + i];
    __syncthreads();
    y[j * n + i] = part[threadIdx.x][threadIdx.y];
}

//@tune define(PER = {1, 4, 8}) block({64, 256}) regs({0}) default(block = 256, PER = 4) launch(remap)
//@tune grid(ceildiv(rows, PER)) args(rows = 4096, x = random[rows * 64], y = out[rows * 64])
__global__ void several(int rows, const float *x, float *y) {
    for (int row = blockIdx.x * PER; row < rows && row < (blockIdx.x + 1) * PER; ++row)
        for (int i = threadIdx.x; i < 64; i += blockDim.x) y[row * 64 + i] = 3 * x[row * 64 + i];
}

int main() {
    const float *x = nullptr;
    float *y = nullptr;
    row<<<4096, 256>>>(4096, 1024, x, y);
    row<<<5, 256>>>(5, 1024, x, y);
    mixed<<<dim3(7, 64), dim3(16, 16)>>>(7, 1024, x, y);
    flat<<<256, dim3(16, 16)>>>(1 << 16, x, y);
    tile<<<dim3(64, 64), dim3(16, 16)>>>(1024, x, y);
    several<<<1024, 256>>>(4096, x, y);
    return 0;
}
