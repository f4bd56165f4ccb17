// A counted loop, a data-dependent loop and a nest of two, with early exit.
extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void collatz(int n, const unsigned *x, unsigned *steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = x[i], s = 0;
  while (v > 1) {
    v = (v & 1) ? 3 * v + 1 : v / 2;
    ++s;
  }
  steps[i] = s;
}

extern "C" __global__ void nest(int n, int m, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int j = 0; j < n; ++j) {
    float inner = x[j];
#pragma unroll 1
    for (int k = 0; k < m; ++k) inner = inner * x[k * n + i] + sum;
    sum += __expf(inner) + sqrtf(inner) / (inner + 1.0f);
  }
  y[i] = sum;
}

extern "C" __global__ void cases(int n, const int *x, int *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = x[i];
  switch (v & 15) {
    case 0: v = y[3]; break;
    case 1: v = v * 77; break;
    case 2: v = v / (n + 1); break;
    case 3: v = v ^ 0x55; break;
    case 4: v = __popc(v); break;
    case 5: v = __clz(v) + y[2]; break;
    case 6: v = v % 13; break;
    case 7: atomicAdd(&y[1], v); break;
    case 8: v = atomicCAS(&y[0], v, i); break;
    case 9: v = __brev(v); break;
    case 10: v = __ffs(v); break;
    default: v = v << (n & 7);
  }
  y[i + 16] = v;
}
