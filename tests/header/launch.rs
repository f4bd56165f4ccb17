//! `nvtune::K::launch` on a stand-in for the CUDA runtime.

use super::*;

/// A stand-in for the CUDA runtime that prints the calls of `launch`.
const RUNTIME: &str = r#"
#include <cuda_runtime_api.h>
#include <stdio.h>
static int most = 49152;
extern "C" cudaError_t CUDARTAPI cudaGetDevice(int *device) { *device = 0; return cudaSuccess; }
extern "C" cudaError_t CUDARTAPI cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 8 : 0;
  return cudaSuccess;
}
extern "C" cudaError_t CUDARTAPI cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *) {
  attributes->maxDynamicSharedSizeBytes = most;
  return cudaSuccess;
}
extern "C" cudaError_t CUDARTAPI cudaFuncSetAttribute(const void *, cudaFuncAttribute attribute, int value) {
  printf("attribute %d = %d\n", attribute, value);
  if (value > 232448) return cudaErrorInvalidValue;
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) most = value;
  return cudaSuccess;
}
extern "C" cudaError_t CUDARTAPI cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *, void **arguments) {
  printf("grid %u %u %u block %u %u %u shared %zu stream %p attributes %u", c->gridDim.x, c->gridDim.y, c->gridDim.z,
         c->blockDim.x, c->blockDim.y, c->blockDim.z, c->dynamicSmemBytes, static_cast<void *>(c->stream), c->numAttrs);
  if (arguments && arguments[0]) printf(" first %d", *static_cast<const int *>(arguments[0]));
  printf("\n");
  return c->gridDim.x == 0 ? cudaErrorInvalidConfiguration : cudaSuccess;
}
"#;

#[test]
fn launch_function_launches_winner() {
    let program = r#"
struct Plan { int n; struct { long rows; } inner; };
void saxpy(int, float, float *) {}
void stencil(int, int, float *) {}
void mixed(const int, int, float *) {}
void strided(int, float *) {}
void planned(const Plan, int, float *) {}
void waiting(int, float *) {}
template <class T, int M> void axpy(int, T, T *) {}
void awkward(int, int, int, float *, const float *, float *, float *) {}
int main() {
  const Plan plan = {1000, {7}};
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(16);
  // Arguments are converted as in any call: the kernel takes an int and a float.
  printf("%d\n", nvtune::saxpy::launch(saxpy, stream, 1000LL, 2, nullptr));
  printf("%d\n", nvtune::saxpy::launch(&saxpy, 0, 0, 2, nullptr));
  printf("%d\n", nvtune::stencil::launch(stencil, 0, 1000, 3, nullptr));
  printf("%d\n", nvtune::stencil::launch(stencil, 0, 1000, 10000, nullptr));
  printf("%d\n", nvtune::stencil::launch(stencil, 0, 1000, 100000, nullptr));
  printf("%d\n", nvtune::strided::launch(strided, 0, 1000, nullptr));
  printf("%d\n", nvtune::planned::launch(planned, 0, plan, 3, nullptr));
  printf("%d\n", nvtune::waiting::launch(waiting, 0, 1000, nullptr));
  printf("%d\n", nvtune::axpy_float_4::launch(axpy<float, 4>, 0, 1000, 1, nullptr));
  printf("%d\n", nvtune::mixed::launch(mixed, 0, 1000, 8, nullptr));
  printf("%d\n", nvtune::awkward::launch(awkward, 0, 1000, 2, 24, nullptr, nullptr, nullptr, nullptr));
}
"#;
    let folder = tempfile::tempdir().expect("a folder");
    let mut said = Vec::new();
    for (compiler, standard) in [("g++", "c++11"), ("clang++", "c++20")] {
        if which::which(compiler).is_err() {
            eprintln!("no {compiler} here: not tried");
            continue;
        }
        let (source, out) = (folder.path().join("launch.cpp"), folder.path().join("launch"));
        std::fs::write(&source, format!("{RUNTIME}{}{program}", includes("", ""))).expect("written");
        let mut compile = Command::new(compiler);
        compile.args(STRICT).arg(format!("-std={standard}")).arg("-isystem").arg(include_folder());
        run(compile.arg("-I").arg(self::folder()).arg(&source).arg("-o").arg(&out));
        said.push(run(&mut Command::new(&out)));
    }
    expect_test::expect![[r#"
        grid 11 1 1 block 96 1 1 shared 0 stream 0x10 attributes 0 first 1000
        0
        grid 0 1 1 block 96 1 1 shared 0 stream (nil) attributes 0 first 0
        9
        grid 8 1 1 block 128 1 1 shared 536 stream (nil) attributes 0 first 1000
        0
        attribute 8 = 80512
        grid 8 1 1 block 128 1 1 shared 80512 stream (nil) attributes 0 first 1000
        0
        attribute 8 = 800512
        1
        grid 264 1 1 block 128 1 1 shared 1056 stream (nil) attributes 0 first 1000
        0
        grid 8 21 1 block 128 1 1 shared 0 stream (nil) attributes 0 first 1000
        0
        grid 264 1 1 block 128 1 1 shared 0 stream (nil) attributes 1 first 1000
        0
        grid 8 1 1 block 128 1 1 shared 0 stream (nil) attributes 0 first 1000
        0
        grid 4 1 1 block 256 1 1 shared 2048 stream (nil) attributes 0 first 1000
        0
        grid 16 1 1 block 128 1 1 shared 344 stream (nil) attributes 0 first 1000
        0
    "#]]
    .assert_eq(&said[0]);
    assert!(said.iter().all(|other| *other == said[0]), "{said:?}");
}
