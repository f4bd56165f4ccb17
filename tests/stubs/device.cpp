// The device code of nvtune itself as a program of the host, one thread after the other: its rules, without a GPU. What a device
// rounds by IEEE 754 the host does so too, if it is compiled with -ffp-contract=off.
//   device fill FORMAT KIND A B SEED COUNT          the scalars to standard output
//   device compare FORMAT RELATIVE ABSOLUTE COUNT   how many differ; those expected and those that came from standard input
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

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
static double __dadd_rn(double a, double b) { return a + b; }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static void atomicAdd(unsigned long long *to, unsigned long long value) { *to += value; }

#include "../../src/measure/gpu/device.cu"

int main(int, char **words)
{
    const auto number = [&](int word) { return strtoull(words[word], nullptr, 0); };
    const unsigned format = number(2);
    const u64 count = number(strcmp(words[1], "fill") ? 5 : 7);
    const size_t bytes = count * size_of(format);
    // Words of 8 bytes, aligned as an allocation of the device is.
    vector<u64> first(bytes / 8 + 1), second(bytes / 8 + 1);
    unsigned char *a = (unsigned char *)first.data(), *b = (unsigned char *)second.data();
    if (!strcmp(words[1], "fill")) {
        nvtune_fill(a, count, format, number(3), number(4), number(5), number(6));
        return fwrite(a, 1, bytes, stdout) != bytes;
    }
    if (fread(a, 1, bytes, stdin) != bytes || fread(b, 1, bytes, stdin) != bytes) return 1;
    u64 differing = 0;
    nvtune_compare(a, b, count, format, strtod(words[3], nullptr), strtod(words[4], nullptr), &differing);
    printf("%llu\n", differing);
}
