namespace __nvtune_detail {
/* Written in the C++ of 1998, for whatever standard the build asks for. As in the comment, numbers are 64-bit integers and
   doubles, and what is made of one of each is a double. */
template <class A> struct number { typedef long long type; };
template <> struct number<float> { typedef double type; };
template <> struct number<double> { typedef double type; };
template <class A, class B> struct wider { typedef double type; };
template <> struct wider<long long, long long> { typedef long long type; };
template <class A, class B> struct result : wider<typename number<A>::type, typename number<B>::type> {};
template <class A, class B> static inline typename result<A, B>::type quotient(A a, B b) {
  typedef typename result<A, B>::type R;
  return b == 0 ? 0 : static_cast<R>(a) / static_cast<R>(b);
}
template <class A, class B> static inline typename result<A, B>::type remainder(A a, B b) {
  typedef typename result<A, B>::type R;
  return b == 0 ? 0 : static_cast<R>(a) % static_cast<R>(b);
}
template <class A, class B> static inline typename result<A, B>::type min(A a, B b) {
  typedef typename result<A, B>::type R;
  return static_cast<R>(b) < static_cast<R>(a) ? static_cast<R>(b) : static_cast<R>(a);
}
template <class A, class B> static inline typename result<A, B>::type max(A a, B b) {
  typedef typename result<A, B>::type R;
  return static_cast<R>(a) < static_cast<R>(b) ? static_cast<R>(b) : static_cast<R>(a);
}
static inline long long ceildiv(long long a, long long b) {
  return b == 0 ? 0 : a / b + (a % b != 0 && (a < 0) == (b < 0));
}

/* Finds the current device. Where there is one alone, it is asked for once. Returns whether it is known. */
static inline bool current_device(int *device) {
  static int devices;
  int count = __atomic_load_n(&devices, __ATOMIC_RELAXED);
  if (count == 0) {
    if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
    __atomic_store_n(&devices, count, __ATOMIC_RELAXED);
  }
  *device = 0;
  return count == 1 || (count > 1 && cudaGetDevice(device) == cudaSuccess);
}

/* Returns the compute capability of the current device, or 0. Asks once for each device: a race of two
   threads stores the same value twice. */
static int capability(int *device) {
  static int capabilities[64];
  if (!current_device(device) || *device < 0 || *device >= 64) return 0;
  int value = __atomic_load_n(&capabilities[*device], __ATOMIC_RELAXED);
  if (value == 0) {
    int minor_part = 0;
    if (cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, *device) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor_part, cudaDevAttrComputeCapabilityMinor, *device) != cudaSuccess)
      return 0;
    value = value * 10 + minor_part;
    __atomic_store_n(&capabilities[*device], value, __ATOMIC_RELAXED);
  }
  return value;
}

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

/* Toolkits before 12.0 do not tell of clusters. */
template <class A> static bool share_clusters(const void *, const A &, const A &, ...) { return true; }

/* Stores that a winner is not for this device. */
static bool give_up(int *limit) {
  static_cast<void>(cudaGetLastError());
  __atomic_store_n(limit, -1, __ATOMIC_RELAXED);
  return false;
}

/* Readies a winner for the current device. Returns whether it can run with these bytes of dynamic shared memory.
   The limit becomes one more than the bytes that it can have. Two threads at once set the same attributes. */
__attribute__((cold)) static bool prepare(int *limit, int device, const void *key, const void *kernel_key, int threads,
                                          int carveout, long long bytes) {
  /* Whoever looks for the pending error later must find it. */
  if (cudaPeekAtLastError() != cudaSuccess) return false;
  cudaFuncAttributes winner = cudaFuncAttributes(), kernel = cudaFuncAttributes();
  const cudaError_t error = cudaFuncGetAttributes(&winner, key);
  if (error == cudaErrorInvalidDeviceFunction || error == cudaErrorNoKernelImageForDevice ||
      error == cudaErrorInvalidKernelImage || error == cudaErrorSymbolNotFound)
    return give_up(limit);
  if (error != cudaSuccess || cudaFuncGetAttributes(&kernel, kernel_key) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  if (threads > winner.maxThreadsPerBlock || !share_clusters(key, winner, kernel, 0)) return give_up(limit);
  if (carveout < 0) carveout = kernel.preferredShmemCarveout;
  if (carveout != winner.preferredShmemCarveout &&
      cudaFuncSetAttribute(key, cudaFuncAttributePreferredSharedMemoryCarveout, carveout) != cudaSuccess)
    static_cast<void>(cudaGetLastError()); /* It is a hint. */
  long long most = winner.maxDynamicSharedSizeBytes;
  if (bytes > most) {
    int total = 0;
    if (cudaDeviceGetAttribute(&total, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess)
      return give_up(limit);
    /* All that there is, whatever this launch needs: so no thread takes another's away. */
    most = total - static_cast<long long>(winner.sharedSizeBytes);
    if (bytes > most) return false;
    if (cudaFuncSetAttribute(key, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most)) != cudaSuccess)
      return give_up(limit);
  }
  __atomic_store_n(limit, static_cast<int>(most) + 1, __ATOMIC_RELAXED);
  return true;
}

/* Returns whether to run a winner on the current device with these bytes of dynamic shared memory. A launch in the
   winner's own shape is the winner's whatever comes of it: in that shape nvcc's kernel would do other work. */
static inline bool is_ready(int *limits, int device, const void *key, const void *kernel_key, int threads, int carveout,
                            long long bytes, bool is_own) {
  int *const limit = &limits[device];
  const int known = __atomic_load_n(limit, __ATOMIC_RELAXED);
  return (known > 0 && bytes < known) ||
         (known >= 0 && prepare(limit, device, key, kernel_key, threads, carveout, bytes)) || is_own;
}

/* Returns whether a launch failed because the winner lost its attributes, as by cudaDeviceReset before CUDA 12.1.
   Then the error is cleared and the winner can be readied again. */
static inline bool is_lost(int *limit, const void *key, long long bytes) {
  if (cudaPeekAtLastError() != cudaErrorInvalidValue) return false;
  cudaFuncAttributes winner = cudaFuncAttributes();
  if (cudaFuncGetAttributes(&winner, key) != cudaSuccess || bytes <= winner.maxDynamicSharedSizeBytes) return false;
  static_cast<void>(cudaGetLastError());
  __atomic_store_n(limit, 0, __ATOMIC_RELAXED);
  return true;
}
}
