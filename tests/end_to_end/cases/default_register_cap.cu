// A default's register cap is the baseline that gains are told from; nvcc's own code in the object has the caps of the build.
//@tune threads(n) block({128, 256}) regs({0, 32, 48}) default(block = 256, regs = 32)
//@tune args(n = 1 << 16, steps = 50, x = random[n], y = out[n])
__global__ void wide(int n, int steps, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float values[64];
#pragma unroll
    for (int k = 0; k < 64; ++k) values[k] = x[(i + 37 * k) % n];
    for (int step = 0; step < steps; ++step)
#pragma unroll
        for (int k = 0; k < 64; ++k) values[k] = 0.5f * (values[k] + values[(k + 7) % 64]);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 64; ++k) sum += values[k];
    if (i < n) y[i] = sum;
}

//# build without_a_cap_on_the_command_line
//# args -O3 -arch=sm_90 -c
//#| nvtune: wide: block=*

//# build with_the_cap_on_the_command_line
//# args -O3 -arch=sm_90 -c -maxrregcount=32
//#| default_register_cap.cu(2): warning: `regs` (up to 48) overrides -maxrregcount=32 of the command line: remove one of the two [N0175]
//#|   //@tune threads(n) block({128, 256}) regs({0, 32, 48}) default(block = 256, regs = 32)
//#|                                        ^~~~
//#|
//#| nvtune: wide: block=*

//# build with_another_cap_on_the_command_line
//# args -O3 -arch=sm_90 -c -maxrregcount=40
//#| default_register_cap.cu(2): warning: `regs` (up to 48) overrides -maxrregcount=40 of the command line: remove one of the two [N0175]
//#|   //@tune threads(n) block({128, 256}) regs({0, 32, 48}) default(block = 256, regs = 32)
//#|                                        ^~~~
//#|
//#| nvtune: wide: block=*
