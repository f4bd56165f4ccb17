// A kernel that reads constant memory, as the host program would fill it, and one that reads device variables.
namespace config {
__constant__ int steps;
}
__constant__ float4 table[64];
static __device__ double scale[2];

//@tune threads(n) block({64, 256}) default(block = 256) regs({0})
//@tune args(n = 1 << 12, y = out[n])
//@tune symbol(table = random[64], config::steps = 24, scale = fill(0.5)[2])
__global__ void lookup(int n, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < config::steps; ++k) sum += table[(i + k) % 64].w;
    y[i] = sum * static_cast<float>(scale[i % 2]);
}
