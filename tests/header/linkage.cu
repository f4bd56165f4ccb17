//@tune threads(n) block({64, 128}) default(block = 128)
//@tune args(n = 1 << 20, x = random[n])
extern "C" __global__ void c_linkage(unsigned long long n, float *x) {}
//# type n: unsigned long long
