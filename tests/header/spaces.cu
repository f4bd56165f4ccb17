namespace a { namespace b {
//@tune threads(n) block({64, 128}) default(block = 128)
//@tune args(n = 65535, x = random[n])
__global__ void scale(unsigned short n, float *x) {}
} }
//# type n: unsigned short
