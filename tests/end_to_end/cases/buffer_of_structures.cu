// A buffer of structures, whose comment says what numbers it is made of.
struct Point {
    float x, y;
};

//@tune threads(n) block(auto)
//@tune args(n = 1 << 20, float points = random[2 * n], length = out[n])
__global__ void lengths(int n, const Point *points, float *length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) length[i] = points[i].x + points[i].y;
}

//# build floats
//#| nvtune: lengths: block=*
//#| nvtune: lengths: note: 383 of 384 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]

//# build integers
//# replace float points = random[2 * n] => uint points = random(0, n - 1)[2 * n]
//#| nvtune: lengths: block=*
//#| nvtune: lengths: note: 383 of 384 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]

//# build without_element_type
//# replace float points = random[2 * n] => points = random[n]
//# exit 2
//#| buffer_of_structures.cu(7): error: `points` is of type `const Point *`: say what numbers it is made of, as in float points = random[2 * n] [N0160]
//#|   //@tune args(n = 1 << 20, points = random[n], length = out[n])
//#|                             ^~~~~~
//#|
//#| 1 error detected in the compilation of "buffer_of_structures.cu".

//# build structure_as_element_type
//# replace float points = random[2 * n] => Point points = random[n]
//# exit 2
//#| buffer_of_structures.cu(7): error: `Point` is no type that a buffer is filled with: write float, double, int, float4 or the like [N0161]
//#|   //@tune args(n = 1 << 20, Point points = random[n], length = out[n])
//#|                                   ^~~~~~
//#|
//#| 1 error detected in the compilation of "buffer_of_structures.cu".

//# build unknown_parameter
//# replace float points = random[2 * n] => float n2 = random[n]
//# exit 2
//#| buffer_of_structures.cu(7): error: `lengths` has no parameter `n2`: known are n, points, length [N0144]
//#|   //@tune args(n = 1 << 20, float n2 = random[n], length = out[n])
//#|                                   ^~
//#|
//#| 1 error detected in the compilation of "buffer_of_structures.cu".
