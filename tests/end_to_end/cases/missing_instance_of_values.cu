// Values of template arguments are written as a source writes them.
enum class Kind { Even, Odd };
namespace ns {
template <class T, int N> struct Op {};
}

//@tune template(false, 7) define(WORK = {1, 2}) threads(n) block({64, 256}) default(block = 256, WORK = 1)
//@tune args(n = 1 << 12, x = out[n])
template <bool B, unsigned N, class T = void, Kind K = Kind::Even> __global__ void set(int n, float *x) {
    if (blockIdx.x * blockDim.x + threadIdx.x < n) x[0] = B + N;
}
template __global__ void set<true, 7>(int, float *);
template __global__ void set<false, 3, ns::Op<char, -4> *, Kind::Odd>(int, float *);

//# build numbers
//#| missing_instance_of_values.cu(7): warning: `set` has no instance <false, 7>: this file makes <false, 3, ns::Op<char, -4> *, (Kind)1>, <true, 7, void, (Kind)0>; nvcc builds it as it is [N0167]
//#|   //@tune template(false, 7) define(WORK = {1, 2}) threads(n) block({64, 256}) default(block = 256, WORK = 1)
//#|           ^~~~~~~~
//#|

//# build expression
//# replace template(false, 7) => template(true, WORK * 2)
//#| missing_instance_of_values.cu(7): warning: `set` has no instance <true, 2>: this file makes <false, 3, ns::Op<char, -4> *, (Kind)1>, <true, 7, void, (Kind)0>; nvcc builds it as it is [N0167]
//#|   //@tune template(true, WORK * 2) define(WORK = {1, 2}) threads(n) block({64, 256}) default(block = 256, WORK = 1)
//#|           ^~~~~~~~
//#|

//# build enumerator
//# replace template(false, 7) => template(Kind::Odd, 1)
//#| missing_instance_of_values.cu(7): warning: `set` has no instance <Kind::Odd, 1>: this file makes <false, 3, ns::Op<char, -4> *, (Kind)1>, <true, 7, void, (Kind)0>; nvcc builds it as it is [N0167]
//#|   //@tune template(Kind::Odd, 1) define(WORK = {1, 2}) threads(n) block({64, 256}) default(block = 256, WORK = 1)
//#|           ^~~~~~~~
//#|
