// Dynamic parallelism needs the device runtime, with which a variant is not linked.
__global__ void child(float *x) { x[threadIdx.x] += 1; }

//@tune block({64, 128}) threads(n) args(n = 4096, x = random[n])
__global__ void parent(int n, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i % 64 == 0) child<<<1, 64>>>(x + i);
}
//# build a kernel that launches kernels
//# args -O3 -arch=sm_90 -rdc=true -cubin
//# headers cuda
//#| nvtune warning : parent: not tuned: its baseline (block=128) cannot be built or launched: it launches kernels itself (dynamic parallelism), which nvtune does not tune [N0068]
