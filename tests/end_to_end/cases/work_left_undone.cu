// Blocks of 32 threads do 1/32 of the work: the grid does not follow the block. The promise that other shapes work is wrong.
//@tune grid(ceildiv(n, 4096)) block(auto) default(block = 1024) launch(remap) args(n = 1 << 22, g = random[n], p = random[n])
__global__ void __launch_bounds__(1024) step(int n, const float *g, float *p) {
    for (int i = blockIdx.x * blockDim.x * 4; i < n; i += gridDim.x * 4096)
        for (int k = 0; k < 4; ++k) if (i + k * 1024 + threadIdx.x < n) p[i + k * 1024 + threadIdx.x] -= g[i + k * 1024 + threadIdx.x];
}

//# build by_the_model
//# args -O3 -arch=sm_90 -c
//#| nvtune: step: block=1024 (kept: *
