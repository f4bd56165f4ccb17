// No comparison sees `total`. Another block counts other elements, and would win by being fast alone.
namespace {
__device__ unsigned long long total;
}
//@tune threads(n) block({256, 512}) regs({0}) default(block = 256) args(n = 1 << 22, x = random[n])
__global__ void add(int n, const unsigned *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && (x[i] & 7) == threadIdx.x % 8) asm volatile("red.global.add.u64 [%0], 1;" ::"l"(&total));
}

//# build timed
//# args -O3 -arch=sm_90 -c
//# times {"label": "block=512", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}
//#| nvtune: add: block=256 (kept: *
//#| nvtune: add: note: 1 of 2 points may not be chosen: `total` is written and not compared, so that nothing proves other shapes: launch(remap) allows them unproved [N0035]

//# build promised
//# args -O3 -arch=sm_90 -c
//# replace threads(n) => launch(remap) threads(n)
//# times {"label": "block=512", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}
//#| nvtune: add: block=512 (*
