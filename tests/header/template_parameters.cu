//@tune threads(ceildiv(n, M)) shared(M * block.x) block({64, 128}) default(block = 128) template(float, 4) template(float, 2)
//@tune args(n = 4099, x = random[n]) name(each)
template <typename T, int M> __global__ void scale(int n, T *x) {}
//@tune threads(ceildiv(n, M)) block({64, 128}) default(block = 128) define(W = {2, 4}) template(W + 1)
//@tune args(n = 4099, x = random[n])
template <int M> __global__ void wide(int n, float *x) {}
//# type n: int
