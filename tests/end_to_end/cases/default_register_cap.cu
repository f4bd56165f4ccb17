// The baseline has the register cap of `default`; nvcc's own code in the object has that of the command line.
//@tune threads(n) block({128, 256}) regs({0, 24, 48}) default(block = 256, regs = 24)
//@tune args(n = 1 << 16, x = random[64 * n], y = out[n])
__global__ void fold(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float column[64], sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 64; ++k) column[k] = x[k * n + i];
#pragma unroll
    for (int k = 0; k < 64; ++k) sum = sum * column[63 - k] + column[k];
    y[i] = sum;
}

//# build without_a_cap_on_the_command_line
//# args -O3 -arch=sm_90 -c
//#| nvtune: fold: block=*

//# build with_the_cap_on_the_command_line
//# args -O3 -arch=sm_90 -c -maxrregcount=24
//#| default_register_cap.cu(2): warning: `regs` (up to 48) overrides -maxrregcount=24 of the command line: remove one of the two [N0175]
//#|   //@tune threads(n) block({128, 256}) regs({0, 24, 48}) default(block = 256, regs = 24)
//#|                                        ^~~~
//#|
//#| nvtune: fold: block=*

//# build with_another_cap_on_the_command_line
//# args -O3 -arch=sm_90 -c -maxrregcount=40
//#| default_register_cap.cu(2): warning: `regs` (up to 48) overrides -maxrregcount=40 of the command line: remove one of the two [N0175]
//#|   //@tune threads(n) block({128, 256}) regs({0, 24, 48}) default(block = 256, regs = 24)
//#|                                        ^~~~
//#|
//#| nvtune: fold: block=*
