#include "plain.h"
// No tuning comment, but "@tune" in a string and in a comment: /* see @tune */
const char *said = "//@tuned";

namespace {
__global__ void hidden(int n, float *x) {
    if (threadIdx.x < n) x[threadIdx.x] = FACTOR;
}
}  // namespace

__global__ void scale(int n, float a, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a * FACTOR;
}

int main() {
    hidden<<<1, 1>>>(0, nullptr);
    scale<<<1, 1>>>(0, 1.0f, nullptr);
    return 0;
}
