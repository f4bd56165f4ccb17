/* At -O0 the code of all this would be twice as large. Inlining needs equal options. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__INTEL_COMPILER) && !defined(__NVCOMPILER)
#define __NVTUNE_OPTIMIZE(level) __attribute__((optimize(level)))
#else
#define __NVTUNE_OPTIMIZE(level)
#endif
#define __NVTUNE_SMALL __NVTUNE_OPTIMIZE("Os")
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
  return b == 0 ? 0 : a / b + (b > 0 ? a % b > 0 : a % b < 0);
}

/* Returns a number of blocks, or 0, which no launch has, if it is out of range. */
__NVTUNE_INLINE unsigned blocks(long long number) {
  return number == static_cast<unsigned>(number) ? static_cast<unsigned>(number) : 0;
}

/* The shape of a launch, as the runtime's functions take it: four words without padding. `shared` is in bytes. */
struct Launch {
  unsigned grid[3], block[3];
  ::size_t shared;
};

/* A winner on devices of one compute capability (90: 9.0). `limits` has its limit for each device, and its address is the
   winner's key. `replaced` is the set of launches that it replaces: bit 0 those of neither shape, bit 1 of the
   baseline's, bit 2 of its own, bit 3 of both. */
struct Winner {
  Launch launch;
  int *limits, capability, carveout;
  unsigned replaced;
};

typedef ::dim3 __attribute__((may_alias)) shape;
typedef unsigned long long __attribute__((may_alias)) word;

/* Returns whether two launches are the same. */
__NVTUNE_INLINE bool is_same(const Launch *a, const Launch *b) {
  const word *const x = reinterpret_cast<const word *>(a), *const y = reinterpret_cast<const word *>(b);
  return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3])) == 0;
}

/* Returns whether a launch has a grid that devices can have. */
__NVTUNE_INLINE bool is_possible(const Launch *launch) {
  return launch->grid[0] - 1 < 2147483647U && launch->grid[1] - 1 < 65535 && launch->grid[2] - 1 < 65535;
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
__NVTUNE_INLINE int prepare(int device, const void *kernel_key, const Winner *winner) {
  int properties[3];
#if defined(__GNUC__) && __GNUC__ >= 8 && !defined(__clang__)
#pragma GCC unroll 1
#endif
  for (int i = 0; i < 3; ++i) {
    const cudaDeviceAttr attribute = i == 0   ? cudaDevAttrComputeCapabilityMajor
                                     : i == 1 ? cudaDevAttrComputeCapabilityMinor
                                              : cudaDevAttrMaxSharedMemoryPerBlockOptin;
    if (cudaDeviceGetAttribute(&properties[i], attribute, device) != cudaSuccess) return 0;
  }
  if (properties[0] * 10 + properties[1] != winner->capability) return -1;
  const void *const key = winner->limits;
  const Launch *const launch = &winner->launch;
  cudaFuncAttributes own, kernel;
  const cudaError_t error = cudaFuncGetAttributes(&own, key);
  if (error == cudaErrorInvalidDeviceFunction) return -1;
  if (error != cudaSuccess || cudaFuncGetAttributes(&kernel, kernel_key) != cudaSuccess) return 0;
  if (launch->block[0] * launch->block[1] * launch->block[2] > static_cast<unsigned>(own.maxThreadsPerBlock)) return -1;
#ifdef __NVTUNE_CLUSTERS
  if (!share_clusters(key, own, kernel, 0)) return -1;
#endif
  const int carveout = winner->carveout < 0 ? kernel.preferredShmemCarveout : winner->carveout;
  if (carveout != own.preferredShmemCarveout) /* It is a hint. */
    static_cast<void>(cudaFuncSetAttribute(key, cudaFuncAttributePreferredSharedMemoryCarveout, carveout));
  int most = own.maxDynamicSharedSizeBytes;
  if (launch->shared > static_cast< ::size_t>(most)) {
    /* The maximum, whatever this launch needs, so that concurrent launches never lower each other's limit. */
    most = properties[2] - static_cast<int>(own.sharedSizeBytes);
    if (cudaFuncSetAttribute(key, cudaFuncAttributeMaxDynamicSharedMemorySize, most) != cudaSuccess) return -1;
  }
  return most + 1;
}

/* Launches a winner on a device. Returns whether it was launched. */
__NVTUNE_INLINE bool launch_winner(int device, void **arguments, const void *kernel_key, const Winner *winner,
                                   void *stream) {
  const Launch *const launch = &winner->launch;
  int *const known = &winner->limits[device], limit = __atomic_load_n(known, __ATOMIC_RELAXED);
  if (limit < 0) return false;
  const bool is_large = launch->shared > 48 * 1024, is_ready = launch->shared < static_cast< ::size_t>(limit);
  /* A pending error belongs to the program: nothing that can clear it is done. */
  if ((is_large || !is_ready) && cudaPeekAtLastError() != cudaSuccess) return false;
  if (!is_ready) {
    limit = prepare(device, kernel_key, winner);
    static_cast<void>(cudaGetLastError());
    __atomic_store_n(known, limit, __ATOMIC_RELAXED);
    if (limit < 0 || launch->shared >= static_cast< ::size_t>(limit)) return false;
  }
  const cudaError_t error = cudaLaunchKernel(static_cast<const void *>(winner->limits),
                                             *reinterpret_cast<const shape *>(launch->grid),
                                             *reinterpret_cast<const shape *>(launch->block), arguments, launch->shared,
                                             static_cast<struct CUstream_st *>(stream));
  if (error != cudaErrorInvalidValue || !is_large) return true;
  /* Before CUDA 12.1 a reset of the device removes the attribute: this launch is the kernel's, the next prepares. */
  static_cast<void>(cudaGetLastError());
  __atomic_store_n(known, 0, __ATOMIC_RELAXED);
  return false;
}
}

