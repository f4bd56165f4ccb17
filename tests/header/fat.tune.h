/* made by nvtune 0.1.0 from fat.cu: do not edit
 *
 * How to launch its tuned kernels, for C and C++: a section for each kernel, then definitions. Include it after
 * <cuda_runtime.h>, or once more after that, for what is in the namespace nvtune. NVTUNE_OFF leaves it empty.
 */
#ifndef NVTUNE_OFF
#include <stddef.h>
#if defined(__cplusplus) && defined(__VECTOR_TYPES_H__) && defined(__CUDA_RUNTIME_API_H__) && !defined(NVTUNE_LAUNCH)
#if __cplusplus >= 201103L && CUDART_VERSION >= 11080
#define NVTUNE_LAUNCH
namespace nvtune_detail { template <class T> struct as_declared { typedef T type; }; }
#endif
#endif

/*
 * mixed(int n, int m, float *x)
 *
 *   block       64 x 1 x 1 (64 threads)
 *   grid        ceildiv(n, 64) x 1 x 1
 *   shared      block.x * m bytes
 *   registers   no cap
 *   occupancy   75%
 *   gain        1.25x over the baseline, measured
 *   GPU         NVIDIA H200, sm_90
 *   on sm_80    block 256 x 1 x 1 (256 threads), grid ceildiv(n, 256) x 1 x 1, no cap
 *   on sm_120   block 32 x 1 x 1 (32 threads), grid ceildiv(n, 32) x 1 x 1, no cap
 */
#ifndef NVTUNE_FAT_MIXED_AAA5ED23
#define NVTUNE_FAT_MIXED_AAA5ED23
#define MIXED_BLOCK_X 64
#define MIXED_BLOCK_Y 1
#define MIXED_BLOCK_Z 1
#define MIXED_BLOCK_SIZE 64
#define MIXED_REGS 0
#define MIXED_OCCUPANCY 75
#define MIXED_PROVENANCE "measured"
#define MIXED_GPU "NVIDIA H200, sm_90"
static inline struct nvtune_dim3 nvtune_mixed_block(void);
static inline struct nvtune_dim3 nvtune_mixed_grid(int n);
static inline size_t nvtune_mixed_shared(int m);
#endif
#if defined(__cplusplus) && defined(__VECTOR_TYPES_H__) && !defined(NVTUNE_FAT_MIXED_AAA5ED23_CXX)
#define NVTUNE_FAT_MIXED_AAA5ED23_CXX
namespace nvtune {
namespace {
struct mixed {
  static dim3 block();
  static dim3 grid(int n);
  static size_t shared(int m);
#if defined(NVTUNE_LAUNCH)
  template <class T0, class T1, class T2>
  static cudaError_t launch(void (*nvtune_kernel)(T0, T1, T2), cudaStream_t stream,
      typename nvtune_detail::as_declared<T0>::type n, typename nvtune_detail::as_declared<T1>::type m,
      typename nvtune_detail::as_declared<T2>::type x);
#endif
};
}  // namespace
}  // namespace nvtune
#endif

/*
 * mixed_too(int n, float *x)
 *
 *   block       64 x 1 x 1 (64 threads)
 *   grid        ceildiv(n, 64) x 1 x 1
 *   registers   no cap
 *   occupancy   75%
 *   gain        1.25x over the baseline, measured
 *   GPU         NVIDIA H200, sm_90
 *   on sm_80    block 256 x 1 x 1 (256 threads), grid ceildiv(n, 256) x 1 x 1, no cap
 *   on sm_120   block 32 x 1 x 1 (32 threads), grid ceildiv(n, 32) x 1 x 1, no cap
 */
#ifndef NVTUNE_FAT_MIXED_TOO_BD6BE756
#define NVTUNE_FAT_MIXED_TOO_BD6BE756
#define MIXED_TOO_BLOCK_X 64
#define MIXED_TOO_BLOCK_Y 1
#define MIXED_TOO_BLOCK_Z 1
#define MIXED_TOO_BLOCK_SIZE 64
#define MIXED_TOO_REGS 0
#define MIXED_TOO_OCCUPANCY 75
#define MIXED_TOO_PROVENANCE "measured"
#define MIXED_TOO_GPU "NVIDIA H200, sm_90"
static inline struct nvtune_dim3 nvtune_mixed_too_block(void);
static inline struct nvtune_dim3 nvtune_mixed_too_grid(int n);
static inline size_t nvtune_mixed_too_shared(void);
#endif
#if defined(__cplusplus) && defined(__VECTOR_TYPES_H__) && !defined(NVTUNE_FAT_MIXED_TOO_BD6BE756_CXX)
#define NVTUNE_FAT_MIXED_TOO_BD6BE756_CXX
namespace nvtune {
namespace {
struct mixed_too {
  static dim3 block();
  static dim3 grid(int n);
  static size_t shared();
#if defined(NVTUNE_LAUNCH)
  template <class T0, class T1>
  static cudaError_t launch(void (*nvtune_kernel)(T0, T1), cudaStream_t stream,
      typename nvtune_detail::as_declared<T0>::type n, typename nvtune_detail::as_declared<T1>::type x);
#endif
};
}  // namespace
}  // namespace nvtune
#endif

