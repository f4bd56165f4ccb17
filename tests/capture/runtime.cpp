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
#include <vector>

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

// A probe that fills its table with what the program says; it cannot be loaded unless that is enough.
unsigned long long said[16], table[16];
size_t said_words;
int load_module(void **module, const void *code) {
    const char *words = std::strstr(static_cast<const char *>(code), "nvtune_table[");
    if (said_words == 0 || std::strtoul(words + std::strlen("nvtune_table["), nullptr, 10) != said_words) return 218;
    *module = table;
    return 0;
}
int unload_module(void *) { return 0; }
int find_function(void **function, void *module, const char *name) {
    *function = module;
    return std::strcmp(name, "nvtune_probe") != 0;
}
int find_variable(unsigned long long *address, size_t *size, void *module, const char *name) {
    *address = reinterpret_cast<unsigned long long>(module);
    *size = said_words * sizeof *said;
    return std::strcmp(name, "nvtune_table") != 0;
}
int launch_probe(void *, unsigned x, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned, void *, void **given,
                 void **) {
    std::printf("probe grid %u block %u of %d\n", x, threads, *static_cast<int *>(given[0]));
    std::memcpy(table, said, sizeof table);
    return 0;
}

// CUDA arrays and objects as the driver describes them, by their handles.
struct Array {
    unsigned long long words[5];
    std::vector<char> contents;
};
struct Object {
    bool is_texture, has_view;
    unsigned long long resource[18], sampling[13], view[14];
};
std::map<unsigned long long, Object> objects;
template <size_t N> int give(bool is_known, unsigned long long *to, const unsigned long long (&words)[N]) {
    if (is_known) std::memcpy(to, words, sizeof words);
    return !is_known;
}
int texture_resource(unsigned long long *to, unsigned long long handle) {
    return give(objects[handle].is_texture, to, objects[handle].resource);
}
int texture_sampling(unsigned long long *to, unsigned long long handle) {
    return give(objects[handle].is_texture, to, objects[handle].sampling);
}
int texture_view(unsigned long long *to, unsigned long long handle) { return give(objects[handle].has_view, to, objects[handle].view); }
int surface_resource(unsigned long long *to, unsigned long long handle) {
    return give(!objects[handle].is_texture && objects[handle].resource[1] != 0, to, objects[handle].resource);
}
int array_descriptor(unsigned long long *to, const Array *array) {
    std::memcpy(to, array->words, sizeof array->words);
    return 0;
}
// CUDA_MEMCPY3D: a whole array to the host, one row behind the other.
int copy_array(const unsigned long long *words, void *) {
    const Array *array = reinterpret_cast<const Array *>(words[7]);
    const bool is_whole = words[22] * words[23] * words[24] == array->contents.size() && words[20] == words[22] && words[21] == words[23];
    if (words[4] != 3 || words[15] != 1 || !is_whole) return 1;
    std::memcpy(reinterpret_cast<void *>(words[16]), array->contents.data(), array->contents.size());
    return 0;
}
cudaError_t launched(const void *kernel, dim3 grid, dim3 block, size_t shared, unsigned attributes) {
    std::lock_guard<std::mutex> lock(mutex);
    now += 1.0 * grid.x * grid.y * grid.z * block.x * block.y * block.z;
    static std::map<std::string, int> seen;
    char text[200];
    std::snprintf(text, sizeof text, "%s grid %u %u %u block %u %u %u shared %zu%s%s", names()[kernel].c_str(), grid.x, grid.y,
                  grid.z, block.x, block.y, block.z, shared, last_error ? " error" : "", attributes ? " with attributes" : "");
    if (seen[text]++ == 0) std::puts(text);
    return cudaSuccess;
}
const struct {
    const char *name;
    void *function;
} driver[] = {
    {"cuMemGetAddressRange", reinterpret_cast<void *>(address_range)},
    {"cuModuleLoadData", reinterpret_cast<void *>(load_module)},
    {"cuModuleUnload", reinterpret_cast<void *>(unload_module)},
    {"cuModuleGetFunction", reinterpret_cast<void *>(find_function)},
    {"cuModuleGetGlobal", reinterpret_cast<void *>(find_variable)},
    {"cuLaunchKernel", reinterpret_cast<void *>(launch_probe)},
    {"cuTexObjectGetResourceDesc", reinterpret_cast<void *>(texture_resource)},
    {"cuTexObjectGetTextureDesc", reinterpret_cast<void *>(texture_sampling)},
    {"cuTexObjectGetResourceViewDesc", reinterpret_cast<void *>(texture_view)},
    {"cuSurfObjectGetResourceDesc", reinterpret_cast<void *>(surface_resource)},
    {"cuArray3DGetDescriptor", reinterpret_cast<void *>(array_descriptor)},
    {"cuMemcpy3DAsync", reinterpret_cast<void *>(copy_array)},
};
}  // namespace

extern "C" {
void fake_capturing(int capturing) { is_capturing = capturing; }
// What probes find from now on: the beginning and the end of each row.
void fake_probe(const void *const *bounds, size_t words) {
    said_words = words;
    for (size_t i = 0; i < words; ++i) said[i] = reinterpret_cast<unsigned long long>(bounds[i]);
}
// An array of the driver's, of texels with 1 byte or 4.
unsigned long long fake_array(unsigned long long width, unsigned long long height, unsigned long long depth, unsigned format,
                              unsigned channels, unsigned flags, const void *contents) {
    const size_t bytes = width * height * (depth ? depth : 1) * channels * (format == 1 ? 1 : 4);
    const char *const from = static_cast<const char *>(contents);
    return reinterpret_cast<unsigned long long>(
        new Array{{width, height, depth, format | static_cast<unsigned long long>(channels) << 32, flags}, {from, from + bytes}});
}
// A texture with the modes 1, 2 and 3, linear filtering and normalized coordinates, or a surface. Handles are small numbers.
unsigned long long fake_object(int is_texture, unsigned long long type, unsigned long long place, unsigned long long texel,
                               unsigned long long a, unsigned long long b, unsigned long long c, int has_view) {
    const unsigned long long handle = objects.size() + 1;
    objects[handle] = {is_texture != 0, has_view != 0, {type, place, texel, a, b, c}, {1 | 2ULL << 32, 3 | 1ULL << 32, 2}, {1, 5, 3, 2}};
    return handle;
}
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
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *with, const void *kernel, void **) {
    return launched(kernel, with->gridDim, with->blockDim, with->dynamicSmemBytes, with->numAttrs);
}
cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **, size_t shared, cudaStream_t) {
    return launched(kernel, grid, block, shared, 0);
}
cudaError_t __cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **, size_t shared, void *) {
    return launched(kernel, grid, block, shared, 0);
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
    // Above 4 GiB and at a multiple of 256, as a device's memory is.
    *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
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
    for (const auto &known : driver) {
        if (std::strcmp(name, known.name) != 0) continue;
        *function = known.function;
        *found = cudaDriverEntryPointSuccess;
        return cudaSuccess;
    }
    return fail(cudaErrorInvalidValue);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *other) {
    std::swap(mode, *other);
    return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function) {
    attributes->ptxVersion = 90;
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
