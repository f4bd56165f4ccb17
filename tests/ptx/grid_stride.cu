// Kernels in the form of grid-stride loops, and what only looks like one. The first word of a name is the answer.
#include <stddef.h>

__device__ float table[1024];

extern "C" {
__global__ void same_scaled(int n, float a, const float *__restrict__ x, float *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}

__global__ void same_wide(size_t n, const float *__restrict__ x, float *__restrict__ y) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        y[i] = x[i];
}

__global__ void same_unsigned(unsigned n, const float *__restrict__ x, float *__restrict__ y) {
    const unsigned stride = blockDim.x * gridDim.x;
    for (unsigned i = threadIdx.x + blockDim.x * blockIdx.x; i < n; i += stride) y[i] = x[i] * 2;
}

// In its own memory alone.
__global__ void same_alone(int n, float *y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = y[i] * y[i] + 1;
}

__global__ void same_gathered(int n, const int *__restrict__ index, const float *__restrict__ x,
                              float *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (index[i] >= 0) y[i] = x[index[i]];
}

// A loop for each item, of another length for each.
__global__ void same_rows(int rows, const int *__restrict__ begin, const float *__restrict__ x,
                          float *__restrict__ y) {
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += gridDim.x * blockDim.x) {
        float sum = 0;
        for (int k = begin[row]; k < begin[row + 1]; ++k) sum += x[k] * table[k % 1024];
        y[row] = sum;
    }
}

__global__ void same_pairs(int n, const float2 *__restrict__ x, float2 *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const float2 v = x[i];
        y[i].x = v.y;
        y[i].y = v.x;
    }
}

__global__ void same_bounded(int n, float *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += gridDim.x * blockDim.x) y[i] = i;
}

// Registers of inline assembly.
__global__ void same_assembly(int n, const unsigned *__restrict__ x, unsigned *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned sum;
        asm("{ .reg .u32 twice; add.u32 twice, %1, %1; add.u32 %0, twice, 1; }" : "=r"(sum) : "r"(x[i]));
        y[i] = sum;
    }
}

// What would be another kernel if its memory overlapped.
__global__ void same_copied(int n, const float *x, float *y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i];
}

__global__ void same_two(int n, float *x, float *y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        x[i] += 1;
        y[i] += 2;
    }
}

__global__ void same_variable(int n, float *y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = table[7];
}

// The compiler unrolls this loop into two; `#pragma unroll 1` keeps it one.
__global__ void unrolled(int n, const float *__restrict__ x, float *__restrict__ y) {
    const int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) y[i] = x[i] + y[i];
}

__global__ void same_not_unrolled(int n, const float *__restrict__ x, float *__restrict__ y) {
    const int stride = gridDim.x * blockDim.x;
#pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) y[i] = x[i] + y[i];
}

// Each thread has a result of its own.
__global__ void other_partial(int n, const float *__restrict__ x, float *__restrict__ y) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int i = first; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    y[first] = sum;
}

// What is kept from item to item.
__global__ void other_kept(int n, const float *__restrict__ x, float *__restrict__ y) {
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        sum += x[i];
        y[i] = sum;
    }
}

__global__ void other_kept_sometimes(int n, const float *__restrict__ x, float *__restrict__ y) {
    float last = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        if (x[i] > 0) last = x[i];
        y[i] = last;
    }
}

// Items that share memory.
__global__ void other_bins(int n, const int *__restrict__ x, float *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[x[i]] += 1;
}

__global__ void other_neighbour(int n, float *y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i + 1] = y[i] + 1;
}

__global__ void other_behind(int n, long long width, float *y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] += y[i - width];
}

__global__ void other_overlap(int n, float *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        y[i] = 1;
        y[i + 1] = 2;
    }
}

__global__ void other_one(int n, float *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) *y = i;
}

__global__ void other_wrapped(size_t n, float *__restrict__ y) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        y[(unsigned)i] = i;
}

__global__ void other_atomic(int n, const float *__restrict__ x, float *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(y, x[i]);
}

// The thread shows.
__global__ void other_stride(int n, float *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = gridDim.x;
}

__global__ void other_first(int n, float *__restrict__ y) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = first; i < n; i += gridDim.x * blockDim.x) y[i] = first;
}

__global__ void other_lane(int n, float *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = threadIdx.x % 32;
}

// Some items are left out, or done twice.
__global__ void other_step(int n, float *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x * 2) y[i] = 1;
}

__global__ void other_blocks(int n, float *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x) y[i] = 1;
}

__global__ void other_fixed(int n, float *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += 1024) y[i] = 1;
}

__global__ void other_bound(int n, float *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n + gridDim.x; i += gridDim.x * blockDim.x) y[i] = 1;
}

__global__ void other_break(int n, const float *__restrict__ x, float *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        if (x[i] < 0) break;
        y[i] = 1;
    }
}

__global__ void other_behind_the_loop(int n, float *__restrict__ y, int *__restrict__ done) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 1;
    *done = 1;
}

__global__ void other_one_item(int n, float *__restrict__ y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1;
}

__global__ void other_volatile(int n, volatile float *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 1;
}

__global__ void other_shared(int n, float *__restrict__ y) {
    __shared__ float tile[1024];
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        tile[threadIdx.x] = i;
        y[i] = tile[threadIdx.x ^ 1];
    }
}

// What inline assembly reads of the memory that is written.
__global__ void other_assembly(int n, float *__restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float v;
        asm volatile("{ .reg .u64 a; and.b64 a, %1, -16; ld.global.f32 %0, [a]; }" : "=f"(v) : "l"(y));
        y[i] = v + 1;
    }
}

// A jump to a label that stands twice.
__global__ void other_label(int n, float *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int stride = gridDim.x * blockDim.x;
    asm volatile("{ .reg .pred p; setp.ge.s32 p, %0, %1; @p bra SKIP; SKIP: }" ::"r"(i), "r"(n));
    do {
        y[i] = 1;
        i += stride;
    } while (i < n);
    asm volatile("{ SKIP: }");
}
}
