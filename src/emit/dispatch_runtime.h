namespace __nvtune_detail {
/* This is C++98, because the build chooses the standard. As in tuning comments, numbers are 64-bit integers and doubles;
   an operation on one of each gives a double. */
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

/* The attributes of toolkits before 12.0 have no cluster size. */
template <class A> static bool share_clusters(const void *, const A &, const A &, ...) { return true; }

/* Prepares a winner for the current device. Returns its limit: the bytes of dynamic shared memory that it can have, plus
   1; 0 if that is not known now; -1 if the winner cannot run on this device. Threads that call it at the same time set
   the same attributes. */
__attribute__((cold)) static int prepare(int device, const void *key, const void *kernel_key, int threads,
                                         int carveout, long long bytes) {
  /* A pending error belongs to the program. */
  if (cudaPeekAtLastError() != cudaSuccess) return 0;
  cudaFuncAttributes winner = cudaFuncAttributes(), kernel = cudaFuncAttributes();
  const cudaError_t error = cudaFuncGetAttributes(&winner, key);
  const bool is_absent = error == cudaErrorInvalidDeviceFunction || error == cudaErrorNoKernelImageForDevice ||
                         error == cudaErrorInvalidKernelImage || error == cudaErrorSymbolNotFound;
  int limit = is_absent ? -1 : 0;
  if (error == cudaSuccess && cudaFuncGetAttributes(&kernel, kernel_key) == cudaSuccess) {
    long long most = winner.maxDynamicSharedSizeBytes;
    limit = -1;
    if (threads <= winner.maxThreadsPerBlock && share_clusters(key, winner, kernel, 0)) {
      if (carveout < 0) carveout = kernel.preferredShmemCarveout;
      if (carveout != winner.preferredShmemCarveout) /* It is a hint. */
        static_cast<void>(cudaFuncSetAttribute(key, cudaFuncAttributePreferredSharedMemoryCarveout, carveout));
      int total = 0;
      if (bytes <= most) {
        limit = static_cast<int>(most) + 1;
      } else if (cudaDeviceGetAttribute(&total, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess) {
        /* The maximum, whatever this launch needs, so that concurrent launches never lower each other's limit. */
        most = total - static_cast<long long>(winner.sharedSizeBytes);
        if (bytes > most)
          limit = 0;
        else if (cudaFuncSetAttribute(key, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most)) ==
                 cudaSuccess)
          limit = static_cast<int>(most) + 1;
      }
    }
  }
  static_cast<void>(cudaGetLastError());
  return limit;
}

/* The shape of a launch; `shared` is in bytes. */
struct Launch {
  long long block[3], grid[3], shared;
};

/* Returns whether two launches have the same block, grid and dynamic shared memory. */
static bool is_same_launch(const Launch *a, const Launch *b) {
  for (int dimension = 0; dimension < 3; ++dimension)
    if (a->block[dimension] != b->block[dimension] || a->grid[dimension] != b->grid[dimension]) return false;
  return a->shared == b->shared;
}

/* Launches a winner on the current device in place of the launch that the program pushed. With `reshapes` it replaces
   the baseline's launch, with `accepts` a launch in the winner's own shape; the baseline's only if `conditions`, which
   are conditions on the arguments, hold. `limits` has the winner's limit for each device, and its address is the
   winner's key. Returns whether the winner was launched; otherwise pushes the program's launch again. */
static bool launch_winner(int device, void **arguments, int *limits, const void *kernel_key, int carveout,
                          const Launch *baseline, const Launch *winner, bool reshapes, bool accepts,
                          bool conditions) {
  ::dim3 grid, block;
  ::size_t shared = 0;
  void *stream = 0;
  if (__cudaPopCallConfiguration(&grid, &block, &shared, &stream) != cudaSuccess) return false;
  const Launch launch = {{block.x, block.y, block.z}, {grid.x, grid.y, grid.z}, static_cast<long long>(shared)};
  const long long bytes = winner->shared, *const blocks = winner->grid;
  const bool is_baseline = is_same_launch(&launch, baseline);
  bool is_chosen = is_baseline ? conditions && (reshapes || (accepts && is_same_launch(&launch, winner)))
                               : accepts && is_same_launch(&launch, winner);
  is_chosen = is_chosen && bytes >= 0 && blocks[0] >= 1 && blocks[1] >= 1 && blocks[2] >= 1 && blocks[0] <= 2147483647LL &&
              blocks[1] <= 65535LL && blocks[2] <= 65535LL;
  while (is_chosen) {
    const int threads = static_cast<int>(winner->block[0] * winner->block[1] * winner->block[2]);
    int limit = __atomic_load_n(&limits[device], __ATOMIC_RELAXED);
    if (limit >= 0 && bytes >= limit) {
      limit = prepare(device, limits, kernel_key, threads, carveout, bytes);
      if (limit != 0) __atomic_store_n(&limits[device], limit, __ATOMIC_RELAXED);
    }
    if (bytes >= limit) break;
    const bool can_be_lost = bytes > 48 * 1024 && cudaPeekAtLastError() == cudaSuccess;
    const cudaError_t error = cudaLaunchKernel(
        static_cast<const void *>(limits),
        ::dim3(static_cast<unsigned>(blocks[0]), static_cast<unsigned>(blocks[1]), static_cast<unsigned>(blocks[2])),
        ::dim3(static_cast<unsigned>(winner->block[0]), static_cast<unsigned>(winner->block[1]),
               static_cast<unsigned>(winner->block[2])),
        arguments, static_cast< ::size_t>(bytes), static_cast<struct CUstream_st *>(stream));
    if (!can_be_lost || error != cudaErrorInvalidValue) return true;
    /* Before CUDA 12.1 a reset of the device removes the attribute: prepare the winner again. */
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
