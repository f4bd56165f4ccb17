// Kernels whose code depends on a macro, each with something else that a copy of it needs. `-DTILE=8` makes the donors.
#ifndef TILE
#define TILE 4
#endif
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

__constant__ float weights[16];
__device__ unsigned counter;

// Static and dynamic shared memory, two strings of which one differs, a constant and a counter of the program.
extern "C" __global__ void blends(int n, const float *x, float *y) {
    __shared__ float tile[TILE * 32];
    extern __shared__ float scratch[];
    const int i = INDEX;
    for (int k = 0; k < TILE; ++k) tile[k * 32 + threadIdx.x % 32] = x[i + k];
    scratch[threadIdx.x] = x[n - i];
    __syncthreads();
    float sum = scratch[threadIdx.x ^ 1];
#pragma unroll
    for (int k = 0; k < TILE; ++k) sum += tile[(k * 32 + threadIdx.x + 1) % (TILE * 32)] * weights[(k + i) % 16];
    if (sum < 0) printf("%d: %f\n", i, sum);
    if (sum == 0) printf(TILE == 8 ? "%d of eight\n" : "%d of four\n", i);
    if (sum > 1e9f) atomicAdd(&counter, 1);
    y[i] = sum;
}

__device__ __noinline__ float halved(float x) { return x * 0.5f + weights[3]; }
__device__ __noinline__ float scaled(float x) {
    for (int k = 0; k < TILE; ++k) x = x * x + weights[k];
    return x;
}

// A function that the macro changes and one that it does not.
extern "C" __global__ void calls(int n, const float *x, float *y) {
    const int i = INDEX;
    if (i < n) y[i] = scaled(halved(x[i])) + halved(x[i] + 1);
}

// Calls what does not differ only.
extern "C" __global__ void calls_same(int n, const float *x, float *y) {
    const int i = INDEX;
    for (int k = 0; k < TILE; ++k) y[i + k] = halved(x[i + k]);
}

// Calls both again and again, so that it depends on the registers that they leave alone.
extern "C" __global__ void calls_deep(int n, const float *x, float *y) {
    const int i = INDEX;
    float sum = x[i] * x[i + 1], other = x[i + 2];
    for (int k = 0; k < TILE; ++k) sum += halved(x[i + k]) * scaled(sum) + halved(other);
    y[i] = sum + other;
}

// Two functions that call each other, of which one has the macro; the other one is copied, too.
__device__ __noinline__ float odd(int n, float x);
__device__ __noinline__ float even(int n, float x) { return n == 0 ? x : odd(n - 1, x * TILE) + x; }
__device__ __noinline__ float odd(int n, float x) { return n == 0 ? -x : even(n - 1, x + 1) * x; }
extern "C" __global__ void recurses(int n, const float *x, float *y) { y[INDEX] = even(n, x[INDEX]); }

// Functions whose addresses are taken: in an array that the compiler fills, and in tables of the program.
typedef float (*Step)(float);
__device__ __noinline__ float raised(float x) { return x * x + TILE; }
__device__ __noinline__ float squared(float x) { return x * x; }
__device__ __noinline__ float doubled(float x) { return x + x; }
extern "C" __global__ void chooses(int n, const float *x, float *y) {
    const Step steps[4] = {raised, squared, squared, raised};
    y[INDEX] = steps[n & 3](x[INDEX]);
}
__device__ Step changed[2] = {raised, squared};
extern "C" __global__ void jumps_changed(int n, const float *x, float *y) { y[INDEX] = changed[n & 1](x[INDEX]); }
__device__ Step steps[2] = {squared, doubled};
extern "C" __global__ void jumps(int n, const float *x, float *y) {
    for (int k = 0; k < TILE; ++k) y[INDEX + k] = steps[n & 1](x[INDEX + k]);
}

// A table of the program whose size differs.
__device__ float table[TILE * 4];
extern "C" __global__ void looks_up(int n, const float *x, float *y) { y[INDEX] = table[n & 3] + TILE; }

// Constant arrays: the compiler's own, and a static one; and a variable that keeps its value from launch to launch.
extern "C" __global__ void constants(int n, const float *x, float *y) {
    const float local[8] = {1, 2, 3, TILE, 5, 6, 7, 8};
    y[INDEX] = local[n & 7] + sinf(x[INDEX]);
}
extern "C" __global__ void static_constants(int n, const float *x, float *y) {
    static __constant__ float local[8] = {1, 2, 3, TILE, 5, 6, 7, 8};
    y[INDEX] = local[n & 7];
}
extern "C" __global__ void static_variable(int n, const float *x, float *y) {
    static float local[8] = {1, 2, 3, TILE, 5, 6, 7, 8};
    y[INDEX] = local[n & 7]++;
}

// Shared memory of the file, which a function uses, too.
__shared__ float board[TILE * 16];
__device__ __noinline__ float reads(int i) { return board[i % 16]; }
extern "C" __global__ void plays(int n, const float *x, float *y) {
    board[threadIdx.x % (TILE * 16)] = x[INDEX];
    __syncthreads();
    y[INDEX] = reads(n);
}

// The macro is in the name.
template <int N> __device__ __noinline__ float summed(const float *x) {
    float sum = 0;
    for (int k = 0; k < N; ++k) sum += x[k];
    return sum;
}
template <int N> __global__ void __launch_bounds__(N * 32) sums(int n, const float *x, float *y) {
    __shared__ float tile[N * 32];
    tile[threadIdx.x] = x[INDEX];
    __syncthreads();
    y[INDEX] = summed<N>(x + n) + tile[(threadIdx.x + 1) % (N * 32)];
}
template __global__ void sums<TILE>(int, const float *, float *);

// The compiler names these after the module.
namespace {
__device__ float state[4];
__device__ __noinline__ float turned(float x) { return x * state[1] + TILE; }
__device__ __noinline__ float kept(float x) { return x * state[2] + 1; }
__global__ void unnamed(int n, const float *x, float *y) { y[INDEX] = turned(kept(x[INDEX])); }
}
static __global__ void hidden(int n, const float *x, float *y) { y[INDEX] = turned(kept(x[INDEX])) * TILE; }
void launches(int n, const float *x, float *y) {
    unnamed<<<1, 32>>>(n, x, y);
    hidden<<<1, 32>>>(n, x, y);
}

// Other parameters.
extern "C" __global__ void takes(int n, const float *x, float *y
#if TILE == 8
    , int more
#endif
) {
    y[INDEX] = x[n];
}
