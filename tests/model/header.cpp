// Prints NVIDIA's own occupancy over a grid of demands read from standard input:
// major minor threads blocks-limit-threads shared shared-per-block reserved | threads registers shared barriers virtual carve-out
#include <cstddef>
#include <cstdio>
#include <cuda_occupancy.h>

int main() {
  int major, minor, max_threads, threads, registers, barriers, resources, carveout;
  size_t shared_sm, shared_block, reserved, shared;
  while (scanf("%d %d %d %zu %zu %zu %d %d %zu %d %d %d", &major, &minor, &max_threads, &shared_sm, &shared_block, &reserved, &threads,
               &registers, &shared, &barriers, &resources, &carveout) == 12) {
    cudaOccDeviceProp device;
    device.computeMajor = major;
    device.computeMinor = minor;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = max_threads;
    device.regsPerBlock = 65536;
    device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.sharedMemPerBlock = 49152;
    device.sharedMemPerMultiprocessor = shared_sm;
    device.numSms = 1;
    device.sharedMemPerBlockOptin = shared_block;
    device.reservedSharedMemPerBlock = reserved;
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024;
    kernel.numRegs = registers;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = shared;
    kernel.numBlockBarriers = barriers;
    kernel.virtualResourceCount = resources;
    cudaOccDeviceState state;
    state.carveoutConfig = carveout;
    cudaOccResult result;
    cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, shared);
    printf("%d\n", error == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -1);
  }
}
