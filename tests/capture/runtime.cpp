// A CUDA runtime whose device is the host's memory, and whose launches are printed and do nothing.
#include <driver_types.h>
#include <vector_types.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace {
thread_local struct {
    dim3 grid, block;
    size_t shared;
    void *stream;
} pushed;
thread_local cudaError_t last_error = cudaSuccess;
int is_capturing, is_endless;
// Microseconds: a thread of a launch takes one.
double now;
thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
std::mutex mutex;

std::map<const void *, std::string> &names() {
    static std::map<const void *, std::string> all;
    return all;
}
// Sizes of allocations by their addresses.
std::map<unsigned long long, size_t> &allocations() {
    static std::map<unsigned long long, size_t> all;
    return all;
}
int address_range(unsigned long long *base, size_t *size, unsigned long long address) {
    std::lock_guard<std::mutex> lock(mutex);
    auto behind = allocations().upper_bound(address);
    if (behind == allocations().begin()) return 1;
    --behind;
    if (address - behind->first >= behind->second) return 1;
    *base = behind->first;
    *size = behind->second;
    return 0;
}
cudaError_t fail(cudaError_t error) { return last_error = error; }
}  // namespace

extern "C" {
void fake_capturing(int capturing) { is_capturing = capturing; }
// Launches from now on do not end.
void fake_endless() { is_endless = 1; }
// Nobody waits here, but what waits is told.
int usleep(unsigned) {
    static int pauses;
    if (pauses++ == 0) std::puts("waits");
    return 0;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
    pushed.grid = grid;
    pushed.block = block;
    pushed.shared = shared;
    pushed.stream = stream;
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
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
cudaError_t __cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **, size_t shared, void *) {
    std::lock_guard<std::mutex> lock(mutex);
    now += 1.0 * grid.x * grid.y * grid.z * block.x * block.y * block.z;
    static std::map<std::string, int> seen;
    char text[200];
    std::snprintf(text, sizeof text, "%s grid %u %u %u block %u %u %u shared %zu%s", names()[kernel].c_str(), grid.x, grid.y,
                  grid.z, block.x, block.y, block.z, shared, last_error ? " error" : "");
    if (seen[text]++ == 0) std::puts(text);
    return cudaSuccess;
}
void **__cudaRegisterFatBinary(void *) { return nullptr; }
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
char __cudaInitModule(void **) { return 0; }
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int) {}
void __cudaRegisterFunction(void **, const char *host, char *, const char *name, int, void *, void *, void *, void *, int *) {
    names()[host] = name;
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
    // Above 4 GiB, as a device's memory is.
    *memory = std::malloc(bytes);
    std::lock_guard<std::mutex> lock(mutex);
    allocations()[reinterpret_cast<unsigned long long>(*memory)] = bytes;
    return cudaSuccess;
}
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind) {
    std::memcpy(const_cast<char *>(static_cast<const char *>(symbol)) + offset, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
    std::memcpy(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return is_capturing ? fail(cudaErrorStreamCaptureUnsupported) : cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *status) {
    *status = is_capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) {
    *address = const_cast<void *>(symbol);
    return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *found) {
    if (std::strcmp(name, "cuMemGetAddressRange") != 0) return fail(cudaErrorInvalidValue);
    *function = reinterpret_cast<void *>(address_range);
    *found = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *other) {
    std::swap(mode, *other);
    return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, const void *function) {
    return names().count(function) ? cudaSuccess : fail(cudaErrorInvalidDeviceFunction);
}
cudaError_t cudaEventCreate(cudaEvent_t *event) {
    *event = reinterpret_cast<cudaEvent_t>(new double(-1));
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete reinterpret_cast<double *>(event);
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
    std::lock_guard<std::mutex> lock(mutex);
    *reinterpret_cast<double *>(event) = now;
    return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) {
    if (mode != cudaStreamCaptureModeRelaxed) return fail(cudaErrorStreamCaptureUnsupported);
    return is_endless ? fail(cudaErrorNotReady) : cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t first, cudaEvent_t last) {
    *milliseconds = static_cast<float>((*reinterpret_cast<double *>(last) - *reinterpret_cast<double *>(first)) / 1000);
    return cudaSuccess;
}
cudaError_t cudaPeekAtLastError() { return last_error; }
cudaError_t cudaGetLastError() {
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}
}
