// Templates of one name with as many parameters are overloads, which the types of their parameters tell apart.
//@tune template(float) threads(n) block({64, 128}) default(block = 128)
//@tune args(n = 1 << 16, x = random[n])
template <typename T> __global__ void k(T *x, int n) {
    if (threadIdx.x < n) x[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}
template <typename T> __global__ void k(double *x, T a) { x[blockIdx.x * blockDim.x + threadIdx.x] += a; }

//@tune name(numbered) template(4) threads(n) block({64, 128}) default(block = 128)
//@tune args(n = 1 << 16, x = random[n])
template <int N> __global__ void k(float *x, int n) {
    if (threadIdx.x < n) x[blockIdx.x * blockDim.x + threadIdx.x] += N;
}

void all(int n, float *x, double *y) {
    k<4><<<n / 128, 128>>>(x, n);
    k<float><<<n / 128, 128>>>(y, 2.0f);
    k<float><<<n / 128, 128>>>(x, n);
}

//# build both_overloads
//# args -O3 -arch=sm_90 -c
//#| nvtune: k_float: block=*
//#| nvtune: numbered: block=*

//# build other_overload_only
//# args -O3 -arch=sm_90 -c
//# replace     k<float><<<n / 128, 128>>>(x, n);\n => 
//#| overloaded_templates.cu(4): warning: the compilation has no kernel `k` with parameters of these types, but with (double *, float); nvcc builds it as it is [N0167]
//#|   template <typename T> __global__ void k(T *x, int n) {
//#|                                         ^
//#|
//#| nvtune: numbered: block=*; from the cache
