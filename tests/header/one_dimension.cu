//@tune threads(n) block({96, 256}) default(block = 96)
//@tune args(n = 1000, a = 2.0f, x = random[n])
__global__ void saxpy(int n, float a, float *x) {}
//# type n: int
