#if __has_include("silent_mistake.tune.h")
#include "silent_mistake.tune.h"
#endif

#pragma tune block(auto)
//@tunes block(auto) threads(n)
__global__ void unmarked(int n, float *y) { y[n] = 0; }

//@tune block(64:2048:64) grid(n / block.x) regs({0})
//@tune args(n = 1000000, x = random[n], y = random[n])
__global__ void rounded(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}

//@tune block({64, 128}) threads(n / 256) regs({0})
template <typename T>
//@tune template(float) args(n = 1000000, x = random[n], y = random[n])
__global__ void few(int n, const T *x, T *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}
void launch(float *x, float *y) { few<float><<<1000, 256>>>(1000000, x, y); }

//# build all_are_warned_of
//# args -O3 -arch=sm_90 -c
//#| silent_mistakes.cu(5): warning: this pragma does nothing: write it as a comment, //@tune, directly above the kernel [N0108]
//#|   #pragma tune block(auto)
//#|   ^~~~~~~~~~~~
//#|
//#| silent_mistakes.cu(6): warning: this comment does nothing: a tuning comment begins with //@tune [N0108]
//#|   //@tunes block(auto) threads(n)
//#|     ^~~~~~
//#|
//#| silent_mistakes.cu(1): warning: this is never true: the header of 'silent_mistakes.cu' is 'silent_mistakes.tune.h'; write that name [N0184]
//#|   #if __has_include("silent_mistake.tune.h")
//#|                      ^~~~~~~~~~~~~~~~~~~~~
//#|
//#| silent_mistakes.cu(9): warning: no GPU can launch the values of `block` above 1024 in x: end the list at 1024 [N0172]
//#|   //@tune block(64:2048:64) grid(n / block.x) regs({0})
//#|           ^~~~~
//#|
//#| silent_mistakes.cu(9): warning: this division drops the last 64 of n with block=256: write ceildiv(n, block.x) [N0177]
//#|   //@tune block(64:2048:64) grid(n / block.x) regs({0})
//#|                                    ^
//#|
//#| silent_mistakes.cu(16): warning: the baseline's 3968 threads reach 47616 bytes, less than any buffer: correct `threads` or `x` [N0176]
//#|   //@tune block({64, 128}) threads(n / 256) regs({0})
//#|                            ^~~~~~~
//#|
//#| silent_mistakes.cu(23): warning: this launch of `few_float` has blocks of 256, but the baseline has 128: write default(block = 256), and add that block to `block` [N0181]
//#|   void launch(float *x, float *y) { few<float><<<1000, 256>>>(1000000, x, y); }
//#|                                     ^~~
//#|
//#| nvtune: rounded: block=*
//#| nvtune: rounded: note: 13 of 16 points may not be chosen: untimed, block and macros must divide the problem [N0035]
//#| nvtune: few_float: block=*
//#| nvtune: few_float: note: 1 of 2 points may not be chosen: untimed, block and macros must divide the problem [N0035]

//# build unknown_variable
//# args -O3 -arch=sm_90 -c
//# env NVTUNE_BUGDET=3
//#| nvtune warning : NVTUNE_BUGDET is no variable of nvtune and is ignored; did you mean NVTUNE_BUDGET? [N0004]
//#| silent_mistakes.cu(5): warning: this pragma does nothing: write it as a comment, //@tune, directly above the kernel [N0108]
//#|   #pragma tune block(auto)
//#|   ^~~~~~~~~~~~
//#|
//#| silent_mistakes.cu(6): warning: this comment does nothing: a tuning comment begins with //@tune [N0108]
//#|   //@tunes block(auto) threads(n)
//#|     ^~~~~~
//#|
//#| silent_mistakes.cu(1): warning: this is never true: the header of 'silent_mistakes.cu' is 'silent_mistakes.tune.h'; write that name [N0184]
//#|   #if __has_include("silent_mistake.tune.h")
//#|                      ^~~~~~~~~~~~~~~~~~~~~
//#|
//#| silent_mistakes.cu(9): warning: no GPU can launch the values of `block` above 1024 in x: end the list at 1024 [N0172]
//#|   //@tune block(64:2048:64) grid(n / block.x) regs({0})
//#|           ^~~~~
//#|
//#| silent_mistakes.cu(9): warning: this division drops the last 64 of n with block=256: write ceildiv(n, block.x) [N0177]
//#|   //@tune block(64:2048:64) grid(n / block.x) regs({0})
//#|                                    ^
//#|
//#| silent_mistakes.cu(16): warning: the baseline's 3968 threads reach 47616 bytes, less than any buffer: correct `threads` or `x` [N0176]
//#|   //@tune block({64, 128}) threads(n / 256) regs({0})
//#|                            ^~~~~~~
//#|
//#| silent_mistakes.cu(23): warning: this launch of `few_float` has blocks of 256, but the baseline has 128: write default(block = 256), and add that block to `block` [N0181]
//#|   void launch(float *x, float *y) { few<float><<<1000, 256>>>(1000000, x, y); }
//#|                                     ^~~
//#|
//#| nvtune: rounded: block=*; from the cache
//#| nvtune: rounded: note: 13 of 16 points may not be chosen: untimed, block and macros must divide the problem [N0035]
//#| nvtune: few_float: block=*; from the cache
//#| nvtune: few_float: note: 1 of 2 points may not be chosen: untimed, block and macros must divide the problem [N0035]

//# build strict
//# args -O3 -arch=sm_90 -c
//# env NVTUNE_STRICT=1
//# exit 2
//#| silent_mistakes.cu(5): warning: this pragma does nothing: write it as a comment, //@tune, directly above the kernel [N0108]
//#|   #pragma tune block(auto)
//#|   ^~~~~~~~~~~~
//#|
//#| silent_mistakes.cu(6): warning: this comment does nothing: a tuning comment begins with //@tune [N0108]
//#|   //@tunes block(auto) threads(n)
//#|     ^~~~~~
//#|
//#| silent_mistakes.cu(1): warning: this is never true: the header of 'silent_mistakes.cu' is 'silent_mistakes.tune.h'; write that name [N0184]
//#|   #if __has_include("silent_mistake.tune.h")
//#|                      ^~~~~~~~~~~~~~~~~~~~~
//#|
//#| nvtune error   : NVTUNE_STRICT turns 3 warnings into errors: correct what caused them, or unset NVTUNE_STRICT [N0005]
