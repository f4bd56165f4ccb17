/* made by nvtune 0.1.0 from template_parameters.cu: do not edit
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
 * scale<float, 4>(int n, T *x)
 *
 *   name        each_float_4
 *   block       128 x 1 x 1 (128 threads)
 *   grid        ceildiv(ceildiv(n, M), 128) x 1 x 1
 *   shared      M * block.x bytes
 *   registers   no cap
 *   occupancy   75%
 *   gain        1.25x over the baseline, measured
 *   GPU         NVIDIA H200, sm_90
 */
#ifndef NVTUNE_TEMPLATE_PARAMETERS_EACH_FLOAT_4_67D00BCB
#define NVTUNE_TEMPLATE_PARAMETERS_EACH_FLOAT_4_67D00BCB
#define EACH_FLOAT_4_BLOCK_X 128
#define EACH_FLOAT_4_BLOCK_Y 1
#define EACH_FLOAT_4_BLOCK_Z 1
#define EACH_FLOAT_4_BLOCK_SIZE 128
#define EACH_FLOAT_4_REGS 0
#define EACH_FLOAT_4_OCCUPANCY 75
#define EACH_FLOAT_4_PROVENANCE "measured"
#define EACH_FLOAT_4_GPU "NVIDIA H200, sm_90"
static inline struct nvtune_dim3 nvtune_each_float_4_block(void);
static inline struct nvtune_dim3 nvtune_each_float_4_grid(int n);
static inline size_t nvtune_each_float_4_shared(void);
#endif
#if defined(__cplusplus) && defined(__VECTOR_TYPES_H__) && \
    !defined(NVTUNE_TEMPLATE_PARAMETERS_EACH_FLOAT_4_67D00BCB_CXX)
