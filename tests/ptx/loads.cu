// Loads of every kind: what a cache operator is written into, and what it leaves alone.

extern "C" __global__ void plain(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}

// `x` is read through the read-only path.
extern "C" __global__ void restricted(int n, const float4 *__restrict__ x, float4 *__restrict__ y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i].x += x[i].w;
}

// A pointer to shared or global memory, and an array in local memory.
extern "C" __global__ void generic(int n, const float *x, float *y) {
    __shared__ float tile[256];
    float own[8];
    for (int k = 0; k < 8; ++k) own[k] = x[k * n];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    const float *from = n > 3 ? tile : x;
    y[threadIdx.x] = from[threadIdx.x ^ 1] + own[threadIdx.x & 7];
}

extern "C" __global__ void said(int n, const float *x, float *y, const volatile float *z) {
    const float *p = x + threadIdx.x;
    float a, b, c, d, e, f;
    asm volatile("ld.weak.global.f32 %0, [%1];" : "=f"(a) : "l"(p));
    asm volatile("ld.global.L1::evict_last.f32 %0, [%1];" : "=f"(b) : "l"(p + n));
    asm volatile("ld.global.L2::128B.f32 %0, [%1];" : "=f"(c) : "l"(p + 2 * n));
    asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(d) : "l"(p + 3 * n));
    asm volatile("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(e) : "l"(p + 4 * n));
    asm volatile("{ .reg .f32 t; ld.weak.f32 t, [%1]; mov.f32 %0, t; }" : "=f"(f) : "l"(p + 5 * n));
    y[threadIdx.x] = a + b + c + d + e + f + z[threadIdx.x] + __ldcs(p + 6 * n) + __ldcg(p + 7 * n) + __ldca(p + 8 * n);
}

__device__ __noinline__ float looked_up(const float *x, int i) { return x[i] * 2.0f; }

extern "C" __global__ void calls(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += looked_up(x, i);
}
