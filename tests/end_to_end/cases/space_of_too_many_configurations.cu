//@tune threads(n) block(1:1024) regs({0}) define(A = 1:2000)
//@tune args(n = 1 << 16, y = out[n])
__global__ void large(int n, float *y) {
    if (threadIdx.x < n) y[threadIdx.x] = A;
}

//# build two_million
//# args -arch=sm_90 -c
//# files space_of_too_many_configurations.cu
//# exit 2
//#| space_of_too_many_configurations.cu(1): error: this space has more than 1000000 configurations: give shorter lists or larger steps [N0153]
//#|   //@tune threads(n) block(1:1024) regs({0}) define(A = 1:2000)
//#|   ^~~~~~~
//#|
//#| 1 error detected in the compilation of "space_of_too_many_configurations.cu".
