// Numbers in arrays of structures that are passed by value.
struct Plan {
    int extent[2];
    float scale[2];
    const float *x;
    int table[2][2];
    int2 origin;
};

//@tune threads(plan.extent[0] * plan.extent[1]) block({64, 256}) default(block = 256) regs({0})
//@tune args(plan = {extent = {64, 32}, scale = {2, 0.5f}, x = {1, 2, 3}[plan.extent[0] * 32]}, y = out[2048])
__global__ void apply(const Plan plan, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < plan.extent[0] * plan.extent[1]) y[i] = plan.x[i] * plan.scale[1];
}

//# build given
//# args -O3 -arch=sm_90 -c
//# times {"label": "block=64", "time_us": 5.0}, {"time_us": 10.0}
//# header static dim3 grid(int plan_extent_0, int plan_extent_1)
//#| nvtune: apply: block=64 (2.00x over the baseline, measured*

//# build element_that_is_not_given
//# replace plan.extent[1]) block => plan.extent[2]) block
//# exit 2
//#| elements_of_arrays.cu(10): error: unknown name `plan.extent[2]`; did you mean `plan.extent[0]`? [N0112]
//#|   //@tune threads(plan.extent[0] * plan.extent[2]) block({64, 256}) default(block = 256) regs({0})
//#|                                    ^~~~~~~~~~~~~~
//#|
//#| 1 error detected in the compilation of "elements_of_arrays.cu".

//# build whole_array
//# replace * plan.extent[1]) block => * plan.extent) block
//# exit 2
//#| elements_of_arrays.cu(10): error: `plan.extent` is a list and has no value in an expression: name an element of an array, `plan.extent[0]` [N0157]
//#|   //@tune threads(plan.extent[0] * plan.extent) block({64, 256}) default(block = 256) regs({0})
//#|                                    ^~~~~~~~~~~
//#|
//#| 1 error detected in the compilation of "elements_of_arrays.cu".

//# build memory_of_the_device
//# replace * plan.extent[1]) block => * plan.x[0]) block
//# args -O3 -arch=sm_90 -c
//# exit 2
//#| elements_of_arrays.cu(10): error: `plan.x` is of type `const float *`: only elements of an array of numbers have a value [N0157]
//#|   //@tune threads(plan.extent[0] * plan.x[0]) block({64, 256}) default(block = 256) regs({0})
//#|                                    ^~~~~~~~~
//#|
//#| 1 error detected in the compilation of "elements_of_arrays.cu".

//# build variable_index
//# replace plan.extent[1]) block => plan.extent[plan.n]) block
//# exit 2
//#| elements_of_arrays.cu(10): error: expected a whole number, found `plan` [N0109]
//#|   //@tune threads(plan.extent[0] * plan.extent[plan.n]) block({64, 256}) default(block = 256) regs({0})
//#|                                                ^~~~
//#|
//#| 1 error detected in the compilation of "elements_of_arrays.cu".

//# build element_of_rows
//# replace * plan.extent[1]) block => * plan.table[0]) block
//# replace args(plan = { => args(plan = {table = {1, 2},
//# args -O3 -arch=sm_90 -c
//# exit 2
//#| elements_of_arrays.cu(10): error: `plan.table` is of type `int[2][2]`: only elements of an array of numbers have a value [N0157]
//#|   //@tune threads(plan.extent[0] * plan.table[0]) block({64, 256}) default(block = 256) regs({0})
//#|                                    ^~~~~~~~~~~~~
//#|
//#| 1 error detected in the compilation of "elements_of_arrays.cu".

//# build element_of_a_vector
//# replace * plan.extent[1]) block => * plan.origin[1]) block
//# replace args(plan = { => args(plan = {origin = {1, 2},
//# args -O3 -arch=sm_90 -c
//# exit 2
//#| elements_of_arrays.cu(10): error: `plan.origin` is of type `int2`: only elements of an array of numbers have a value [N0157]
//#|   //@tune threads(plan.extent[0] * plan.origin[1]) block({64, 256}) default(block = 256) regs({0})
//#|                                    ^~~~~~~~~~~~~~
//#|
//#| 1 error detected in the compilation of "elements_of_arrays.cu".
