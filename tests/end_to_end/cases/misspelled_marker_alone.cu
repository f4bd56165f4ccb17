//@tunes block({64, 128}) threads(n)
__global__ void unmarked(int n, float *y) { y[n] = 0; }

//# build warned_and_handed_over
//# args -O3 -arch=sm_90 -c
//# env NVTUNE_BUGDET=3
//#| misspelled_marker_alone.cu(1): warning: this comment does nothing: a tuning comment begins with //@tune [N0108]
//#|   //@tunes block({64, 128}) threads(n)
//#|     ^~~~~~
//#|
