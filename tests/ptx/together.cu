// Threads that need each other: by votes, shuffles, matches and shared memory.
__global__ void probe(unsigned n, const unsigned *keys, const unsigned *table, unsigned *found)
{
    // Eight threads look for one key; it lies up to 50 slots behind where the search begins.
    unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) / 8, lane = threadIdx.x % 8;
    unsigned shift = threadIdx.x % 32 / 8 * 8, group = 0xffu << shift;
    if (i >= n)
        return;
    unsigned key = keys[i], slot = key - key % 50 + lane;
#pragma unroll 1
    while (true) {
        unsigned here = __ballot_sync(group, table[slot] == key) >> shift & 0xff;
        if (here) {
            if (lane == __ffs(here) - 1)
                found[i] = slot;
            return;
        }
        slot += 8;
    }
}

// Keys of a block in the order of their lowest 4 bits: ranks come from a match in the warp and counts in shared memory.
__global__ void sorted(const unsigned *keys, unsigned *result)
{
    __shared__ unsigned counts[8][16], starts[16];
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (unsigned at = threadIdx.x; at < 8 * 16; at += blockDim.x)
        counts[at / 16][at % 16] = 0;
    __syncthreads();
    unsigned key = keys[blockIdx.x * blockDim.x + threadIdx.x], digit = key % 16;
    unsigned peers = __match_any_sync(~0u, digit), before = __popc(peers & ((1u << lane) - 1));
    if (before == 0)
        counts[warp][digit] = __popc(peers);
    __syncthreads();
    if (threadIdx.x < 16) {
        unsigned total = 0;
        for (int w = 0; w < 8; ++w) {
            unsigned count = counts[w][threadIdx.x];
            counts[w][threadIdx.x] = total;
            total += count;
        }
        unsigned sum = total;
        for (int apart = 1; apart < 16; apart *= 2) {
            unsigned below = __shfl_up_sync(0xffff, sum, apart, 16);
            if (threadIdx.x >= apart)
                sum += below;
        }
        starts[threadIdx.x] = sum - total;
    }
    __syncthreads();
    result[blockIdx.x * blockDim.x + starts[digit] + counts[warp][digit] + before] = key;
}

__global__ void summed(const unsigned *x, unsigned *sums)
{
    __shared__ unsigned parts[32];
    unsigned sum = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int apart = 16; apart > 0; apart /= 2)
        sum += __shfl_xor_sync(~0u, sum, apart);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned w = 1; w < blockDim.x / 32; ++w)
            sum += parts[w];
        sums[blockIdx.x] = sum;
    }
}

// Everybody finds the end of his chain in shared memory; the rounds end when a count of all threads says so.
__global__ void chains(const unsigned *next, unsigned *ends)
{
    __shared__ unsigned links[256];
    links[threadIdx.x] = min(next[threadIdx.x] + 1, blockDim.x - 1);
    int changed;
    do {
        __syncthreads();
        unsigned to = links[links[threadIdx.x]];
        __syncthreads();
        changed = __syncthreads_count(links[threadIdx.x] != to);
        links[threadIdx.x] = to;
    } while (changed);
    ends[threadIdx.x] = links[threadIdx.x];
}

// Everybody adds to one sum under a lock that one lane of the warp gets at a time.
__global__ void locked(unsigned *sum)
{
    __shared__ unsigned lock, total;
    if (threadIdx.x == 0)
        lock = total = 0;
    __syncthreads();
    for (bool done = false; !done;) {
        if (atomicCAS(&lock, 0, 1) == 0) {
            total = total + threadIdx.x;
            __threadfence_block();
            atomicExch(&lock, 0);
            done = true;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0)
        *sum = total;
}
