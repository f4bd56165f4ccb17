//@tune threads(n / 2) block({128, 256}) regs({0})
//@tune args(n = 1 << 16, x = random[n], y = out[n])
__global__ void half(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

//# build as_it_is
//# args -O3 -arch=sm_90 -c -DA=1
//#| threads_rounded_down.cu(1): warning: the 32768 threads store only 131072 of 262144 bytes of `y`: correct `threads` or `y` [N0176]
//#|   //@tune threads(n / 2) block({128, 256}) regs({0})
//#|           ^~~~~~~
//#|
//#| nvtune: half: block=*

//# build strict
//# args -O3 -arch=sm_90 -c -DA=1
//# env NVTUNE_STRICT=1
//# exit 2
//#| threads_rounded_down.cu(1): warning: the 32768 threads store only 131072 of 262144 bytes of `y`: correct `threads` or `y` [N0176]
//#|   //@tune threads(n / 2) block({128, 256}) regs({0})
//#|           ^~~~~~~
//#|
//#| nvtune: half: block=*; from the cache
//#| nvtune error   : NVTUNE_STRICT turns 1 warning into errors: correct what caused it, or unset NVTUNE_STRICT [N0005]
