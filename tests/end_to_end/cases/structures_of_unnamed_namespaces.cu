// A structure whose type is an instance of a template in a namespace without a name, and a constant structure.
// A wrong `p` leaves the kernel nothing to do, which is an error under NVTUNE_STRICT.
struct Scale {
    float by, plus;
};
__constant__ Scale scale;

namespace a {
namespace {
template <typename T, int N> struct Tuple {
    T v[N];
};

//@tune template(float, 4, Tuple<float, 4>) threads(n) block({64, 256}) default(block = 256) regs({0})
//@tune args(n = 1 << 18, float x = random[4 * n], float y = out[4 * n], p = {v = {1, 2, 3, 4}})
//@tune symbol(float scale = {2, 1})
template <typename T, int N, class W> __global__ void k(int n, const W *x, W *y, W p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int j = 0; j < N; ++j)
        if (i < n && p.v[3] == 4) y[i].v[j] = x[i].v[j] * p.v[j] * scale.by + scale.plus;
}
}

void go(int n, Tuple<float, 4> *x, Tuple<float, 4> *y) { k<float, 4, Tuple<float, 4>><<<n / 256, 256>>>(n, x, y, {}); }
}

//# build lists
//# env NVTUNE_STRICT=1
//# headers cuda
//#| nvtune: k_float_4_Tuple_float_4: block=*
//#| nvtune: k_float_4_Tuple_float_4: note: 1 of 2 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]

//# build constant_without_element_type
//# replace float scale = => scale =
//# exit 2
//#| structures_of_unnamed_namespaces.cu(16): error: `scale` has elements of type `Scale`: say what numbers it is made of, as in symbol(float scale = random[4]) [N0139]
//#|   //@tune symbol(scale = {2, 1})
//#|                  ^~~~~
//#|
//#| 1 error detected in the compilation of "structures_of_unnamed_namespaces.cu".
