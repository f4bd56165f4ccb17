// A CUDA runtime that launches nothing. It says which entry each launch runs and in which shape, what else was called for it,
// and which error it leaves. Devices differ in what goes wrong on them.
#include <driver_types.h>
#include <vector_types.h>

#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace {
struct Pushed {
    dim3 grid, block;
    size_t shared;
    void *stream;
};
thread_local Pushed pushed;
thread_local bool is_pushed;
thread_local int device;
int devices = 65;
thread_local cudaError_t last_error = cudaSuccess;

std::mutex mutex;
bool is_quiet;
// What was called since the last launch that was told of.
std::map<std::string, int> calls;
// Launches of several threads, counted.
std::map<std::string, int> counted;
std::map<std::pair<const void *, int>, cudaFuncAttributes> functions;
int short_of_memory = 1;

std::map<const void *, std::string> &names() {
    static std::map<const void *, std::string> all;
    return all;
}

bool is_winner(const void *function) { return names()[function].find("__nvtune_") != std::string::npos; }

cudaError_t fail(cudaError_t error) { return last_error = error; }

cudaError_t find(const void *function, cudaFuncAttributes **attributes) {
    if (device == 3 && is_winner(function)) return fail(cudaErrorInvalidDeviceFunction);
    if (device == 4 && is_winner(function) && short_of_memory-- > 0) return fail(cudaErrorMemoryAllocation);
    cudaFuncAttributes initial = cudaFuncAttributes();
    initial.maxThreadsPerBlock = device == 6 && is_winner(function) ? 256 : 1024;
    initial.sharedSizeBytes = 1024;
    initial.maxDynamicSharedSizeBytes = 48 * 1024;
    initial.preferredShmemCarveout = -1;
    *attributes = &functions.insert({{function, device}, initial}).first->second;
    return cudaSuccess;
}

cudaError_t launched(const char *how, const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream) {
    std::lock_guard<std::mutex> lock(mutex);
    cudaFuncAttributes *attributes = nullptr;
    const cudaError_t pending = last_error;
    cudaError_t error = cudaSuccess;
    if (find(function, &attributes) != cudaSuccess || shared > size_t(attributes->maxDynamicSharedSizeBytes))
        error = fail(cudaErrorInvalidValue);
    char text[400];
    std::snprintf(text, sizeof text, "  %s%s grid %u %u %u block %u %u %u shared %zu stream %zu", names()[function].c_str(),
                  how, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, reinterpret_cast<size_t>(stream));
    std::string line = text;
    /* The one winner here that has one more argument than its kernel. */
    if (names()[function] == "flat__nvtune_1")
        line += " arguments " + std::to_string(*static_cast<int *>(arguments[0])) + " and " +
                std::to_string(*static_cast<unsigned *>(arguments[2]));
    if (pending != cudaSuccess) line += " pending " + std::to_string(pending);
    if (last_error != pending) line += " error " + std::to_string(last_error);
    if (is_quiet) {
        ++counted[line];
        return error;
    }
    line += ";";
    for (const auto &call : calls) line += " " + call.first + (call.second > 1 ? " x" + std::to_string(call.second) : "");
    calls.clear();
    std::puts(line.c_str());
    return error;
}
}  // namespace

extern "C" {
void fake_case(const char *title) {
    if (title) std::printf("%s\n", title);
}
void fake_device(int current) { device = current; }
void fake_devices(int count) { devices = count; }
void fake_error(cudaError_t error) { last_error = error; }
void fake_reset() { functions.clear(); }
void fake_threads(void (*launches)()) {
    is_quiet = true;
    std::thread one(launches), other(launches);
    one.join();
    other.join();
    for (const auto &line : counted) std::printf("%s: %d times\n", line.first.c_str(), line.second);
}

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
    return launched("", kernel, grid, block, arguments, shared, stream);
}
cudaError_t __cudaLaunchKernel_ptsz(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream) {
    return launched(" (stream per thread)", kernel, grid, block, arguments, shared, stream);
}
cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) {
    return launched("", kernel, grid, block, arguments, shared, stream);
}
cudaError_t cudaLaunchKernel_ptsz(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) {
    return launched(" (stream per thread)", kernel, grid, block, arguments, shared, stream);
}
void **__cudaRegisterFatBinary(void *) { return nullptr; }
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
char __cudaInitModule(void **) { return 0; }
void __cudaRegisterFunction(void **, const char *host, char *, const char *name, int, void *, void *, void *, void *, int *) {
    names()[host] = name;
}

cudaError_t cudaGetDeviceCount(int *count) {
    *count = devices;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int *current) {
    std::lock_guard<std::mutex> lock(mutex);
    ++calls["device"];
    *current = device;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int of) {
    std::lock_guard<std::mutex> lock(mutex);
    const int capability = of == 1 ? 80 : of == 2 ? 75 : 90;
    if (attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin) {
        ++calls["shared"];
        *value = 227 * 1024;
        return cudaSuccess;
    }
    if (attribute == cudaDevAttrMultiProcessorCount) {
        ++calls["processors"];
        *value = 3;
        return cudaSuccess;
    }
    ++calls["capability"];
    *value = attribute == cudaDevAttrComputeCapabilityMajor ? capability / 10 : capability % 10;
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
    *status = stream == reinterpret_cast<cudaStream_t>(8) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, cudaStreamCaptureStatus *status) {
    return cudaStreamIsCapturing(stream, status);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *, int, size_t) {
    std::lock_guard<std::mutex> lock(mutex);
    ++calls["occupancy"];
    *blocks = 1;
    return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *result, const void *function) {
    std::lock_guard<std::mutex> lock(mutex);
    ++calls["attributes"];
    cudaFuncAttributes *attributes = nullptr;
    const cudaError_t error = find(function, &attributes);
    if (error == cudaSuccess) *result = *attributes;
    return error;
}
cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value) {
    std::lock_guard<std::mutex> lock(mutex);
    cudaFuncAttributes *attributes = nullptr;
    const cudaError_t error = find(function, &attributes);
    if (error != cudaSuccess) return error;
    if (!is_winner(function)) {
    } else if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        ++calls["set shared=" + std::to_string(value)];
        if (device == 8) return fail(cudaErrorInvalidValue);
    } else if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) {
        ++calls["set carveout=" + std::to_string(value)];
    } else {
        ++calls["set " + std::to_string(attribute) + "=" + std::to_string(value)];
    }
    switch (attribute) {
        case cudaFuncAttributeMaxDynamicSharedMemorySize: attributes->maxDynamicSharedSizeBytes = value; break;
        case cudaFuncAttributePreferredSharedMemoryCarveout: attributes->preferredShmemCarveout = value; break;
        case cudaFuncAttributeNonPortableClusterSizeAllowed: attributes->nonPortableClusterSizeAllowed = value; break;
        case cudaFuncAttributeRequiredClusterWidth: attributes->requiredClusterWidth = value; break;
        default: return fail(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}
cudaError_t cudaPeekAtLastError() { return last_error; }
cudaError_t cudaGetLastError() {
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}
}
