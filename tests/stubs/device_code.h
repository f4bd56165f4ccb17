// nvtune's device code as code of the host, one thread after the other: its rules, without a GPU. What a device rounds by IEEE 754 the
// host does so too, if it is compiled with -ffp-contract=off.
#include <algorithm>
#include <cmath>
#include <cstring>

using namespace std;

#define __global__
#define __device__

static const struct { unsigned x; } gridDim = {1}, blockDim = {1}, blockIdx = {0}, threadIdx = {0};

template <typename To, typename From> static To bits_of(From from)
{
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    memcpy(&to, &from, sizeof(to));
    return to;
}

static double __longlong_as_double(long long bits) { return bits_of<double>(bits); }
static long long __double_as_longlong(double value) { return bits_of<long long>(value); }
static float __uint_as_float(unsigned bits) { return bits_of<float>(bits); }
static unsigned __float_as_uint(float value) { return bits_of<unsigned>(value); }
static float __double2float_rn(double value) { return (float)value; }
static double __ull2double_rn(unsigned long long value) { return (double)value; }
static double __dmul_rn(double a, double b) { return a * b; }
static double __ddiv_rn(double a, double b) { return a / b; }
static double __dadd_rn(double a, double b) { return a + b; }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static void atomicAdd(unsigned long long *to, unsigned long long value) { *to += value; }
static void atomicMax(unsigned long long *to, unsigned long long value) { *to = max(*to, value); }

#include "../../src/measure/gpu/device.cu"
