// A kernel that is launched again and again, and whose results depend on the block as far as its code shows.
//@tune block({64, 256})
__global__ void reversed(const float *in, float *out) {
    __shared__ float tile[256];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = in[i];
    __syncthreads();
    out[i] = 0 * tile[blockDim.x - 1 - threadIdx.x] + in[i];
}

int main() {
    float *in, *out;
    cudaMalloc(&in, 1024 * sizeof(float));
    cudaMalloc(&out, 1024 * sizeof(float));
    for (int i = 0; i < 9; ++i) reversed<<<4, 256>>>(in, out);
}
