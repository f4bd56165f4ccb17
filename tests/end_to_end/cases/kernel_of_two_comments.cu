//@tune template(double) name(first) threads(n) block({64, 256}) regs({0}) default(block = 256) args(n = 1 << 12, x = random[n])
template <typename T> __global__ void k(T *x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1;
}

//@tune threads(n) block({64, 256}) regs({0}) default(block = 256) args(n = 1 << 12, x = random[n])
template <> __global__ void k<double>(double *x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1;
}

void all(double *x, int n) { k<<<(n + 255) / 256, 256>>>(x, n); }

//# build measured
//# args -O3 -arch=sm_90 -c
//# times {"label": "block=64", "time_us": 5.0}, {"time_us": 10.0}
//# record /kernels/1 null
//#| nvtune warning : k_double: not tuned: the comment of the kernel at line 2 tunes this instance, too: remove one [N0065]
//#| nvtune: first: block=64 (2.00x over the baseline, measured*
