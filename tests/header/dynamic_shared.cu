//@tune threads(n) block({64, 128}) default(block = 128) shared((block.x + 2 * radius) * 4)
//@tune args(n = 1000, radius = 3, x = random[n])
__global__ void stencil(int n, int radius, float *x) {}
//# type n: int
//# type radius: int
