// Local arrays, and values that spill under a small register cap.
extern "C" __global__ void arrays(int n, const int *index, float *y) {
  float table[32];
  for (int i = 0; i < 32; ++i) table[i] = y[i * 32 + threadIdx.x];
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += table[index[i] & 31];
  y[threadIdx.x] = sum;
}

extern "C" __global__ void pressure(int n, const float *x, float *y) {
  float v[40];
#pragma unroll
  for (int i = 0; i < 40; ++i) v[i] = x[i * n + threadIdx.x];
  for (int r = 0; r < n; ++r) {
#pragma unroll
    for (int i = 0; i < 40; ++i) v[i] = v[i] * v[(i + 7) % 40] + x[r];
  }
#pragma unroll
  for (int i = 0; i < 40; ++i) y[i * n + threadIdx.x] = v[i];
}
