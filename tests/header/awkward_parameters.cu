//@tune threads(n * stream + N) block({64, 128}) default(block = 128)
//@tune args(n = 1000, stream = 2, N = 24, grid = random[n], awkward = random[n], arguments = random[n], error = random[n])
//@tune shared((stream + n % 7 + N % 5 + stream * 3 + n % 11 + N % 13 + stream * 17 + n % 19 + N % 23) * sizeof(float))
__global__ void awkward(int n, int stream, int N, float *__restrict__ grid, const float *awkward,
                        float *arguments, float *error) {}
//# type n: int
//# type stream: int
//# type N: int
