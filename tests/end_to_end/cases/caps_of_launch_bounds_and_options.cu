//@tune threads(n) block({128, 256}) regs({0, 32, 64})
//@tune args(n = 1 << 16, x = random[n], y = out[n])
__global__ void __launch_bounds__(256, 8) bounded(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

//@tune threads(n) block({128, 256}) regs({0, 32, 64})
//@tune args(n = 1 << 16, x = random[n], y = out[n])
__global__ void free(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

//# build as_it_is
//# args -O3 -arch=sm_90 -c -DA=1 -maxrregcount=32
//#| caps_of_launch_bounds_and_options.cu(1): warning: `regs` goes up to 64, but __launch_bounds__(256, 8) allows 32: end there, or drop the bound [N0175]
//#|   //@tune threads(n) block({128, 256}) regs({0, 32, 64})
//#|                                        ^~~~
//#|
//#| caps_of_launch_bounds_and_options.cu(8): warning: `regs` (up to 64) overrides -maxrregcount=32 of the command line: remove one of the two [N0175]
//#|   //@tune threads(n) block({128, 256}) regs({0, 32, 64})
//#|                                        ^~~~
//#|
//#| nvtune: bounded: block=*
//#| nvtune: free: block=*

//# build strict
//# args -O3 -arch=sm_90 -c -DA=1 -maxrregcount=32
//# env NVTUNE_STRICT=1
//# exit 2
//#| caps_of_launch_bounds_and_options.cu(1): warning: `regs` goes up to 64, but __launch_bounds__(256, 8) allows 32: end there, or drop the bound [N0175]
//#|   //@tune threads(n) block({128, 256}) regs({0, 32, 64})
//#|                                        ^~~~
//#|
//#| caps_of_launch_bounds_and_options.cu(8): warning: `regs` (up to 64) overrides -maxrregcount=32 of the command line: remove one of the two [N0175]
//#|   //@tune threads(n) block({128, 256}) regs({0, 32, 64})
//#|                                        ^~~~
//#|
//#| nvtune: bounded: block=*; from the cache
//#| nvtune: free: block=*; from the cache
//#| nvtune error   : NVTUNE_STRICT turns 2 warnings into errors: correct what caused them, or unset NVTUNE_STRICT [N0005]
