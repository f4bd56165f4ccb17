// Values that a host computes again: integers, doubles, halves, bit operations.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__constant__ int table[4] = {10, 20, 30, 40};
__device__ double offset = 0.5;

__global__ void integers(const int *x, const unsigned *y, unsigned *out)
{
    int i = threadIdx.x;
    int a = x[i];
    unsigned b = y[i];
    unsigned *o = out + i * 24;
    o[0] = a + b * 3;
    o[1] = (unsigned)(a / 7);
    o[2] = b % 13;
    o[3] = __umulhi(b, 0x9e3779b9u);
    o[4] = (unsigned)__mulhi(a, 123456789);
    o[5] = __popc(b);
    o[6] = __clz(b);
    o[7] = __brev(b);
    o[8] = __byte_perm(b, a, 0x2741);
    o[9] = __funnelshift_l(b, a, 11);
    o[10] = __funnelshift_r(b, a, 37);
    o[11] = (unsigned)min(a, 5) + max(b, 17u);
    o[12] = __sad(a, 100, 7);
    o[13] = (unsigned)abs(a);
    o[14] = (unsigned)(a >> 3);
    o[15] = b << (a & 31);
    o[16] = (unsigned)__ffs(b);
    o[17] = (unsigned)((long long)a * (int)b >> 20);
    o[18] = (unsigned)(((unsigned long long)b * b) / 1000003u);
    o[19] = (b & 0xff0f) ^ (a | 0x1234) ^ (~b & a);
    o[20] = table[b & 3];
    o[21] = (b >> 5) & 0x3ff;
    o[22] = (unsigned)(signed char)b;
    o[23] = __dp4a(a, (int)b, 3);
}

__global__ void floats(const float *x, const float *y, float *out)
{
    int i = threadIdx.x;
    float a = x[i], b = y[i];
    float *o = out + i * 16;
    o[0] = a * b + 1.5f;
    o[1] = a / b;
    o[2] = sqrtf(b);
    o[3] = fminf(a, b);
    o[4] = fmaxf(a, 0.25f);
    o[5] = fabsf(a) - b;
    o[6] = (float)(int)(a * 100.0f);
    o[7] = floorf(a * 10.0f);
    o[8] = ceilf(b * 10.0f);
    o[9] = rintf(a * 10.0f);
    o[10] = (float)(unsigned char)__float2uint_rn(b * 200.0f);
    o[11] = __saturatef(a * 3.0f);
    o[12] = copysignf(b, a);
    o[13] = a < b ? a : -b;
    o[14] = __int_as_float(__float_as_int(b) ^ 0x80000000);
    o[15] = expf(a);
}

__global__ void doubles(const double *x, double *out)
{
    int i = threadIdx.x;
    double a = x[i];
    double *o = out + i * 8;
    o[0] = a * a + offset;
    o[1] = 1.0 / (a + 2.0);
    o[2] = sqrt(a + 1.0);
    o[3] = (double)(float)a;
    o[4] = (double)(long long)(a * 1e6);
    o[5] = fmin(a, 0.5);
    o[6] = exp(a);
    o[7] = floor(a * 10);
}

__global__ void halves(const __half *x, __half *out, __nv_bfloat16 *brain)
{
    int i = threadIdx.x;
    __half a = x[i];
    out[i * 4] = __hadd(a, a);
    out[i * 4 + 1] = __hfma(a, a, __float2half(1.0f));
    out[i * 4 + 2] = __float2half(__half2float(a) / 3.0f);
    __half2 p = __halves2half2(a, a);
    p = __hmul2(p, p);
    out[i * 4 + 3] = __high2half(p);
    brain[i] = __float2bfloat16(__half2float(a));
}
