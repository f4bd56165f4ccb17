// All-pairs forces with tiles in dynamic shared memory.
__global__ void nbody(int n, const float4 *bodies, float4 *forces)
{
    extern __shared__ float4 tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = bodies[i];
    float x = 0.0f, y = 0.0f, z = 0.0f;
    for (int start = 0; start < n; start += blockDim.x) {
        tile[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < blockDim.x; ++j) {
            float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            float d = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
            float s = tile[j].w * d * d * d;
            x += s * dx;
            y += s * dy;
            z += s * dz;
        }
        __syncthreads();
    }
    forces[i] = make_float4(x, y, z, 0.0f);
}
