// An expression takes a constant for what its file, or one that is included with quotes, defines it as. A build that
// makes it another one is warned of.
#include "sizes.h"
constexpr int ITEMS = 1 << 3;
enum { NONE, ENTRIES = 8 };
#define HALF 4
#define WHOLE (HALF * 2)
namespace ns {
struct S {
    static constexpr int WITHIN{8};
};
}
#ifndef GIVEN
#define GIVEN 8
#endif

//@tune template(ITEMS) threads(ceildiv(n, N)) block({64, 128}) default(block = 128)
//@tune args(n = 1 << 16, x = random[n])
template <int N> __global__ void items(int n, float *x) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
    for (int i = first; i < first + N && i < n; ++i) x[i] += 1;
}
template __global__ void items<ITEMS>(int, float *);

//@tune template(ENTRIES) threads(ceildiv(n, N)) block({64, 128}) default(block = 128)
//@tune args(n = 1 << 16, x = random[n])
template <int N> __global__ void entries(int n, float *x) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
    for (int i = first; i < first + N && i < n; ++i) x[i] += 1;
}
template __global__ void entries<ENTRIES>(int, float *);

//@tune template(WHOLE) threads(ceildiv(n, N)) block({64, 128}) default(block = 128)
//@tune args(n = 1 << 16, x = random[n])
template <int N> __global__ void whole(int n, float *x) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
    for (int i = first; i < first + N && i < n; ++i) x[i] += 1;
}
template __global__ void whole<WHOLE>(int, float *);

//@tune template(ns::S::WITHIN) threads(ceildiv(n, N)) block({64, 128}) default(block = 128)
//@tune args(n = 1 << 16, x = random[n])
template <int N> __global__ void within(int n, float *x) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
    for (int i = first; i < first + N && i < n; ++i) x[i] += 1;
}
template __global__ void within<ns::S::WITHIN>(int, float *);

//@tune template(GIVEN) threads(ceildiv(n, N)) block({64, 128}) default(block = 128)
//@tune args(n = 1 << 16, x = random[n])
template <int N> __global__ void given(int n, float *x) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
    for (int i = first; i < first + N && i < n; ++i) x[i] += 1;
}
template __global__ void given<GIVEN>(int, float *);

//@tune template(ROWS) threads(ceildiv(n, N)) block({64, 128}) default(block = 128)
//@tune args(n = 1 << 16, x = random[n])
template <int N> __global__ void rows(int n, float *x) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
    for (int i = first; i < first + N && i < n; ++i) x[i] += 1;
}
template __global__ void rows<ROWS>(int, float *);

//@tune template(sizes::WIDTH) threads(ceildiv(n, N)) block({64, 128}) default(block = 128)
//@tune args(n = 1 << 16, x = random[n])
template <int N> __global__ void width(int n, float *x) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
    for (int i = first; i < first + N && i < n; ++i) x[i] += 1;
}
template __global__ void width<sizes::WIDTH>(int, float *);

//@tune template(SIZE) threads(ceildiv(n, N)) block({64, 128}) default(block = 128)
//@tune args(n = 1 << 16, x = random[n])
template <int N> __global__ void size(int n, float *x) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
    for (int i = first; i < first + N && i < n; ++i) x[i] += 1;
}
template __global__ void size<SIZE>(int, float *);

//# build as_defined
//#| nvtune: items_ITEMS: block=*
//#| nvtune: items_ITEMS: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: entries_ENTRIES: block=*
//#| nvtune: entries_ENTRIES: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: whole_WHOLE: block=*
//#| nvtune: whole_WHOLE: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: within_ns_S_WITHIN: block=*
//#| nvtune: within_ns_S_WITHIN: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: given_GIVEN: block=*
//#| nvtune: given_GIVEN: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: rows_ROWS: block=*
//#| nvtune: rows_ROWS: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: width_sizes_WIDTH: block=*
//#| nvtune: width_sizes_WIDTH: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: size_SIZE: block=*
//#| nvtune: size_SIZE: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]

//# build defined_by_the_build
//# args -O3 -arch=sm_90 -cubin -DGIVEN=4 -DSIZE=4
//#| constants_as_template_arguments.cu(49): warning: `GIVEN` is 4 in this build, and 8 in the source: write the number in `template`; nvcc builds `given` as it is [N0168]
//#|   //@tune template(GIVEN) threads(ceildiv(n, N)) block({64, 128}) default(block = 128)
//#|           ^~~~~~~~
//#|
//#| constants_as_template_arguments.cu(73): warning: `SIZE` is 4 in this build, and 8 in the source: write the number in `template`; nvcc builds `size` as it is [N0168]
//#|   //@tune template(SIZE) threads(ceildiv(n, N)) block({64, 128}) default(block = 128)
//#|           ^~~~~~~~
//#|
//#| nvtune: items_ITEMS: block=*; from the cache
//#| nvtune: items_ITEMS: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: entries_ENTRIES: block=*; from the cache
//#| nvtune: entries_ENTRIES: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: whole_WHOLE: block=*; from the cache
//#| nvtune: whole_WHOLE: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: within_ns_S_WITHIN: block=*; from the cache
//#| nvtune: within_ns_S_WITHIN: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: rows_ROWS: block=*; from the cache
//#| nvtune: rows_ROWS: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: width_sizes_WIDTH: block=*; from the cache
//#| nvtune: width_sizes_WIDTH: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]

//# build defined_by_both
//# args -O3 -arch=sm_90 -cubin -DSIZE=16
//# replace #include => #define SIZE 16\n#include
//#| nvtune: items_ITEMS: block=*; from the cache
//#| nvtune: items_ITEMS: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: entries_ENTRIES: block=*; from the cache
//#| nvtune: entries_ENTRIES: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: whole_WHOLE: block=*; from the cache
//#| nvtune: whole_WHOLE: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: within_ns_S_WITHIN: block=*; from the cache
//#| nvtune: within_ns_S_WITHIN: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: given_GIVEN: block=*; from the cache
//#| nvtune: given_GIVEN: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: rows_ROWS: block=*; from the cache
//#| nvtune: rows_ROWS: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: width_sizes_WIDTH: block=*; from the cache
//#| nvtune: width_sizes_WIDTH: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune: size_SIZE: block=*
//#| nvtune: size_SIZE: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
