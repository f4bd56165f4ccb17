// A kernel that reads constant memory, as the host program would fill it, and one that reads device variables.
namespace config {
__constant__ int steps;
}
__constant__ float4 table[64];
static __device__ double scale[2];

//@tune threads(n) block({64, 256}) default(block = 256) regs({0})
//@tune args(n = 1 << 12, y = out[n])
//@tune symbol(table = random[64], config::steps = 24, scale = fill(0.5)[2])
__global__ void lookup(int n, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < config::steps; ++k) sum += table[(i + k) % 64].w;
    y[i] = sum * static_cast<float>(scale[i % 2]);
}

//# build named
//# args -O3 -arch=sm_90 -c
//# times {"label": "block=64", "time_us": 5.0}, {"time_us": 10.0}
//#| nvtune: lookup: block=64 (2.00x over the baseline, measured*

//# build too_many
//# replace table = random[64] => table = random[65]
//# exit 2
//#| contents_of_variables.cu(10): error: variable `table` has 1024 bytes, and is given 1040 [N0163]
//#|   //@tune symbol(table = random[65], config::steps = 24, scale = fill(0.5)[2])
//#|                  ^~~~~
//#|
//#| 1 error detected in the compilation of "contents_of_variables.cu".

//# build unknown
//# replace table = random[64] => tables = random[64]
//#| contents_of_variables.cu(10): warning: the compilation has no variable `tables`; nvcc builds `lookup` as it is [N0165]
//#|   //@tune symbol(tables = random[64], config::steps = 24, scale = fill(0.5)[2])
//#|                  ^~~~~~
//#|

//# build type_not_declared
//# replace static __device__ double scale => static __device__ decltype(0.0) scale
//# exit 2
//#| contents_of_variables.cu(10): error: the type of `scale` is not declared here: write it, as in symbol(float scale = ...) [N0139]
//#|   //@tune symbol(table = random[64], config::steps = 24, scale = fill(0.5)[2])
//#|                                                          ^~~~~
//#|
//#| 1 error detected in the compilation of "contents_of_variables.cu".
