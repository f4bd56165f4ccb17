// Every function that the small headers declare for device code.
#include <assert.h>
struct Cell {
    float value;
    __device__ Cell(float v) : value(v) {}
};

__global__ void numbers(int n, const float *x, float *y, double *z) {
    const int i = min(max(blockIdx.x * blockDim.x + threadIdx.x, 1u), 1024u);
    const int j = min(max((int)threadIdx.x, n), 7);
    y[i] = sqrtf(x[i]) + rsqrtf(x[j]) + sinf(x[i]) + cosf(x[i]) + expf(x[i]) + logf(x[i]);
    y[i] += fmaf(x[i], fabsf(x[j]), fminf(x[i], fmaxf(x[j], 1.0f)));
    y[j] = max(y[i], min(x[j], x[i]));
    z[i] = sqrt(z[i]);
}

__global__ void counts(int *a, unsigned *b, float *c) {
    atomicAdd(a, 1);
    atomicAdd(b, 2u);
    atomicAdd(c, 3.0f);
    __syncthreads();
}

__global__ void heap(float **out) {
    assert(threadIdx.x < 64);
    Cell *cell = new Cell(3.0f), *cells = (Cell *)malloc(2 * sizeof(Cell));
    memset(cells, 0, sizeof(Cell));
    memcpy(cells + 1, cell, sizeof(Cell));
    printf("%f\n", cells[1].value);
    out[threadIdx.x] = &cell->value;
    free(cells);
    delete cell;
}

// Of the runtime: values and sizes.
__device__ const int values[] = {
    cudaSuccess, cudaErrorInvalidValue, cudaErrorInvalidConfiguration, cudaErrorInvalidDeviceFunction, cudaErrorNotReady,
    cudaFuncAttributeMaxDynamicSharedMemorySize, cudaFuncAttributePreferredSharedMemoryCarveout,
    cudaFuncAttributeRequiredClusterWidth, cudaFuncAttributeNonPortableClusterSizeAllowed, cudaDevAttrMultiProcessorCount,
    cudaDevAttrComputeCapabilityMajor, cudaDevAttrComputeCapabilityMinor, cudaDevAttrMaxSharedMemoryPerBlockOptin,
    cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDefault, cudaStreamCaptureModeGlobal,
    cudaStreamCaptureModeRelaxed, cudaStreamCaptureStatusNone, cudaEnableDefault, cudaDriverEntryPointSuccess,
    sizeof(cudaFuncAttributes), offsetof(cudaFuncAttributes, numRegs), offsetof(cudaFuncAttributes, reserved),
    sizeof(dim3), alignof(int2), alignof(float2), alignof(int4), alignof(float4), alignof(double2),
};
