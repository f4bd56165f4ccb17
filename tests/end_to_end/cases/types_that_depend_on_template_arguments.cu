// Parameters whose types depend on arguments of the template: a class of a number, typedefs of a class, of numbers
// and of pointers, with a function and a pack among the arguments.
// A wrong value leaves the kernel nothing to do, which is an error under NVTUNE_STRICT.
namespace {
template <int N, class T> struct Tuple {
    T v[N];
};
enum class Mode : short { A = 1, B };
}
template <class T> struct Traits {
    typedef const T *in;
    using out = T *;
    typedef unsigned number;
    typedef double sum;
};
struct Cell {
    float a, b;
};
__device__ float twice(float a) { return 2 * a; }

//@tune template(4, float, twice, int, char) threads(n) block({64, 256}) default(block = 256) regs({0})
//@tune args(n = 1 << 18, p = {v = {1, 2, 3, 4}}, mode = 2, sum = 1.5, x = random[n], y = out[n])
template <int N, class T, float (*F)(float), class... A>
__global__ void k(typename Traits<T>::number n, Tuple<N, T> p, Mode mode, typename Traits<T>::sum sum,
                  typename Traits<T>::in x, typename Traits<T>::out y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && p.v[3] == 4 && mode == Mode::B && sum == 1.5) y[i] = F(x[i]) + sizeof...(A);
}

void go(int n, const float *x, float *y) {
    k<4, float, twice, int, char><<<n / 256, 256>>>(n, {}, Mode::A, 1, x, y);
}

//# build values_of_each_type
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//#| nvtune: k_4_float_twice_int_char: block=*
//#| nvtune: k_4_float_twice_int_char: note: 1 of 2 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]

//# build other_double
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace sum = 1.5, => sum = 1,
//# exit 2
//#| types_that_depend_on_template_arguments.cu(22): warning: `k` accesses no global memory here (unset fields of `p` are 0): change the arguments [N0180]
//#|   //@tune args(n = 1 << 18, p = {v = {1, 2, 3, 4}}, mode = 2, sum = 1, x = random[n], y = out[n])
//#|           ^~~~
//#|
//#| nvtune: k_4_float_twice_int_char: block=*
//#| nvtune: k_4_float_twice_int_char: note: 1 of 2 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune error   : NVTUNE_STRICT turns 1 warning into errors: correct what caused it, or unset NVTUNE_STRICT [N0005]

//# build other_enumerator
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace mode = 2 => mode = 1
//# exit 2
//#| types_that_depend_on_template_arguments.cu(22): warning: `k` accesses no global memory here (unset fields of `p` are 0): change the arguments [N0180]
//#|   //@tune args(n = 1 << 18, p = {v = {1, 2, 3, 4}}, mode = 1, sum = 1.5, x = random[n], y = out[n])
//#|           ^~~~
//#|
//#| nvtune: k_4_float_twice_int_char: block=*
//#| nvtune: k_4_float_twice_int_char: note: 1 of 2 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune error   : NVTUNE_STRICT turns 1 warning into errors: correct what caused it, or unset NVTUNE_STRICT [N0005]

//# build negative_unsigned
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace n = 1 << 18 => n = -1
//# exit 2
//#| types_that_depend_on_template_arguments.cu(21): error: the number of threads is negative: it must be 1 or more [N0156]
//#|   //@tune template(4, float, twice, int, char) threads(n) block({64, 256}) default(block = 256) regs({0})
//#|                                                        ^
//#| types_that_depend_on_template_arguments.cu(22): note: `n` is given here
//#|   //@tune args(n = -1, p = {v = {1, 2, 3, 4}}, mode = 2, sum = 1.5, x = random[n], y = out[n])
//#|                ^
//#|
//#| 1 error detected in the compilation of "types_that_depend_on_template_arguments.cu".

//# build unknown_member
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace {v = {1 => {w = {1
//# exit 2
//#| types_that_depend_on_template_arguments.cu(22): error: class "<unnamed>::Tuple<4, float>" has no member "w" [N0162]
//#|   //@tune args(n = 1 << 18, p = {w = {1, 2, 3, 4}}, mode = 2, sum = 1.5, x = random[n], y = out[n])
//#|                                  ^
//#|
//#| 1 error detected in the compilation of "types_that_depend_on_template_arguments.cu".

//# build number_for_buffer
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace x = random[n] => x = 1
//# exit 2
//#| types_that_depend_on_template_arguments.cu(22): error: `x` is of type `const float *` and takes a buffer, such as random[n], zeros[n] or out[n] [N0160]
//#|   //@tune args(n = 1 << 18, p = {v = {1, 2, 3, 4}}, mode = 2, sum = 1.5, x = 1, y = out[n])
//#|                                                                              ^
//#|
//#| 1 error detected in the compilation of "types_that_depend_on_template_arguments.cu".
