__global__ void warned(int n) { int unused; }