#define NVTUNE_TEMPLATE_PARAMETERS_EACH_FLOAT_4_67D00BCB_CXX
namespace nvtune {
namespace {
struct each_float_4 {
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
 * scale<float, 2>(int n, T *x)
 *
 *   name        each_float_2
 *   block       128 x 1 x 1 (128 threads)
 *   grid        ceildiv(ceildiv(n, M), 128) x 1 x 1
 *   shared      M * block.x bytes
 *   registers   no cap
 *   occupancy   75%
 *   gain        1.25x over the baseline, measured
 *   GPU         NVIDIA H200, sm_90
 */
#ifndef NVTUNE_TEMPLATE_PARAMETERS_EACH_FLOAT_2_6DD0153D
#define NVTUNE_TEMPLATE_PARAMETERS_EACH_FLOAT_2_6DD0153D
#define EACH_FLOAT_2_BLOCK_X 128
#define EACH_FLOAT_2_BLOCK_Y 1
#define EACH_FLOAT_2_BLOCK_Z 1
#define EACH_FLOAT_2_BLOCK_SIZE 128
#define EACH_FLOAT_2_REGS 0
#define EACH_FLOAT_2_OCCUPANCY 75
#define EACH_FLOAT_2_PROVENANCE "measured"
#define EACH_FLOAT_2_GPU "NVIDIA H200, sm_90"
static inline struct nvtune_dim3 nvtune_each_float_2_block(void);
static inline struct nvtune_dim3 nvtune_each_float_2_grid(int n);
static inline size_t nvtune_each_float_2_shared(void);
#endif
#if defined(__cplusplus) && defined(__VECTOR_TYPES_H__) && \
    !defined(NVTUNE_TEMPLATE_PARAMETERS_EACH_FLOAT_2_6DD0153D_CXX)
#define NVTUNE_TEMPLATE_PARAMETERS_EACH_FLOAT_2_6DD0153D_CXX
namespace nvtune {
namespace {
struct each_float_2 {
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
 * wide<W + 1>(int n, float *x)
 *
 *   name        wide_W_1
 *   block       128 x 1 x 1 (128 threads)
 *   grid        ceildiv(ceildiv(n, M), 128) x 1 x 1
 *   registers   no cap
 *   macros      W = 2
 *   occupancy   75%
 *   gain        1.25x over the baseline, measured
 *   GPU         NVIDIA H200, sm_90
 */
#ifndef NVTUNE_TEMPLATE_PARAMETERS_WIDE_W_1_187E14DD
#define NVTUNE_TEMPLATE_PARAMETERS_WIDE_W_1_187E14DD
#define WIDE_W_1_BLOCK_X 128
#define WIDE_W_1_BLOCK_Y 1
#define WIDE_W_1_BLOCK_Z 1
#define WIDE_W_1_BLOCK_SIZE 128
#define WIDE_W_1_REGS 0
#define WIDE_W_1_OCCUPANCY 75
#define WIDE_W_1_PROVENANCE "measured"
#define WIDE_W_1_GPU "NVIDIA H200, sm_90"
#define WIDE_W_1_W 2
static inline struct nvtune_dim3 nvtune_wide_W_1_block(void);
static inline struct nvtune_dim3 nvtune_wide_W_1_grid(int n);
static inline size_t nvtune_wide_W_1_shared(void);
#ifndef W
#define W 2
#elif ((W) != 2) && !defined(NVTUNE_TEMPLATE_PARAMETERS_TUNED)
#error "W is not the 2 that wide_W_1 was tuned for: build it with nvtune again, or remove this header"
#endif
#endif
#if defined(__cplusplus) && defined(__VECTOR_TYPES_H__) && !defined(NVTUNE_TEMPLATE_PARAMETERS_WIDE_W_1_187E14DD_CXX)
#define NVTUNE_TEMPLATE_PARAMETERS_WIDE_W_1_187E14DD_CXX
namespace nvtune {
namespace {
struct wide_W_1 {
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

#ifndef NVTUNE_TEMPLATE_PARAMETERS_EACH_FLOAT_4_67D00BCB_C
#define NVTUNE_TEMPLATE_PARAMETERS_EACH_FLOAT_4_67D00BCB_C
#ifdef NVTUNE_KERNEL_each_float_4
#error "two headers of nvtune have a kernel each_float_4: add name(...) to the tuning comment of one of them"
#endif
#define NVTUNE_KERNEL_each_float_4
static inline struct nvtune_dim3 nvtune_each_float_4_block(void) {
  return nvtune_detail_dim3(128, 1, 1);
}
static inline struct nvtune_dim3 nvtune_each_float_4_grid(int n) {
  return nvtune_detail_dim3((nvtune_detail_ceildiv(NVTUNE_AS(long long, n), 4LL) + 127LL) / 128LL, 1, 1);
}
static inline size_t nvtune_each_float_4_shared(void) {
  return NVTUNE_AS(size_t, (4LL * 128LL));
}
#endif

#ifndef NVTUNE_TEMPLATE_PARAMETERS_EACH_FLOAT_2_6DD0153D_C
#define NVTUNE_TEMPLATE_PARAMETERS_EACH_FLOAT_2_6DD0153D_C
#ifdef NVTUNE_KERNEL_each_float_2
#error "two headers of nvtune have a kernel each_float_2: add name(...) to the tuning comment of one of them"
#endif
#define NVTUNE_KERNEL_each_float_2
static inline struct nvtune_dim3 nvtune_each_float_2_block(void) {
  return nvtune_detail_dim3(128, 1, 1);
}
static inline struct nvtune_dim3 nvtune_each_float_2_grid(int n) {
  return nvtune_detail_dim3((nvtune_detail_ceildiv(NVTUNE_AS(long long, n), 2LL) + 127LL) / 128LL, 1, 1);
}
static inline size_t nvtune_each_float_2_shared(void) {
  return NVTUNE_AS(size_t, (2LL * 128LL));
}
#endif

#ifndef NVTUNE_TEMPLATE_PARAMETERS_WIDE_W_1_187E14DD_C
#define NVTUNE_TEMPLATE_PARAMETERS_WIDE_W_1_187E14DD_C
#ifdef NVTUNE_KERNEL_wide_W_1
#error "two headers of nvtune have a kernel wide_W_1: add name(...) to the tuning comment of one of them"
#endif
#define NVTUNE_KERNEL_wide_W_1
static inline struct nvtune_dim3 nvtune_wide_W_1_block(void) {
  return nvtune_detail_dim3(128, 1, 1);
}
static inline struct nvtune_dim3 nvtune_wide_W_1_grid(int n) {
  return nvtune_detail_dim3((nvtune_detail_ceildiv(NVTUNE_AS(long long, n), (2LL + 1LL)) + 127LL) / 128LL, 1, 1);
}
static inline size_t nvtune_wide_W_1_shared(void) {
  return NVTUNE_AS(size_t, 0);
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
#ifndef NVTUNE_TEMPLATE_PARAMETERS_EACH_FLOAT_4_67D00BCB_CXX_DEFINED
#define NVTUNE_TEMPLATE_PARAMETERS_EACH_FLOAT_4_67D00BCB_CXX_DEFINED
namespace nvtune {
namespace {
inline dim3 each_float_4::block() {
  const nvtune_dim3 nvtune_made = nvtune_each_float_4_block();
  return dim3(nvtune_made.x, nvtune_made.y, nvtune_made.z);
}
inline dim3 each_float_4::grid(int n) {
  const nvtune_dim3 nvtune_made = nvtune_each_float_4_grid(n);
  return dim3(nvtune_made.x, nvtune_made.y, nvtune_made.z);
}
inline size_t each_float_4::shared() {
  return nvtune_each_float_4_shared();
}
#if defined(NVTUNE_LAUNCH)
template <class T0, class T1>
inline cudaError_t each_float_4::launch(void (*nvtune_kernel)(T0, T1), cudaStream_t stream,
    typename nvtune_detail::as_declared<T0>::type n, typename nvtune_detail::as_declared<T1>::type x) {
  void *nvtune_arguments[] = {nvtune_detail::address(n), nvtune_detail::address(x)};
  return nvtune_detail::launch(reinterpret_cast<const void *>(nvtune_kernel), each_float_4::grid(NVTUNE_AS(int, n)),
      each_float_4::block(), each_float_4::shared(), -1, false, stream, nvtune_arguments);
}
#endif
}  // namespace
}  // namespace nvtune
#endif
#ifndef NVTUNE_TEMPLATE_PARAMETERS_EACH_FLOAT_2_6DD0153D_CXX_DEFINED
#define NVTUNE_TEMPLATE_PARAMETERS_EACH_FLOAT_2_6DD0153D_CXX_DEFINED
namespace nvtune {
namespace {
inline dim3 each_float_2::block() {
  const nvtune_dim3 nvtune_made = nvtune_each_float_2_block();
  return dim3(nvtune_made.x, nvtune_made.y, nvtune_made.z);
}
inline dim3 each_float_2::grid(int n) {
  const nvtune_dim3 nvtune_made = nvtune_each_float_2_grid(n);
  return dim3(nvtune_made.x, nvtune_made.y, nvtune_made.z);
}
inline size_t each_float_2::shared() {
  return nvtune_each_float_2_shared();
}
#if defined(NVTUNE_LAUNCH)
template <class T0, class T1>
inline cudaError_t each_float_2::launch(void (*nvtune_kernel)(T0, T1), cudaStream_t stream,
    typename nvtune_detail::as_declared<T0>::type n, typename nvtune_detail::as_declared<T1>::type x) {
  void *nvtune_arguments[] = {nvtune_detail::address(n), nvtune_detail::address(x)};
  return nvtune_detail::launch(reinterpret_cast<const void *>(nvtune_kernel), each_float_2::grid(NVTUNE_AS(int, n)),
      each_float_2::block(), each_float_2::shared(), -1, false, stream, nvtune_arguments);
}
#endif
}  // namespace
}  // namespace nvtune
#endif
#ifndef NVTUNE_TEMPLATE_PARAMETERS_WIDE_W_1_187E14DD_CXX_DEFINED
#define NVTUNE_TEMPLATE_PARAMETERS_WIDE_W_1_187E14DD_CXX_DEFINED
namespace nvtune {
namespace {
inline dim3 wide_W_1::block() {
  const nvtune_dim3 nvtune_made = nvtune_wide_W_1_block();
  return dim3(nvtune_made.x, nvtune_made.y, nvtune_made.z);
}
inline dim3 wide_W_1::grid(int n) {
  const nvtune_dim3 nvtune_made = nvtune_wide_W_1_grid(n);
  return dim3(nvtune_made.x, nvtune_made.y, nvtune_made.z);
}
inline size_t wide_W_1::shared() {
  return nvtune_wide_W_1_shared();
}
#if defined(NVTUNE_LAUNCH)
template <class T0, class T1>
inline cudaError_t wide_W_1::launch(void (*nvtune_kernel)(T0, T1), cudaStream_t stream,
    typename nvtune_detail::as_declared<T0>::type n, typename nvtune_detail::as_declared<T1>::type x) {
  void *nvtune_arguments[] = {nvtune_detail::address(n), nvtune_detail::address(x)};
  return nvtune_detail::launch(reinterpret_cast<const void *>(nvtune_kernel), wide_W_1::grid(NVTUNE_AS(int, n)),
      wide_W_1::block(), wide_W_1::shared(), -1, false, stream, nvtune_arguments);
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
