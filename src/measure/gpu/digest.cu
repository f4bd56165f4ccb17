// The device code of nvtune itself: a digest of a buffer that does not depend on the order in which threads add to it.
// digest.ptx is made from this file by
//   nvcc -ptx -arch=compute_75 -o digest.ptx digest.cu
// with the .version and .target lines lowered by hand (nothing in it needs more), so that every driver compiles it.
extern "C" __global__ void nvtune_digest(const unsigned long long *words, unsigned long long count,
                                         unsigned long long *sum)
{
    unsigned long long total = 0;
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        unsigned long long x = words[i] + (i + 1) * 0x9e3779b97f4a7c15ull;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull; // the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
        total += x ^ (x >> 31);
    }
    atomicAdd(sum, total);
}