/* C linkage, for short names in the object. */
extern "C" {
/* Launches the winner of the current device in place of the launch that the program pushed, if it replaces that. Returns
   whether a winner was launched; otherwise pushes the program's launch again. */
__NVTUNE_SMALL static bool __nvtune_launch(void **arguments, const void *kernel_key,
                                           const __nvtune_detail::Launch *baseline,
                                           const __nvtune_detail::Winner *winner, int winners) {
  __nvtune_detail::Launch launch;
  void *stream;
  if (__cudaPopCallConfiguration(reinterpret_cast< ::dim3 *>(launch.grid), reinterpret_cast< ::dim3 *>(launch.block),
                                 &launch.shared, &stream) != cudaSuccess)
    return false;
  /* An impossible launch fails in plain nvcc's program, too. */
  const unsigned is_baseline = __nvtune_detail::is_same(&launch, baseline) && __nvtune_detail::is_possible(&launch);
  int device = -1;
  for (; winners > 0; --winners, ++winner) {
    const unsigned is_own = __nvtune_detail::is_same(&launch, &winner->launch);
    if ((winner->replaced >> (is_baseline + 2 * is_own) & 1) == 0 || !__nvtune_detail::is_possible(&winner->launch))
      continue;
    /* The device is asked for last: that takes longer than all else. */
    if (device < 0 && cudaGetDevice(&device) != cudaSuccess) break;
    if (device < 0 || device >= 64) break;
    if (__nvtune_detail::launch_winner(device, arguments, kernel_key, winner, stream)) return true;
  }
  static_cast<void>(__cudaPushCallConfiguration(*reinterpret_cast<const __nvtune_detail::shape *>(launch.grid),
                                                *reinterpret_cast<const __nvtune_detail::shape *>(launch.block),
                                                launch.shared, static_cast<struct CUstream_st *>(stream)));
  return false;
}
}
