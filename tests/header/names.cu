//@tune threads(n) block({64, 128}) default(block = 128) args(n = 1000, x = random[n])
__global__ void grid(int n, float *x) {}
//@tune threads(n) block({64, 128}) default(block = 64) args(n = 1000, x = random[n])
__global__ void step(int n, float *x) {}
//@tune threads(n) block({64, 128}) default(block = 128) args(n = 1000, x = random[n])
__global__ void Step(int n, float *x) {}
//@tune threads(grid) block({64, 128}) default(block = 128) args(grid = 1000, x = random[grid]) name(class)
__global__ void detail(int grid, float *x) {}
//# type n: int
//# type grid: int
