// Control flow that depends on data, a switch, and a call.
__global__ void collatz(int n, const unsigned *x, unsigned *steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned v = x[i] + 1, count = 0;
#pragma unroll 1
    while (v != 1) {
        v = v & 1 ? 3 * v + 1 : v / 2;
        ++count;
    }
    steps[i] = count;
}

__global__ void choose(const unsigned *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = y[i];
    switch (x[i] & 7) {
    case 0: v = sinf(v); break;
    case 1: v = expf(v); y[i + 1] = v; break;
    case 2: v = v * v + 1; break;
    case 3: v = sqrtf(v); y[i + 2] = 3; break;
    case 4: v = 1 / v; break;
    case 5: v = tanhf(v); break;
    case 6: v = logf(v); break;
    default: v = -v;
    }
    y[i] = v;
}

__device__ __noinline__ int gcd(int a, int b)
{
#pragma unroll 1
    while (b) {
        int r = a % b;
        a = b;
        b = r;
    }
    return a;
}

__global__ void gcds(const int *a, const int *b, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = gcd(a[i], b[i]);
}
