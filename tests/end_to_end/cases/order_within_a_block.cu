// In blocks of 512, two blocks share counters that the atomics order within one block only. What is timed and compared may agree by chance.
//@tune threads(n) block(512, 1) default(block = 1024) regs({0})
//@tune args(n = 1 << 22, keys = random[n], counts = zeros[n / 64])
__global__ void count(int n, const unsigned char *keys, int *counts) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) asm volatile("red.relaxed.cta.global.add.u32 [%0], 1;" ::"l"(&counts[i / 1024 * 16 + (keys[i] & 15)]));
}

//# build by_the_model
//# args -O3 -arch=sm_90 -c
//# replace block(512, 1) => block({512, 1024})
//#| nvtune: count: block=1024 (kept: *
//#| nvtune: count: note: 1 of 2 points may not be chosen: it orders memory within a block only (.cta or .cluster scope): write launch(remap) if other blocks work [N0035]

//# build timed
//# args -O3 -arch=sm_90 -c
//# replace block(512, 1) => block({512, 1024})
//# times {"label": "block=512", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}
//#| nvtune: count: block=1024 (kept: *
//#| nvtune: count: note: *

//# build promised
//# args -O3 -arch=sm_90 -c
//# replace block(512, 1) => launch(remap) block({512, 1024})
//# times {"label": "block=512", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}
//#| nvtune: count: block=512 (*
