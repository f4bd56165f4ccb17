// Compiled with `nvcc --keep -c kernels.cu` (13.0.88), this gives `kernels.stub.c` (NAME.cudafe1.stub.c).
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cstdint>
typedef float real;
struct Params { int a; float b; };
template <class T> struct View { T *p; int n; };
__global__ void plain(int n, float a, const float *__restrict__ x, float *y) {}
extern "C" __global__ void typedefs(real a, real *p, uint32_t n, size_t s, int64_t q, uint8_t *b) {}
namespace ns {
namespace inner {
__global__ void packed(__half h, half *p, const __nv_bfloat16 *b, float4 *f, float3 *g, bool *flags, uchar4 *c) {}
}
}
namespace {
__global__ void
__launch_bounds__(128)
anonymous(unsigned long long n,
          signed char c, bool f, double d) {}
}
template <typename T, int N> __global__ void instance(T *p, int n) {}
template __global__ void instance<float, 4>(float *, int);
__global__ void values(Params p, View<float> v, View<const double> *w, real **pp, float (&tile)[4], void *q) {}
__global__ void twice(int a, float *b) {}
__global__ void twice(int a, double *b) {}
__global__ void nothing() {}
int main() { anonymous<<<1, 32>>>(1, 2, true, 3); }
