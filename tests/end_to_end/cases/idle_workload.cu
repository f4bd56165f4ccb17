struct Work {
    float *data;
    int sizes[4];
};
//@tune threads(2^16) block({128, 256}) regs({0})
//@tune args(n = 1 << 16, limit = 0, p = {data = random[n]})
__global__ void nothing(int n, int limit, Work p) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < limit) p.data[i] += 1;
    if (i < p.sizes[0]) p.data[i] *= 2;
}

//# build as_it_is
//# args -O3 -arch=sm_90 -c -DA=1
//#| idle_workload.cu(5): warning: 2^16 is 18, for `^` is C's exclusive or and no power: write 1 << 16 [N0170]
//#|   //@tune threads(2^16) block({128, 256}) regs({0})
//#|                   ^~~~
//#|
//#| idle_workload.cu(6): warning: `nothing` accesses no global memory here (`limit` is 0, unset fields of `p` are 0): change the arguments [N0180]
//#|   //@tune args(n = 1 << 16, limit = 0, p = {data = random[n]})
//#|           ^~~~
//#|
//#| nvtune: nothing: block=*
//#| nvtune: nothing: note: 1 of 2 points may not be chosen: untimed, block and macros must divide the problem [N0035]

//# build strict
//# args -O3 -arch=sm_90 -c -DA=1
//# env NVTUNE_STRICT=1
//# exit 2
//#| idle_workload.cu(5): warning: 2^16 is 18, for `^` is C's exclusive or and no power: write 1 << 16 [N0170]
//#|   //@tune threads(2^16) block({128, 256}) regs({0})
//#|                   ^~~~
//#|
//#| idle_workload.cu(6): warning: `nothing` accesses no global memory here (`limit` is 0, unset fields of `p` are 0): change the arguments [N0180]
//#|   //@tune args(n = 1 << 16, limit = 0, p = {data = random[n]})
//#|           ^~~~
//#|
//#| nvtune: nothing: block=*; from the cache
//#| nvtune: nothing: note: 1 of 2 points may not be chosen: untimed, block and macros must divide the problem [N0035]
//#| nvtune error   : NVTUNE_STRICT turns 2 warnings into errors: correct what caused them, or unset NVTUNE_STRICT [N0005]
