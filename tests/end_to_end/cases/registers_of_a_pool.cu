// Under a cap, `setmaxnreg.inc` would wait for registers that its block does not have, for ever.
//@tune grid(4096) block({384}) default(block = 384) regs({0, 64, 168})
//@tune args(n = 64, x = random[n * 128], y = out[64 * 256])
__global__ void __launch_bounds__(384, 1) roles(int n, const float4 *x, float *y) {
    __shared__ float4 stage[128];
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        for (int k = 0; k < n; ++k) { stage[threadIdx.x] = x[k * 128 + threadIdx.x]; asm volatile("bar.sync 1, 384;"); asm volatile("bar.sync 2, 384;"); }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float s[8] = {};
        for (int k = 0; k < n; ++k) {
            asm volatile("bar.sync 1, 384;");
            for (int j = 0; j < 8; ++j) s[j] += stage[(threadIdx.x + j) & 127].x;
            asm volatile("bar.sync 2, 384;");
        }
        for (int j = 0; j < 8; ++j) y[j * 256 + threadIdx.x - 128] = s[j];
    }
}

//# build timed
//# args -O3 -gencode=arch=compute_90a,code=sm_90a -c
//# times {"label": "block=384 regs=168", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}
//#| nvtune: roles: block=384 (kept: *
//#| nvtune: roles: note: 2 of 3 points may not be chosen: its warps exchange registers (setmaxnreg), whose number its block and launch bounds fix [N0035]
