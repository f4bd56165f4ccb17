//@tune threads(n) block({32, 64, 256}) default(block = 64) shared(block.x * m)
//@tune args(n = 1000, m = 8, x = random[n])
__global__ void mixed(int n, int m, float *x) {}
//@tune threads(n) block({32, 64, 256}) default(block = 64)
//@tune args(n = 1000, x = random[n])
__global__ void mixed_too(int n, float *x) {}
//# type n: int
//# type m: int
//# also sm_80: block 256 1 1
//# also sm_120: block 32 1 1
