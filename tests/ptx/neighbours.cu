// What a block brings before its neighbours, what they brought before it, and what it is not known of.
__global__ void neighbours(int planes, const float *ahead, const float *all, const int *index, const float *any, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int plane = (gridDim.x + 1) * blockDim.x;
    float sum = all[threadIdx.x] + any[index[i]];
#pragma unroll 1
    for (int z = 0; z < planes; ++z) {
        sum += ahead[(z + 4) * plane + i];
        sum *= ahead[z * plane + i + blockDim.x];
    }
    out[i] = sum;
}
