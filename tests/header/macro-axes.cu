//@tune define(TILE = {16, 32}, TILED_BLOCK_SIZE = {64, 128}) block({64, 128}) threads(ceildiv(n, TILE))
//@tune default(block = 128, TILE = 16, TILED_BLOCK_SIZE = 64) require(TILE > 0)
//@tune args(n = 1001, x = random[n])
__global__ void tiled(int n, float *x) {}
//# type n: int
