//@tune grid({132, 264}) block({64, 128}) default(block = 128, grid = 264) shared(grid.x * 4) carveout({-1, 50})
//@tune args(n = 1000, x = random[n])
__global__ void strided(int n, float *x) {}
