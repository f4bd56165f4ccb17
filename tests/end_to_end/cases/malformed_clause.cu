//@tune threads(n) bock(64:1024:32)
//@tune args(n = 1 << 20, z = random[n])
__global__ void k(int n, float *x) {}

//# build unknown_clause_and_parameter
//# args -O3 -arch=sm_90 -c
//# files malformed_clause.cu
//# exit 2
//#| malformed_clause.cu(1): error: unknown clause `bock`; did you mean `block`? [N0101]
//#|   //@tune threads(n) bock(64:1024:32)
//#|                      ^~~~
//#|
//#| malformed_clause.cu(2): error: `k` has no parameter `z`: known are n, x [N0144]
//#|   //@tune args(n = 1 << 20, z = random[n])
//#|                             ^
//#|
//#| 2 errors detected in the compilation of "malformed_clause.cu".
