#if defined(NVTUNE_LAUNCH) && !defined(NVTUNE_LAUNCH_DETAIL)
#define NVTUNE_LAUNCH_DETAIL
namespace nvtune_detail {
template <class T> void *address(T &value) {
  return const_cast<char *>(&reinterpret_cast<const volatile char &>(value));
}
inline cudaError_t prepare(const void *nvtune_kernel, size_t shared, int carveout) {
  cudaError_t error = cudaSuccess;
  if (shared > 0) {
    cudaFuncAttributes attributes;
    error = cudaFuncGetAttributes(&attributes, nvtune_kernel);
    if (error == cudaSuccess && NVTUNE_AS(size_t, attributes.maxDynamicSharedSizeBytes) < shared)
      error = cudaFuncSetAttribute(nvtune_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, NVTUNE_AS(int, shared));
    if (error != cudaSuccess) return error;
  }
  if (carveout >= 0) {
    error = cudaFuncSetAttribute(nvtune_kernel, cudaFuncAttributePreferredSharedMemoryCarveout, carveout);
  }
  return error;
}
inline cudaError_t launch(const void *nvtune_kernel, dim3 grid, dim3 block, size_t shared, int carveout,
                          bool cooperative, cudaStream_t stream, void **arguments) {
  const cudaError_t error = prepare(nvtune_kernel, shared, carveout);
  if (error != cudaSuccess) return error;
  cudaLaunchConfig_t configuration = cudaLaunchConfig_t();
  configuration.gridDim = grid;
  configuration.blockDim = block;
  configuration.dynamicSmemBytes = shared;
  configuration.stream = stream;
  cudaLaunchAttribute together = cudaLaunchAttribute();
  if (cooperative) {
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = 1;
    configuration.attrs = &together;
    configuration.numAttrs = 1;
  }
  return cudaLaunchKernelExC(&configuration, nvtune_kernel, arguments);
}
}  // namespace nvtune_detail
#endif
