// A structure with a pointer to structures.
struct Point {
    float x, y;
};
struct Cloud {
    const Point *points;
    int n;
};

//@tune threads(cloud.n) block({64, 256}) default(block = 256) regs({0})
//@tune args(cloud = {n = 1 << 18, float points = random[2 * cloud.n]}, length = out[cloud.n])
__global__ void lengths(Cloud cloud, float *length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < cloud.n) length[i] = cloud.points[i].x + cloud.points[i].y;
}

//# build floats
//#| nvtune: lengths: block=*
//#| nvtune: lengths: note: 1 of 2 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]

//# build null_pointer
//# replace float points = random[2 * cloud.n] => points = nullptr
//#| nvtune: lengths: block=*
//#| nvtune: lengths: note: 1 of 2 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]

//# build without_element_type
//# replace float points = random[2 * cloud.n] => points = random[1 << 18]
//# exit 2
//#| field_that_points_to_structures.cu(11): error: `cloud.points` is of type `const Point *`: say what numbers it is made of, as in float cloud.points = random[2 * n] [N0160]
//#|   //@tune args(cloud = {n = 1 << 18, points = random[1 << 18]}, length = out[cloud.n])
//#|                                      ^~~~~~
//#|
//#| 1 error detected in the compilation of "field_that_points_to_structures.cu".

//# build structure_as_element_type
//# replace float points = random[2 * cloud.n] => Point points = random[1 << 18]
//# exit 2
//#| field_that_points_to_structures.cu(11): error: `Point` is no type that a buffer is filled with: write float, double, int, float4 or the like [N0161]
//#|   //@tune args(cloud = {n = 1 << 18, Point points = random[1 << 18]}, length = out[cloud.n])
//#|                                            ^~~~~~
//#|
//#| 1 error detected in the compilation of "field_that_points_to_structures.cu".

//# build unknown_member
//# replace float points = random[2 * cloud.n] => float m = 3
//# exit 2
//#| field_that_points_to_structures.cu(11): error: class "Cloud" has no member "m" [N0162]
//#|   //@tune args(cloud = {n = 1 << 18, float m = 3}, length = out[cloud.n])
//#|                                            ^
//#|
//#| 1 error detected in the compilation of "field_that_points_to_structures.cu".
