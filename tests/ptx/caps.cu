// Many live values, so that register caps bite; with and without launch bounds.
__device__ __forceinline__ void products(const float *a, float *o)
{
    float v[48];
#pragma unroll
    for (int i = 0; i < 48; ++i)
        v[i] = a[i * 1024 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 48; ++i) {
        float s = 0;
#pragma unroll
        for (int j = 0; j < 48; ++j)
            s += v[j] * v[(i + j) % 48];
        o[i * 1024 + threadIdx.x] = s;
    }
}
extern "C" __global__ void plain(const float *a, float *o) { products(a, o); }
extern "C" __global__ void __launch_bounds__(256, 4) bounded(const float *a, float *o) { products(a, o); }
extern "C" __global__ void __launch_bounds__(256) sized(const float *a, float *o) { products(a, o); }
