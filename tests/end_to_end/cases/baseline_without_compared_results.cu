// On these zeros the baseline changes no output, so that every configuration "agrees".
//@tune threads(n) block({256, 512}) regs({0}) default(block = 256) args(n = 1 << 22, x = zeros[n], y = zeros[n])
__global__ void mark(int n, const unsigned *x, unsigned *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] % 8 > threadIdx.x % 8) y[i] = 1;
}

//# build without_results
//# args -O3 -arch=sm_90 -c
//# times {"label": "block=512", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}
//# recording "uncompared": true
//#| nvtune warning : mark: candidate refused: block=512: nothing proves that it works: the baseline writes no compared buffer or variable on this workload (args) [N0036]
//#| nvtune: mark: block=*

//# build with_results
//# args -O3 -arch=sm_90 -c
//# times {"label": "block=512", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}
//#| nvtune: mark: block=512 (*

//# build code_that_needs_no_comparison
//# args -O3 -arch=sm_90 -c
//# replace x[i] % 8 > threadIdx.x % 8 => x[i] % 8 > i % 8
//# times {"label": "block=512", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}
//# recording "uncompared": true
//#| nvtune: mark: block=512 (*
