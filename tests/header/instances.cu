//@tune threads(n) block({64, 128}) default(block = 128) template(float, 4) template(double, 2)
//@tune args(n = 4099, a = 2, x = random[n])
template <typename T, int M> __global__ void axpy(int n, T a, T *x) {}
//# type n: int
