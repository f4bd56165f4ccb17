// A search that finds nothing stores nothing, and yet its workload is not idle.
//@tune threads(n) block({64, 256}) default(block = 256) regs({0})
//@tune args(n = 1 << 16, sought = 7, found = out[1])
__global__ void search(unsigned n, unsigned sought, unsigned *found) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, hash = i;
    for (int round = 0; round < 64; ++round) hash = (hash ^ hash >> 15) * 0x2c1b3c6du + round;
    if (i < n && hash == sought) *found = i;
}

//# build strict
//# args -O3 -arch=sm_90 -c
//# env NVTUNE_STRICT=1
//#| nvtune: search: block=*
