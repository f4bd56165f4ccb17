//@tune name(add_int) threads(n) block({64, 128}) default(block = 128)
//@tune args(n = 1000, x = iota[n])
__global__ void add(int n, int *x) {}
//@tune name(add_float) threads(n) block({64, 128}) default(block = 64)
//@tune args(n = 1000, x = random[n])
__global__ void add(int n, float *x) {}
//# type n: int
