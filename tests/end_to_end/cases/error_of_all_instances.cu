// A template's instances share its comment, and what is wrong with it is said once.
//@tune threads(ceildiv(m, N)) block({64, 128}) template(1) template(2)
template <int N> __global__ void k(int n) {}
template __global__ void k<1>(int);
template __global__ void k<2>(int);

//# build unknown_name
//# exit 2
//#| error_of_all_instances.cu(2): error: unknown name `m`: known are n, block.size/x/y/z [N0112]
//#|   //@tune threads(ceildiv(m, N)) block({64, 128}) template(1) template(2)
//#|                           ^
//#|
//#| 1 error detected in the compilation of "error_of_all_instances.cu".
