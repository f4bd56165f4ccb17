// A kernel that two sources instantiate: the linker keeps one of each that are called alike.
#ifndef PER
#define PER 1
#endif

//@tune template(float) define(PER = {1, 2, 4}) block(256) regs({0}) threads(ceildiv(n, PER)) default(PER = 1)
//@tune args(n = 1 << 20, x = random[n])
template <class T>
__global__ void scale(int n, T *x) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * PER;
    for (int k = 0; k < PER; ++k)
        if (first + k < n) x[first + k] *= 2;
}
