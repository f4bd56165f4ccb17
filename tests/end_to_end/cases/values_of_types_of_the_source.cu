// Enumerations, an array in a structure, lists and the instances of a variable template.
// A wrong `m`, `p.mode` or `p.sizes` leaves the kernel nothing to do, which is an error under NVTUNE_STRICT.
enum class Mode : short { A = -1, B };
struct Tag {};
struct Plan {
    float *d;
    int sizes[2][2];
    Mode mode;
    float2 v[3]; float *rows[2];
};
template <class T, int N> __constant__ T lut[N];
namespace ns {
__constant__ unsigned char key[8];
}

//@tune threads(1 << 20) block({64, 256}) default(block = 256) regs({0})
//@tune args(p = {d = random[1 << 20], sizes = {1 << 20, 2}, mode = -1, v = random[3]}, table = {34, 5, 4}[9], tag = {}, m = -1)
//@tune symbol(lut<int, 4> = {1, 2}, ns::key = {1, 2, 0xff})
__global__ void k(Plan p, const unsigned char *table, Tag tag, Mode m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < p.sizes[0][0] && m == Mode::A && p.mode == Mode::A)
        p.d[i] += table[i % 9] + p.v[i % 3].x + lut<int, 4>[i % 4] + ns::key[i % 8] + lut<short, 2>[i % 2];
}

//# build values_of_each_type
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//#| nvtune: k: block=*
//#| nvtune: k: note: 1 of 2 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]

//# build enumerator_parameter
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace m = -1) => m = 0)
//# exit 2
//#| values_of_types_of_the_source.cu(17): warning: `k` accesses no global memory here (unset fields of `p` are 0, unset fields of `tag` are 0, `m` is 0): change the arguments [N0180]
//#|   //@tune args(p = {d = random[1 << 20], sizes = {1 << 20, 2}, mode = -1, v = random[3]}, table = {34, 5, 4}[9], tag = {}, m = 0)
//#|           ^~~~
//#|
//#| nvtune: k: block=*
//#| nvtune: k: note: 1 of 2 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune error   : NVTUNE_STRICT turns 1 warning into errors: correct what caused it, or unset NVTUNE_STRICT [N0005]

//# build enumerator_field
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace mode = -1 => mode = 0
//# exit 2
//#| values_of_types_of_the_source.cu(17): warning: `k` accesses no global memory here (unset fields of `p` are 0, unset fields of `tag` are 0): change the arguments [N0180]
//#|   //@tune args(p = {d = random[1 << 20], sizes = {1 << 20, 2}, mode = 0, v = random[3]}, table = {34, 5, 4}[9], tag = {}, m = -1)
//#|           ^~~~
//#|
//#| nvtune: k: block=*
//#| nvtune: k: note: 1 of 2 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune error   : NVTUNE_STRICT turns 1 warning into errors: correct what caused it, or unset NVTUNE_STRICT [N0005]

//# build array_field
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace sizes = {1 << 20, 2} => sizes = {0, 1 << 20}
//# exit 2
//#| values_of_types_of_the_source.cu(17): warning: `k` accesses no global memory here (unset fields of `p` are 0, unset fields of `tag` are 0): change the arguments [N0180]
//#|   //@tune args(p = {d = random[1 << 20], sizes = {0, 1 << 20}, mode = -1, v = random[3]}, table = {34, 5, 4}[9], tag = {}, m = -1)
//#|           ^~~~
//#|
//#| nvtune: k: block=*
//#| nvtune: k: note: 1 of 2 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune error   : NVTUNE_STRICT turns 1 warning into errors: correct what caused it, or unset NVTUNE_STRICT [N0005]

//# build enumerator_out_of_range
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace m = -1) => m = 1 << 15)
//# exit 2
//#| values_of_types_of_the_source.cu(17): error: `m` is of type `short` and cannot be 32768: it holds -32768 to 32767 [N0160]
//#|   //@tune args(p = {d = random[1 << 20], sizes = {1 << 20, 2}, mode = -1, v = random[3]}, table = {34, 5, 4}[9], tag = {}, m = 1 << 15)
//#|                                                                                                                                ^~~~~~~
//#|
//#| 1 error detected in the compilation of "values_of_types_of_the_source.cu".

