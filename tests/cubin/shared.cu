// Shared memory (static, dynamic), barriers, shuffles, votes and launch bounds.
#define TILE 16
extern "C" __global__ void __launch_bounds__(256, 2) gemm(int n, const float *a, const float *b, float *c) {
  __shared__ float as[TILE][TILE + 1], bs[TILE][TILE + 1];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx;
  float sum = 0;
  for (int t = 0; t < n / TILE; ++t) {
    as[ty][tx] = a[row * n + t * TILE + tx];
    bs[ty][tx] = b[(t * TILE + ty) * n + column];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k) sum += as[ty][k] * bs[k][tx];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

extern "C" __global__ void reduce(int n, const float4 *x, float *total) {
  extern __shared__ float partial[];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float4 v = x[i];
    sum += v.x + v.y + v.z + v.w;
  }
  for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned w = 1; w < blockDim.x / 32; ++w) sum += partial[w];
    atomicAdd(total, sum);
  }
}

extern "C" __global__ void barriers(int *x) {
  __shared__ int cell[64];
  cell[threadIdx.x & 63] = x[threadIdx.x];
  asm volatile("bar.sync 3, 64;");
  int v = cell[63 - (threadIdx.x & 63)];
  asm volatile("bar.sync 5, 64;");
  if (__any_sync(~0u, v > 3)) v += __ballot_sync(~0u, v & 1);
  __threadfence();
  x[threadIdx.x] = atomicAdd(&cell[0], v);
}

struct Large { int part[100]; char tail; };
extern "C" __global__ void __launch_bounds__(128) parameters(Large l, char c, double d, const short *p) {
  *(double *)(p + threadIdx.x * 4) = l.part[threadIdx.x] + c + d + l.tail;
}
