struct Four {
    float v[4];
};

//@tune threads(n) block(64) args(n = 64, p = {v = {1, 2, 3, 4, 5}}, y = out[n])
__global__ void spread(int n, Four p, float *y) { y[threadIdx.x] = p.v[threadIdx.x % 4]; }

//# build five_for_four
//# exit 2
//#| array_field_with_too_many_values.cu(5): error: `p.v` is of type `float[4]`, and is given 5 elements [N0163]
//#|   //@tune threads(n) block(64) args(n = 64, p = {v = {1, 2, 3, 4, 5}}, y = out[n])
//#|                                                      ^~~~~~~~~~~~~~~
//#|
//#| 1 error detected in the compilation of "array_field_with_too_many_values.cu".