/*
 * The rest defines the functions that are declared above.
 */
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Waggregate-return"
#endif
#ifndef NVTUNE_DETAIL
#define NVTUNE_DETAIL
#ifdef __cplusplus
#define NVTUNE_AS(type, value) static_cast<type>(value)
#else
#define NVTUNE_AS(type, value) ((type)(value))
#endif
typedef struct nvtune_dim3 { unsigned int x, y, z; } nvtune_dim3;
static inline unsigned int nvtune_detail_extent(long long n) {
  return n < 0 ? 0u : n > 4294967295LL ? 4294967295u : NVTUNE_AS(unsigned int, n);
}
static inline nvtune_dim3 nvtune_detail_dim3(long long x, long long y, long long z) {
  nvtune_dim3 made;
  made.x = nvtune_detail_extent(x);
  made.y = nvtune_detail_extent(y);
  made.z = nvtune_detail_extent(z);
  return made;
}
static inline long long nvtune_detail_quotient(long long a, long long b) { return b == 0 ? 0 : a / b; }
static inline long long nvtune_detail_remainder(long long a, long long b) { return b == 0 ? 0 : a % b; }
static inline long long nvtune_detail_ceildiv(long long a, long long b) {
  return b == 0 ? 0 : a / b + (a % b != 0 && (a < 0) == (b < 0));
}
static inline long long nvtune_detail_min(long long a, long long b) { return b < a ? b : a; }
static inline long long nvtune_detail_max(long long a, long long b) { return a < b ? b : a; }
static inline double nvtune_detail_fmin(double a, double b) { return b < a ? b : a; }
static inline double nvtune_detail_fmax(double a, double b) { return a < b ? b : a; }
#endif
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

#ifndef NVTUNE_FAT_MIXED_AAA5ED23_C
#define NVTUNE_FAT_MIXED_AAA5ED23_C
#ifdef NVTUNE_KERNEL_mixed
#error "two headers of nvtune have a kernel mixed: add name(...) to the tuning comment of one of them"
#endif
#define NVTUNE_KERNEL_mixed
static inline struct nvtune_dim3 nvtune_detail_mixed_block(int capability) {
  if (capability >= 120) { return nvtune_detail_dim3(32, 1, 1); }
  if (capability >= 90) { return nvtune_detail_dim3(64, 1, 1); }
  return nvtune_detail_dim3(256, 1, 1);
}
static inline struct nvtune_dim3 nvtune_mixed_block(void) {
  return nvtune_detail_mixed_block(NVTUNE_CAPABILITY_OR(90));
}
static inline struct nvtune_dim3 nvtune_detail_mixed_grid(int capability, int n) {
  if (capability >= 120) { return nvtune_detail_dim3((NVTUNE_AS(long long, n) + 31LL) / 32LL, 1, 1); }
  if (capability >= 90) { return nvtune_detail_dim3((NVTUNE_AS(long long, n) + 63LL) / 64LL, 1, 1); }
  return nvtune_detail_dim3((NVTUNE_AS(long long, n) + 255LL) / 256LL, 1, 1);
}
static inline struct nvtune_dim3 nvtune_mixed_grid(int n) {
  return nvtune_detail_mixed_grid(NVTUNE_CAPABILITY_OR(90), n);
}
static inline size_t nvtune_detail_mixed_shared(int capability, int m) {
  if (capability >= 120) { return NVTUNE_AS(size_t, (32LL * NVTUNE_AS(long long, m))); }
  if (capability >= 90) { return NVTUNE_AS(size_t, (64LL * NVTUNE_AS(long long, m))); }
  return NVTUNE_AS(size_t, (256LL * NVTUNE_AS(long long, m)));
}
static inline size_t nvtune_mixed_shared(int m) {
  return nvtune_detail_mixed_shared(NVTUNE_CAPABILITY_OR(90), m);
}
#endif

