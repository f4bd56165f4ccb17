// Types that nvcc's compilers know by name, in place of CUDA's own headers of types, which take longer to read than all
// else. nvcc's host code reads them a second time, by host_runtime.h.
#ifndef NVTUNE_TESTS_SMALL_TYPES_H
#define NVTUNE_TESTS_SMALL_TYPES_H
#define __DEVICE_TYPES_H__
#define __DRIVER_TYPES_H__
#define __SURFACE_TYPES_H__
#define __TEXTURE_TYPES_H__
#define __VECTOR_TYPES_H__

#define _ALLOW_UNSUPPORTED_LIBCPP // Else <ctype.h> is read.
#include <crt/host_defines.h>
#undef _ALLOW_UNSUPPORTED_LIBCPP

struct __device_builtin__ uint3 { unsigned x, y, z; };
struct __device_builtin__ float3 { float x, y, z; };
struct __device_builtin__ __attribute__((aligned(8))) int2 { int x, y; };
struct __device_builtin__ __attribute__((aligned(8))) uint2 { unsigned x, y; };
struct __device_builtin__ __attribute__((aligned(8))) float2 { float x, y; };
struct __device_builtin__ __attribute__((aligned(16))) int4 { int x, y, z, w; };
struct __device_builtin__ __attribute__((aligned(16))) uint4 { unsigned x, y, z, w; };
struct __device_builtin__ __attribute__((aligned(16))) float4 { float x, y, z, w; };
struct __device_builtin__ __attribute__((aligned(16))) double2 { double x, y; };
struct __device_builtin__ dim3 {
    unsigned x, y, z;
    __host__ __device__ constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
    __host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    __host__ __device__ constexpr operator uint3() const { return uint3{x, y, z}; }
};
#endif
