//@tune threads(n * (1 << 20) * (1 << 12)) block({64, 128}) default(block = 128)
//@tune args(n = 1, x = random[n])
__global__ void huge(int n, float *x) {}
//# type n: int
