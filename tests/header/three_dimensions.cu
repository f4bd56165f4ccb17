//@tune threads(N, N / 2, N % 7) block({8, 16}, {4, 8}, {2, 4}) default(block = {8, 4, 2})
//@tune args(N = 129, M = 4, x = zeros[N])
//@tune shared(M * block.size)
__global__ void wave(long N, long M, float *x) {}
//# type N: long long
//# type M: long long
