#include "weak.cuh"
void run_b(int n, float *x) { scale<float><<<(n + 255) / 256, 256>>>(n, x); }
