// Tensor cores, asynchronous copies, warp-wide operations, textures and atomics.
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void tensor(const half *a, const half *b, float *c) {
  __shared__ half tile[16 * 16];
  if (threadIdx.x < 32) __pipeline_memcpy_async(tile + threadIdx.x * 8, a + threadIdx.x * 8, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  wmma::load_matrix_sync(fa, tile, 16);
  for (int i = 0; i < 8; ++i) {
    wmma::load_matrix_sync(fb, b + i * 256, 16);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

extern "C" __global__ void warps(int n, int *x, unsigned long long *l, float *f, double *d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = x[i];
  int all;
  unsigned mask = __match_any_sync(~0u, v) ^ __match_all_sync(~0u, v / 2, &all);
  v += __popc(mask) + __shfl_xor_sync(~0u, v, 3) + __ballot_sync(~0u, v & 1);
  atomicMax(x + 1, v);
  l[i] = atomicCAS(l, 3ull, 4ull) + clock64();
  f[i] = atomicAdd(f, 1.0f) + rsqrtf(f[i]) + __fdividef(v, n);
  atomicAdd(d, 2.0);
  if (all || __all_sync(~0u, v > n)) __nanosleep(20);
  x[i] = __dp4a(v, n, v) + __vabsdiffu4(v, n) + min(max(v, n), 7);
}

extern "C" __global__ void textures(cudaTextureObject_t t, float *y) {
  y[threadIdx.x] = tex2D<float>(t, threadIdx.x * 0.5f, 1.0f) + tex1Dfetch<float>(t, threadIdx.x) + __ldg(y + 64 + threadIdx.x);
}
