// Kernels of tests/gpu.rs: one that is right, and the ways to be wrong. kernels.ptx is made from this file by
//   nvcc -ptx -arch=compute_75 -o kernels.ptx kernels.cu
// with the .version line lowered to 6.5 by hand, so that drivers older than the toolkit compile it too.
#include <cassert>
#include <cooperative_groups.h>
#include <cstdio>

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

// y is written only.
extern "C" __global__ void scale(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    if (i < n) y[i] = a * x[i];
}

// Words, whatever they are.
extern "C" __global__ void copies(int n, float a, const unsigned *x, unsigned *y)
{
    int i = INDEX;
    if (i < n) y[i] = x[i];
}

// y is read and written: each launch must find it as it was.
extern "C" __global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    if (i < n) y[i] = a * x[i] + y[i];
}

// As scale, by another path, and ten times the memory traffic.
extern "C" __global__ void slow(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    if (i >= n) return;
    float sum = 0;
    for (int k = 0; k < 10; ++k) sum += ((const volatile float *)x)[(i + k * 12347) % n];
    y[i] = sum > -1.0f ? a * x[i] : sum;
}

// A few threads, each load of which waits for the one before, of another line: nothing hides what the caches hold.
extern "C" __global__ void chases(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    if (i >= n || i >= 1024) return;
    unsigned at = i * 1021;
    for (int k = 0; k < 64; ++k) at = (at + 1234577 + (x[at] > 2.0f)) % n;
    y[i] = a * x[at];
}

// As scale, but it takes up to n / 2 cycles more, by the address of y.
extern "C" __global__ void waits_by_address(int n, float a, const float *x, float *y)
{
    // Small allocations share pages of 2 MiB, and large ones begin such a page.
    unsigned long long at = (unsigned long long)y;
    long long end = clock64() + n / 16 * ((at / 512 + at / (2 << 20)) % 8);
    while (clock64() < end) ;
    int i = INDEX;
    if (i < n) y[i] = a * x[i];
}

// Reads one element past the end of its input.
extern "C" __global__ void peeks(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    if (i < n) y[i] = a * x[i] + 0.0f * ((const volatile float *)x)[i + 1];
}

// As scale, but for a rounding difference.
extern "C" __global__ void rounded(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    if (i < n) y[i] = a * x[i] * 1.00001f;
}

// Right but for blocks of 96 threads.
extern "C" __global__ void wrong_at_96(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    if (i < n) y[i] = a * x[i] + (blockDim.x == 96 && i % 1000 == 7 ? 1.0f : 0.0f);
}

// Leaves the last 100 elements as they are.
extern "C" __global__ void untouched(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    if (i < n - 100) y[i] = a * x[i];
}

// Writes to what it should only read.
extern "C" __global__ void stray(int n, float a, float *x, float *y)
{
    int i = INDEX;
    if (i < n) y[i] = a * x[i];
    if (i == 3) x[i] = -1.0f;
}

// Writes one element past the end.
extern "C" __global__ void overrun(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    if (i < n) y[i] = a * x[i];
    if (i == n - 1) y[n] = 1.0f;
}

extern "C" __global__ void fault(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    if (i < n) y[i + (1ll << 40)] = a * x[i];
}

extern "C" __global__ void trap(int n, float a, const float *x, float *y)
{
    if (INDEX == 0) __trap();
    if (INDEX < n) y[INDEX] = a * x[INDEX];
}

extern "C" __global__ void forever(int n, float a, const float *x, float *y)
{
    while (((volatile float *)x)[0] > -1.0f) { }
    if (INDEX < n) y[INDEX] = a * x[INDEX];
}

extern "C" __global__ void shared(int n, float a, const float *x, float *y)
{
    extern __shared__ float tile[];
    int i = INDEX;
    tile[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n) y[i] = a * tile[threadIdx.x];
}

