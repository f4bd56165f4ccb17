// The block is 128 wherever the source says it: blockDim is never read.
//@tune grid(n / 128) block({64, 128, 256}) default(block = 128) regs({0})
//@tune args(n = 1 << 16, x = random[n], y = out[n])
__global__ void fixed(int n, const float *x, float *y) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) y[i] = x[i];
}

//# build as_it_is
//# args -O3 -arch=sm_90 -c -DA=1
//#| block_that_the_code_fixes.cu(2): warning: `fixed` reads threadIdx.x, not blockDim.x: tie it to a macro by require(block.x == TILE) [N0173]
//#|   //@tune grid(n / 128) block({64, 128, 256}) default(block = 128) regs({0})
//#|                         ^~~~~
//#|
//#| nvtune: fixed: block=*
//#| nvtune: fixed: note: 2 of 3 points may not be chosen: the kernel reads threadIdx.x and never blockDim.x [N0035]

//# build strict
//# args -O3 -arch=sm_90 -c -DA=1
//# env NVTUNE_STRICT=1
//# exit 2
//#| block_that_the_code_fixes.cu(2): warning: `fixed` reads threadIdx.x, not blockDim.x: tie it to a macro by require(block.x == TILE) [N0173]
//#|   //@tune grid(n / 128) block({64, 128, 256}) default(block = 128) regs({0})
//#|                         ^~~~~
//#|
//#| nvtune: fixed: block=*; from the cache
//#| nvtune: fixed: note: 2 of 3 points may not be chosen: the kernel reads threadIdx.x and never blockDim.x [N0035]
//#| nvtune error   : NVTUNE_STRICT turns 1 warning into errors: correct what caused it, or unset NVTUNE_STRICT [N0005]
