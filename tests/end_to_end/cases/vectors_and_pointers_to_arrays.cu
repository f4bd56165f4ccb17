// Vectors are listed as C does it, and arrays are numbers next to each other, however a pointer to them is declared.
// A wrong value leaves the kernel nothing to do, which is an error under NVTUNE_STRICT.
//@tune threads(n) block({64, 128}) default(block = 128) regs({0})
//@tune args(n = 1 << 16, v = {1, 2.5}, w = {1, 2, 3}, rows = random[4 * n], columns = iota[4 * n], points = zeros[n])
__global__ void k(int n, const float2 v, float4 w, float (*rows)[4], const int columns[][2][2], float3 *points) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && v.x == 1 && v.y == 2.5f && w.z == 3 && w.w == 0 && columns[i][1][1] == 4 * i + 3)
        rows[i][i % 4] += points[i].x;
}

//# build lists
//# env NVTUNE_STRICT=1
//#| nvtune: k: block=*
//#| nvtune: k: note: 1 of 2 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]

//# build other_vector_value
//# env NVTUNE_STRICT=1
//# replace {1, 2.5} => {x = 1, y = 0}
//# exit 2
//#| vectors_and_pointers_to_arrays.cu(4): warning: `k` accesses no global memory here (unset fields of `v` are 0, unset fields of `w` are 0): change the arguments [N0180]
//#|   //@tune args(n = 1 << 16, v = {x = 1, y = 0}, w = {1, 2, 3}, rows = random[4 * n], columns = iota[4 * n], points = zeros[n])
//#|           ^~~~
//#|
//#| nvtune: k: block=*
//#| nvtune: k: note: 1 of 2 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune error   : NVTUNE_STRICT turns 1 warning into errors: correct what caused it, or unset NVTUNE_STRICT [N0005]

//# build too_many_vector_elements
//# env NVTUNE_STRICT=1
//# replace {1, 2.5} => {1, 2.5, 3}
//# exit 2
//#| vectors_and_pointers_to_arrays.cu(4): error: `v` is of type `float2`: give its fields, as in v = {x = 1, y = 1} [N0160]
//#|   //@tune args(n = 1 << 16, v = {1, 2.5, 3}, w = {1, 2, 3}, rows = random[4 * n], columns = iota[4 * n], points = zeros[n])
//#|                             ^
//#|
//#| 1 error detected in the compilation of "vectors_and_pointers_to_arrays.cu".

//# build number_for_vector
//# env NVTUNE_STRICT=1
//# replace {1, 2.5} => 1
//# exit 2
//#| vectors_and_pointers_to_arrays.cu(4): error: `v` is of type `float2`: give its fields, as in v = {x = 1, y = 1} [N0160]
//#|   //@tune args(n = 1 << 16, v = 1, w = {1, 2, 3}, rows = random[4 * n], columns = iota[4 * n], points = zeros[n])
//#|                             ^
//#|
//#| 1 error detected in the compilation of "vectors_and_pointers_to_arrays.cu".

//# build missing_array_pointer
//# env NVTUNE_STRICT=1
//# replace , rows = random[4 * n] => 
//# exit 2
//#| vectors_and_pointers_to_arrays.cu(4): error: parameter `rows` of `k` has no value: add `rows = ...` to args(...), as in random[4 * 1024] [N0145]
//#|   //@tune args(n = 1 << 16, v = {1, 2.5}, w = {1, 2, 3}, columns = iota[4 * n], points = zeros[n])
//#|           ^~~~
//#|
//#| 1 error detected in the compilation of "vectors_and_pointers_to_arrays.cu".
