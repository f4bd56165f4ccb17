// Double precision, conversions, half precision, 64-bit integers and a noinline device function.
#include <cuda_fp16.h>
extern "C" __global__ void doubles(int n, const double *x, double *y, const float *f, long long *l) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double v = x[i];
  for (int k = 0; k < 10; ++k) v = v * 0.5 + sqrt(v);
  y[i] = v / (f[i] + 1.0);
  l[i] = (long long)v * l[i] + (long long)f[i] / (n + 3ll);
}

extern "C" __global__ void halves(int n, const __half2 *x, __half2 *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __hfma2(x[i], y[i], __hmul2(x[i], x[i]));
}

__device__ __noinline__ float step(float v, int depth) {
  for (int i = 0; i < depth; ++i) v = __sinf(v) * v + 1.0f;
  return v;
}

extern "C" __global__ void calls(int n, float *y) {
  float v = y[threadIdx.x];
  for (int i = 0; i < n; ++i) v += step(v, i);
  y[threadIdx.x] = step(v, 3);
}
