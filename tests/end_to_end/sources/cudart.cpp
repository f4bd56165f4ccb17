// A CUDA runtime that launches nothing and says what it is asked to launch. What comes after `launches:` is what a program's
// launch stubs made of its launches.
#include <driver_types.h>
#include <vector_types.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace {
struct Pushed {
    dim3 grid, block;
    size_t shared;
    void *stream;
} pushed;
bool is_pushed;
std::map<const void *, std::string> &kernels() {
    static std::map<const void *, std::string> all;
    return all;
}

int asked;
cudaError_t last_error = cudaSuccess;

// Launches into stream 13 fail.
cudaError_t launched(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream,
                     unsigned attributes = 0) {
    std::printf("%s grid %u %u %u block %u %u %u shared %zu stream %zu", kernels()[kernel].c_str(), grid.x, grid.y, grid.z,
                block.x, block.y, block.z, shared, reinterpret_cast<size_t>(stream));
    if (arguments) std::printf(" first %d", *static_cast<int *>(arguments[0]));
    std::printf(attributes ? " attributes %u\n" : "\n", attributes);
    return stream == reinterpret_cast<void *>(13) ? last_error = cudaErrorInvalidResourceHandle : cudaSuccess;
}
}  // namespace

extern "C" {
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
    pushed = Pushed{grid, block, shared, stream};
    is_pushed = true;
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    if (!is_pushed) return cudaErrorMissingConfiguration;
    is_pushed = false;
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    *static_cast<void **>(stream) = pushed.stream;
    return cudaSuccess;
}
cudaError_t __cudaGetKernel(const void **kernel, const void *host) {
    *kernel = host;
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream) {
    return launched(kernel, grid, block, arguments, shared, stream);
}
cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream) {
    return launched(kernel, grid, block, arguments, shared, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *with, const void *kernel, void **arguments) {
    return launched(kernel, with->gridDim, with->blockDim, arguments, with->dynamicSmemBytes, with->stream,
                    with->numAttrs);
}
void **__cudaRegisterFatBinary(void *) { return nullptr; }
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
char __cudaInitModule(void **) { return 0; }
void __cudaRegisterFunction(void **, const char *host, char *, const char *name, int, void *, void *, void *, void *, int *) {
    kernels()[host] = name;
}
// The capability of each device is a word of FAKE_CAPABILITIES, the current device is FAKE_DEVICE.
cudaError_t cudaGetDevice(int *device) {
    const char *current = std::getenv("FAKE_DEVICE");
    *device = current ? std::atoi(current) : 0;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
    setenv("FAKE_DEVICE", std::to_string(device).c_str(), 1);
    return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int *count) {
    *count = 4;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
    const char *text = std::getenv("FAKE_CAPABILITIES");
    int capability = 90;
    for (int at = 0; text && at <= device; ++at) capability = static_cast<int>(std::strtol(text, const_cast<char **>(&text), 10));
    ++asked;
    if (attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin) {
        *value = 227 << 10;
        return cudaSuccess;
    }
    if (attribute == cudaDevAttrMultiProcessorCount) {
        *value = 2;
        return cudaSuccess;
    }
    *value = attribute == cudaDevAttrComputeCapabilityMajor ? capability / 10 : capability % 10;
    return cudaSuccess;
}
int fake_asked() { return asked; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *status) {
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *, int, size_t) {
    *blocks = 32;
    return cudaSuccess;
}
// An entry whose name has the text of FAKE_MISSING is in no image of the current device.
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel) {
    const char *missing = std::getenv("FAKE_MISSING");
    ++asked;
    if (!kernels().count(kernel) || (missing && kernels()[kernel].find(missing) != std::string::npos))
        return last_error = cudaErrorInvalidDeviceFunction;
    *attributes = cudaFuncAttributes();
    attributes->maxThreadsPerBlock = 1024;
    attributes->maxDynamicSharedSizeBytes = 48 << 10;
    attributes->preferredShmemCarveout = -1;
    return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute, int value) {
    std::printf("%s attribute %d is %d\n", kernels()[kernel].c_str(), static_cast<int>(attribute), value);
    return cudaSuccess;
}
cudaError_t cudaPeekAtLastError() { return last_error; }
cudaError_t cudaGetLastError() {
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}
}
