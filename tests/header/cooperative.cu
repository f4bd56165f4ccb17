//@tune grid({132, 264}) block({64, 128}) default(block = 128, grid = 264)
//@tune args(n = 1000, x = random[n])
__global__ void waiting(int n, float *x) { auto grid = cooperative_groups::this_grid(); grid.sync(); }
//@tune grid({132, 264}) block({64, 128}) default(block = 128, grid = 264) launch(cooperative)
//@tune args(n = 1000, x = random[n])
__global__ void spinning(int n, float *x) {}
