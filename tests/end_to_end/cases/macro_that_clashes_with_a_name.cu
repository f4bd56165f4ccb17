// A macro that is also a name of the source, as it may be one of the headers'.
template <class U> struct Twice {
    template <class V> V of(V T, U) { return 2 * T; }
};
#ifndef T
#define T 1
#endif
#ifndef SCALE
#define SCALE 1
#endif

//@tune threads(n) block({64, 256}) default(block = 256)
//@tune args(n = 1 << 20, x = random[n], y = out[n])
__global__ void before(int n, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 2;
}

//@tune define(T = {1, 2}, LONGER = {3, 4}) threads(n) block({64, 256}) default(block = 256)
//@tune args(n = 1 << 20, x = random[n], y = out[n])
__global__ void k(int n, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * T;
}

//@tune define(SCALE = {1, 2}) threads(n) block({64, 256}) default(block = 256)
//@tune args(n = 1 << 20, x = random[n], y = out[n])
__global__ void after(int n, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * SCALE;
}

//# build clash
//# args -O3 -arch=sm_90 -c
//#| nvtune: before: block=*
//#| nvtune: after: block=*
//#| nvtune warning : k: not tuned: with -DT=1 the source does not compile: rename it if the name is taken; cicc failed: */cuda_runtime.h(*): error: expected an identifier [N0062]

//# build error_of_plain_nvcc
//# args -O3 -arch=sm_90 -c
//# replace #define T 1 => #define T 1\n#error no
//# exit 1
//#| macro_that_clashes_with_a_name.cu:7:*#error no
//#| *#error no
//#| *^*
