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
  return b == 0 ? 0 : a / b + (b > 0 ? a % b > 0 : a % b < 0);
}

/* Returns a number of blocks, or 0, which no launch has, if it is out of range. */
static inline unsigned blocks(long long number) {
  return number == static_cast<unsigned>(number) ? static_cast<unsigned>(number) : 0;
}

/* The shape of a launch, as the runtime's functions take it: four words without padding. `shared` is in bytes. */
struct Launch {
  unsigned grid[3], block[3];
  ::size_t shared;
};

/* A winner on devices of one compute capability (90: 9.0). `limits` has its limit for each of 64 devices, then whether
   there is one device only, and its address is the winner's key. One of its blocks does the work of `coarsening` blocks
   of the grid in x, if those that are left fill the device: for that `limits` has, behind these, the blocks that each
   device holds, or 0 where that is not known. `replaced` is the set of launches that it replaces: bit 0 those of
   neither shape, bit 1 of the baseline's, bit 2 of its own, bit 3 of both. */
struct Winner {
  Launch launch;
  int *limits, capability, carveout;
  unsigned coarsening, replaced;
};

typedef ::dim3 __attribute__((may_alias)) shape;
typedef unsigned long long __attribute__((may_alias)) word;

/* Kernels need an attribute for more dynamic shared memory, in bytes. */
enum { OPT_IN = 48 * 1024 };

/* Returns whether two launches are the same. */
static inline bool is_same(const Launch *a, const Launch *b) {
  const word *const x = reinterpret_cast<const word *>(a), *const y = reinterpret_cast<const word *>(b);
  return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3])) == 0;
}

/* Returns whether a launch has a grid that devices can have. */
static inline bool is_possible(const Launch *launch) {
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
static inline int prepare(int device, const void *kernel_key, const Winner *winner) {
  int major_part, minor_part, shared, devices;
  if (cudaDeviceGetAttribute(&major_part, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
      cudaDeviceGetAttribute(&minor_part, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess ||
      cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess)
    return 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices == 1)
    __atomic_store_n(&winner->limits[64], 1, __ATOMIC_RELAXED);
  if (major_part * 10 + minor_part != winner->capability) return -1;
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
    most = shared - static_cast<int>(own.sharedSizeBytes);
    if (cudaFuncSetAttribute(key, cudaFuncAttributeMaxDynamicSharedMemorySize, most) != cudaSuccess) return -1;
  }
#ifdef __NVTUNE_COARSENED
  int processors, blocks = 0;
  if (winner->coarsening > 1 &&
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) == cudaSuccess &&
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(
          &blocks, key, static_cast<int>(launch->block[0] * launch->block[1] * launch->block[2]), launch->shared) ==
          cudaSuccess)
    __atomic_store_n(&winner->limits[65 + device], processors * blocks, __ATOMIC_RELAXED);
#endif
  return most + 1;
}

#ifdef __NVTUNE_COARSENED
/* Returns the arguments with the blocks of the grid in x behind them; `extended` has room for them. */
static inline void **with_blocks(void *const *arguments, int count, void **extended, const unsigned *blocks) {
  for (int i = 0; i < count; ++i) extended[i] = arguments[i];
  extended[count] = const_cast<unsigned *>(blocks);
  return extended;
}

/* Where each thread has a default stream of its own, a source has the second name alone. */
template <class S, class C>
static inline cudaError_t capture_status(S *stream, C *status,
                                         char (*)[sizeof(cudaStreamIsCapturing(static_cast<S *>(0), static_cast<C *>(0)))]) {
  return cudaStreamIsCapturing(stream, status);
}
template <class S, class C>
static inline cudaError_t capture_status(S *stream, C *status,
                                         char (*)[sizeof(cudaStreamIsCapturing_ptsz(static_cast<S *>(0), static_cast<C *>(0)))]) {
  return cudaStreamIsCapturing_ptsz(stream, status);
}

/* Returns whether launches into a stream become nodes of a graph, or may. A program may give a node the kernel's
   arguments later, which are one too few. */
static inline bool is_captured(struct CUstream_st *stream) {
  enum cudaStreamCaptureStatus status;
  return capture_status(stream, &status, 0) != cudaSuccess || status != cudaStreamCaptureStatusNone;
}
#endif

