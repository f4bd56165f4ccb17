// Parameters that a macro of the build leaves out are those that args(...) gives no value.
struct Tree {
    int n;
};
//@tune threads(n) block({64, 128, 256}) default(block = 128)
//@tune args(n = 1 << 20, x = random[n], y = out[n])
__global__ void k(
#if SPATIAL
    Tree tree,
#endif
    const float *x, float *y,
#ifdef WIDE
    long n
#else
    int n
#endif
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 2;
}

//# build none
//# args -arch=sm_90 -c
//#| nvtune: k: block=*

//# build other_type
//# args -arch=sm_90 -c -DWIDE
//#| nvtune: k: block=*

//# build one_more
//# args -arch=sm_90 -c -DSPATIAL=1
//# replace , y = out[n] => , y = out[n], tree = {n = 3}
//#| nvtune: k: block=*

//# build one_more_and_other_type
//# args -arch=sm_90 -c -DSPATIAL=1 -DWIDE
//# replace , y = out[n] => , y = out[n], tree = {}
//#| nvtune: k: block=*

//# build value_for_one_left_out
//# args -arch=sm_90 -c
//# replace , y = out[n] => , y = out[n], tree = {}
//#| parameters_under_conditionals.cu(7): warning: the compilation has no kernel `k` with 4 parameters; nvcc builds it as it is: of those under #if the ones count that args(...) gives a value [N0167]
//#|   __global__ void k(
//#|                   ^
//#|
