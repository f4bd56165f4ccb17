// No value of a macro but the baseline's gives code.
#ifndef WORK
#define WORK 1
#endif
//@tune define(WORK = {1, 4, 8}) threads(n) block({64, 128}) default(block = 128, WORK = 1)
//@tune args(n = 1 << 20, x = random[n])
__global__ void k(int n, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 3 * [] { static_assert(WORK < 3, "too much"); return WORK; }();
}
void go(int n, float *x) { k<<<(n + 127) / 128, 128>>>(n, x); }

//# build instances_without_the_macro
//# args -O3 -arch=sm_90 -c
//# replace //@tune define => //@tune template(WORK) define
//# replace __global__ => template <int N> __global__
//# replace [] { static_assert(WORK < 3, "too much"); return WORK; }() => N
//# replace k<<< => k<1><<<
//#| nvtune warning : k_WORK: its macros are varied in vain: no value but the baseline's gives code, with -DWORK=4 because `k` has no instance <4>: this file makes <1> [N0042]
//#| nvtune: k_WORK: block=*

//# build failed_assertion
//# args -O3 -arch=sm_90 -c
//#| nvtune warning : k: its macros are varied in vain: no value but the baseline's gives code, with -DWORK=4 because cicc failed: macros_varied_in_vain.cu(9): error: static assertion failed with "too much" [N0042]
//#| nvtune: k: block=*

//# build some_values_only
//# args -O3 -arch=sm_90 -c
//# env NVTUNE_CACHE_SIZE=0
//# replace WORK < 3 => WORK < 5
//#| nvtune: k: block=*
