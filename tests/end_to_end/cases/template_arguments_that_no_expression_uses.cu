// A comment whose expressions do not ask for a number is as good in a build that makes it another one, and a type may
// have the name of an enumerator.
#ifndef ITEMS
#define ITEMS 8
#endif
struct Half {
    float x;
};
enum class Kind { Whole, Half };

//@tune template(ITEMS, Half) threads(n)
//@tune args(n = 1 << 16, x = random[n]) block({64, 128}) default(block = 128)
template <int N, typename T> __global__ void k(int n, float *x) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
    for (int i = first; i < first + N && i < n; ++i) x[i] += sizeof(T);
}

void all(int n, float *x) { k<ITEMS, Half><<<n / 128, 128>>>(n, x); }

//# build as_defined
//#| nvtune: k_ITEMS_Half: block=*
//#| nvtune: k_ITEMS_Half: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]

//# build defined_by_the_build
//# args -O3 -arch=sm_90 -cubin -DITEMS=4
//#| nvtune: k_ITEMS_Half: block=*
//#| nvtune: k_ITEMS_Half: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]

//# build used_by_an_expression
//# replace threads(n) => threads(ceildiv(n, N))
//#| nvtune: k_ITEMS_Half: block=*
//#| nvtune: k_ITEMS_Half: note: 23 of 24 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]

//# build macro_axis
//# replace threads(n) => threads(n) define(ITEMS = {8, 4})
//#| nvtune: k_ITEMS_Half: block=*
//#| nvtune: k_ITEMS_Half: note: 47 of 48 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