#ifndef NVTUNE_FAT_MIXED_TOO_BD6BE756_C
#define NVTUNE_FAT_MIXED_TOO_BD6BE756_C
#ifdef NVTUNE_KERNEL_mixed_too
#error "two headers of nvtune have a kernel mixed_too: add name(...) to the tuning comment of one of them"
#endif
#define NVTUNE_KERNEL_mixed_too
static inline struct nvtune_dim3 nvtune_detail_mixed_too_block(int capability) {
  if (capability >= 120) { return nvtune_detail_dim3(32, 1, 1); }
  if (capability >= 90) { return nvtune_detail_dim3(64, 1, 1); }
  return nvtune_detail_dim3(256, 1, 1);
}
static inline struct nvtune_dim3 nvtune_mixed_too_block(void) {
  return nvtune_detail_mixed_too_block(NVTUNE_CAPABILITY_OR(90));
}
static inline struct nvtune_dim3 nvtune_detail_mixed_too_grid(int capability, int n) {
  if (capability >= 120) { return nvtune_detail_dim3((NVTUNE_AS(long long, n) + 31LL) / 32LL, 1, 1); }
  if (capability >= 90) { return nvtune_detail_dim3((NVTUNE_AS(long long, n) + 63LL) / 64LL, 1, 1); }
  return nvtune_detail_dim3((NVTUNE_AS(long long, n) + 255LL) / 256LL, 1, 1);
}
static inline struct nvtune_dim3 nvtune_mixed_too_grid(int n) {
  return nvtune_detail_mixed_too_grid(NVTUNE_CAPABILITY_OR(90), n);
}
static inline size_t nvtune_detail_mixed_too_shared(int capability) {
  if (capability >= 120) { return NVTUNE_AS(size_t, 0); }
  if (capability >= 90) { return NVTUNE_AS(size_t, 0); }
  return NVTUNE_AS(size_t, 0);
}
static inline size_t nvtune_mixed_too_shared(void) {
  return nvtune_detail_mixed_too_shared(NVTUNE_CAPABILITY_OR(90));
}
#endif

#if defined(__cplusplus) && defined(__VECTOR_TYPES_H__)
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
#ifndef NVTUNE_FAT_MIXED_AAA5ED23_CXX_DEFINED
#define NVTUNE_FAT_MIXED_AAA5ED23_CXX_DEFINED
namespace nvtune {
namespace {
inline dim3 mixed::block() {
  const nvtune_dim3 nvtune_made = nvtune_detail_mixed_block(NVTUNE_CAPABILITY_OR(90));
  return dim3(nvtune_made.x, nvtune_made.y, nvtune_made.z);
}
inline dim3 mixed::grid(int n) {
  const nvtune_dim3 nvtune_made = nvtune_detail_mixed_grid(NVTUNE_CAPABILITY_OR(90), n);
  return dim3(nvtune_made.x, nvtune_made.y, nvtune_made.z);
}
inline size_t mixed::shared(int m) {
  return nvtune_detail_mixed_shared(NVTUNE_CAPABILITY_OR(90), m);
}
#if defined(NVTUNE_LAUNCH)
template <class T0, class T1, class T2>
inline cudaError_t mixed::launch(void (*nvtune_kernel)(T0, T1, T2), cudaStream_t stream,
    typename nvtune_detail::as_declared<T0>::type n, typename nvtune_detail::as_declared<T1>::type m,
    typename nvtune_detail::as_declared<T2>::type x) {
  void *nvtune_arguments[] = {nvtune_detail::address(n), nvtune_detail::address(m), nvtune_detail::address(x)};
  return nvtune_detail::launch(reinterpret_cast<const void *>(nvtune_kernel), mixed::grid(NVTUNE_AS(int, n)),
      mixed::block(), mixed::shared(NVTUNE_AS(int, m)), -1, false, stream, nvtune_arguments);
}
#endif
}  // namespace
}  // namespace nvtune
#endif
#ifndef NVTUNE_FAT_MIXED_TOO_BD6BE756_CXX_DEFINED
#define NVTUNE_FAT_MIXED_TOO_BD6BE756_CXX_DEFINED
namespace nvtune {
namespace {
inline dim3 mixed_too::block() {
  const nvtune_dim3 nvtune_made = nvtune_detail_mixed_too_block(NVTUNE_CAPABILITY_OR(90));
  return dim3(nvtune_made.x, nvtune_made.y, nvtune_made.z);
}
inline dim3 mixed_too::grid(int n) {
  const nvtune_dim3 nvtune_made = nvtune_detail_mixed_too_grid(NVTUNE_CAPABILITY_OR(90), n);
  return dim3(nvtune_made.x, nvtune_made.y, nvtune_made.z);
}
inline size_t mixed_too::shared() {
  return nvtune_detail_mixed_too_shared(NVTUNE_CAPABILITY_OR(90));
}
#if defined(NVTUNE_LAUNCH)
template <class T0, class T1>
inline cudaError_t mixed_too::launch(void (*nvtune_kernel)(T0, T1), cudaStream_t stream,
    typename nvtune_detail::as_declared<T0>::type n, typename nvtune_detail::as_declared<T1>::type x) {
  void *nvtune_arguments[] = {nvtune_detail::address(n), nvtune_detail::address(x)};
  return nvtune_detail::launch(reinterpret_cast<const void *>(nvtune_kernel), mixed_too::grid(NVTUNE_AS(int, n)),
      mixed_too::block(), mixed_too::shared(), -1, false, stream, nvtune_arguments);
}
#endif
}  // namespace
}  // namespace nvtune
#endif
#endif
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif
#endif