//# build list_for_enumerator
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace m = -1) => m = {1, 2})
//# exit 2
//#| values_of_types_of_the_source.cu(17): error: `m` is of type `short` and takes one value, not a list: only macros, block, grid and register caps vary [N0160]
//#|   //@tune args(p = {d = random[1 << 20], sizes = {1 << 20, 2}, mode = -1, v = random[3]}, table = {34, 5, 4}[9], tag = {}, m = {1, 2})
//#|                                                                                                                                ^~~~~~
//#|
//#| 1 error detected in the compilation of "values_of_types_of_the_source.cu".

//# build unknown_enumerator
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace m = -1) => m = C)
//# exit 2
//#| values_of_types_of_the_source.cu(17): error: unknown name `C`: if it is a constant of the source, give its value, as in m = 0 [N0112]
//#|   //@tune args(p = {d = random[1 << 20], sizes = {1 << 20, 2}, mode = -1, v = random[3]}, table = {34, 5, 4}[9], tag = {}, m = C)
//#|                                                                                                                                ^
//#|
//#| 1 error detected in the compilation of "values_of_types_of_the_source.cu".

//# build unknown_scoped_enumerator
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace m = -1) => m = Mode::C)
//# exit 2
//#| values_of_types_of_the_source.cu(17): error: `Mode::` names something of the source, which a comment does not know: give its value [N0112]
//#|   //@tune args(p = {d = random[1 << 20], sizes = {1 << 20, 2}, mode = -1, v = random[3]}, table = {34, 5, 4}[9], tag = {}, m = Mode::C)
//#|                                                                                                                                ^~~~
//#|
//#| 1 error detected in the compilation of "values_of_types_of_the_source.cu".

//# build scoped_enumerator
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace m = -1) => m = Mode::B)
//# exit 2
//#| values_of_types_of_the_source.cu(17): warning: `k` accesses no global memory here (unset fields of `p` are 0, unset fields of `tag` are 0, `m` is 0): change the arguments [N0180]
//#|   //@tune args(p = {d = random[1 << 20], sizes = {1 << 20, 2}, mode = -1, v = random[3]}, table = {34, 5, 4}[9], tag = {}, m = Mode::B)
//#|           ^~~~
//#|
//#| nvtune: k: block=*
//#| nvtune: k: note: 1 of 2 points may not be chosen: a cubin or fatbin has no launch stubs: write launch(header), and launch by the header [N0035]
//#| nvtune error   : NVTUNE_STRICT turns 1 warning into errors: correct what caused it, or unset NVTUNE_STRICT [N0005]

//# build fields_for_buffer
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace {34, 5, 4}[9] => {}
//# exit 2
//#| values_of_types_of_the_source.cu(17): error: `table` is of type `const unsigned char *`, which has no fields [N0162]
//#|   //@tune args(p = {d = random[1 << 20], sizes = {1 << 20, 2}, mode = -1, v = random[3]}, table = {}, tag = {}, m = -1)
//#|                                                                                                   ^~
//#|
//#| 1 error detected in the compilation of "values_of_types_of_the_source.cu".

//# build list_element_out_of_range
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace {34, 5, 4} => {34, 500, 4}
//# exit 2
//#| values_of_types_of_the_source.cu(17): error: `table[1]` is of type `unsigned char` and cannot be 500: it holds 0 to 255 [N0160]
//#|   //@tune args(p = {d = random[1 << 20], sizes = {1 << 20, 2}, mode = -1, v = random[3]}, table = {34, 500, 4}[9], tag = {}, m = -1)
//#|                                                                                                        ^~~
//#|
//#| 1 error detected in the compilation of "values_of_types_of_the_source.cu".

