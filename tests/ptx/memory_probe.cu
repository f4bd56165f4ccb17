// Kernels whose accesses are known before they run, each with the same parameters.

__global__ void strided(int n, int m, const int *index, const float *x, float *y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i * m + 2] = x[i];
}

__global__ void vectors(int n, int m, const int *index, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n / 4) return;
    const float4 four = reinterpret_cast<const float4 *>(x)[i + m];
    y[i] = four.x + four.w;
}

__global__ void gathered(int n, int m, const int *index, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[index[i] + m] = x[i];
}

__global__ void columns(int n, int m, const int *index, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    const float *at = x + i;
    for (int k = 0; k < m; ++k, at += n) sum += *at;
    y[i] = sum;
}

// What is in memory decides how often loops run, and not what is accessed.
__global__ void tiled(int n, int m, const int *index, const float *x, float *y) {
    __shared__ float tile[64];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = x[i];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 64; ++k)
        if (tile[k] > 0) sum += tile[k];
    while (sum > 10) sum = sum * 0.5f - 1;
    if (i < n) y[n - 1 - i] = sum;
}
