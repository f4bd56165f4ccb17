// Results are in `total` alone. Another block counts other elements, and would win by being fast alone.
namespace {
__device__ unsigned long long total;
}
//@tune threads(n) block({256, 512}) regs({0}) default(block = 256) args(n = 1 << 22, x = random[n])
__global__ void add(int n, const unsigned *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && (x[i] & 7) == threadIdx.x % 8) asm volatile("red.global.add.u64 [%0], 1;" ::"l"(&total));
}

//# build equal
//# args -O3 -arch=sm_90 -c
//# times {"label": "block=512", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}
//#| nvtune: add: block=512 (*

//# build different
//# args -O3 -arch=sm_90 -c
//# replace {256, 512} => {512, 256}
//# times {"label": "block=512", "refused": {"differs": {"buffer": "total", "index": 0, "lane": 0, "expected": "5", "got": "6", "count": 1, "of": 1}}}, {"time_us": 10.0, "spread": 0.01}
//#| nvtune warning : add: candidate refused: block=512: 1 of 1 elements of `total` differ from the baseline's: total[0] is 6, not 5 [N0036]
//#| nvtune: add: block=*

//# build unchanged
//# args -O3 -arch=sm_90 -c
//# replace random[n] => zeros[n]
//# times {"label": "block=512", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}
//# recording "uncompared": true
//#| nvtune warning : add: candidate refused: block=512: nothing proves that it works: the baseline writes no compared buffer or variable on this workload (args) [N0036]
//#| nvtune: add: block=*

//# build not_compared
//# args -O3 -arch=sm_90 -c
//# replace threads(n) => check(none) threads(n)
//# times {"label": "block=512", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}
//#| nvtune: add: block=*
//#| nvtune: add: note: 1 of 2 points may not be chosen: `total` is written and not compared: launch(remap) allows other shapes unproved [N0035]

//# build named
//# args -O3 -arch=sm_90 -c
//# replace threads(n) => check(total) threads(n)
//# times {"label": "block=512", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}
//#| nvtune: add: block=512 (1.99x over the baseline, measured*

//# build promised
//# args -O3 -arch=sm_90 -c
//# replace threads(n) => launch(remap) check(none) threads(n)
//# times {"label": "block=512", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}
//#| nvtune: add: block=512 (*
