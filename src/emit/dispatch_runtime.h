/* At -O0 the code of all this would be twice as large. Inlining needs equal options. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__INTEL_COMPILER) && !defined(__NVCOMPILER)
#define __NVTUNE_SMALL __attribute__((optimize("Os")))
#else
#define __NVTUNE_SMALL
#endif
#define __NVTUNE_INLINE __NVTUNE_SMALL __attribute__((always_inline)) static inline
namespace __nvtune_detail {
/* This is C++98, because the build chooses the standard. As in tuning comments, numbers are 64-bit integers and doubles;
   an operation on one of each gives a double. */
template <class A> struct number { typedef long long type; };
template <> struct number<float> { typedef double type; };
template <> struct number<double> { typedef double type; };
template <class A, class B> struct wider { typedef double type; };
template <> struct wider<long long, long long> { typedef long long type; };
template <class A, class B> struct result : wider<typename number<A>::type, typename number<B>::type> {};
template <class A, class B> __NVTUNE_INLINE typename result<A, B>::type quotient(A a, B b) {
  typedef typename result<A, B>::type R;
  return b == 0 ? 0 : static_cast<R>(a) / static_cast<R>(b);
}
template <class A, class B> __NVTUNE_INLINE typename result<A, B>::type remainder(A a, B b) {
  typedef typename result<A, B>::type R;
  return b == 0 ? 0 : static_cast<R>(a) % static_cast<R>(b);
}
template <class A, class B> __NVTUNE_INLINE typename result<A, B>::type min(A a, B b) {
  typedef typename result<A, B>::type R;
  return static_cast<R>(b) < static_cast<R>(a) ? static_cast<R>(b) : static_cast<R>(a);
}
template <class A, class B> __NVTUNE_INLINE typename result<A, B>::type max(A a, B b) {
  typedef typename result<A, B>::type R;
  return static_cast<R>(a) < static_cast<R>(b) ? static_cast<R>(b) : static_cast<R>(a);
}
__NVTUNE_INLINE long long ceildiv(long long a, long long b) {
  return b == 0 ? 0 : a / b + (a % b != 0 && (a < 0) == (b < 0));
}

/* Returns a number of blocks, or 0, which no launch has, if it is out of range. */
__NVTUNE_INLINE unsigned blocks(long long number) {
  return number < 0 || number > 0xffffffffLL ? 0 : static_cast<unsigned>(number);
}

/* The shape of a launch, as the runtime's functions take it; `shared` is in bytes. */
struct Launch {
  unsigned grid[3], block[3];
  ::size_t shared;
};
typedef ::dim3 __attribute__((may_alias)) shape;

/* Returns whether two launches have the same shape. */
__NVTUNE_INLINE bool is_same(const Launch *a, const Launch *b) {
  unsigned difference = 0;
  for (int i = 0; i < 3; ++i) difference |= (a->grid[i] ^ b->grid[i]) | (a->block[i] ^ b->block[i]);
  return difference == 0 && a->shared == b->shared;
}

#ifdef __NVTUNE_CLUSTERS
/* Gives a winner the cluster size that the kernel may have. Returns whether both need the same clusters. */
template <class A>
static bool share_clusters(const void *key, const A &winner, const A &kernel,
                           char (*)[sizeof(static_cast<A *>(0)->nonPortableClusterSizeAllowed)]) {
  if (kernel.nonPortableClusterSizeAllowed != winner.nonPortableClusterSizeAllowed &&
      cudaFuncSetAttribute(key, cudaFuncAttributeNonPortableClusterSizeAllowed,
                           kernel.nonPortableClusterSizeAllowed) != cudaSuccess)
    return false;
  return kernel.clusterDimMustBeSet == winner.clusterDimMustBeSet &&
         kernel.requiredClusterWidth == winner.requiredClusterWidth &&
         kernel.requiredClusterHeight == winner.requiredClusterHeight &&
         kernel.requiredClusterDepth == winner.requiredClusterDepth;
}

/* The attributes of toolkits before 12.0 have no cluster size. */
template <class A> static bool share_clusters(const void *, const A &, const A &, ...) { return true; }
#endif

/* Prepares a winner for a device. Returns its limit: the bytes of dynamic shared memory that it can have, plus 1; 0 if
   that is not known now; -1 if the winner cannot run on this device. Threads that call it at the same time set the same
   attributes. */
