extern __device__ float elsewhere;
__global__ void user(float *x) { *x = elsewhere; }
__device__ float elsewhere;