//# build list_longer_than_buffer
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace 4}[9] => 4}[2]
//# exit 2
//#| values_of_types_of_the_source.cu(17): error: 3 values are listed for `table`, which has 2 of them: take some out, or make it longer [N0163]
//#|   //@tune args(p = {d = random[1 << 20], sizes = {1 << 20, 2}, mode = -1, v = random[3]}, table = {34, 5, 4}[2], tag = {}, m = -1)
//#|                                                                                                   ^~~~~~~~~~~~~
//#|
//#| 1 error detected in the compilation of "values_of_types_of_the_source.cu".

//# build list_longer_than_array
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace {1 << 20, 2} => {1, 2, 3, 4, 5}
//# exit 2
//#| values_of_types_of_the_source.cu(17): error: `p.sizes` is of type `int[2][2]`, and is given 5 elements [N0163]
//#|   //@tune args(p = {d = random[1 << 20], sizes = {1, 2, 3, 4, 5}, mode = -1, v = random[3]}, table = {34, 5, 4}[9], tag = {}, m = -1)
//#|                                                  ^~~~~~~~~~~~~~~
//#|
//#| 1 error detected in the compilation of "values_of_types_of_the_source.cu".

//# build number_for_array
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace {1 << 20, 2} => 4
//# exit 2
//#| values_of_types_of_the_source.cu(17): error: `p.sizes` is of type `int[2][2]`: an array in a structure takes a list, as in {1, 2, 3} [N0160]
//#|   //@tune args(p = {d = random[1 << 20], sizes = 4, mode = -1, v = random[3]}, table = {34, 5, 4}[9], tag = {}, m = -1)
//#|                                          ^~~~~
//#|
//#| 1 error detected in the compilation of "values_of_types_of_the_source.cu".

//# build list_for_array_of_pointers
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace mode = -1, v => mode = -1, rows = {1, 2}, v
//# exit 2
//#| values_of_types_of_the_source.cu(17): error: `p.rows` is of type `float *[2]`: only an array of numbers takes a list: leave the field out, or record the launch [N0160]
//#|   //@tune args(p = {d = random[1 << 20], sizes = {1 << 20, 2}, mode = -1, rows = {1, 2}, v = random[3]}, table = {34, 5, 4}[9], tag = {}, m = -1)
//#|                                                                           ^~~~
//#|
//#| 1 error detected in the compilation of "values_of_types_of_the_source.cu".

//# build list_longer_than_variable
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace 0xff} => 3, 4, 5, 6, 7, 8, 9}
//# exit 2
//#| values_of_types_of_the_source.cu(18): error: variable `ns::key` has 8 bytes, and is given 9 [N0163]
//#|   //@tune symbol(lut<int, 4> = {1, 2}, ns::key = {1, 2, 3, 4, 5, 6, 7, 8, 9})
//#|                                        ^~~~~~~
//#|
//#| 1 error detected in the compilation of "values_of_types_of_the_source.cu".

//# build variable_template_without_arguments
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace symbol(lut<int, 4> => symbol(int lut
//# exit 2
//#| values_of_types_of_the_source.cu(18): error: `lut` is a template: say which instance is given, of those that this file makes: `lut<int, 4>`, `lut<short, 2>` [N0165]
//#|   //@tune symbol(int lut = {1, 2}, ns::key = {1, 2, 0xff})
//#|                      ^~~
//#|
//#| 1 error detected in the compilation of "values_of_types_of_the_source.cu".

//# build variable_template_of_no_instance
//# args -O3 -arch=sm_90 -cubin -std=c++17
//# env NVTUNE_STRICT=1
//# replace symbol(lut<int, 4> => symbol(lut<int, 5>
//# exit 2
//#| values_of_types_of_the_source.cu(18): warning: the compilation has no variable `lut<int, 5>`, only `lut<int, 4>`, `lut<short, 2>`; nvcc builds `k` as it is [N0165]
//#|   //@tune symbol(lut<int, 5> = {1, 2}, ns::key = {1, 2, 0xff})
//#|                  ^~~~~~~~~~~
//#|
//#| nvtune error   : NVTUNE_STRICT turns 1 warning into errors: correct what caused it, or unset NVTUNE_STRICT [N0005]
