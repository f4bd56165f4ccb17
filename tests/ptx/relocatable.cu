// Entries of relocatable code: one that calls out of the file, one that calls its functions, one that takes one from a table, one alone.
extern __device__ float elsewhere(float x);

__device__ __noinline__ float halved(float x) { return x * 0.5f; }
__device__ __noinline__ float folded(float x) { return x > 1.0f ? folded(halved(x)) : sinf(x); }
__device__ __noinline__ float squared(float x) { return x * x; }

typedef float (*Step)(float);
__device__ Step steps[2] = {squared, halved};

extern "C" __global__ void calls_out(float *x) { x[threadIdx.x] = elsewhere(x[threadIdx.x]); }
extern "C" __global__ void calls_in(float *x) { x[threadIdx.x] = folded(x[threadIdx.x]); }
extern "C" __global__ void calls_by_table(float *x, int which) { x[threadIdx.x] = steps[which](x[threadIdx.x]); }
extern "C" __global__ void lonely(float *x, float a) { x[threadIdx.x] += a; }
