#if !defined(NVTUNE_CAPABILITY) && defined(__CUDA_RUNTIME_API_H__)
#define NVTUNE_CAPABILITY nvtune_detail_capability()
static inline int nvtune_detail_capability(void) {
  static int known[64];
  int device = 0, major = 0, minor = 0;
  if (cudaGetDevice(&device) != cudaSuccess || device < 0) return 0;
  if (device < 64) major = __atomic_load_n(&known[device], __ATOMIC_RELAXED);
  if (major != 0) return major;
  if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess) return 0;
  if (cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess) return 0;
  if (device < 64) __atomic_store_n(&known[device], major * 10 + minor, __ATOMIC_RELAXED);
  return major * 10 + minor;
}
#endif
#undef NVTUNE_CAPABILITY_OR
#ifdef NVTUNE_CAPABILITY
#define NVTUNE_CAPABILITY_OR(own) (NVTUNE_CAPABILITY)
#else
#define NVTUNE_CAPABILITY_OR(own) (own)
#endif
