// Structures of WORDS floats, read and written AT_ONCE floats at a time, or their first STORED floats written only, by a grid that strides.
#ifndef STORED
#define STORED WORDS
#endif
struct alignas(AT_ONCE * 4) Structure {
    float word[WORDS];
};

extern "C" __global__ void copy(const float *__restrict__ in, float *__restrict__ out) {
    const size_t first = (size_t(blockIdx.x) * blockDim.x + threadIdx.x) * WORDS;
    Structure of;
#pragma unroll
    for (int word = 0; word < WORDS; word += AT_ONCE) {
#if AT_ONCE == 4
        *reinterpret_cast<float4 *>(&of.word[word]) = *reinterpret_cast<const float4 *>(&in[first + word]);
#else
        of.word[word] = in[first + word];
#endif
    }
#pragma unroll
    for (int word = 0; word < WORDS; word += AT_ONCE) {
#if AT_ONCE == 4
        *reinterpret_cast<float4 *>(&out[first + word]) = *reinterpret_cast<float4 *>(&of.word[word]);
#else
        out[first + word] = of.word[word];
#endif
    }
}

extern "C" __global__ void store(float *__restrict__ out, unsigned structures) {
    const float value = threadIdx.x;
    for (unsigned k = blockIdx.x * blockDim.x + threadIdx.x; k < structures; k += gridDim.x * blockDim.x) {
        float *const first = out + size_t(k) * WORDS;
#pragma unroll
        for (int word = 0; word < STORED; word += AT_ONCE) {
#if AT_ONCE == 4
            __stcg(reinterpret_cast<float4 *>(&first[word]), make_float4(value, value, value, value));
#else
            __stcg(&first[word], value);
#endif
        }
    }
}
