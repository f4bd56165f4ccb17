// Launches by address, by an array of arguments and by a configuration with an attribute.
//@tune
__global__ void advanced(int step, float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] += step; }

int main() {
    float *x;
    cudaMalloc(&x, 4096);
    for (int i = 0; i < 1024; ++i) x[i] = 0;
    int step = 1;
    void *arguments[] = {&step, &x};
    cudaLaunchKernel(advanced, dim3(2), dim3(128), arguments, 0, nullptr);
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t configuration = {};
    configuration.gridDim = dim3(4);
    configuration.blockDim = dim3(256);
    configuration.attrs = &attribute;
    configuration.numAttrs = 1;
    for (int i = 0; i < 2; ++i) cudaLaunchKernelEx(&configuration, advanced, 5, x);
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {2, 1, 1};
    configuration.gridDim = dim3(8);
    cudaLaunchKernelEx(&configuration, advanced, 7, x);
    return cudaGetLastError();
}
