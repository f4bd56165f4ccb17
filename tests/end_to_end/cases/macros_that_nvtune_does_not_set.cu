#ifndef WORK
#define WORK 1
#endif
//@tune define(WORK = {1, 2, 4, 8}) block({128, 256}) regs({0}) default(block = 256, WORK = 1)
//@tune threads(ceildiv(n, WORK)) args(n = 1 << 20, x = random[n], y = out[n])
__global__ void part(int n, const float *x, float *y) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * WORK;
    for (int k = 0; k < WORK; ++k)
        if (first + k < n) y[first + k] = x[first + k] * 2.0f;
}

//# build defined_by_the_source
//# args -O3 -arch=sm_90 -c
//# files macros_that_nvtune_does_not_set.cu macros_that_nvtune_does_not_set.o
//# replace #ifndef WORK\n#define WORK 1\n#endif => #define WORK 1
//#| nvtune warning : part: not tuned: macro axis `WORK` is also defined in macros_that_nvtune_does_not_set.cu(1): remove that, or put #ifndef around it [N0064]

//# build redefined_by_the_source
//# args -O3 -arch=sm_90 -c
//# files macros_that_nvtune_does_not_set.cu macros_that_nvtune_does_not_set.o
//# replace #ifndef WORK\n#define WORK 1\n#endif => #undef WORK\n#define WORK 8
//#| nvtune warning : part: not tuned: macro axis `WORK` is also defined in macros_that_nvtune_does_not_set.cu(2): remove that, or put #ifndef around it [N0064]

//# build defined_by_the_command_line
//# args -O3 -arch=sm_90 -c -DWORK=1
//# files macros_that_nvtune_does_not_set.cu macros_that_nvtune_does_not_set.o
//#| nvtune warning : part: not tuned: macro axis `WORK` is also defined in the command line: remove that, or put #ifndef around it [N0064]

//# build other_default
//# args -O3 -arch=sm_90 -c
//# files macros_that_nvtune_does_not_set.cu macros_that_nvtune_does_not_set.o
//# replace #define WORK 1 => #define WORK 4
//#| nvtune warning : part: not tuned: its baseline (block=256 WORK=1) differs from the source: correct `default` [N0066]
