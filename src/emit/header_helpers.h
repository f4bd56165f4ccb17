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
