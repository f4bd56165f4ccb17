// A comment cannot describe a lambda; a structure with an operator() takes its place.
//@tune template(Scaled) args(n = 1 << 12, f = {k = 2}, y = zeros[n]) threads(n) block({128, 256}) regs({0})
template <class F> __global__ void apply(int n, F f, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = f(i);
}
struct Scaled {
    float k;
    __device__ float operator()(int i) const { return k * i; }
};
void go(int n, float *y, float k) {
    apply<<<(n + 255) / 256, 256>>>(n, [k] __device__(int i) { return k * i; }, y);
    apply<<<(n + 255) / 256, 256>>>(n, Scaled{k}, y);
}

//# build unknown_instance
//# args -O3 -arch=sm_90 -cubin --extended-lambda
//# replace template(Scaled) => template(Other)
//# replace {k = 2} => {}
//#| remedies_for_lambdas.cu(2): warning: `apply` has no instance <Other>: this file makes <Scaled>, <__nv_dl_wrapper_t<__nv_dl_tag<void (*)(int, float *, float), (& go), 1>, float>> (a lambda has no name: pass a structure with an operator() instead); nvcc builds it as it is [N0167]
//#|   //@tune template(Other) args(n = 1 << 12, f = {}, y = zeros[n]) threads(n) block({128, 256}) regs({0})
//#|           ^~~~~~~~
//#|

//# build lambda_among_instances
//# args -O3 -arch=sm_90 -cubin --extended-lambda
//# replace template(Scaled) => template(1)
//# replace {k = 2} => {}
//# replace <class F> => <int N = 1, class F>
//# replace     apply<<<(n + 255) / 256, 256>>>(n, Scaled{k}, y);\n => 
//#| remedies_for_lambdas.cu(2): warning: this type has no name, as a lambda's: pass a structure with an operator(); nvcc builds `apply` as it is [N0161]
//#|   //@tune template(1) args(n = 1 << 12, f = {}, y = zeros[n]) threads(n) block({128, 256}) regs({0})
//#|                                         ^
//#|

//# build structure_without_value
//# args -O3 -arch=sm_90 -cubin --extended-lambda
//# replace , f = {k = 2} => 
//# exit 2
//#| remedies_for_lambdas.cu(2): error: parameter `f` of `apply` has no value: add `f = ...` to args(...), as in {x = 1}, or {} for all 0 [N0145]
//#|   //@tune template(Scaled) args(n = 1 << 12, y = zeros[n]) threads(n) block({128, 256}) regs({0})
//#|                            ^~~~
//#|
//#| 1 error detected in the compilation of "remedies_for_lambdas.cu".

//# build structure
//# args -O3 -arch=sm_90 -c --extended-lambda
//# headers cuda
//#| nvtune: apply_Scaled: block=*
