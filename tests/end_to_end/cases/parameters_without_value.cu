// A kernel of which no comment can give all parameters: the others tell the launch.
//@tune threads(w, h) block({32, 64}, {1, 4}) default(block = {32, 4}) regs({0})
//@tune args(w = 1920, h = 1080)
__global__ void rows(int w, int h, float *const *rows, cudaTextureObject_t image, float *out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) out[y * w + x] = rows[y][x] + image;
}

//# build sizes_only
//# headers cuda
//# replace + image; => + tex2D<float>(image, x, y);
//# header static dim3 grid(int w, int h)
//#| nvtune: rows: block=*
//#| nvtune: rows: note: 3 of 4 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]

//# build null_pointer
//# replace h = 1080) => h = 1080, rows = nullptr, out = out[w * h])
//#| nvtune: rows: block=*
//#| nvtune: rows: note: 3 of 4 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]

//# build missing_size
//# replace , h = 1080) => )
//# exit 2
//#| parameters_without_value.cu(2): error: the launch of `rows` is not known: `h` has no value; add args(h = ...) [N0157]
//#|   //@tune threads(w, h) block({32, 64}, {1, 4}) default(block = {32, 4}) regs({0})
//#|                      ^
//#|
//#| 1 error detected in the compilation of "parameters_without_value.cu".

//# build pointers_and_texture
//# replace h = 1080) => h = 1080, rows = zeros[4], image = 0, out = out[w * h])
//# exit 2
//#| parameters_without_value.cu(3): error: `rows` is of type `float *const *`: buffers hold numbers, not pointers [N0160]
//#|   //@tune args(w = 1920, h = 1080, rows = zeros[4], image = 0, out = out[w * h])
//#|                                    ^~~~
//#| parameters_without_value.cu(3): note: leave it out of args(...): then the model alone tunes `rows`
//#|   //@tune args(w = 1920, h = 1080, rows = zeros[4], image = 0, out = out[w * h])
//#|                                    ^~~~
//#|
//#| parameters_without_value.cu(3): error: `image` is a texture, which a comment cannot describe [N0161]
//#|   //@tune args(w = 1920, h = 1080, rows = zeros[4], image = 0, out = out[w * h])
//#|                                                     ^~~~~
//#| parameters_without_value.cu(3): note: leave it out of args(...): then the model alone tunes `rows`; or remove args(...) and record a launch
//#|   //@tune args(w = 1920, h = 1080, rows = zeros[4], image = 0, out = out[w * h])
//#|                                                     ^~~~~
//#|
//#| 2 errors detected in the compilation of "parameters_without_value.cu".
