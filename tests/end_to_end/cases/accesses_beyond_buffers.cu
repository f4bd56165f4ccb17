struct Rows {
    const float *first;
};
//@tune threads(n) block({128, 256}) regs({0})
//@tune args(n = 1 << 16, r = {first = random[n]}, x = random[n - 1], y = out[1024])
__global__ void small(int n, Rows r, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + r.first[i - 1];
}
// The rim is left out, and of what is not known nothing is said.
//@tune threads(n) block({128, 256}) regs({0})
//@tune args(n = 1 << 16, at = random(0, n - 1)[n], x = random[n], y = out[n])
__global__ void large(int n, const int *at, const float *x, float *y) {
    __shared__ int s[256];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < n ? at[i] : 0;
    __syncthreads();
    if (i > 0 && i < n - 1) y[i] = x[i - 1] + x[i + 1] + x[s[threadIdx.x ^ 1]];
}

//# build as_it_is
//# args -O3 -arch=sm_90 -c -DA=1
//#| accesses_beyond_buffers.cu(5): warning: `small` reads element -1 of `r.first` on this workload, which has 65536: make it longer [N0179]
//#|   //@tune args(n = 1 << 16, r = {first = random[n]}, x = random[n - 1], y = out[1024])
//#|                             ^
//#|
//#| accesses_beyond_buffers.cu(5): warning: `small` reads element 65535 of `x` on this workload, which has 65535: make it longer [N0179]
//#|   //@tune args(n = 1 << 16, r = {first = random[n]}, x = random[n - 1], y = out[1024])
//#|                                                      ^
//#|
//#| accesses_beyond_buffers.cu(5): warning: `small` writes element 32768 of `y` on this workload, which has 1024: make it longer [N0179]
//#|   //@tune args(n = 1 << 16, r = {first = random[n]}, x = random[n - 1], y = out[1024])
//#|                                                                         ^
//#|
//#| nvtune: small: block=*
//#| nvtune: large: block=*
//#| nvtune: large: note: 1 of 2 points may not be chosen: an untimed block needs launch(remap), a promise that it works, or launches by the header [N0035]

//# build strict
//# args -O3 -arch=sm_90 -c -DA=1
//# env NVTUNE_STRICT=1
//# exit 2
//#| accesses_beyond_buffers.cu(5): warning: `small` reads element -1 of `r.first` on this workload, which has 65536: make it longer [N0179]
//#|   //@tune args(n = 1 << 16, r = {first = random[n]}, x = random[n - 1], y = out[1024])
//#|                             ^
//#|
//#| accesses_beyond_buffers.cu(5): warning: `small` reads element 65535 of `x` on this workload, which has 65535: make it longer [N0179]
//#|   //@tune args(n = 1 << 16, r = {first = random[n]}, x = random[n - 1], y = out[1024])
//#|                                                      ^
//#|
//#| accesses_beyond_buffers.cu(5): warning: `small` writes element 32768 of `y` on this workload, which has 1024: make it longer [N0179]
//#|   //@tune args(n = 1 << 16, r = {first = random[n]}, x = random[n - 1], y = out[1024])
//#|                                                                         ^
//#|
//#| nvtune: small: block=*; from the cache
//#| nvtune: large: block=*; from the cache
//#| nvtune: large: note: 1 of 2 points may not be chosen: an untimed block needs launch(remap), a promise that it works, or launches by the header [N0035]
//#| nvtune error   : NVTUNE_STRICT turns 3 warnings into errors: correct what caused them, or unset NVTUNE_STRICT [N0005]