extern "C" __global__ void prints(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    if (i == 0) printf("nvtune-measure 1\nhello from the kernel\n");
    if (i < n) y[i] = a * x[i];
}

// Other results each time.
extern "C" __global__ void unsteady(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    if (i < n) y[i] = a * x[i] + (float)(clock64() & 0xffff);
}

__constant__ float table[64];
__device__ int counts[1024];

// Reads constant memory, and counts in device memory: each launch must find both as the workload gives them.
extern "C" __global__ void tabled(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    if (i >= n) return;
    y[i] = a * x[i] * table[i % 64] + (i < 1024 ? (float)counts[i] : 0.0f);
    if (i < 1024) counts[i] += 1;
}

__device__ unsigned long long events;
__device__ float sums[1024];

// Counts in one variable and adds to the elements of another; `step` and `share` say how.
__device__ void count(int n, float a, const float *x, float *y, unsigned long long step, float share)
{
    int i = INDEX;
    if (i >= n) return;
    y[i] = a * x[i];
    if (i % 4096 == 7) atomicAdd(&events, step);
    if (i < 1024) sums[i] += share * x[i];
}

extern "C" __global__ void counted(int n, float a, const float *x, float *y) { count(n, a, x, y, 1, 1.0f); }
extern "C" __global__ void counted_nearly(int n, float a, const float *x, float *y) { count(n, a, x, y, 1, 1.00001f); }
extern "C" __global__ void counted_twice(int n, float a, const float *x, float *y) { count(n, a, x, y, 2, 1.0f); }
extern "C" __global__ void summed_twice(int n, float a, const float *x, float *y) { count(n, a, x, y, 1, 2.0f); }

struct Plan {
    char skipped;
    int n;
    float a;
    const float *x;
    float *y;
};

extern "C" __global__ void planned(Plan p)
{
    int i = INDEX;
    if (i < p.n) p.y[i] = p.a * p.x[i];
}

extern "C" __global__ void wrong(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    if (i < n) y[i] = a * x[i] + 1.0f;
}

// Warps exchange elements without waiting for each other: right where a block is one warp.
extern "C" __global__ void races(int n, float a, const float *x, float *y)
{
    __shared__ float tile[1024];
    int i = INDEX, other = (threadIdx.x + 32) % blockDim.x;
    int j = blockIdx.x * blockDim.x + other;
    tile[threadIdx.x] = -1.0f;
    __syncthreads();
    if (threadIdx.x >= 32) for (long long begin = clock64(); clock64() - begin < 4000;) { }
    tile[threadIdx.x] = i < n ? x[i] : 0.0f;
    if (j < n) y[j] = a * ((volatile float *)tile)[other];
}

extern "C" __global__ void not_a_number(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    if (i < n) y[i] = i % 1000 == 7 ? sqrtf(-1.0f - x[i]) : a * x[i];
}

// Right for blocks of 256 threads alone.
extern "C" __global__ void by_block(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    if (i < n) y[i] = a * x[i] * ((float)blockDim.x / 256.0f);
}

extern "C" __global__ void misaligned(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    if (2 * i + 2 < n) {
        float2 pair = *(const float2 *)(x + 2 * i + 1);
        y[2 * i + 1] = a * pair.x;
        y[2 * i + 2] = a * pair.y;
    }
}

extern "C" __global__ void asserts(int n, float a, const float *x, float *y)
{
    int i = INDEX;
    assert(i != n / 2);
    if (i < n) y[i] = a * x[i];
}

// As scale, in any number of blocks that are there at once; wrong where a block did not wait for the others.
extern "C" __global__ void waits(int n, float a, const float *x, float *y)
{
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    const int stride = gridDim.x * blockDim.x;
    for (int i = INDEX; i < n; i += stride) y[n - 1 - i] = a * x[n - 1 - i];
    grid.sync();
    for (int i = INDEX; i < n; i += stride)
        if (y[i] != a * x[i]) y[i] = -1.0f;
}