/* Makes a winner ready for a launch on the current device. Returns the device, or -1 if the winner cannot run there. */
static inline int ready_device(const void *kernel_key, const Winner *winner) {
  int device = 0;
  /* cudaGetDevice would take longer than all else. */
  if (__atomic_load_n(&winner->limits[64], __ATOMIC_RELAXED) == 0 &&
      (cudaGetDevice(&device) != cudaSuccess || device < 0 || device >= 64))
    return -1;
  const ::size_t shared = winner->launch.shared;
  int *const known = &winner->limits[device], limit = __atomic_load_n(known, __ATOMIC_RELAXED);
  if (limit < 0) return -1;
  const bool is_ready = shared < static_cast< ::size_t>(limit);
  /* A pending error belongs to the program: nothing that can clear it is done. */
  if ((shared > OPT_IN || !is_ready) && cudaPeekAtLastError() != cudaSuccess) return -1;
  if (!is_ready) {
    limit = prepare(device, kernel_key, winner);
    static_cast<void>(cudaGetLastError());
    __atomic_store_n(known, limit, __ATOMIC_RELAXED);
    if (limit < 0 || shared >= static_cast< ::size_t>(limit)) return -1;
  }
  return device;
}
}

/* C linkage, for short names in the object. */
extern "C" {
/* Launches what the program pushed, or in its place the winner of the current device that replaces it. A winner whose
   blocks do the work of several has one more argument, the blocks of the grid in x: `extended` has room for all of its
   arguments. As nvcc's stub, it leaves errors to the program. */
static void __nvtune_launch(void **arguments, int count, void **extended, const void *kernel_key,
                                           const __nvtune_detail::Launch *baseline,
                                           const __nvtune_detail::Winner *winner, int winners) {
  __nvtune_detail::Launch launch;
  void *stream;
#ifdef __NVTUNE_BY_ADDRESS
  __nvtune_detail::Call *const call = __nvtune_call;
  /* What the runtime calls within this launch may launch by name. */
  __nvtune_call = 0;
  if (call) {
    *reinterpret_cast<__nvtune_detail::shape *>(launch.grid) = call->grid;
    *reinterpret_cast<__nvtune_detail::shape *>(launch.block) = call->block;
    launch.shared = call->shared;
    stream = call->stream;
  } else
#endif
  if (__cudaPopCallConfiguration(reinterpret_cast< ::dim3 *>(launch.grid), reinterpret_cast< ::dim3 *>(launch.block),
                                 &launch.shared, &stream) != cudaSuccess)
    return;
  /* An impossible launch fails in plain nvcc's program, too. */
  const unsigned is_baseline = __nvtune_detail::is_same(&launch, baseline) && __nvtune_detail::is_possible(&launch);
  for (;; --winners, ++winner) {
    const __nvtune_detail::Launch *chosen = &launch;
    const void *key = kernel_key;
    int device = 0;
    if (winners > 0) {
      chosen = &winner->launch;
      key = winner->limits;
      const unsigned is_own = __nvtune_detail::is_same(&launch, chosen);
      if ((winner->replaced >> (is_baseline + 2 * is_own) & 1) == 0 || !__nvtune_detail::is_possible(chosen)) continue;
#ifdef __NVTUNE_COARSENED
      if (winner->coarsening > 1 && __nvtune_detail::is_captured(static_cast<struct CUstream_st *>(stream))) continue;
#endif
      device = __nvtune_detail::ready_device(kernel_key, winner);
      if (device < 0) continue;
    }
    void **passed = arguments;
    const unsigned *grid = chosen->grid;
#ifdef __NVTUNE_COARSENED
    unsigned fewer[3] = {grid[0], grid[1], grid[2]};
    if (winners > 0 && winner->coarsening > 1) {
      fewer[0] = (grid[0] - 1) / winner->coarsening + 1;
      passed = __nvtune_detail::with_blocks(arguments, count, extended, grid);
      const int held = __atomic_load_n(&winner->limits[65 + device], __ATOMIC_RELAXED);
      const unsigned long long left = 1ULL * fewer[0] * fewer[1] * fewer[2];
      /* Each block does its own work alone where fewer would leave a part of the device idle. */
      if (held > 0 && left >= static_cast<unsigned long long>(held)) grid = fewer;
    }
#else
    static_cast<void>(count), static_cast<void>(extended);
#endif
    const __nvtune_detail::shape &blocks = *reinterpret_cast<const __nvtune_detail::shape *>(grid);
    const __nvtune_detail::shape &threads = *reinterpret_cast<const __nvtune_detail::shape *>(chosen->block);
#ifdef __NVTUNE_BY_ADDRESS
    const cudaError_t error =
        call ? __nvtune_detail::launch_called(call, key, blocks, threads, passed, chosen->shared)
             : cudaLaunchKernel(key, blocks, threads, passed, chosen->shared, static_cast<struct CUstream_st *>(stream));
#else
    const cudaError_t error =
        cudaLaunchKernel(key, blocks, threads, passed, chosen->shared, static_cast<struct CUstream_st *>(stream));
#endif
    if (error != cudaErrorInvalidValue || winners <= 0 || chosen->shared <= __nvtune_detail::OPT_IN) return;
    /* Before CUDA 12.1 a reset of the device removes the attribute: this launch is the kernel's, the next prepares. */
    static_cast<void>(cudaGetLastError());
    __atomic_store_n(&winner->limits[device], 0, __ATOMIC_RELAXED);
  }
}
}
