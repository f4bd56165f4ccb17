#include "weak.cuh"
void run_a(int n, float *x) { scale<float><<<(n + 255) / 256, 256>>>(n, x); }
