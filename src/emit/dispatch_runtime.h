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

/* Returns the compute capability of the current device, or 0. Asks once for each device, and for which device it is
   only if there are several: a race of two threads stores the same value twice. */
static int capability(int *device) {
  static int devices, capabilities[64];
  int count = __atomic_load_n(&devices, __ATOMIC_RELAXED);
  if (count == 0) {
    if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
    __atomic_store_n(&devices, count, __ATOMIC_RELAXED);
  }
  *device = 0;
  if (count != 1 && (count < 1 || cudaGetDevice(device) != cudaSuccess || *device < 0 || *device >= 64)) return 0;
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

/* Readies a winner for the current device. Returns one more than the bytes of dynamic shared memory that it can have;
   0: not now; -1: it is not for this device. Two threads at once set the same attributes. */
__attribute__((cold)) static int prepare(int device, const void *key, const void *kernel_key,
                                                        int threads, int carveout, long long bytes) {
  /* Whoever looks for the pending error later must find it. */
  if (cudaPeekAtLastError() != cudaSuccess) return 0;
  cudaFuncAttributes winner = cudaFuncAttributes(), kernel = cudaFuncAttributes();
  const cudaError_t error = cudaFuncGetAttributes(&winner, key);
  const bool is_absent = error == cudaErrorInvalidDeviceFunction || error == cudaErrorNoKernelImageForDevice ||
                         error == cudaErrorInvalidKernelImage || error == cudaErrorSymbolNotFound;
  int known = is_absent ? -1 : 0;
  if (error == cudaSuccess && cudaFuncGetAttributes(&kernel, kernel_key) == cudaSuccess) {
    long long most = winner.maxDynamicSharedSizeBytes;
    known = -1;
    if (threads <= winner.maxThreadsPerBlock && share_clusters(key, winner, kernel, 0)) {
      if (carveout < 0) carveout = kernel.preferredShmemCarveout;
      if (carveout != winner.preferredShmemCarveout) /* It is a hint. */
        static_cast<void>(cudaFuncSetAttribute(key, cudaFuncAttributePreferredSharedMemoryCarveout, carveout));
      int total = 0;
      if (bytes <= most) {
        known = static_cast<int>(most) + 1;
      } else if (cudaDeviceGetAttribute(&total, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess) {
        /* All that there is, whatever this launch needs: so no thread takes another's away. */
        most = total - static_cast<long long>(winner.sharedSizeBytes);
        if (bytes > most)
          known = 0;
        else if (cudaFuncSetAttribute(key, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most)) ==
                 cudaSuccess)
          known = static_cast<int>(most) + 1;
      }
    }
  }
  static_cast<void>(cudaGetLastError());
  return known;
}

struct Launch {
  long long block[3], grid[3], shared;
};

/* Returns whether two launches have the same block, grid and dynamic shared memory. */
static bool are_same(const Launch *one, const Launch *other) {
  for (int at = 0; at < 3; ++at)
    if (one->block[at] != other->block[at] || one->grid[at] != other->grid[at]) return false;
  return one->shared == other->shared;
}

/* Runs a winner on the current device if the launch that the program pushed is one for it: the baseline's, if such
   launches are reshaped, or the winner's own, if the program may launch so; the baseline's only where the conditions on
   the arguments hold. Returns whether it was launched; else the launch is pushed again. */
static bool runs(int device, void **arguments, int *limits, const void *kernel_key, int carveout,
                                const Launch *baseline, const Launch *winner, bool reshapes, bool accepts,
                                bool conditions) {
  ::dim3 grid, block;
  ::size_t shared = 0;
  void *stream = 0;
  if (__cudaPopCallConfiguration(&grid, &block, &shared, &stream) != cudaSuccess) return false;
  const Launch launch = {{block.x, block.y, block.z}, {grid.x, grid.y, grid.z}, static_cast<long long>(shared)};
  const long long bytes = winner->shared, *const own = winner->grid;
  const bool is_baseline = are_same(&launch, baseline);
  bool is_chosen = is_baseline ? conditions && (reshapes || (accepts && are_same(&launch, winner)))
                               : accepts && are_same(&launch, winner);
  is_chosen = is_chosen && bytes >= 0 && own[0] >= 1 && own[1] >= 1 && own[2] >= 1 && own[0] <= 2147483647LL &&
              own[1] <= 65535LL && own[2] <= 65535LL;
  while (is_chosen) {
    const int threads = static_cast<int>(winner->block[0] * winner->block[1] * winner->block[2]);
    int known = __atomic_load_n(&limits[device], __ATOMIC_RELAXED);
    if (known >= 0 && bytes >= known) {
      known = prepare(device, limits, kernel_key, threads, carveout, bytes);
      if (known != 0) __atomic_store_n(&limits[device], known, __ATOMIC_RELAXED);
    }
    if (bytes >= known) break;
    const bool can_be_lost = bytes > 48 * 1024 && cudaPeekAtLastError() == cudaSuccess;
    const cudaError_t error = cudaLaunchKernel(
        static_cast<const void *>(limits),
        ::dim3(static_cast<unsigned>(own[0]), static_cast<unsigned>(own[1]), static_cast<unsigned>(own[2])),
        ::dim3(static_cast<unsigned>(winner->block[0]), static_cast<unsigned>(winner->block[1]),
               static_cast<unsigned>(winner->block[2])),
        arguments, static_cast< ::size_t>(bytes), static_cast<struct CUstream_st *>(stream));
    if (!can_be_lost || error != cudaErrorInvalidValue) return true;
    /* A device that was reset has lost the attribute, before CUDA 12.1. Then the winner is readied again. */
    cudaFuncAttributes now = cudaFuncAttributes();
    if (cudaFuncGetAttributes(&now, static_cast<const void *>(limits)) != cudaSuccess ||
        bytes <= now.maxDynamicSharedSizeBytes)
      return true;
    static_cast<void>(cudaGetLastError());
    __atomic_store_n(&limits[device], 0, __ATOMIC_RELAXED);
  }
  static_cast<void>(
      __cudaPushCallConfiguration(grid, block, shared, static_cast<struct CUstream_st *>(stream)));
  return false;
}
}
