// nvcc alone says what its assembler refuses.
//@tune threads(n) block({64, 256}) default(block = 256) args(n = 1 << 16, y = out[n])
__global__ void old(int n, unsigned *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned mask = 0;
    asm("vote.ballot.b32 %0, 1;" : "=r"(mask));
    if (i < n) y[i] = mask;
}

//# build vote_without_sync
//# exit 255
//#| ptxas *.ptx, line *; error   : Instruction 'vote' without '.sync' is not supported on .target sm_70 and higher from PTX ISA version 6.4
//#| ptxas fatal   : Ptx assembly aborted due to errors
