// Two loops that look up in one table, whose address ptxas fetches again in each where registers are few.
__device__ unsigned table[256];

extern "C" __global__ void lookups(int n, unsigned *x) {
  unsigned v[12];
  for (int k = 0; k < 12; ++k) v[k] = x[threadIdx.x + 32 * k];
#pragma unroll 1
  for (int i = 0; i < n; ++i)
#pragma unroll
    for (int k = 0; k < 12; ++k) v[k] ^= table[v[(k + 5) % 12] >> 24];
  __syncthreads();
#pragma unroll 1
  for (int i = 0; i < n; ++i)
#pragma unroll
    for (int k = 0; k < 12; ++k) v[k] = v[k] * 5 + table[v[(k + 7) % 12] >> 24] + __ldg(x + i);
  for (int k = 0; k < 12; ++k) x[threadIdx.x + 32 * k] = v[k];
}
