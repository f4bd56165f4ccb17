// A loop whose body is one block of machine code: what fewer and fewer threads do has guards.
extern "C" __global__ void guarded(int n, float *out) {
    __shared__ float sums[256];
    for (int i = blockIdx.x; i < n; i += gridDim.x) {
        sums[threadIdx.x] = float(i ^ threadIdx.x);
#pragma unroll
        for (int half = 128; half > 0; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        }
        __syncthreads();
        out[256 * i + threadIdx.x] = sums[0];
    }
}
