// The device code of nvtune itself: what buffers hold before a launch, a digest of them, and whether two of them agree.
// device.ptx is made from this file by
//   nvcc -ptx -arch=compute_75 -o device.ptx device.cu
// with the .version and .target lines lowered by hand (nothing in it needs more), so that every driver compiles it.
// The same is computed on the host by src/workload/contents.rs and src/measure/compare.rs, bit by bit: hence no fused multiply-adds.

typedef unsigned long long u64;

// Of scalars, as `format` in device_code.rs numbers them.
enum Format { BYTE, SHORT, WORD, LONG, HALF, BFLOAT, FLOAT, DOUBLE };

// Of contents, as `numbers` in device_code.rs has them.
enum Kind { BITS, IOTA, FLOATS, INTEGERS };

__device__ inline unsigned size_of(unsigned format)
{
    switch (format) {
    case BYTE: return 1;
    case SHORT: case HALF: case BFLOAT: return 2;
    case WORD: case FLOAT: return 4;
    default: return 8;
    }
}

__device__ inline u64 load(const unsigned char *from, unsigned size, u64 index)
{
    switch (size) {
    case 1: return from[index];
    case 2: return ((const unsigned short *)from)[index];
    case 4: return ((const unsigned *)from)[index];
    default: return ((const u64 *)from)[index];
    }
}

__device__ inline void store(unsigned char *to, unsigned size, u64 index, u64 bits)
{
    switch (size) {
    case 1: to[index] = bits; break;
    case 2: ((unsigned short *)to)[index] = bits; break;
    case 4: ((unsigned *)to)[index] = bits; break;
    default: ((u64 *)to)[index] = bits;
    }
}

// The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
__device__ inline u64 finish(u64 x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

__device__ inline double two_to_the(int power)
{
    return __longlong_as_double((long long)(1023 + power) << 52);
}

// A finite value in a format of 16 bits with this many of mantissa and exponent, rounded once.
__device__ inline unsigned round_to(double value, int mantissa, int exponent)
{
    const int bias = (1 << (exponent - 1)) - 1;
    const unsigned infinity = ((1u << exponent) - 1) << mantissa;
    const unsigned sign = (unsigned)((u64)__double_as_longlong(value) >> 63) << (mantissa + exponent);
    const double size = fabs(value);
    const int power = max((int)((u64)__double_as_longlong(size) >> 52) - 1023, 1 - bias);
    if (power > bias) return sign | infinity;
    // In units of the last place at that power; exact, for it only moves the exponent. A mantissa that rounds up to the next power
    // carries into the exponent, up to infinity.
    const unsigned units = (unsigned)rint(__dmul_rn(size, two_to_the(mantissa - power)));
    return sign | min(((unsigned)(power + bias - 1) << mantissa) + units, infinity);
}

__device__ inline u64 encode(unsigned format, double value)
{
    switch (format) {
    case HALF: return round_to(value, 10, 5);
    case BFLOAT: return round_to(value, 7, 8);
    case FLOAT: return __float_as_uint(__double2float_rn(value));
    default: return __double_as_longlong(value);
    }
}

__device__ inline double decode(unsigned format, u64 bits)
{
    switch (format) {
    case HALF: {
        if ((bits & 0x7c00) == 0x7c00) {
            const u64 beyond = bits & 0x3ff ? 0x7ff8000000000000ull : 0x7ff0000000000000ull;
            return __longlong_as_double(beyond | (bits & 0x8000) << 48);
        }
        const double mantissa = bits & 0x3ff;
        const int exponent = bits >> 10 & 0x1f;
        const double size = exponent ? __dmul_rn(1024.0 + mantissa, two_to_the(exponent - 25)) : __dmul_rn(mantissa, two_to_the(-24));
        return bits & 0x8000 ? -size : size;
    }
    case BFLOAT: return __uint_as_float((unsigned)bits << 16);
    case FLOAT: return __uint_as_float((unsigned)bits);
    default: return __longlong_as_double(bits);
    }
}

// Writes `count` scalars: all with the bits `a`; each its own position; of [a, b), as doubles; or a and up to b - 1 more (b = 0: 2^64).
extern "C" __global__ void nvtune_fill(unsigned char *to, u64 count, unsigned format, unsigned kind, u64 a, u64 b, u64 seed)
{
    const unsigned size = size_of(format);
    const u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        const u64 random = finish(seed + (i + 1) * 0x9e3779b97f4a7c15ull);
        u64 bits = a;
        if (kind == IOTA) {
            bits = format < HALF ? i : encode(format, __ull2double_rn(i));
        } else if (kind == FLOATS) {
            const double lo = __longlong_as_double(a), hi = __longlong_as_double(b);
            const double unit = __dmul_rn(__ull2double_rn(random >> 11), two_to_the(-53));
            bits = encode(format, __dadd_rn(lo, __dmul_rn(unit, __dadd_rn(hi, -lo))));
            if (!(decode(format, bits) < hi)) bits = encode(format, lo);
        } else if (kind == INTEGERS) {
            bits = a + (b ? __umul64hi(random, b) : random);
        }
        store(to, size, i, bits);
    }
}

// A digest that does not depend on the order in which threads add to it.
extern "C" __global__ void nvtune_digest(const u64 *words, u64 count, u64 *sum)
{
    u64 total = 0;
    const u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        total += finish(words[i] + (i + 1) * 0x9e3779b97f4a7c15ull);
    }
    atomicAdd(sum, total);
}

// Whether a scalar agrees with what is expected: integers to the bit, floats within absolute + relative * |expected|.
// Raises `used` to the share of that which the difference takes.
__device__ inline bool agrees(unsigned format, u64 expected, u64 got, double relative, double absolute, double &used)
{
    if (expected == got) return true;
    if (format < HALF) return false;
    const double a = decode(format, expected), b = decode(format, got);
    if (!isfinite(a) || !isfinite(b)) return isnan(a) ? isnan(b) : a == b;
    const double difference = fabs(__dadd_rn(b, -a)), allowed = __dadd_rn(absolute, __dmul_rn(relative, fabs(a)));
    if (!(difference <= allowed)) return false;
    if (difference > 0) used = fmax(used, __ddiv_rn(difference, allowed));
    return true;
}

// Compares `count` elements of this many scalars. Adds to found[0] how many have a scalar that does not agree. Raises
// found[1] to the complement of the position of the first such scalar in the buffer, and found[2] to the bits of the
// largest share of the tolerance that a scalar that agrees takes.
extern "C" __global__ void nvtune_compare(const unsigned char *expected, const unsigned char *got, u64 count, unsigned lanes, unsigned format,
                                          double relative, double absolute, u64 *found)
{
    const unsigned size = size_of(format);
    u64 differing = 0, first = ~0ull;
    double used = 0;
    const u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        for (u64 scalar = i * lanes; scalar < (i + 1) * lanes; ++scalar) {
            if (agrees(format, load(expected, size, scalar), load(got, size, scalar), relative, absolute, used)) continue;
            first = min(first, scalar);
            ++differing;
            break;
        }
    }
    // Numbers from 0 on are ordered as their bits are.
    if (used > 0) atomicMax(&found[2], (u64)__double_as_longlong(used));
    if (!differing) return;
    atomicAdd(&found[0], differing);
    atomicMax(&found[1], ~first);
}