__NVTUNE_INLINE int prepare(int device, const void *key, const void *kernel_key, int capability, int carveout,
                            const Launch *launch) {
  int properties[3];
  for (int i = 0; i < 3; ++i) {
    const cudaDeviceAttr attribute = i == 0   ? cudaDevAttrComputeCapabilityMajor
                                     : i == 1 ? cudaDevAttrComputeCapabilityMinor
                                              : cudaDevAttrMaxSharedMemoryPerBlockOptin;
    if (cudaDeviceGetAttribute(&properties[i], attribute, device) != cudaSuccess) return 0;
  }
  if (properties[0] * 10 + properties[1] != capability) return -1;
  cudaFuncAttributes winner, kernel;
  const cudaError_t error = cudaFuncGetAttributes(&winner, key);
  if (error == cudaErrorInvalidDeviceFunction || error == cudaErrorNoKernelImageForDevice) return -1;
  if (error != cudaSuccess || cudaFuncGetAttributes(&kernel, kernel_key) != cudaSuccess) return 0;
  if (launch->block[0] * launch->block[1] * launch->block[2] > static_cast<unsigned>(winner.maxThreadsPerBlock)) return -1;
#ifdef __NVTUNE_CLUSTERS
  if (!share_clusters(key, winner, kernel, 0)) return -1;
#endif
  if (carveout < 0) carveout = kernel.preferredShmemCarveout;
  if (carveout != winner.preferredShmemCarveout) /* It is a hint. */
    static_cast<void>(cudaFuncSetAttribute(key, cudaFuncAttributePreferredSharedMemoryCarveout, carveout));
  int most = winner.maxDynamicSharedSizeBytes;
  if (launch->shared > static_cast< ::size_t>(most)) {
    /* The maximum, whatever this launch needs, so that concurrent launches never lower each other's limit. */
    most = properties[2] - static_cast<int>(winner.sharedSizeBytes);
    if (cudaFuncSetAttribute(key, cudaFuncAttributeMaxDynamicSharedMemorySize, most) != cudaSuccess) return -1;
  }
  return most + 1;
}
}

/* C linkage, for short names in the object. */
extern "C" {
/* Launches a winner on the current device in place of the launch that the program pushed. `launches` are the baseline's
   and the winner's. `replaced` is the set of launches that the winner replaces: bit 0 those of neither shape, bit 1 of
   the baseline's, bit 2 of the winner's, bit 3 of both. `limits` has the winner's limit for each device, and its address
   is the winner's key. Returns whether the winner was launched; otherwise pushes the program's launch again. */
__NVTUNE_SMALL static bool __nvtune_launch(void **arguments, int *limits, const void *kernel_key, int capability,
                                           int carveout, const __nvtune_detail::Launch *launches, unsigned replaced) {
  int device;
  if (cudaGetDevice(&device) != cudaSuccess || device < 0 || device >= 64) return false;
  int limit = __atomic_load_n(&limits[device], __ATOMIC_RELAXED);
  if (limit < 0) return false;
  __nvtune_detail::Launch launch;
  void *stream;
  if (__cudaPopCallConfiguration(reinterpret_cast< ::dim3 *>(launch.grid), reinterpret_cast< ::dim3 *>(launch.block),
                                 &launch.shared, &stream) != cudaSuccess)
    return false;
  for (int i = 1; i >= 0; --i) {
    if (__nvtune_detail::is_same(&launch, &launches[i])) replaced >>= i + 1;
    const unsigned *const grid = launches[i].grid;
    if (grid[0] - 1 >= 2147483647U || grid[1] - 1 >= 65535 || grid[2] - 1 >= 65535) replaced = 0;
  }
  const __nvtune_detail::Launch *const winner = &launches[1];
  const bool is_large = winner->shared > 48 * 1024;
  bool is_ready = winner->shared < static_cast< ::size_t>(limit);
  /* A pending error belongs to the program: nothing that can clear it is done. */
  if ((replaced & 1) != 0 && ((is_ready && !is_large) || cudaPeekAtLastError() == cudaSuccess)) {
    if (!is_ready) {
      limit = __nvtune_detail::prepare(device, limits, kernel_key, capability, carveout, winner);
      static_cast<void>(cudaGetLastError());
      __atomic_store_n(&limits[device], limit, __ATOMIC_RELAXED);
      is_ready = limit > 0 && winner->shared < static_cast< ::size_t>(limit);
    }
    if (is_ready) {
      const cudaError_t error =
          cudaLaunchKernel(static_cast<const void *>(limits), *reinterpret_cast<const __nvtune_detail::shape *>(winner->grid),
                           *reinterpret_cast<const __nvtune_detail::shape *>(winner->block), arguments, winner->shared,
                           static_cast<struct CUstream_st *>(stream));
      if (error != cudaErrorInvalidValue || !is_large) return true;
      /* Before CUDA 12.1 a reset of the device removes the attribute: this launch is the kernel's, the next prepares. */
      static_cast<void>(cudaGetLastError());
      __atomic_store_n(&limits[device], 0, __ATOMIC_RELAXED);
    }
  }
  static_cast<void>(__cudaPushCallConfiguration(*reinterpret_cast<const __nvtune_detail::shape *>(launch.grid),
                                                *reinterpret_cast<const __nvtune_detail::shape *>(launch.block),
                                                launch.shared, static_cast<struct CUstream_st *>(stream)));
  return false;
}
}
